#include "ingest/sender.h"

#include "base/mem.h"
#include "ingest/kafka_client.h"
#include "ingest/kafka_closing.h"

struct sender {
  rd_kafka_t *rk;
  sender_reported reported;
  void *context;
};

/* A message waits for its broker for as long as it takes: a reply that was promised is not dropped for a restart. */
static const struct kafka_property defaults[] = {
  { "linger.ms", "0" },          { "socket.nagle.disable", "true" },           { "acks", "all" },
  { "message.timeout.ms", "0" }, { "queue.buffering.max.messages", "100000" },
};

static bool is_retriable(rd_kafka_resp_err_t error)
{
  return error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || error == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
         error == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT || error == RD_KAFKA_RESP_ERR__DESTROY ||
         error == RD_KAFKA_RESP_ERR__TRANSPORT;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
  struct sender *s = opaque;
  struct sender_report report = {
    .opaque = message->_private,
    .is_delivered = message->err == RD_KAFKA_RESP_ERR_NO_ERROR,
    .is_retriable = is_retriable(message->err),
    .reason = message->err ? rd_kafka_err2str(message->err) : NULL,
    .partition = message->partition,
    .offset = message->offset,
  };

  (void)rk;
  if (s->reported)
    s->reported(s->context, &report);
}

err_t sender_open(const struct kafka_layers *layers, sender_reported reported, void *context, struct sender **out)
{
  AUTO(sender_close) struct sender *s = NULL;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  rd_kafka_conf_t *conf;

  TRY(mem_array(1, sizeof *s, &s));
  s->reported = reported;
  s->context = context;
  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_conf_set_opaque(conf, s);
  TRY(kafka_client_new(RD_KAFKA_PRODUCER, conf, &s->rk));
  *out = s;
  s = NULL;
  return ERR_OK;
}

static void destroy_client(void *object)
{
  struct sender *s = object;

  rd_kafka_destroy(s->rk);
  mem_free(&s);
}

void sender_close(struct sender **s)
{
  if (*s && (*s)->rk) {
    rd_kafka_purge((*s)->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush((*s)->rk, 1000); /* runs the reports of what was purged: destroying runs none */
    kafka_closing_run("producer", destroy_client, *s);
    *s = NULL;
  }
  mem_free(s);
}

/* Headers of a message: librdkafka's once it has the message, ours before. */
static rd_kafka_headers_t *make_headers(const struct sender_message *message)
{
  rd_kafka_headers_t *headers = rd_kafka_headers_new(message->n_headers);

  for (size_t i = 0; i < message->n_headers; i++)
    rd_kafka_header_add(headers, message->headers[i].name, -1, message->headers[i].value.p,
                        (ssize_t)message->headers[i].value.n);
  return headers;
}

err_t sender_send(struct sender *s, const struct sender_message *message)
{
  rd_kafka_headers_t *headers = make_headers(message);
  static const uint8_t nothing = 0; /* present but empty, where a null pointer would mean absent */
  const void *key = message->has_key ? (message->key.n ? message->key.p : &nothing) : NULL;
  const void *value = message->has_value ? (message->value.n ? message->value.p : &nothing) : NULL;
  rd_kafka_resp_err_t error = rd_kafka_producev(
      s->rk, RD_KAFKA_V_TOPIC(message->topic), RD_KAFKA_V_KEY(key, message->has_key ? message->key.n : 0),
      RD_KAFKA_V_VALUE((void *)(uintptr_t)value, message->has_value ? message->value.n : 0),
      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(message->opaque),
      RD_KAFKA_V_END);

  if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
    return ERR_OK;
  rd_kafka_headers_destroy(headers);
  if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL)
    FAIL(ERR_KAFKA_RETRY, "the producer's queue is full");
  FAIL(ERR_KAFKA, "a message for topic %s cannot be sent: %s", message->topic, rd_kafka_err2str(error));
}

void sender_poll(struct sender *s, int timeout_ms)
{
  rd_kafka_poll(s->rk, timeout_ms);
}

size_t sender_n_waiting(struct sender *s)
{
  return (size_t)rd_kafka_outq_len(s->rk);
}

err_t sender_flush(struct sender *s, int timeout_ms)
{
  if (rd_kafka_flush(s->rk, timeout_ms) != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA_RETRY, "%zu messages are still waiting for their broker after %d ms", sender_n_waiting(s),
         timeout_ms);
  return ERR_OK;
}
