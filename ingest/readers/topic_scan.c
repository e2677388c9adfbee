/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that assigns partitions itself, and knows where each of them ended when it was opened. */
#include "ingest/readers/topic_scan.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_topic.h"
#include "ingest/kafka/topics.h"

struct topic_scan {
  rd_kafka_t *rk;
  struct topic_scan_range range;
  int64_t *ends; /* [n] by partition: the scan is done there at this offset */
  bool *is_done; /* [n] */
  int n;
  int n_open;                  /* partitions that are not done */
  rd_kafka_message_t *message; /* the one that the caller has */
};

/* librdkafka needs a group id to assign partitions. Nobody joins the group, and nothing is committed to it. Its name is
 * that of the first topic that was scanned: access lists allow it (docs/operations.md). */
static const struct kafka_property defaults[] = {
  { "group.id", "sluice-answer-reader" },  { "enable.auto.commit", "false" },
  { "enable.auto.offset.store", "false" }, { "auto.offset.reset", "error" },
  { "allow.auto.create.topics", "false" }, { "socket.nagle.disable", "true" },
  { "fetch.wait.max.ms", "100" },          { "fetch.error.backoff.ms", "20" },
  { "enable.partition.eof", "true" },
};

static void destroy_list(rd_kafka_topic_partition_list_t **list)
{
  if (*list)
    rd_kafka_topic_partition_list_destroy(*list);
}

/* Ask for the first offset of a time or later. Returns -1 if there is none, or if the broker cannot tell. */
static int64_t ask_offset(rd_kafka_t *rk, const char *topic, int32_t partition, int64_t unix_ms, int timeout_ms)
{
  AUTO(destroy_list) rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_t *at = rd_kafka_topic_partition_list_add(list, topic, partition);

  at->offset = unix_ms;
  rd_kafka_resp_err_t error = rd_kafka_offsets_for_times(rk, list, timeout_ms);
  return error == RD_KAFKA_RESP_ERR_NO_ERROR && !at->err && at->offset >= 0 ? at->offset : -1;
}

/* Return where the records of a time or later begin, between first and end. The embedded broker finds no time, and says
 * the same as one without such records. So ask for the records since 1970, too: a broker that finds none of them cannot
 * tell. Then all are read; each record's time is looked at anyway. */
static int64_t offset_of_time(rd_kafka_t *rk, const char *topic, int32_t partition, int64_t unix_ms, int64_t first,
                              int64_t end, int64_t deadline_ns)
{
  int64_t at = ask_offset(rk, topic, partition, unix_ms, kafka_ms_until(deadline_ns));

  if (at >= 0)
    return at > first ? at : first;
  return ask_offset(rk, topic, partition, 0, kafka_ms_until(deadline_ns)) >= 0 ? end : first;
}

/* Find where the scan of a partition begins and ends. */
static err_t find_bounds(const struct topic_scan *s, const char *topic, int32_t partition, int64_t deadline_ns,
                         int64_t *begin, int64_t *end)
{
  const struct topic_scan_range *range = &s->range;
  int64_t first;
  rd_kafka_resp_err_t error = kafka_topic_bounds(s->rk, topic, partition, kafka_ms_until(deadline_ns), &first, end);

  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA_RETRY, "the end of topic %s, partition %d, is unknown: %s", topic, partition,
         rd_kafka_err2str(error));
  *begin = first;
  if (range->has_place) {
    bool is_there = range->partition == partition && range->offset >= first && range->offset < *end;
    *begin = is_there ? range->offset : *end;
    *end = is_there ? range->offset + 1 : *end;
    return ERR_OK;
  }
  if (range->newest != TOPIC_SCAN_FROM_FIRST && *end - range->newest > first)
    *begin = *end - range->newest;
  if (range->since_unix_ms > 0 && *begin < *end)
    *begin = offset_of_time(s->rk, topic, partition, range->since_unix_ms, *begin, *end, deadline_ns);
  return ERR_OK;
}

static err_t assign(struct topic_scan *s, const char *topic, int64_t deadline_ns)
{
  AUTO(destroy_list) rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(s->n);

  for (int32_t i = 0; i < s->n; i++) {
    int64_t begin = 0;
    TRY(find_bounds(s, topic, i, deadline_ns, &begin, &s->ends[i]));
    s->is_done[i] = !s->range.follows && begin >= s->ends[i];
    if (s->is_done[i])
      continue;
    s->n_open++;
    rd_kafka_topic_partition_list_add(list, topic, i)->offset = begin;
  }
  rd_kafka_resp_err_t error = rd_kafka_assign(s->rk, list);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA, "the partitions of topic %s cannot be assigned: %s", topic, rd_kafka_err2str(error));
  return ERR_OK;
}

