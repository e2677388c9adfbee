/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue consumer, on top of a librdkafka consumer with manual assignment. */
#include "ingest/catalogue_reader.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka_client.h"
#include "ingest/kafka_closing.h"
#include "ingest/topic_policy_ask.h"

enum { DRAIN_CHUNK = 512 };

struct catalogue_reader {
  rd_kafka_t *rk;
  rd_kafka_queue_t *queue;
  char *topic;
  rd_kafka_message_t **messages; /* messages of the records that the caller has */
  size_t n_messages;
  size_t messages_capacity;
  bool is_away; /* the client has reported an absence since the last poll */
};

static const struct kafka_property defaults[] = {
  { "group.id", "sluice-catalogue" }, /* librdkafka needs one; nothing is committed to it */
  { "enable.auto.commit", "false" },
  { "enable.auto.offset.store", "false" },
  { "auto.offset.reset", "error" },
  { "isolation.level", "read_committed" },
  { "enable.partition.eof", "true" },
  { "check.crcs", "true" }, /* a damaged batch is an event instead of wrong records */
  { "socket.nagle.disable", "true" },
  { "fetch.wait.max.ms", "100" },
  { "fetch.error.backoff.ms", "50" },
  { "fetch.message.max.bytes", "8388608" },
  { "queued.min.messages", "100000" },
  { "queued.max.messages.kbytes", "262144" },
};

/* Does the error mean that the topic or all brokers are gone? When they are back, it may be another log. */
static bool is_sign_of_absence(rd_kafka_resp_err_t error)
{
  switch (error) {
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
  case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    return true;
  default:
    return false;
  }
}

uint64_t catalogue_record_digest(const struct catalogue_record *record)
{
  uint64_t key = XXH3_64bits(record->key.p, record->key.n);

  return XXH3_64bits_withSeed(record->value.p, record->value.n, key + record->has_value);
}

/* Note errors that the client reports by itself instead of in a message, above all that the topic or all brokers are
 * gone. */
static void on_error(rd_kafka_t *rk, int error, const char *reason, void *opaque)
{
  struct catalogue_reader *r = opaque;

  kafka_log_error(rk, error, reason);
  r->is_away |= is_sign_of_absence((rd_kafka_resp_err_t)error);
}

err_t catalogue_reader_open(const struct kafka_layers *layers, const char *topic, struct catalogue_reader **out)
{
  AUTO(catalogue_reader_close) struct catalogue_reader *r = NULL;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  rd_kafka_conf_t *conf;

  TRY(mem_array(1, sizeof *r, &r));
  TRY(mem_copy_str(topic, &r->topic));
  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_opaque(conf, r);
  rd_kafka_conf_set_error_cb(conf, on_error);
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &r->rk));
  rd_kafka_poll_set_consumer(r->rk);
  r->queue = rd_kafka_queue_get_consumer(r->rk);
  *out = r;
  r = NULL;
  return ERR_OK;
}

static void close_reader(void *object)
{
  struct catalogue_reader *r = object;

  catalogue_reader_release(r);
  if (r->queue)
    rd_kafka_queue_destroy(r->queue);
  if (r->rk) {
    rd_kafka_consumer_close(r->rk);
    rd_kafka_destroy(r->rk);
  }
  mem_free(&r->messages);
  mem_free(&r->topic);
  mem_free(&r);
}

void catalogue_reader_close(struct catalogue_reader **r)
{
  if (*r)
    kafka_closing_run("catalogue", close_reader, *r);
  *r = NULL;
}

void catalogue_reader_abandon(struct catalogue_reader **r)
{
  if (*r)
    kafka_closing_begin("catalogue", close_reader, *r);
  *r = NULL;
}

err_t catalogue_reader_cluster_id(struct catalogue_reader *r, int timeout_ms, char **out)
{
  char *id = rd_kafka_clusterid(r->rk, timeout_ms);
  err_code_t err = ERR_OK;

  if (!id && rd_kafka_controllerid(r->rk, timeout_ms) < 0)
    FAIL(ERR_KAFKA_RETRY, "no Kafka broker answered within %d ms: is bootstrap.servers right?", timeout_ms);
  err = mem_copy_str(id ? id : "", out);
  if (id)
    rd_kafka_mem_free(r->rk, id);
  return err;
}

struct topic_policy catalogue_reader_policy(struct catalogue_reader *r, int timeout_ms)
{
  return topic_policy_ask(r->rk, r->topic, timeout_ms);
}

int64_t catalogue_reader_log_end(struct catalogue_reader *r, int32_t partition)
{
  int64_t first, end;

  if (rd_kafka_get_watermark_offsets(r->rk, r->topic, partition, &first, &end) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return -1;
  return end;
}

err_t catalogue_reader_n_partitions(struct catalogue_reader *r, int timeout_ms, int *out)
{
  const struct rd_kafka_metadata *metadata;
  rd_kafka_topic_t *topic = rd_kafka_topic_new(r->rk, r->topic, NULL);
  rd_kafka_resp_err_t error = rd_kafka_metadata(r->rk, 0, topic, &metadata, timeout_ms);
  int n = 0;

  rd_kafka_topic_destroy(topic);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (metadata->topic_cnt == 1) {
      error = metadata->topics[0].err;
      n = metadata->topics[0].partition_cnt;
    }
    rd_kafka_metadata_destroy(metadata);
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR || n == 0)
    FAIL(ERR_KAFKA_RETRY, "the partitions of topic %s are unknown: %s; create it with `sluicectl topics create`",
         r->topic, error ? rd_kafka_err2str(error) : "it has none");
  *out = n;
  return ERR_OK;
}

