/* SPDX-License-Identifier: Apache-2.0 */
/* The producer, and the mapping from librdkafka's errors to fates. */
#include "ingest/kafka/sender.h"

#include "base/mem.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_topic.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_renewal.h"

struct sender {
  rd_kafka_t *rk;
  sender_reported reported;
  void *context;
  uint64_t version; /* kafka_renewal_version() when it was opened */
};

/* message.timeout.ms is 0: a message waits for its broker without limit, so a broker restart drops no reply. */
static const struct kafka_property defaults[] = {
  { "linger.ms", "0" },          { "socket.nagle.disable", "true" },           { "acks", "all" },
  { "message.timeout.ms", "0" }, { "queue.buffering.max.messages", "100000" },
};

/* Return the fate for an error. librdkafka's own classes do not help: it has already repeated what it may repeat, and
 * the fate tells whether a later try can succeed. */
static enum sender_fate fate_of(rd_kafka_resp_err_t error)
{
  switch (error) {
  case RD_KAFKA_RESP_ERR__QUEUE_FULL:
    return SENDER_FULL;
  case RD_KAFKA_RESP_ERR__FATAL:
    return SENDER_FATAL;
  case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
  case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
  case RD_KAFKA_RESP_ERR__DESTROY:
    return SENDER_CLOSED;
  case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
  case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    return SENDER_TOO_LARGE;
  case RD_KAFKA_RESP_ERR__INVALID_ARG:
  case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
  case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
  case RD_KAFKA_RESP_ERR_INVALID_RECORD: /* a compacted topic requires a key */
  case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    return SENDER_REFUSED;
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
  case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
  case RD_KAFKA_RESP_ERR__TRANSPORT:
  case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
  case RD_KAFKA_RESP_ERR__TIMED_OUT:
  case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
  case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
  case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
  case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
  case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
  case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
  case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
    return SENDER_AWAY;
  default:
    return SENDER_UNSURE;
  }
}

/* Return the fate for an error of this sender. After a fatal error other errors follow from it; the fate is then
 * SENDER_FATAL. */
static enum sender_fate fate_in(const struct sender *s, rd_kafka_resp_err_t error)
{
  enum sender_fate fate = fate_of(error);
  char reason[8];