err_t topic_scan_open(const struct kafka_layers *layers, const char *topic, const struct topic_scan_range *range,
                      int timeout_ms, struct topic_scan **out)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  AUTO(topic_scan_close) struct topic_scan *s = NULL;
  rd_kafka_conf_t *conf;

  TRY(mem_array(1, sizeof *s, &s));
  s->range = *range;
  TRY(topics_count_partitions(layers, topic, timeout_ms, &s->n));
  if (range->has_place && range->partition >= s->n)
    FAIL(ERR_KAFKA_TOPIC, "topic %s has %d partitions: there is no partition %d", topic, s->n, range->partition);
  TRY(mem_array((size_t)s->n, sizeof *s->ends, &s->ends));
  TRY(mem_array((size_t)s->n, sizeof *s->is_done, &s->is_done));
  TRY(kafka_conf_make(&all, &conf));
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &s->rk));
  rd_kafka_poll_set_consumer(s->rk);
  TRY(assign(s, topic, deadline_ns));
  *out = s;
  s = NULL;
  return ERR_OK;
}

static void drop_message(struct topic_scan *s)
{
  if (s->message)
    rd_kafka_message_destroy(s->message);
  s->message = NULL;
}

static void close_scan(void *object)
{
  struct topic_scan *s = object;

  drop_message(s);
  if (s->rk) {
    rd_kafka_consumer_close(s->rk);
    kafka_client_destroy(s->rk, 0);
  }
  mem_free(&s->ends);
  mem_free(&s->is_done);
  mem_free(&s);
}

void topic_scan_close(struct topic_scan **s)
{
  if (*s)
    kafka_closing_run("scan", close_scan, *s);
  *s = NULL;
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

/* Note that a partition was read up to an offset. */
static void note_read(struct topic_scan *s, int32_t partition, int64_t next)
{
  if (s->range.follows || partition < 0 || partition >= s->n || s->is_done[partition] || next < s->ends[partition])
    return;
  s->is_done[partition] = true;
  s->n_open--;
}

/* Is the record of the time that is read? One without a time, -1, is if no time is asked for. */
static bool is_of_time(const struct topic_scan_range *range, const rd_kafka_message_t *m)
{
  return range->has_place || range->since_unix_ms == 0 || rd_kafka_message_timestamp(m, NULL) >= range->since_unix_ms;
}

/* Is the message a record of the range? Notes how far its partition was read. */
static bool take(struct topic_scan *s)
{
  const rd_kafka_message_t *m = s->message;

  if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
    note_read(s, m->partition, m->offset);
  if (m->err)
    return false;
  bool is_late = !s->range.follows && m->offset >= s->ends[m->partition];
  note_read(s, m->partition, m->offset + 1);
  return !is_late && is_of_time(&s->range, m);
}

static struct topic_scan_record record_of(const rd_kafka_message_t *m)
{
  return (struct topic_scan_record){
    .partition = m->partition,
    .offset = m->offset,
    .timestamp_ms = rd_kafka_message_timestamp(m, NULL),
    .has_key = m->key != NULL,
    .key = span_of(m->key, m->key_len),
    .has_value = m->payload != NULL,
    .value = span_of(m->payload, m->len),
    .message = m,
  };
}

err_t topic_scan_next(struct topic_scan *s, int timeout_ms, struct topic_scan_record *out, enum topic_scan_found *found)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;

  do {
    drop_message(s);
    *found = !s->range.follows && s->n_open == 0 ? TOPIC_SCAN_END : TOPIC_SCAN_NOTHING;
    if (*found == TOPIC_SCAN_END)
      return ERR_OK;
    s->message = rd_kafka_consumer_poll(s->rk, timeout_ms > 0 ? kafka_ms_until(deadline_ns) : 0);
    if (s->message && is_lasting(s->message->err))
      FAIL(ERR_KAFKA, "the topic cannot be read: %s", rd_kafka_message_errstr(s->message));
    if (s->message && take(s)) {
      *out = record_of(s->message);
      *found = TOPIC_SCAN_RECORD;
      return ERR_OK;
    }
  } while (clock_now_ns() < deadline_ns);
  return ERR_OK;
}

int topic_scan_n_partitions(const struct topic_scan *s)
{
  return s->n;
}

int64_t topic_scan_end(const struct topic_scan *s, int32_t partition)
{
  return s->ends[partition];
}

struct span topic_scan_header(const struct topic_scan_record *record, const char *name)
{
  return kafka_header(record->message, name);
}
