/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the merge thread: read records, join parts, send a batch of answers. */
#include "daemon/merge/merge_thread.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/health/pulse.h"
#include "daemon/merge/answered_queries.h"
#include "daemon/merge/merge_batch.h"
#include "daemon/merge/merge_clients.h"
#include "ingest/wire/wire_partial.h"

enum { POLL_MS = 100, RETRY_MS = 100, RECORDS_AT_ONCE = 1000, COMMIT_EVERY_MS = 1000 };

/* How long the next producer must last before it may be replaced too. */
enum { AGAIN_S = 60 };

/* How long the thread fills a batch: while no broker answers, each look for a topic that a query names takes time. */
enum { FILL_MS = 1000 };

/* After how many seconds of silence a shard is no longer shown. */
enum { FORGET_SHARD_S = 600 };

struct merge_thread {
  struct merge_thread_context with;
  struct merge_clients_context clients_with;
  struct merge_clients clients;
  struct merge_handover handover; /* to clients with other certificates */
  struct open_joins *joins;
  struct answered_queries *answered;
  struct merge_batch batch; /* on its way; empty: nothing is */
  uint64_t generation;      /* of the assignment that all of this belongs to */
  int64_t commit_due_ns;
  int64_t again_ns; /* clients that are lost before this are not replaced */
  struct region scratch;
  _Atomic(const char *) not_ready;
  _Atomic bool is_stopping;
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

const char *merge_thread_not_ready(const struct merge_thread *t)
{
  return atomic_load(&t->not_ready);
}

/* ---- Records ---- */

static err_t take_part(struct merge_thread *t, const struct partial_record *record, const struct partial *partial,
                       int64_t now_ns)
{
  struct open_joins_part part = { record->key, record->value, record->partition, record->offset, partial };
  enum open_joins_added added;

  counters_add(&t->with.merge_counters->parts, 1);
  shards_heard_note(t->with.heard, partial->shard, partial->n_shards, now_ns);
  if (answered_queries_have(t->answered, query_digest_of(record->key))) {
    counters_add(&t->with.merge_counters->late, 1);
    return ERR_OK;
  }
  TRY(open_joins_add(t->joins, &part, now_ns, &added));
  counters_add(&t->with.merge_counters->duplicates, added == OPEN_JOINS_DUPLICATE);
  return ERR_OK;
}

static err_t take_mark(struct merge_thread *t, struct span key, int64_t now_ns)
{
  struct query_digest digest = query_digest_of(key);

  open_joins_drop(t->joins, digest);
  return answered_queries_add(t->answered, digest, now_ns);
}

static void note_heartbeat(struct merge_thread *t, const struct partial *partial, int64_t now_ns)
{
  counters_add(&t->with.merge_counters->heartbeats, 1);
  shards_heard_note(t->with.heard, partial->shard, partial->n_shards, now_ns);
}

static void note_unusable(struct merge_thread *t, const struct partial_record *record)
{
  counters_add(&t->with.merge_counters->unusable, 1);
  log_warn("partial_unusable", "partition=%" PRId32 " offset=%" PRId64 " reason=%s", record->partition, record->offset,
           log_failure());
}

/* Without a key, parts of all queries would be parts of one. */
static err_t decode(const struct partial_record *record, struct region *r, struct partial *out)
{
  if (record->key.n == 0)
    FAIL(ERR_WIRE, "the record has no key");
  return wire_decode_partial(record->value, r, out);
}

static err_t take_record(struct merge_thread *t, const struct partial_record *record)
{
  struct partial partial;
  int64_t now_ns = clock_now_ns();

  region_reset(&t->scratch);
  err_code_t err = decode(record, &t->scratch, &partial);
  if (err == ERR_WIRE) {
    note_unusable(t, record);
    return ERR_OK;
  }
  TRY(err);
  if (partial.kind == PARTIAL_ANSWERED)
    return take_mark(t, record->key, now_ns);
  if (record->is_for_marks)
    return ERR_OK;
  if (partial.kind == PARTIAL_PART)
    return take_part(t, record, &partial, now_ns);
  note_heartbeat(t, &partial, now_ns);
  return ERR_OK;
}

/* Forget all that was read: everything is read again. */
static void drop_all(struct merge_thread *t)
{
  t->generation = partial_reader_generation(t->clients.reader);
  open_joins_clear(t->joins);
  answered_queries_clear(t->answered);
  merge_batch_clear(&t->batch);
}

static void drop_reassigned(struct merge_thread *t)
{
  if (partial_reader_generation(t->clients.reader) != t->generation)
    drop_all(t);
}

/* How long may the thread wait for a record? */
static int wait_ms(const struct merge_thread *t)
{
  int64_t left_ms = (open_joins_due_ns(t->joins) - clock_now_ns()) / CLOCK_NS_PER_MS + 1;

  if (t->batch.n > 0)
    return RETRY_MS;
  return left_ms < 1 ? 1 : left_ms < POLL_MS ? (int)left_ms : POLL_MS;
}

/* Read what is there. While a batch waits to be sent again, only the group's events are served. */
static err_t read_records(struct merge_thread *t)
{
  bool takes_records = t->batch.n == 0 && open_joins_have_room(t->joins), has_record = false;
  struct partial_record record;

  TRY(partial_reader_poll(t->clients.reader, wait_ms(t), takes_records, &has_record, &record));
  drop_reassigned(t);
  for (int n = 1; has_record; n++) {
    TRY(take_record(t, &record));
    if (n == RECORDS_AT_ONCE || !open_joins_have_room(t->joins)) /* what is polled must be taken */
      break;
    TRY(partial_reader_poll(t->clients.reader, 0, true, &has_record, &record));
    drop_reassigned(t);
  }
  return ERR_OK;
}

/* ---- Clients ---- */

/* Go on with other clients. They read again what is not answered. */
static err_t replace_clients(struct merge_thread *t, struct merge_clients next)
{
  merge_clients_fini(&t->clients);
  t->clients = next;
  err_code_t err = merge_clients_prepare(&t->clients_with, &t->clients);
  t->batch.with.transaction = t->clients.transaction;
  drop_all(t);
  return err;
}

/* Let the clients with the new certificates take over. */
static err_t take_over(struct merge_thread *t)
{
  log_info("kafka_client_renewed", "client=partials open_queries=%zu", open_joins_count(t->joins));
  TRY(replace_clients(t, merge_handover_end(&t->handover)));
  log_info("kafka_client_renewed", "client=answers");
  return ERR_OK;
}

/* May a lost producer be replaced? Not if another daemon has taken its place, or if the one before did not last. */
static bool may_begin_again(const struct merge_thread *t)
{
  return !transaction_is_fenced(t->clients.transaction) && clock_now_ns() >= t->again_ns;
}

/* Do what a restart would do: the producer is lost. That can happen though nothing is wrong here: librdkafka may end a
 * transaction that the broker has not begun yet, or brokers may be away for too long. */
static err_t begin_again(struct merge_thread *t)
{
  log_warn("merge_waiting", "answers=%zu reason=%s note=\"other clients begin again, as after a restart\"", t->batch.n,
           log_failure());
  t->again_ns = clock_now_ns() + AGAIN_S * CLOCK_NS_PER_S;
  atomic_store(&t->not_ready, "waiting for brokers");
  err_code_t err = merge_handover_at_once(&t->handover, &t->clients_with, &t->clients);
  if (err == ERR_CONFIG) /* certificates are being changed: a restart may help */
    FAIL(ERR_KAFKA, "%s", err_message());
  TRY(err);
  return replace_clients(t, merge_handover_end(&t->handover));
}

/* ---- Answers ---- */

/* Take the queries that are ready into the batch. */
static err_t fill_batch(struct merge_thread *t)
{
  AUTO(open_join_close) struct open_join *join = NULL;
  int64_t end_ns = clock_now_ns() + FILL_MS * CLOCK_NS_PER_MS;

  while (merge_batch_has_room(&t->batch) && clock_now_ns() < end_ns && (join = open_joins_take_ready(t->joins))) {
    TRY(merge_batch_add(&t->batch, join));
    hist_add(&t->with.merge_counters->wait_us, (uint64_t)((clock_now_ns() - join->since_ns) / CLOCK_NS_PER_US));
    open_join_close(&join);
  }
  return ERR_OK;
}

/* List the positions to commit: below the first part of the oldest query that waits. */
static size_t list_positions(struct merge_thread *t, struct position **out)
{
  size_t n = partial_reader_positions(t->clients.reader, out);

  for (size_t i = 0; i < n; i++) {
    int64_t oldest = open_joins_oldest(t->joins, (*out)[i].partition);
    (*out)[i].next = oldest < (*out)[i].next ? oldest : (*out)[i].next;
  }
  return n;
}

static err_t note_sent(struct merge_thread *t)
{
  int64_t now_ns = clock_now_ns();

  for (size_t i = 0; i < t->batch.n; i++)
    TRY(answered_queries_add(t->answered, t->batch.replies[i].digest, now_ns));
  merge_batch_clear(&t->batch);
  t->commit_due_ns = now_ns + COMMIT_EVERY_MS * CLOCK_NS_PER_MS;
  return ERR_OK;
}

static err_t send_batch(struct merge_thread *t)
{
  struct position *positions = NULL;
  size_t n = list_positions(t, &positions);
  err_code_t err = merge_batch_send(&t->batch, t->clients.reader, positions, n);

  if (err == ERR_OK)
    return note_sent(t);
  if (err == ERR_KAFKA && may_begin_again(t))
    return begin_again(t);
  if (err != ERR_KAFKA_RETRY)
    return err;
  atomic_store(&t->not_ready, "waiting for the topics of answers");
  log_warn("merge_waiting", "answers=%zu reason=%s note=\"sent again until brokers accept them\"", t->batch.n,
           log_failure());
  return ERR_OK;
}

/* While there are no answers, heartbeats move the positions. */
static void commit_now_and_then(struct merge_thread *t)
{
  int64_t now_ns = clock_now_ns();
  struct position *positions = NULL;

  if (now_ns < t->commit_due_ns || t->batch.n > 0)
    return;
  t->commit_due_ns = now_ns + COMMIT_EVERY_MS * CLOCK_NS_PER_MS;
  size_t n = list_positions(t, &positions);
  partial_reader_commit(t->clients.reader, positions, n);
}

static void note_time(struct merge_thread *t)
{
  int64_t now_ns = clock_now_ns();
  struct partial_reach *reach = NULL;

  if (now_ns < open_joins_due_ns(t->joins))
    return;
  size_t n = partial_reader_reach(t->clients.reader, &reach);
  open_joins_note_time(t->joins, now_ns, reach, n);
}

/* ---- The loop ---- */

static const char *why_not_ready(const struct merge_thread *t)
{
  if (partial_reader_is_topic_away(t->clients.reader))
    return "waiting for the partials topic";
  if (!partial_reader_is_assigned(t->clients.reader))
    return "waiting for the partitions of the partials topic";
  return partial_reader_has_marks(t->clients.reader) ? NULL : "reading which queries are answered";
}

static void show(struct merge_thread *t)
{
  struct merge_counters *c = t->with.merge_counters;

  atomic_store(&c->open_queries, open_joins_count(t->joins));
  atomic_store(&c->open_bytes, open_joins_bytes(t->joins));
  atomic_store(&c->remembered, answered_queries_count(t->answered));
  shards_heard_forget(t->with.heard, clock_now_ns() - FORGET_SHARD_S * CLOCK_NS_PER_S);
  if (t->batch.n == 0)
    atomic_store(&t->not_ready, why_not_ready(t));
}

static err_t hand_over(struct merge_thread *t)
{
  bool is_due;

  TRY(merge_handover_step(&t->handover, &t->clients_with, &t->clients, &is_due));
  return is_due ? take_over(t) : ERR_OK;
}

static err_t step(struct merge_thread *t)
{
  pulse_beat();
  TRY(hand_over(t));
  TRY(read_records(t));
  if (partial_reader_has_marks(t->clients.reader)) {
    note_time(t);
    if (t->batch.n == 0)
      TRY(fill_batch(t));
    if (t->batch.n > 0)
      TRY(send_batch(t));
    commit_now_and_then(t);
  }
  show(t);
  return ERR_OK;
}

static err_t follow(struct merge_thread *t)
{
  TRY(merge_clients_prepare(&t->clients_with, &t->clients));
  t->batch.with.transaction = t->clients.transaction;
  TRY(merge_clients_open_reader(&t->clients_with, &t->clients));
  while (!atomic_load(&t->is_stopping))
    TRY(step(t));
  return ERR_OK;
}

static void *run(void *context)
{
  struct merge_thread *t = context;

  pulse_begin(&t->with.alarm->pulses, &t->pulse, "merge");
  err_code_t err = follow(t);
  if (err != ERR_OK && !atomic_load(&t->is_stopping))
    alarm_raise(t->with.alarm, "merge", err);
  partial_reader_close(&t->handover.next.reader);
  partial_reader_close(&t->clients.reader);
  pulse_rest();
  return NULL;
}

err_t merge_thread_open(const struct merge_thread_context *context, struct merge_thread **out)
{
  AUTO(merge_thread_close) struct merge_thread *t = NULL;
  const struct config *config = context->config;

  TRY(mem_array(1, sizeof *t, &t));
  t->with = *context;
  atomic_store(&t->not_ready, "waiting for brokers");
  TRY(open_joins_open(config->merge.memory_bytes, (int64_t)config->merge.wait_ms * CLOCK_NS_PER_MS, &t->joins));
  TRY(answered_queries_open((int64_t)config->merge.remember_ms * CLOCK_NS_PER_MS, &t->answered));
  t->clients_with = (struct merge_clients_context){ config, context->kafka, &t->is_stopping };
  TRY(merge_clients_open_producer(&t->clients_with, &t->clients));
  struct merge_batch_context batch = {
    .config = config,
    .counters = context->counters,
    .merge_counters = context->merge_counters,
    .transaction = t->clients.transaction,
    .tracing = context->tracing,
  };
  TRY(merge_batch_init(&batch, &t->batch));
  if (pthread_create(&t->thread, NULL, run, t) != 0)
    FAIL(ERR_SYSTEM, "the merge thread cannot be started");
  t->has_thread = true;
  *out = t;
  t = NULL;
  return ERR_OK;
}

void merge_thread_close(struct merge_thread **t)
{
  if (!*t)
    return;
  atomic_store(&(*t)->is_stopping, true);
  if ((*t)->has_thread)
    pthread_join((*t)->thread, NULL);
  merge_batch_fini(&(*t)->batch);
  merge_clients_fini(&(*t)->handover.next);
  merge_clients_fini(&(*t)->clients);
  open_joins_close(&(*t)->joins);
  answered_queries_close(&(*t)->answered);
  region_fini(&(*t)->scratch);
  mem_free(t);
}
