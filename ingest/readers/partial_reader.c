/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of parts: what was read of each partition, first for the marks and then for the parts. */
#include "ingest/readers/partial_reader.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/readers/partial_start.h"

enum { SEEK_TIMEOUT_MS = 5000 };

struct partial_reader {
  rd_kafka_t *rk;
  char *topic;
  int64_t remember_ms;
  const _Atomic bool *is_stopping;
  struct partial_partition *partitions; /* [n] */
  size_t n, capacity;
  struct position *positions; /* [n] */
  size_t positions_capacity;
  struct partial_reach *reach; /* [n] */
  size_t reach_capacity;
  uint64_t generation;
  bool is_assigned;
  bool is_topic_away;
  bool is_paused;
  bool is_closing;             /* what is_stopping points to may be gone */
  bool has_marks;              /* all partitions have, and are read for their parts */
  err_code_t failure;          /* of the callback of a rebalance */
  rd_kafka_message_t *message; /* that of the last poll */
};

static const struct kafka_property defaults[] = {
  { "enable.auto.commit", "false" },   { "enable.auto.offset.store", "false" },
  { "auto.offset.reset", "earliest" }, { "isolation.level", "read_committed" },
  { "enable.partition.eof", "true" },  { "session.timeout.ms", "6000" },
  { "heartbeat.interval.ms", "1000" }, { "topic.metadata.refresh.interval.ms", "5000" },
  { "socket.nagle.disable", "true" },  { "fetch.wait.max.ms", "100" },
  { "fetch.error.backoff.ms", "50" },  { "queued.min.messages", "10000" },
};

/* ---- Partitions that come and go ---- */

static err_t take_assignment(struct partial_reader *r, rd_kafka_topic_partition_list_t *partitions)
{
  size_t n = (size_t)partitions->cnt;
  err_code_t err = mem_grow(n, sizeof *r->partitions, &r->capacity, &r->partitions);

  if (err == ERR_OK)
    err = partial_start_find(r->rk, r->remember_ms, r->is_stopping, partitions, r->partitions);
  r->n = err == ERR_OK ? n : 0;
  rd_kafka_assign(r->rk, err == ERR_OK ? partitions : NULL);
  return err == ERR_KAFKA_RETRY ? ERR_OK : err; /* the daemon stops anyway */
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t event, rd_kafka_topic_partition_list_t *partitions,
                         void *opaque)
{
  struct partial_reader *r = opaque;

  if (r->is_closing) {
    rd_kafka_assign(rk, NULL);
    return;
  }
  r->generation++;
  r->is_assigned = event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
  r->is_paused = false;
  r->has_marks = false;
  r->n = 0;
  if (r->is_assigned) {
    r->is_topic_away &= partitions->cnt == 0;
    r->failure = take_assignment(r, partitions);
  } else {
    rd_kafka_resume_partitions(rk, partitions); /* or a partition that comes back would still be paused */
    rd_kafka_assign(rk, NULL);
  }
  log_info("partials_partitions", "topic=%s %s=%d", r->topic, r->is_assigned ? "assigned" : "revoked", partitions->cnt);
}

/* ---- Opening and closing ---- */

err_t partial_reader_open(const struct kafka_layers *layers, const char *topic, const char *group, int64_t remember_ms,
                          const _Atomic bool *is_stopping, struct partial_reader **out)
{
  AUTO(partial_reader_close) struct partial_reader *r = NULL;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  struct kafka_property group_id = { "group.id", group };
  rd_kafka_conf_t *conf;

  kafka_layers_add(&all, &group_id, 1);
  TRY(mem_array(1, sizeof *r, &r));
  TRY(mem_copy_str(topic, &r->topic));
  r->remember_ms = remember_ms;
  r->is_stopping = is_stopping;
  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_opaque(conf, r);
  rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &r->rk));
  kafka_stats_watch(r->rk, all.client);
  rd_kafka_poll_set_consumer(r->rk);
  TRY(kafka_group_subscribe(r->rk, r->topic));
  *out = r;
  r = NULL;
  return ERR_OK;
}

static void release_message(struct partial_reader *r)
{
  if (r->message)
    rd_kafka_message_destroy(r->message);
  r->message = NULL;
}

