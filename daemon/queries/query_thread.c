/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/queries/query_thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/pulse.h"
#include "daemon/queries/search_worker.h"
#include "daemon/queries/at_least_list.h"
#include "ingest/query_reader.h"

/* How long to wait for a record where nothing else is due, and where something may be. */
enum { IDLE_POLL_MS = 100, BUSY_POLL_MS = 1 };

/* The pool: 4,096 queries or four batches for each worker, whichever is more. Half of it, in queries and in bytes, may
 * wait for at_least: the other half is for queries that can be served. */
enum { POOL_QUERIES = 4096, POOL_BATCHES = 4 };

/* Queries taken and not committed. One reply that no broker takes holds back the commits of all behind it. It is below
 * what the producer's queue takes by default, so that there is room to refuse those that wait. */
enum { UNCOMMITTED_MAX = 90000 };

/* A reason to take no queries is told once in so many seconds. */
enum { HELD_EVERY_S = 60 };

/* Queries whose wait ends in one step: so few that their replies do not fill up what has room. */
enum { RECHECKED_MAX = 64 };

/* How long workers go on when the daemon stops. */
enum { STOP_SEARCHES_S = 5 };

struct query_thread {
  struct query_thread_context with;
  struct reply_context reply;
  struct query_reader *reader;
  struct query_queue *queue;
  struct search_workers *workers;
  uint32_t *weights; /* of the spaces */
  struct at_least_list unseen;
  uint64_t generation; /* of the assignment that the queries came with */
  int64_t held_said_ns;
  struct region scratch;
  struct region explain_scratch;
  _Atomic bool is_stopping;
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

bool query_thread_is_assigned(const struct query_thread *q)
{
  return q->reader && query_reader_is_assigned(q->reader);
}

bool query_thread_is_topic_away(const struct query_thread *q)
{
  return q->reader && query_reader_is_topic_away(q->reader);
}

static void refuse(struct query_thread *q, struct pending_query *query, enum answer_error error, const char *message)
{
  reply_error(&q->reply, query, error, message, &q->scratch);
  query_queue_free_query(q->queue, query);
}

static void refuse_for(struct query_thread *q, struct pending_query *query, enum answer_error error,
                       const char *message)
{
  counters_add(&q->with.counters->refused, 1);
  refuse(q, query, error, message);
}

/* ---- Deadlines ---- */

/* By the clock that never goes back, so that a step of the other one changes nothing for queries that were taken. */
static int64_t deadline_of(const struct query *query, int64_t now_ns)
{
  int64_t left_ms, left_ns, deadline_ns;

  if (!query->has_deadline)
    return PENDING_NO_DEADLINE;
  bool is_far = __builtin_sub_overflow(query->deadline_unix_ms, clock_unix_ms(), &left_ms) ||
                __builtin_mul_overflow(left_ms, CLOCK_NS_PER_MS, &left_ns) ||
                __builtin_add_overflow(left_ns, now_ns, &deadline_ns);
  if (is_far)
    return query->deadline_unix_ms > 0 ? PENDING_NO_DEADLINE : 0;
  return deadline_ns;
}

static void queue(struct query_thread *q, struct pending_query *query)
{
  char message[160];
  int64_t left_ns = query->deadline_ns - clock_now_ns();

  if (query->deadline_ns != PENDING_NO_DEADLINE) {
    int64_t estimate_ns = query_queue_estimate_ns(q->queue, query);
    if (left_ns < estimate_ns) {
      snprintf(message, sizeof message,
               "the deadline is in %" PRId64 " ms, and the answer would take about %" PRId64 " ms",
               left_ns / CLOCK_NS_PER_MS, estimate_ns / CLOCK_NS_PER_MS);
      refuse_for(q, query, ANSWER_DEADLINE_PASSED, message);
      return;
    }
  }
  query_queue_push(q->queue, query);
}

/* ---- Waiting for at_least ---- */

static void refuse_unseen(struct query_thread *q, struct pending_query *query, int64_t now_ns)
{
  bool is_late = query->deadline_ns <= now_ns;
  char message[400];

  at_least_list_explain(q->with.engine, &query->query,
                        is_late ? "the deadline passed before the catalogue had seen at_least"
                                : "the catalogue has not seen at_least within query.at_least_timeout_ms",
                        &q->explain_scratch, message, sizeof message);
  refuse(q, query, is_late ? ANSWER_DEADLINE_PASSED : ANSWER_NOT_SEEN, message);
}

static void recheck_waiting(struct query_thread *q)
{
  int64_t now_ns = clock_now_ns();

  for (struct pending_query *query = at_least_list_take_ended(&q->unseen, q->with.engine, now_ns, RECHECKED_MAX), *next;
       query; query = next) {
    next = query->next;
    if (query->is_seen)
      queue(q, query);
    else
      refuse_unseen(q, query, now_ns);
  }
}

static void wait_for_at_least(struct query_thread *q, struct pending_query *query)
{
  if (!at_least_list_has_room(&q->unseen, query)) {
    refuse_for(q, query, ANSWER_UNAVAILABLE, "too many queries wait for their at_least: send the query again later");
    return;
  }
  query->give_up_ns = query->received_ns + (int64_t)q->with.config->query.at_least_timeout_ms * CLOCK_NS_PER_MS;
  at_least_list_push(&q->unseen, query);
}

/* ---- Taking queries ---- */

static void dead_letter(struct query_thread *q, const struct query_record *record)
{
  struct dead_letter letter = {
    .topic = q->with.config->catalogue.dead_letter_topic,
    .has_key = record->has_key,
    .key = record->key,
    .has_value = record->has_value,
    .value = record->value,
    .content_type = record->content_type,
    .source_topic = q->with.config->query.topic,
    .partition = record->partition,
    .offset = record->offset,
    .reason = err_message(),
    .waiter = DEAD_LETTER_WAITER_QUERY,
    .ticket = record->ticket,
  };

  delivery_send_dead_letter(q->with.delivery, &letter);
}

static err_t check_query(const struct query_thread *q, struct pending_query *query)
{
  TRY(reply_verify_topic(&q->reply, query->query.reply_topic)); /* the error goes to the configured topic */
  if (query->is_key_too_long)
    FAIL(ERR_QUERY, "the record's key is longer than %d bytes: the answer would have the same", QUERY_KEY_MAX);
  return engine_check_query(q->with.engine, &query->query, &query->space, &query->method);
}

static void accept(struct query_thread *q, struct pending_query *query)
{
  err_code_t err = check_query(q, query);

  if (err != ERR_OK)
    refuse(q, query, reply_error_of(err), err_message());
  else if (query->deadline_ns < query->received_ns)
    refuse_for(q, query, ANSWER_DEADLINE_PASSED, "the deadline had passed when the query was read");
  else if (engine_has_seen(q->with.engine, query->query.at_least, query->query.n_at_least))
    queue(q, query);
  else
    wait_for_at_least(q, query);
}

/* A reply echoes the key: one that is too long for most topics must not come back. */
static err_t take_key(const struct query_record *record, struct pending_query *query)
{
  query->is_key_too_long = record->key.n > QUERY_KEY_MAX;
  query->has_key = record->has_key && !query->is_key_too_long;
  return region_copy(&query->region, query->has_key ? record->key : (struct span){ 0 }, &query->key);
}

static err_t take_record(struct query_thread *q, const struct query_record *record, struct pending_query *query)
{
  counters_add(&q->with.counters->queries, 1);
  query->query = (struct query){ 0 };
  query->format = wire_format_of(record->value, record->content_type);
  query->ticket = record->ticket;
  query->received_ns = clock_now_ns();
  query->partition = record->partition;
  query->offset = record->offset;
  TRY(take_key(record, query));
  err_code_t err = wire_decode_query(record->value, query->format, &query->region, &query->query);
  query_queue_weigh(q->queue, query);
  if (err == ERR_OK) {
    query->deadline_ns = deadline_of(&query->query, query->received_ns);
    accept(q, query);
  } else if (err == ERR_WIRE) {
    dead_letter(q, record);
    query_queue_free_query(q->queue, query);
  } else if (err_class(err) == ERR_CLASS_REJECT) {
    refuse(q, query, ANSWER_BAD_QUERY, err_message());
  } else {
    return err;
  }
  return ERR_OK;
}

/* Whether so much is taken and not committed, or cannot be replied to, that no more is taken: this thread must not wait
 * for a broker, because it has to poll. It is told now and then. */
static bool is_held(struct query_thread *q)
{
  if (offset_tracker_n_held(q->with.tracker) < UNCOMMITTED_MAX && delivery_has_room(q->with.delivery))
    return false;
  int64_t now_ns = clock_now_ns();
  if (!q->held_said_ns || now_ns - q->held_said_ns > HELD_EVERY_S * CLOCK_NS_PER_S) {
    log_warn("queries_held", "uncommitted=%zu not_replied=%zu reason=%s", offset_tracker_n_held(q->with.tracker),
             offset_tracker_n_open(q->with.tracker),
             log_quote(span_of_str("no more queries are taken until replies are delivered and commits go on")));
    q->held_said_ns = now_ns;
  }
  return true;
}

static void drop(struct query_thread *q, struct pending_query *queries)
{
  for (struct pending_query *query = queries, *next; query; query = next) {
    next = query->next;
    offset_tracker_done(q->with.tracker, query->ticket); /* of a former assignment: nothing is committed by it */
    query_queue_free_query(q->queue, query);
  }
}

/* After an assignment the queries of the former one are read again, by this daemon or by another: those that no worker
 * has begun would be answered twice. */
static void drop_reassigned(struct query_thread *q)
{
  if (query_reader_generation(q->reader) == q->generation)
    return;
  q->generation = query_reader_generation(q->reader);
  drop(q, at_least_list_take_all(&q->unseen));
  drop(q, query_queue_take_all(q->queue));
}

static err_t step(struct query_thread *q)
{
  bool can_reply = !is_held(q);
  struct pending_query *query = can_reply ? query_queue_take_query(q->queue) : NULL;
  bool is_idle = query && q->unseen.n == 0;
  struct query_record record;
  bool has_record = false;

  pulse_beat();
  TRY(query_reader_poll(q->reader, is_idle ? IDLE_POLL_MS : BUSY_POLL_MS, query != NULL, &has_record, &record));
  drop_reassigned(q);
  if (has_record)
    TRY(take_record(q, &record, query));
  else if (query)
    query_queue_free_query(q->queue, query);
  if (can_reply)
    recheck_waiting(q);
  return ERR_OK;
}

static void refuse_waiting(struct query_thread *q)
{
  for (struct pending_query *query = at_least_list_take_all(&q->unseen), *next; query; query = next) {
    next = query->next;
    refuse(q, query, ANSWER_UNAVAILABLE, "the daemon is stopping: send the query again");
  }
}

static void *run(void *context)
{
  struct query_thread *q = context;
  err_code_t err = ERR_OK;

  pulse_begin(&q->with.alarm->pulses, &q->pulse, "queries");
  while (!atomic_load(&q->is_stopping) && err == ERR_OK)
    err = step(q);
  if (err != ERR_OK)
    alarm_raise(q->with.alarm, "queries", err);
  refuse_waiting(q);
  query_queue_end(q->queue, clock_now_ns() + STOP_SEARCHES_S * CLOCK_NS_PER_S);
  pulse_rest();
  return NULL;
}

static err_t open_queue(struct query_thread *q)
{
  const struct config *config = q->with.config;
  size_t at_once = POOL_BATCHES * config->query.workers * config->query.batch_size;
  struct fair_queue_config queue_config = {
    .n_spaces = config->n_spaces,
    .n_workers = config->query.workers,
    .n_queries = at_once > POOL_QUERIES ? at_once : POOL_QUERIES,
    .max_batch = config->query.batch_size,
    .batch_time_ns = (int64_t)config->query.batch_time_ms * CLOCK_NS_PER_MS,
  };

  TRY(mem_array(config->n_spaces, sizeof *q->weights, &q->weights));
  for (size_t i = 0; i < config->n_spaces; i++)
    q->weights[i] = (uint32_t)config->spaces[i].weight;
  queue_config.weights = q->weights;
  q->unseen.max_queries = queue_config.n_queries / 2;
  q->unseen.max_bytes = config->query.memory_bytes / 2;
  return query_queue_open(&queue_config, config->query.memory_bytes, &q->queue);
}

err_t query_thread_open(const struct query_thread_context *context, struct query_thread **out)
{
  AUTO(query_thread_close) struct query_thread *q = NULL;

  TRY(mem_array(1, sizeof *q, &q));
  q->with = *context;
  q->reply = (struct reply_context){ context->delivery, context->counters, context->config };
  TRY(open_queue(q));
  *out = q;
  q = NULL;
  return ERR_OK;
}

err_t query_thread_start(struct query_thread *q)
{
  const struct config *config = q->with.config;
  struct kafka_layers layers = kafka_setup_layers(q->with.kafka, &config->query.kafka, true);

  TRY(query_reader_open(&layers, config->query.topic, config->query.group, q->with.tracker, &q->reader));
  TRY(search_workers_open(config->query.workers, q->with.engine, q->queue, &q->reply, q->with.alarm,
                          config->query.batch_size, &q->workers));
  if (pthread_create(&q->thread, NULL, run, q) != 0)
    FAIL(ERR_SYSTEM, "the query thread cannot be started");
  q->has_thread = true;
  return ERR_OK;
}

void query_thread_stop(struct query_thread *q)
{
  atomic_store(&q->is_stopping, true);
  if (q->has_thread)
    pthread_join(q->thread, NULL);
  else
    query_queue_end(q->queue, 0);
  q->has_thread = false;
  search_workers_close(&q->workers);
}

void query_thread_commit(struct query_thread *q)
{
  if (q->reader)
    query_reader_commit(q->reader);
}

void query_thread_close(struct query_thread **q)
{
  if (!*q)
    return;
  if ((*q)->queue)
    query_thread_stop(*q);
  query_reader_close(&(*q)->reader);
  query_queue_close(&(*q)->queue);
  mem_free(&(*q)->weights);
  region_fini(&(*q)->scratch);
  region_fini(&(*q)->explain_scratch);
  mem_free(q);
}