err_t catalogue_reader_bounds(struct catalogue_reader *r, int32_t partition, int timeout_ms, int64_t *first,
                              int64_t *end)
{
  rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(r->rk, r->topic, partition, first, end, timeout_ms);

  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA_RETRY, "the bounds of topic %s, partition %d, are unknown: %s", r->topic, partition,
         rd_kafka_err2str(error));
  return ERR_OK;
}

err_t catalogue_reader_assign(struct catalogue_reader *r, int32_t partition, int64_t offset)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

  rd_kafka_topic_partition_list_add(list, r->topic, partition)->offset = offset;
  rd_kafka_error_t *error = rd_kafka_incremental_assign(r->rk, list);
  rd_kafka_topic_partition_list_destroy(list);
  if (!error)
    return ERR_OK;
  err_code_t err = err_set(ERR_KAFKA, __FILE__, __LINE__, "topic %s, partition %d, cannot be assigned: %s", r->topic,
                           partition, rd_kafka_error_string(error));
  rd_kafka_error_destroy(error);
  return err;
}

void catalogue_reader_leave(struct catalogue_reader *r, int32_t partition)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

  rd_kafka_topic_partition_list_add(list, r->topic, partition);
  rd_kafka_error_t *error = rd_kafka_incremental_unassign(r->rk, list);
  if (error) /* it was not assigned: nothing to stop */
    rd_kafka_error_destroy(error);
  rd_kafka_topic_partition_list_destroy(list);
}

void catalogue_reader_unassign(struct catalogue_reader *r)
{
  rd_kafka_assign(r->rk, NULL);
}

static struct catalogue_record record_of(const rd_kafka_message_t *m)
{
  return (struct catalogue_record){
    .has_key = m->key != NULL,
    .key = span_of(m->key, m->key_len),
    .has_value = m->payload != NULL,
    .value = span_of(m->payload, m->len),
    .content_type = kafka_header(m, "content-type"),
    .partition = m->partition,
    .offset = m->offset,
    .timestamp_ms = rd_kafka_message_timestamp(m, NULL),
  };
}

struct poll {
  struct catalogue_reader *reader;
  struct catalogue_record *records;
  size_t n;
  struct catalogue_events *events;
};

static void take_event(struct poll *p, const rd_kafka_message_t *m)
{
  switch (m->err) {
  case RD_KAFKA_RESP_ERR__PARTITION_EOF:
    p->records[p->n++] = (struct catalogue_record){ .is_end = true, .partition = m->partition, .offset = m->offset };
    break;
  case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
  case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    p->events->is_out_of_range = true;
    p->events->out_of_range_partition = m->partition;
    p->events->reason = "the offset is outside the log";
    break;
  case RD_KAFKA_RESP_ERR__BAD_MSG:
  case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
  case RD_KAFKA_RESP_ERR_INVALID_MSG:
  case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED: /* a batch of an unknown version */
    if (!p->events->is_damaged) {
      p->events->is_damaged = true;
      p->events->damaged_partition = m->partition;
      p->events->damaged_offset = m->offset;
    }
    break;
  default: /* librdkafka recovers by itself, unless the topic is gone */
    p->events->is_away |= is_sign_of_absence(m->err);
    log_warn("catalogue_consumer", "partition=%d error=%s reason=%s", m->partition, rd_kafka_err2name(m->err),
             log_quote(span_of_str(rd_kafka_message_errstr(m))));
  }
}

/* Take a message: a record is kept until the release, an event is noted. librdkafka continues after a damaged batch.
 * The records after it are dropped, because those of the batch are missing. */
static void take(struct poll *p, rd_kafka_message_t *m)
{
  struct catalogue_reader *r = p->reader;

  bool is_behind_damage = p->events->is_damaged && m->partition == p->events->damaged_partition;
  if (m->err || is_behind_damage) {
    if (!is_behind_damage)
      take_event(p, m);
    rd_kafka_message_destroy(m);
    return;
  }
  p->records[p->n++] = record_of(m);
  r->messages[r->n_messages++] = m;
}

void catalogue_reader_poll(struct catalogue_reader *r, size_t max, int timeout_ms, struct catalogue_record *records,
                           size_t *n, struct catalogue_events *events)
{
  struct poll p = { r, records, 0, events };
  rd_kafka_message_t *chunk[DRAIN_CHUNK];

  *n = 0;
  *events = (struct catalogue_events){ 0 };
  if (mem_grow(r->n_messages + max, sizeof *r->messages, &r->messages_capacity, &r->messages) != ERR_OK)
    return; /* no record was taken, so none is lost; the next poll tries again */
  rd_kafka_message_t *first = rd_kafka_consumer_poll(r->rk, timeout_ms);
  if (first)
    take(&p, first);
  /* With a timeout the batch call would wait until its array is full. With 0 it returns the records that are there. */
  while (first && p.n < max && !events->is_out_of_range && !events->is_damaged && !events->is_away) {
    size_t room = max - p.n < DRAIN_CHUNK ? max - p.n : DRAIN_CHUNK;
    ssize_t n_chunk = rd_kafka_consume_batch_queue(r->queue, 0, chunk, room);
    for (ssize_t i = 0; i < n_chunk; i++)
      take(&p, chunk[i]);
    if (n_chunk <= 0)
      break;
  }
  events->is_away |= r->is_away;
  r->is_away = false;
  *n = p.n;
}

void catalogue_reader_release(struct catalogue_reader *r)
{
  for (size_t i = 0; i < r->n_messages; i++)
    rd_kafka_message_destroy(r->messages[i]);
  r->n_messages = 0;
}