static void close_reader(void *object)
{
  struct partial_reader *r = object;

  release_message(r);
  if (r->rk) {
    rd_kafka_consumer_close(r->rk);
    kafka_client_destroy(r->rk, 0);
  }
  mem_free(&r->partitions);
  mem_free(&r->positions);
  mem_free(&r->reach);
  mem_free(&r->topic);
  mem_free(&r);
}

void partial_reader_close(struct partial_reader **r)
{
  if (*r) {
    (*r)->is_closing = true;
    kafka_closing_run("partials", close_reader, *r);
  }
  *r = NULL;
}

/* ---- Polling ---- */

static struct partial_partition *find_partition(struct partial_reader *r, int32_t partition)
{
  for (size_t i = 0; i < r->n; i++) {
    if (r->partitions[i].partition == partition)
      return &r->partitions[i];
  }
  return NULL;
}

static err_t note_error(struct partial_reader *r, const rd_kafka_message_t *m)
{
  struct partial_partition *p = m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF ? find_partition(r, m->partition) : NULL;

  switch (m->err) {
  case RD_KAFKA_RESP_ERR__PARTITION_EOF:
    if (p) {
      p->next = m->offset > p->next ? m->offset : p->next;
      p->was_fetched = true;
    }
    return ERR_OK;
  case RD_KAFKA_RESP_ERR__FATAL:
    FAIL(ERR_KAFKA, "parts cannot be read: %s", rd_kafka_message_errstr(m));
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
  case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    if (!r->is_topic_away)
      log_warn("partials_topic_away", "topic=%s reason=%s", r->topic,
               log_quote(span_of_str(rd_kafka_message_errstr(m))));
    r->is_topic_away = true;
    return ERR_OK;
  default:
    log_warn("partials_consumer", "error=%s reason=%s", rd_kafka_err2name(m->err),
             log_quote(span_of_str(rd_kafka_message_errstr(m))));
    return ERR_OK;
  }
}

/* A consumer whose partitions are paused can be polled without taking a record. */
static void pause(struct partial_reader *r, bool is_paused)
{
  rd_kafka_topic_partition_list_t *assigned;

  if (r->is_paused == is_paused || rd_kafka_assignment(r->rk, &assigned) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return;
  if (is_paused)
    rd_kafka_pause_partitions(r->rk, assigned);
  else
    rd_kafka_resume_partitions(r->rk, assigned);
  rd_kafka_topic_partition_list_destroy(assigned);
  r->is_paused = is_paused;
}

/* Offsets that fall mean that the topic was deleted and created again: the former positions mean nothing in it. */
static void note_offset(struct partial_reader *r, struct partial_partition *p, int64_t offset)
{
  if (offset < p->next) {
    log_info("partials_replaced", "topic=%s partition=%" PRId32 " from=%" PRId64 " former=%" PRId64, r->topic,
             p->partition, offset, p->next);
    p->committed = offset;
    p->end_at_start = offset;
    p->knows_end = false;
  }
  p->next = offset + 1;
}

/* A record of a former assignment has no partition here, and is not taken. */
static bool take_record(struct partial_reader *r, struct partial_record *out)
{
  const rd_kafka_message_t *m = r->message;
  struct partial_partition *p = find_partition(r, m->partition);

  if (!p)
    return false;
  note_offset(r, p, m->offset);
  p->was_fetched = true;
  *out = (struct partial_record){
    .key = span_of(m->key, m->key_len),
    .value = span_of(m->payload, m->len),
    .partition = m->partition,
    .offset = m->offset,
    .is_for_marks = !r->has_marks,
  };
  return true;
}

/* Find the end of a partition's log as of the newest fetch. Returns false if nothing was fetched. */
static bool find_end(struct partial_reader *r, int32_t partition, int64_t *end)
{
  int64_t first;

  return rd_kafka_get_watermark_offsets(r->rk, r->topic, partition, &first, end) == RD_KAFKA_RESP_ERR_NO_ERROR &&
         *end >= 0;
}

/* Was the partition read to its end? Brokers say at first where the oldest open transaction begins. It may be one of
 * the former owner whose positions are committed already. So the first fetch says where the marks end. */
static bool has_marks(struct partial_reader *r, struct partial_partition *p)
{
  int64_t end;

  if (p->next < p->end_at_start || p->knows_end)
    return p->next >= p->end_at_start;
  if (!p->was_fetched || !find_end(r, p->partition, &end))
    return false;
  p->end_at_start = end;
  p->knows_end = true;
  return p->next >= end;
}

static bool all_have_marks(struct partial_reader *r)
{
  for (size_t i = 0; i < r->n; i++) {
    if (!has_marks(r, &r->partitions[i]))
      return false;
  }
  return r->is_assigned;
}

/* Go back to the group's positions, where the parts begin. If brokers do not answer, the next poll tries again. */
static void read_parts(struct partial_reader *r)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)r->n);

  for (size_t i = 0; i < r->n; i++)
    rd_kafka_topic_partition_list_add(list, r->topic, r->partitions[i].partition)->offset = r->partitions[i].committed;
  rd_kafka_error_t *error = r->n > 0 ? rd_kafka_seek_partitions(r->rk, list, SEEK_TIMEOUT_MS) : NULL;
  for (int i = 0; i < list->cnt && !error; i++) {
    if (list->elems[i].err)
      error = rd_kafka_error_new(list->elems[i].err, "%s", rd_kafka_err2str(list->elems[i].err));
  }
  rd_kafka_topic_partition_list_destroy(list);
  r->has_marks = !error;
  for (size_t i = 0; i < r->n && !error; i++)
    r->partitions[i].next = r->partitions[i].committed;
  if (error)
    log_warn("partials_positions", "reason=%s", log_quote(span_of_str(rd_kafka_error_string(error))));
  rd_kafka_error_destroy(error);
}

