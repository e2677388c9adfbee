/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that assigns all partitions of the answer topic at their ends. */
#include "ingest/answer_reader.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/kafka_client.h"
#include "ingest/kafka_closing.h"
#include "ingest/topics.h"

struct answer_reader {
  rd_kafka_t *rk;
  rd_kafka_message_t *message; /* the one that the caller has */
};

/* librdkafka needs a group id to assign partitions. Nobody joins the group, and nothing is committed to it. */
static const struct kafka_property defaults[] = {
  { "group.id", "sluice-answer-reader" },  { "enable.auto.commit", "false" },
  { "enable.auto.offset.store", "false" }, { "auto.offset.reset", "error" },
  { "allow.auto.create.topics", "false" }, { "socket.nagle.disable", "true" },
  { "fetch.wait.max.ms", "100" },          { "fetch.error.backoff.ms", "20" },
};

static void destroy_list(rd_kafka_topic_partition_list_t **list)
{
  if (*list)
    rd_kafka_topic_partition_list_destroy(*list);
}

static err_t find_end(rd_kafka_t *rk, const char *topic, int32_t partition, int64_t deadline_ns, int64_t *end)
{
  int64_t first;
  rd_kafka_resp_err_t error =
      rd_kafka_query_watermark_offsets(rk, topic, partition, &first, end, kafka_ms_until(deadline_ns));

  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA_RETRY, "the end of topic %s, partition %d, is unknown: %s", topic, partition,
         rd_kafka_err2str(error));
  return ERR_OK;
}

static err_t assign_ends(rd_kafka_t *rk, const char *topic, int n_partitions, int64_t deadline_ns)
{
  AUTO(destroy_list) rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n_partitions);

  for (int32_t i = 0; i < n_partitions; i++) {
    int64_t end;
    TRY(find_end(rk, topic, i, deadline_ns, &end));
    rd_kafka_topic_partition_list_add(list, topic, i)->offset = end;
  }
  rd_kafka_resp_err_t error = rd_kafka_assign(rk, list);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA, "the partitions of topic %s cannot be assigned: %s", topic, rd_kafka_err2str(error));
  return ERR_OK;
}

err_t answer_reader_open(const struct kafka_layers *layers, const char *topic, int timeout_ms,
                         struct answer_reader **out)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  AUTO(answer_reader_close) struct answer_reader *r = NULL;
  rd_kafka_conf_t *conf;
  int n_partitions;

  TRY(topics_count_partitions(layers, topic, timeout_ms, &n_partitions));
  TRY(mem_array(1, sizeof *r, &r));
  TRY(kafka_conf_make(&all, &conf));
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &r->rk));
  rd_kafka_poll_set_consumer(r->rk);
  TRY(assign_ends(r->rk, topic, n_partitions, deadline_ns));
  *out = r;
  r = NULL;
  return ERR_OK;
}

static void drop_message(struct answer_reader *r)
{
  if (r->message)
    rd_kafka_message_destroy(r->message);
  r->message = NULL;
}

static void close_reader(void *object)
{
  struct answer_reader *r = object;

  drop_message(r);
  if (r->rk) {
    rd_kafka_consumer_close(r->rk);
    rd_kafka_destroy(r->rk);
  }
  mem_free(&r);
}

void answer_reader_close(struct answer_reader **r)
{
  if (*r)
    kafka_closing_run("answers", close_reader, *r);
  *r = NULL;
}

/* Is it an error that waiting does not cure? */
static bool is_lasting(rd_kafka_resp_err_t error)
{
  switch (error) {
  case RD_KAFKA_RESP_ERR__FATAL:
  case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
  case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    return true;
  default:
    return false;
  }
}

err_t answer_reader_next(struct answer_reader *r, int timeout_ms, struct span *value)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;

  do {
    drop_message(r);
    r->message = rd_kafka_consumer_poll(r->rk, timeout_ms > 0 ? kafka_ms_until(deadline_ns) : 0);
    if (r->message && is_lasting(r->message->err))
      FAIL(ERR_KAFKA, "answers cannot be read: %s", rd_kafka_message_errstr(r->message));
    if (r->message && !r->message->err && r->message->len > 0) {
      *value = span_of(r->message->payload, r->message->len);
      return ERR_OK;
    }
  } while (clock_now_ns() < deadline_ns);
  *value = (struct span){ 0 };
  return ERR_OK;
}
