#include "daemon/queries.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/pulse.h"
#include "daemon/search_worker.h"
#include "ingest/query_reader.h"

enum { IDLE_POLL_MS = 100, BUSY_POLL_MS = 1 };

struct queries {
  struct queries_context with;
  struct reply_context reply;
  struct query_reader *reader;
  struct job_queue *queue;
  struct search_workers *workers;
  struct query_job **open_jobs; /* being filled */
  size_t n_open_jobs;
  size_t max_open_jobs;
  struct pending_query *waiting; /* for at_least */
  size_t n_waiting;
  struct region scratch;
  _Atomic bool is_stopping;
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

bool queries_is_assigned(const struct queries *q)
{
  return q->reader && query_reader_is_assigned(q->reader);
}

static void refuse(struct queries *q, struct pending_query *query, enum answer_error error, const char *message)
{
  reply_error(&q->reply, query, error, message, &q->scratch);
  job_queue_free_query(q->queue, query);
}

/* ---- Batching ---- */

static void flush_job(struct queries *q, size_t index)
{
  job_queue_push(q->queue, q->open_jobs[index]);
  q->open_jobs[index] = q->open_jobs[--q->n_open_jobs];
}

static void flush_all(struct queries *q)
{
  while (q->n_open_jobs)
    flush_job(q, q->n_open_jobs - 1);
}

/* Push what is full, old enough, or wanted by an idle worker: the oldest first. */
static void flush_due(struct queries *q)
{
  int64_t wait_ns = (int64_t)q->with.config->query.batch_wait_us * CLOCK_NS_PER_US;

  while (q->n_open_jobs) {
    size_t oldest = 0;
    for (size_t i = 1; i < q->n_open_jobs; i++) {
      if (q->open_jobs[i]->opened_ns < q->open_jobs[oldest]->opened_ns)
        oldest = i;
    }
    if (clock_now_ns() - q->open_jobs[oldest]->opened_ns < wait_ns && !job_queue_has_idle_worker(q->queue))
      return;
    flush_job(q, oldest);
  }
}

static bool is_same_search(const struct pending_query *a, const struct pending_query *b)
{
  return a->space == b->space && memcmp(&a->method, &b->method, sizeof a->method) == 0;
}

/* A job to be filled: when all are in use, the workers are behind, and this thread waits for them instead of polling.
 */
static struct query_job *take_job(struct queries *q)
{
  struct query_job *job;

  while (!(job = job_queue_take_job(q->queue))) {
    pulse_beat(); /* the workers have pulses of their own */
    flush_all(q);
    clock_sleep_ns(50 * CLOCK_NS_PER_US);
  }
  job->opened_ns = clock_now_ns();
  return job;
}

static void add_to_job(struct queries *q, struct pending_query *query)
{
  size_t i = 0;

  while (i < q->n_open_jobs && !is_same_search(q->open_jobs[i]->queries[0], query))
    i++;
  if (i == q->n_open_jobs) {
    struct query_job *job = take_job(q); /* may flush all: the new one's place is known only now */
    i = q->n_open_jobs++;
    q->open_jobs[i] = job;
  }
  q->open_jobs[i]->queries[q->open_jobs[i]->n++] = query;
  if (q->open_jobs[i]->n == q->with.config->query.batch_size)
    flush_job(q, i);
}

/* ---- Waiting for at_least ---- */

static bool has_seen(struct queries *q, const struct pending_query *query)
{
  return engine_has_seen(q->with.engine, query->query.at_least, query->query.n_at_least);
}

static bool is_late(const struct pending_query *query)
{
  return query->query.has_deadline && clock_unix_ms() > query->query.deadline_unix_ms;
}

static void recheck_waiting(struct queries *q)
{
  struct pending_query **link = &q->waiting;

  while (*link) {
    struct pending_query *query = *link;
    bool is_seen = has_seen(q, query);
    if (!is_seen && !is_late(query) && clock_now_ns() < query->give_up_ns) {
      link = &query->next;
      continue;
    }
    *link = query->next;
    q->n_waiting--;
    if (is_seen)
      add_to_job(q, query);
    else if (is_late(query))
      refuse(q, query, ANSWER_DEADLINE_PASSED, "the deadline passed before the catalogue had seen at_least");
    else
      refuse(q, query, ANSWER_NOT_SEEN, "the catalogue has not seen at_least within query.at_least_timeout_ms");
  }
}

/* ---- Taking queries ---- */

static void dead_letter(struct queries *q, const struct query_record *record)
{
  struct delivery_dead_letter letter = {
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
    .is_query = true,
    .ticket = record->ticket,
  };

  delivery_dead_letter(q->with.delivery, &letter);
}

static err_t check_query(const struct queries *q, struct pending_query *query)
{
  TRY(reply_verify_topic(&q->reply, query->query.reply_topic)); /* the error goes to the configured topic */
  if (query->is_key_too_long)
    FAIL(ERR_QUERY, "the record's key is longer than %d bytes: the answer would have the same", QUERY_KEY_MAX);
  return engine_check_query(q->with.engine, &query->query, &query->space, &query->method);
}

static void accept(struct queries *q, struct pending_query *query)
{
  err_code_t err = check_query(q, query);

  if (err != ERR_OK) {
    refuse(q, query, reply_error_of(err), err_message());
  } else if (is_late(query)) {
    refuse(q, query, ANSWER_DEADLINE_PASSED, "the deadline had passed when the query was read");
  } else if (has_seen(q, query)) {
    add_to_job(q, query);
  } else if (q->n_waiting >= job_queue_n_queries(q->queue) / 2) { /* the other half is for queries that can be served */
    refuse(q, query, ANSWER_UNAVAILABLE, "too many queries wait for their at_least: send the query again later");
  } else {
    query->give_up_ns = query->received_ns + (int64_t)q->with.config->query.at_least_timeout_ms * CLOCK_NS_PER_MS;
    query->next = q->waiting;
    q->waiting = query;
    q->n_waiting++;
  }
}

/* A reply echoes the key: one that is too long for most topics must not come back. */
static err_t take_key(const struct query_record *record, struct pending_query *query)
{
  query->is_key_too_long = record->key.n > QUERY_KEY_MAX;
  query->has_key = record->has_key && !query->is_key_too_long;
  return region_copy(&query->region, query->has_key ? record->key : (struct span){ 0 }, &query->key);
}

static err_t take_record(struct queries *q, const struct query_record *record, struct pending_query *query)
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
  if (err == ERR_OK) {
    accept(q, query);
  } else if (err == ERR_WIRE) {
    dead_letter(q, record);
    job_queue_free_query(q->queue, query);
  } else if (err_class(err) == ERR_CLASS_REJECT) {
    refuse(q, query, ANSWER_BAD_QUERY, err_message());
  } else {
    return err;
  }
  return ERR_OK;
}