  if (fate != SENDER_CLOSED && rd_kafka_fatal_error(s->rk, reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return SENDER_FATAL;
  return fate;
}

static size_t read_headers(const rd_kafka_message_t *message, struct sender_header *out)
{
  rd_kafka_headers_t *headers;
  size_t n = 0;

  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return 0;
  while (n < SENDER_HEADERS_MAX) {
    const void *value;
    size_t n_value;
    if (rd_kafka_header_get_all(headers, n, &out[n].name, &value, &n_value) != RD_KAFKA_RESP_ERR_NO_ERROR)
      break;
    out[n++].value = span_of(value, n_value);
  }
  return n;
}

/* A message without a partition has waited for the client to learn the topic's partitions. */
static const char *reason_of(const rd_kafka_message_t *message)
{
  if (message->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT && message->partition == RD_KAFKA_PARTITION_UA)
    return "Local: Message timed out: no broker has said where the topic is, or the topic does not exist";
  return rd_kafka_err2str(message->err);
}

static void report_failure(struct sender *s, const rd_kafka_message_t *message, struct sender_report *report)
{
  struct sender_header headers[SENDER_HEADERS_MAX];
  struct sender_message sent = {
    .topic = rd_kafka_topic_name(message->rkt),
    .has_key = message->key != NULL,
    .key = span_of(message->key, message->key_len),
    .has_value = message->payload != NULL,
    .value = span_of(message->payload, message->len),
    .headers = headers,
    .n_headers = read_headers(message, headers),
    .opaque = message->_private,
  };

  report->fate = fate_in(s, message->err);
  report->reason = reason_of(message);
  report->message = &sent;
  s->reported(s->context, report);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
  struct sender *s = opaque;
  struct sender_report report = {
    .opaque = message->_private,
    .fate = SENDER_DELIVERED,
    .partition = message->partition,
    .offset = message->offset,
  };

  (void)rk;
  if (s->reported && message->err)
    report_failure(s, message, &report);
  else if (s->reported)
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
  s->version = kafka_renewal_version();
  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_conf_set_opaque(conf, s);
  TRY(kafka_client_new(RD_KAFKA_PRODUCER, conf, &s->rk));
  kafka_stats_watch(s->rk, all.client);
  *out = s;
  s = NULL;
  return ERR_OK;
}

void sender_prepare(struct sender *s, const char *topic, int timeout_ms)
{
  (void)kafka_topic_is_there(s->rk, topic, timeout_ms); /* its metadata is cached now */
}

static void destroy_client(void *object)
{
  struct sender *s = object;

  kafka_client_destroy(s->rk, 0);
  mem_free(&s);
}

void sender_close(struct sender **s)
{
  if (*s && (*s)->rk) {
    rd_kafka_purge((*s)->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush((*s)->rk, 1000); /* runs the reports of the purged messages; destroying runs none */
    kafka_closing_run("producer", destroy_client, *s);
    *s = NULL;
  }
  mem_free(s);
}

/* Make the headers of a message. The caller owns them until librdkafka accepts the message. */
static rd_kafka_headers_t *make_headers(const struct sender_message *message)
{
  rd_kafka_headers_t *headers = rd_kafka_headers_new(message->n_headers);

  for (size_t i = 0; i < message->n_headers; i++)
    rd_kafka_header_add(headers, message->headers[i].name, -1, message->headers[i].value.p,
                        (ssize_t)message->headers[i].value.n);
  return headers;
}

enum sender_fate sender_try(struct sender *s, const struct sender_message *message, const char **reason)
{
  rd_kafka_headers_t *headers = make_headers(message);
  static const uint8_t nothing = 0; /* for present but empty bytes: a null pointer would mean absent */
  const void *key = message->has_key ? (message->key.n ? message->key.p : &nothing) : NULL;
  const void *value = message->has_value ? (message->value.n ? message->value.p : &nothing) : NULL;
  int32_t partition = message->has_partition ? message->partition : RD_KAFKA_PARTITION_UA;
  rd_kafka_resp_err_t error =
      rd_kafka_producev(s->rk, RD_KAFKA_V_TOPIC(message->topic), RD_KAFKA_V_PARTITION(partition),
                        RD_KAFKA_V_KEY(key, message->has_key ? message->key.n : 0),
                        RD_KAFKA_V_VALUE((void *)(uintptr_t)value, message->has_value ? message->value.n : 0),
                        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                        RD_KAFKA_V_OPAQUE(message->opaque), RD_KAFKA_V_END);

  if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
    return SENDER_QUEUED;
  rd_kafka_headers_destroy(headers);
  *reason = rd_kafka_err2str(error);
  return fate_in(s, error);
}

err_t sender_send(struct sender *s, const struct sender_message *message)
{
  const char *reason;
  enum sender_fate fate = sender_try(s, message, &reason);

  if (fate == SENDER_QUEUED)
    return ERR_OK;
  if (fate == SENDER_FULL)
    FAIL(ERR_KAFKA_RETRY, "the producer's queue is full");
  FAIL(ERR_KAFKA, "a message for topic %s cannot be sent: %s", message->topic, reason);
}

/* Return the bytes that a copy needs after its struct and headers. Strings end with a zero byte. */
static size_t size_of(const struct sender_message *message, size_t n_headers)
{
  size_t n = strlen(message->topic) + 1 + message->key.n + message->value.n;

  for (size_t i = 0; i < n_headers; i++)
    n += strlen(message->headers[i].name) + 1 + message->headers[i].value.n;
  return n;
}

static void *put(uint8_t **end, const void *bytes, size_t n)
{
  uint8_t *begin = *end;

  if (n)
    memcpy(begin, bytes, n);
  *end += n;
  return begin;
}

err_t sender_message_copy(const struct sender_message *message, struct sender_message **out)
{
  size_t n_headers = message->n_headers < SENDER_HEADERS_MAX ? message->n_headers : SENDER_HEADERS_MAX;
  struct sender_message *copy;
  struct sender_header *headers;

  TRY(mem_array(1, sizeof *copy + n_headers * sizeof *headers + size_of(message, n_headers), &copy));
  headers = (struct sender_header *)(copy + 1);
  uint8_t *end = (uint8_t *)(headers + n_headers);
  *copy = *message;
  copy->topic = put(&end, message->topic, strlen(message->topic) + 1);
  copy->key.p = put(&end, message->key.p, message->key.n);
  copy->value.p = put(&end, message->value.p, message->value.n);
  copy->headers = headers;
  copy->n_headers = n_headers;
  for (size_t i = 0; i < n_headers; i++) {
    const struct sender_header *from = &message->headers[i];
    headers[i].name = put(&end, from->name, strlen(from->name) + 1);
    headers[i].value = span_of(put(&end, from->value.p, from->value.n), from->value.n);
  }
  *out = copy;
  return ERR_OK;
}

struct rd_kafka_s *sender_client(const struct sender *s)
{
  return s->rk;
}

void sender_poll(struct sender *s, int timeout_ms)
{
  rd_kafka_poll(s->rk, timeout_ms);
}

bool sender_is_outdated(const struct sender *s)
{
  return s->version != kafka_renewal_version();
}

void sender_take_back(struct sender *s)
{
  rd_kafka_purge(s->rk, RD_KAFKA_PURGE_F_QUEUE);
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