err_t partial_reader_poll(struct partial_reader *r, int timeout_ms, bool takes_record, bool *has_record,
                          struct partial_record *out)
{
  *has_record = false;
  release_message(r);
  if (!r->has_marks && all_have_marks(r))
    read_parts(r);
  pause(r, !takes_record);
  r->message = rd_kafka_consumer_poll(r->rk, timeout_ms);
  if (r->failure != ERR_OK)
    return r->failure;
  if (r->message && r->message->err)
    return note_error(r, r->message);
  if (r->message)
    *has_record = take_record(r, out);
  return ERR_OK;
}

uint64_t partial_reader_generation(const struct partial_reader *r)
{
  return r->generation;
}

bool partial_reader_has_marks(const struct partial_reader *r)
{
  return r->has_marks;
}

bool partial_reader_is_assigned(const struct partial_reader *r)
{
  return r->is_assigned;
}

bool partial_reader_is_member(const struct partial_reader *r)
{
  return kafka_group_has_member(r->rk);
}

bool partial_reader_is_topic_away(const struct partial_reader *r)
{
  return r->is_topic_away;
}

size_t partial_reader_positions(struct partial_reader *r, struct position **out)
{
  if (mem_grow(r->n, sizeof *r->positions, &r->positions_capacity, &r->positions) != ERR_OK)
    return 0;
  for (size_t i = 0; i < r->n; i++) {
    const struct partial_partition *p = &r->partitions[i];
    r->positions[i] = (struct position){ p->partition, p->next > p->committed ? p->next : p->committed };
  }
  *out = r->positions;
  return r->n;
}

size_t partial_reader_reach(struct partial_reader *r, struct partial_reach **out)
{
  if (mem_grow(r->n, sizeof *r->reach, &r->reach_capacity, &r->reach) != ERR_OK)
    return 0;
  for (size_t i = 0; i < r->n; i++) {
    const struct partial_partition *p = &r->partitions[i];
    int64_t end;
    r->reach[i] = (struct partial_reach){ p->partition, p->next, find_end(r, p->partition, &end) ? end : 0 };
  }
  *out = r->reach;
  return r->n;
}

void partial_reader_commit(struct partial_reader *r, const struct position *positions, size_t n)
{
  rd_kafka_topic_partition_list_t *list = kafka_group_offsets(r->topic, positions, n);
  rd_kafka_resp_err_t error = n > 0 ? rd_kafka_commit(r->rk, list, true) : RD_KAFKA_RESP_ERR_NO_ERROR;
  rd_kafka_topic_partition_list_destroy(list);
  if (error)
    log_warn("partials_commit", "error=%s", rd_kafka_err2name(error));
}

struct rd_kafka_s *partial_reader_client(const struct partial_reader *r)
{
  return r->rk;
}

const char *partial_reader_topic(const struct partial_reader *r)
{
  return r->topic;
}