static err_t step(struct queries *q)
{
  bool is_busy = q->n_open_jobs || q->waiting;
  struct pending_query *query = job_queue_take_query(q->queue);
  struct query_record record;
  bool has_record = false;

  pulse_beat();
  if (query)
    TRY(query_reader_poll(q->reader, is_busy ? BUSY_POLL_MS : IDLE_POLL_MS, &has_record, &record));
  else /* all are in use: not polling holds the topic back */
    clock_sleep_ns(CLOCK_NS_PER_MS / 10);
  if (has_record)
    TRY(take_record(q, &record, query));
  else if (query)
    job_queue_free_query(q->queue, query);
  recheck_waiting(q);
  flush_due(q);
  return ERR_OK;
}

static void refuse_waiting(struct queries *q)
{
  while (q->waiting) {
    struct pending_query *query = q->waiting;
    q->waiting = query->next;
    q->n_waiting--;
    refuse(q, query, ANSWER_UNAVAILABLE, "the daemon is stopping: send the query again");
  }
}

static void *run(void *context)
{
  struct queries *q = context;
  err_code_t err = ERR_OK;

  pulse_begin(&q->with.alarm->pulses, &q->pulse, "queries");
  while (!atomic_load(&q->is_stopping) && err == ERR_OK)
    err = step(q);
  if (err != ERR_OK)
    alarm_raise(q->with.alarm, "queries", err);
  refuse_waiting(q);
  flush_all(q);
  job_queue_end(q->queue);
  pulse_rest();
  return NULL;
}

err_t queries_open(const struct queries_context *context, struct queries **out)
{
  AUTO(queries_close) struct queries *q = NULL;
  const struct config *config = context->config;

  TRY(mem_array(1, sizeof *q, &q));
  q->with = *context;
  q->reply = (struct reply_context){ context->delivery, context->counters, config };
  TRY(job_queue_open(config->query.workers, config->query.batch_size, &q->queue));
  q->max_open_jobs = 3 * config->query.workers + 1;
  TRY(mem_array(q->max_open_jobs, sizeof(struct query_job *), &q->open_jobs));
  *out = q;
  q = NULL;
  return ERR_OK;
}

err_t queries_start(struct queries *q)
{
  const struct config *config = q->with.config;
  struct kafka_layers layers = kafka_setup_layers(q->with.kafka, &config->query.kafka, true);

  TRY(query_reader_open(&layers, config->query.topic, config->query.group, &q->reader));
  delivery_attach(q->with.delivery, q->reader, q->with.alarm);
  TRY(search_workers_open(config->query.workers, q->with.engine, q->queue, &q->reply, q->with.alarm,
                          config->query.batch_size, &q->workers));
  if (pthread_create(&q->thread, NULL, run, q) != 0)
    FAIL(ERR_SYSTEM, "the query thread cannot be started");
  q->has_thread = true;
  return ERR_OK;
}

void queries_stop(struct queries *q)
{
  atomic_store(&q->is_stopping, true);
  if (q->has_thread)
    pthread_join(q->thread, NULL);
  else
    job_queue_end(q->queue);
  q->has_thread = false;
  search_workers_close(&q->workers);
}

void queries_close(struct queries **q)
{
  if (!*q)
    return;
  if ((*q)->queue)
    queries_stop(*q);
  query_reader_close(&(*q)->reader);
  job_queue_close(&(*q)->queue);
  mem_free(&(*q)->open_jobs);
  region_fini(&(*q)->scratch);
  mem_free(q);
}
