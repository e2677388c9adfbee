/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the query thread: its consumer, and the handover to a consumer with other certificates. */
#include "daemon/queries/query_thread.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/config/config_shard.h"
#include "daemon/health/pulse.h"
#include "daemon/queries/query_handover.h"
#include "daemon/queries/query_intake.h"
#include "daemon/queries/query_member.h"
#include "daemon/queries/search_worker.h"
#include "daemon/setup/engine_setup.h"
#include "ingest/kafka/renewal_wait.h"
#include "ingest/readers/query_reader.h"

/* How long to wait for a record: while nothing else can happen, and while something else may be due. */
enum { IDLE_POLL_MS = 100, BUSY_POLL_MS = 1 };

/* The pool has 4,096 queries or four batches for each worker, whichever is more. Half of it, in queries and in bytes,
 * may wait for at_least. The other half stays free for queries that can be served. */
enum { POOL_QUERIES = 4096, POOL_BATCHES = 4 };

/* How often to log why no queries are taken. */
enum { HELD_EVERY_S = 60 };

/* How long the workers may search after the daemon was told to stop. */
enum { STOP_SEARCHES_S = 5 };

struct query_thread {
  struct query_thread_context with;
  struct query_intake intake;
  pthread_mutex_t reader_lock; /* other threads look at the reader under it, and the thread replaces it */
  struct query_reader *reader;
  struct query_handover handover;
  struct renewal_wait renewal;
  struct query_queue *queue;
  struct search_workers *workers;
  struct search_counters *search_counters;
  struct trial *trial;               /* NULL: there are none */
  uint32_t *weights;                 /* [n_spaces] */
  char member[QUERY_MEMBER_MAX + 1]; /* the id that is kept in the store's folder */
  uint64_t generation;               /* of the assignment that the pending queries belong to */
  int64_t held_logged_ns;
  _Atomic bool is_stopping;
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

bool query_thread_is_assigned(struct query_thread *t)
{
  pthread_mutex_lock(&t->reader_lock);
  bool is_assigned = t->reader && query_reader_is_assigned(t->reader);
  pthread_mutex_unlock(&t->reader_lock);
  return is_assigned;
}

bool query_thread_is_topic_away(struct query_thread *t)
{
  pthread_mutex_lock(&t->reader_lock);
  bool is_away = t->reader && query_reader_is_topic_away(t->reader);
  pthread_mutex_unlock(&t->reader_lock);
  return is_away;
}

struct trial *query_thread_trial(const struct query_thread *t)
{
  return t->trial;
}

const struct search_counters *query_thread_counters(const struct query_thread *t)
{
  return t->search_counters;
}

const char *query_thread_denied(struct query_thread *t)
{
  pthread_mutex_lock(&t->reader_lock);
  bool is_unopened = !t->reader && t->renewal.is_said; /* with a reader, it is the thread's */
  const char *unopened = is_unopened ? "the certificate of the query consumer cannot be used" : NULL;
  const char *denied = t->reader ? query_reader_denied(t->reader) : unopened;
  pthread_mutex_unlock(&t->reader_lock);
  return denied;
}

/* Are too many queries uncommitted, or too many replies undelivered, to take another query? The thread cannot wait for
 * a broker instead: it has to poll. */
static bool is_held(const struct query_thread *t)
{
  return offset_tracker_n_held(t->with.tracker) >= QUERY_INTAKE_HELD_MAX || !delivery_has_room(t->with.delivery);
}

static void log_held(struct query_thread *t)
{
  int64_t now_ns = clock_now_ns();

  if (!t->held_logged_ns || now_ns - t->held_logged_ns > HELD_EVERY_S * CLOCK_NS_PER_S) {
    log_warn("queries_held", "uncommitted=%zu not_replied=%zu reason=%s", offset_tracker_n_held(t->with.tracker),
             offset_tracker_n_open(t->with.tracker),
             log_quote(span_of_str("no more queries are taken until replies are delivered and commits go on")));
    t->held_logged_ns = now_ns;
  }
}

/* When the partitions are given up, and after a new assignment, the queries of the old one are read again, by this
 * daemon or another. Drop those that no worker has begun: they would be answered twice. */
static void drop_reassigned(struct query_thread *t)
{
  if (query_reader_generation(t->reader) == t->generation)
    return;
  t->generation = query_reader_generation(t->reader);
  query_intake_drop(&t->intake);
}

/* Overrides the reader's default, which skips no query. The group keeps the position that it begins at. */
static const struct kafka_property start_at_latest[] = { { "auto.offset.reset", "latest" } };

static struct kafka_layers reader_layers(const struct query_thread *t)
{
  struct kafka_layers layers = kafka_setup_layers(t->with.kafka, &t->with.config->query.kafka, true);

  if (t->with.config->query.starts_at_latest)
    kafka_layers_add(&layers, start_at_latest, 1);
  return layers;
}

static err_t open_reader(const struct query_thread *t, const char *former, struct query_reader **out)
{
  const struct config *config = t->with.config;
  struct kafka_layers layers = reader_layers(t);
  char group[CONFIG_GROUP_BYTES];

  config_shard_group(config, group);
  layers.client = "queries";
  return query_reader_open(&layers, config->query.topic, group, former, t->with.tracker, out);
}

/* Let the next consumer take over. Queries that could not be answered by now are read again, as after a rebalance. */
static void replace_reader(struct query_thread *t)
{
  struct query_reader *former = t->reader;

  log_info("kafka_client_renewed", "client=queries unanswered=%zu", offset_tracker_n_open(t->with.tracker));
  pthread_mutex_lock(&t->reader_lock);
  t->reader = query_handover_end(&t->handover);
  pthread_mutex_unlock(&t->reader_lock);
  query_reader_retire(&former);
  query_reader_stand_by(t->reader, false);
  t->generation = query_reader_generation(t->reader);
  query_intake_drop(&t->intake);
}

/* Begin a handover, and give up the one that is under way: its consumer has former certificates too. */
static err_t begin_handover(struct query_thread *t)
{
  struct query_reader *next;

  if (!renewal_wait_is_over(&t->renewal))
    return ERR_OK;
  err_code_t err = open_reader(t, "", &next);
  if (err == ERR_CONFIG) { /* it was good before */
    renewal_wait_begin(&t->renewal, "queries");
    return ERR_OK;
  }
  TRY(err);
  renewal_wait_end(&t->renewal);
  query_handover_abort(&t->handover);
  query_handover_begin(&t->handover, &next, t->reader);
  return ERR_OK;
}

/* If certificates have changed, go on with the handover to a consumer that has the new ones. */
static err_t hand_over(struct query_thread *t)
{
  bool is_due;

  if (query_reader_is_outdated(t->handover.next ? t->handover.next : t->reader))
    TRY(begin_handover(t));
  if (!t->handover.next)
    return ERR_OK;
  TRY(query_handover_step(&t->handover, t->reader, offset_tracker_n_open(t->with.tracker), &is_due));
  if (is_due)
    replace_reader(t);
  return ERR_OK;
}

/* Keep the id that the group knows this daemon by, when it is another one. */
static void keep_member(struct query_thread *t)
{
  const char *member = query_reader_member(t->reader);

  if (!*member || strcmp(member, t->member) == 0)
    return;
  strcpy(t->member, member);
  query_member_keep(t->with.config->store_path, member);
}

static err_t step(struct query_thread *t)
{
  TRY(hand_over(t));
  bool can_reply = !is_held(t);
  struct pending_query *query = can_reply && !t->handover.until_ns ? query_queue_take_query(t->queue) : NULL;
  bool is_idle = query && t->intake.waiting.n == 0 && !t->handover.next;
  struct query_record record;
  bool has_record = false;

  pulse_beat();
  if (!can_reply)
    log_held(t);
  TRY(query_reader_poll(t->reader, is_idle ? IDLE_POLL_MS : BUSY_POLL_MS, query != NULL, &has_record, &record));
  keep_member(t);
  drop_reassigned(t);
  if (has_record)
    TRY(query_intake_take(&t->intake, &record, query));
  else if (query)
    query_queue_free_query(t->queue, query);
  if (can_reply)
    query_intake_recheck(&t->intake);
  return ERR_OK;
}

static void *run(void *context)
{
  struct query_thread *t = context;
  err_code_t err = ERR_OK;

  pulse_begin(&t->with.alarm->pulses, &t->pulse, "queries");
  while (!atomic_load(&t->is_stopping) && err == ERR_OK)
    err = step(t);
  if (err != ERR_OK)
    alarm_raise(t->with.alarm, "queries", err);
  query_intake_refuse_waiting(&t->intake);
  query_queue_end(t->queue, clock_now_ns() + STOP_SEARCHES_S * CLOCK_NS_PER_S);
  pulse_rest();
  return NULL;
}

static err_t open_queue(struct query_thread *t)
{
  const struct config *config = t->with.config;
  size_t n_workers = engine_setup_n_workers(config, t->with.engine);
  size_t at_once = POOL_BATCHES * n_workers * config->query.batch_size;
  struct fair_queue_config queue_config = {
    .n_spaces = config->n_spaces,
    .n_workers = n_workers,
    .n_queries = at_once > POOL_QUERIES ? at_once : POOL_QUERIES,
    .max_batch = config->query.batch_size,
    .batch_time_ns = (int64_t)config->query.batch_time_ms * CLOCK_NS_PER_MS,
  };

  TRY(mem_array(config->n_spaces, sizeof *t->weights, &t->weights));
  for (size_t i = 0; i < config->n_spaces; i++)
    t->weights[i] = (uint32_t)config->spaces[i].weight;
  queue_config.weights = t->weights;
  TRY(query_queue_open(&queue_config, config->query.memory_bytes, &t->queue));
  query_intake_init(&t->with, t->queue, queue_config.n_queries / 2, &t->intake);
  return ERR_OK;
}

static err_t open_trial(struct query_thread *t)
{
  struct trial_context context = { t->with.config, t->with.engine, t->queue, t->with.counters };

  return t->with.has_trials ? trial_open(&context, &t->trial) : ERR_OK;
}

static void allow_trials(struct query_thread *t, bool has_workers)
{
  if (t->trial)
    trial_allow(t->trial, has_workers);
}

/* Does the engine have a space of this number? */
static bool has_number(void *engine, size_t number)
{
  for (size_t i = 0; i < engine_n_spaces(engine); i++) {
    struct engine_space_info info;
    if (engine_space_get(engine, i, &info) && info.number == number)
      return true;
  }
  return false;
}

err_t query_thread_open(const struct query_thread_context *context, struct query_thread **out)
{
  AUTO(query_thread_close) struct query_thread *t = NULL;

  TRY(mem_array(1, sizeof *t, &t));
  t->with = *context;
  pthread_mutex_init(&t->reader_lock, NULL);
  struct kafka_layers layers = reader_layers(t);
  TRY(kafka_client_check(true, &layers)); /* what is wrong later was changed since then */
  TRY(search_counters_open(context->config->n_spaces + ENGINE_SPACES_MORE, has_number, context->engine,
                           &t->search_counters));
  TRY(open_queue(t));
  TRY(open_trial(t));
  *out = t;
  t = NULL;
  return ERR_OK;
}

err_t query_thread_join(struct query_thread *t, bool *is_open)
{
  *is_open = t->reader != NULL;
  if (*is_open || !renewal_wait_is_over(&t->renewal))
    return ERR_OK;
  if (!t->with.config->embedded_broker.is_enabled) /* its groups end with the process */
    query_member_read(t->with.config->store_path, t->member);
  err_code_t err = open_reader(t, t->member, &t->reader);
  if (err == ERR_CONFIG) { /* it was good when the daemon was started */
    renewal_wait_begin_first(&t->renewal, "queries");
    return ERR_OK;
  }
  TRY(err);
  renewal_wait_end(&t->renewal);
  *is_open = true;
  return ERR_OK;
}

err_t query_thread_start(struct query_thread *t)
{
  const struct config *config = t->with.config;

  struct search_context searches = {
    .engine = t->with.engine,
    .queue = t->queue,
    .reply = &t->intake.reply,
    .search_counters = t->search_counters,
    .alarm = t->with.alarm,
    .max_batch = config->query.batch_size,
    .seen = t->with.seen,
    .shadows = t->with.shadows,
    .switches = t->with.switches,
    .kafka = t->with.kafka,
  };

  TRY(search_workers_open(engine_setup_n_workers(config, t->with.engine), &searches, &t->workers));
  if (pthread_create(&t->thread, NULL, run, t) != 0)
    FAIL(ERR_SYSTEM, "the query thread cannot be started");
  t->has_thread = true;
  allow_trials(t, true);
  return ERR_OK;
}

void query_thread_stop(struct query_thread *t)
{
  allow_trials(t, false);
  atomic_store(&t->is_stopping, true);
  if (t->has_thread)
    pthread_join(t->thread, NULL);
  else
    query_queue_end(t->queue, 0);
  t->has_thread = false;
  if (t->workers)
    search_workers_stop(t->workers);
}

void query_thread_leave(struct query_thread *t)
{
  if (!t->reader)
    return;
  query_handover_abort(&t->handover);
  query_reader_retire(&t->reader);
  query_member_keep(t->with.config->store_path, "");
}

void query_thread_end_comparing(struct query_thread *t)
{
  search_workers_close(&t->workers);
}

void query_thread_close(struct query_thread **t)
{
  if (!*t)
    return;
  if ((*t)->queue)
    query_thread_stop(*t);
  query_thread_end_comparing(*t);
  query_handover_abort(&(*t)->handover);
  query_reader_close(&(*t)->reader);
  pthread_mutex_destroy(&(*t)->reader_lock);
  query_queue_close(&(*t)->queue);
  search_counters_close(&(*t)->search_counters);
  trial_close(&(*t)->trial);
  mem_free(&(*t)->weights);
  query_intake_fini(&(*t)->intake);
  mem_free(t);
}
