/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the query thread: take a record, decide what becomes of the query, look at those that wait. */
#include "daemon/queries/query_thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/space_name.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/age_watch.h"
#include "daemon/config/config_shard.h"
#include "daemon/engine_setup.h"
#include "daemon/pulse.h"
#include "daemon/queries/at_least_list.h"
#include "daemon/queries/query_handover.h"
#include "daemon/queries/query_member.h"
#include "daemon/queries/search_worker.h"
#include "daemon/renewal_wait.h"
#include "ingest/query_reader.h"

/* How long to wait for a record: while nothing else can happen, and while something else may be due. */
enum { IDLE_POLL_MS = 100, BUSY_POLL_MS = 1 };

/* The pool has 4,096 queries or four batches for each worker, whichever is more. Half of it, in queries and in bytes,
 * may wait for at_least. The other half stays free for queries that can be served. */
enum { POOL_QUERIES = 4096, POOL_BATCHES = 4 };

/* Most queries that are taken and not committed. One undelivered reply holds back the commits of all queries behind it.
 * The bound is below the default size of the producer's queue: that leaves room to refuse the queries that wait. */
enum { UNCOMMITTED_MAX = 90000 };

/* How often to log why no queries are taken. */
enum { HELD_EVERY_S = 60 };

/* Waiting queries that one step releases: few enough that their replies do not fill the producer's queue. */
enum { RECHECKED_MAX = 64 };

/* How long the workers may search after the daemon was told to stop. */
enum { STOP_SEARCHES_S = 5 };

struct query_thread {
  struct query_thread_context with;
  struct reply_context reply;
  pthread_mutex_t reader_lock; /* other threads look at the reader under it, and the thread replaces it */
  struct query_reader *reader;
  struct query_handover handover;
  struct renewal_wait renewal;
  struct query_queue *queue;
  struct search_workers *workers;
  struct search_figures *figures;
  struct age_watch ages; /* of the queries, when they are read */
  uint32_t *weights;     /* [n_spaces] */
  struct at_least_sources sources;
  struct at_least_list unseen;       /* queries that wait for at_least */
  char member[QUERY_MEMBER_MAX + 1]; /* the id that is kept in the store's folder */
  uint64_t generation;               /* of the assignment that the pending queries belong to */
  int64_t held_logged_ns;
  struct region scratch;
  struct region explain_scratch;
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

const struct search_figures *query_thread_figures(const struct query_thread *t)
{
  return t->figures;
}

const char *query_thread_denied(struct query_thread *t)
{
  pthread_mutex_lock(&t->reader_lock);
  const char *denied = t->reader ? query_reader_denied(t->reader) : NULL;
  pthread_mutex_unlock(&t->reader_lock);
  return denied;
}

static void refuse(struct query_thread *t, struct pending_query *query, enum answer_error error, const char *message)
{
  reply_error(&t->reply, query, error, message, &t->scratch);
  query_queue_free_query(t->queue, query);
}

static void refuse_and_count(struct query_thread *t, struct pending_query *query, enum answer_error error,
                             const char *message)
{
  counters_add(&t->with.counters->refused, 1);
  refuse(t, query, error, message);
}

/* ---- Deadlines ---- */

/* Return the deadline by the monotonic clock: a later step of the wall clock does not change it. */
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

static void push_query(struct query_thread *t, struct pending_query *query)
{
  char message[160];
  int64_t left_ns = query->deadline_ns - clock_now_ns();

  if (query->deadline_ns != PENDING_NO_DEADLINE) {
    int64_t estimate_ns = query_queue_estimate_ns(t->queue, query);
    if (left_ns < estimate_ns) {
      snprintf(message, sizeof message,
               "the deadline is in %" PRId64 " ms, and the answer would take about %" PRId64 " ms",
               left_ns / CLOCK_NS_PER_MS, estimate_ns / CLOCK_NS_PER_MS);
      refuse_and_count(t, query, ANSWER_DEADLINE_PASSED, message);
      return;
    }
  }
  query_queue_push(t->queue, query);
}

/* ---- Waiting for at_least ---- */

static void refuse_unseen(struct query_thread *t, struct pending_query *query, int64_t now_ns)
{
  bool is_late = query->deadline_ns <= now_ns;
  enum at_least_end end = is_late ? AT_LEAST_DEADLINE : query->query.no_wait ? AT_LEAST_NO_WAIT : AT_LEAST_TIMEOUT;
  char message[400];

  at_least_explain(&t->sources, &query->query, end, &t->explain_scratch, message, sizeof message);
  refuse(t, query, is_late ? ANSWER_DEADLINE_PASSED : ANSWER_NOT_SEEN, message);
}

static void recheck_waiting(struct query_thread *t)
{
  int64_t now_ns = clock_now_ns();

  for (struct pending_query *query = at_least_list_take_ended(&t->unseen, &t->sources, now_ns, RECHECKED_MAX), *next;
       query; query = next) {
    next = query->next;
    if (query->is_seen)
      push_query(t, query);
    else
      refuse_unseen(t, query, now_ns);
  }
}

static void wait_for_at_least(struct query_thread *t, struct pending_query *query)
{
  if (!at_least_list_has_room(&t->unseen, query)) {
    refuse_and_count(t, query, ANSWER_UNAVAILABLE,
                     "too many queries wait for their at_least: send the query again later");
    return;
  }
  query->give_up_ns =
      query->received_ns + (int64_t)config_number(&t->with.config->query.at_least_timeout_ms) * CLOCK_NS_PER_MS;
  at_least_list_push(&t->unseen, query);
}

/* ---- Taking queries ---- */

static void send_dead_letter(struct query_thread *t, const struct query_record *record)
{
  struct dead_letter letter = {
    .topic = t->with.config->catalogue.dead_letter_topic,
    .has_key = record->has_key,
    .key = record->key,
    .has_value = record->has_value,
    .value = record->value,
    .content_type = record->content_type,
    .retried = record->retried,
    .source_topic = t->with.config->query.topic,
    .partition = record->partition,
    .offset = record->offset,
    .reason = err_message(),
    .kind = LETTER_UNREADABLE,
    .waiter = DEAD_LETTER_WAITER_QUERY,
    .ticket = record->ticket,
  };

  delivery_send_dead_letter(t->with.delivery, &letter);
}

/* Return the index of a space that the configuration has, or a generation of it. */
static size_t find_space(const struct config *config, struct span text)
{
  struct space_name name;
  size_t i = 0;

  if (!space_name_parse(text, &name))
    return 0;
  while (i + 1 < config->n_spaces && !span_equal(span_of_str(config->spaces[i].name), name.space))
    i++;
  return i;
}

/* A record that is no query is one for every shard: the first one sends the letter for all. */
static void send_dead_letter_once(struct query_thread *t, const struct query_record *record)
{
  if (t->with.config->catalogue.shard.index == 0)
    send_dead_letter(t, record);
  else
    offset_tracker_done(t->with.tracker, record->ticket);
}

static err_t check_query(const struct query_thread *t, struct pending_query *query)
{
  TRY(reply_verify_topic(&t->reply, query->query.reply_topic)); /* its error goes to the answer topic */
  if (query->is_key_too_long)
    FAIL(ERR_QUERY, "the record's key is longer than %d bytes, and the answer would carry it", QUERY_KEY_MAX);
  if (query->query.exclude_seen_by.n > 0 && !t->with.seen)
    FAIL(ERR_QUERY, "exclude_seen_by: the daemon reads no seen topic: configure seen.topic");
  if (query->query.like.n > 0 && config_is_shard(t->with.config))
    FAIL(ERR_QUERY, "like: the catalogue is sharded, and only one shard has the item: send its data in the query");
  TRY(engine_check_query(t->with.engine, &query->query, &query->number, &query->method));
  query->space = find_space(t->with.config, query->query.space);
  TRY(engine_check_filter(t->with.engine, &query->query, &query->region));
  if (query->query.tree)
    query_queue_weigh(t->queue, query); /* with the tree */
  return ERR_OK;
}

static void accept(struct query_thread *t, struct pending_query *query)
{
  config_shard_keep(t->with.config, query->query.at_least, &query->query.n_at_least);
  err_code_t err = check_query(t, query);

  if (err != ERR_OK)
    refuse(t, query, reply_error_of(err), err_message());
  else if (query->deadline_ns < query->received_ns)
    refuse_and_count(t, query, ANSWER_DEADLINE_PASSED, "the deadline had passed when the query was read");
  else if (at_least_is_reached(&t->sources, &query->query))
    push_query(t, query);
  else if (query->query.no_wait)
    refuse_unseen(t, query, query->received_ns);
  else
    wait_for_at_least(t, query);
}

/* Return when the query was written, by our monotonic clock: a later step of the wall clock does not change the age of
 * its answer. 0 if its timestamp cannot be believed. */
static int64_t asked_ns_of(struct query_thread *t, const struct query_record *record, int64_t now_ns)
{
  int64_t age_ms = clock_unix_ms() - record->timestamp_ms;

  age_watch_look(&t->ages);
  if (record->timestamp_ms < 0 || !age_watch_believes(&t->ages, age_ms))
    return 0;
  return now_ns - (age_ms > 0 ? age_ms * CLOCK_NS_PER_MS : 0);
}

/* The reply carries the key, so a key that is too long for most topics is left out. */
static err_t take_key(const struct query_record *record, struct pending_query *query)
{
  query->is_key_too_long = record->key.n > QUERY_KEY_MAX;
  query->has_key = record->has_key && !query->is_key_too_long;
  return region_copy(&query->region, query->has_key ? record->key : (struct span){ 0 }, &query->key);
}

static err_t take_record(struct query_thread *t, const struct query_record *record, struct pending_query *query)
{
  counters_add(&t->with.counters->queries, 1);
  query->query = (struct query){ 0 };
  query->format = wire_format_of(record->value, record->content_type);
  query->ticket = record->ticket;
  query->received_ns = clock_now_ns();
  query->asked_ns = asked_ns_of(t, record, query->received_ns);
  query->partition = record->partition;
  query->offset = record->offset;
  query->timestamp_ms = record->timestamp_ms;
  query->deadline_ns = PENDING_NO_DEADLINE;
  TRY(take_key(record, query));
  for (size_t i = 0; i < TRACE_HEADERS; i++)
    TRY(region_copy(&query->region, record->trace.value[i], &query->trace.value[i]));
  err_code_t err = wire_decode_query(record->value, query->format, &query->region, &query->query);
  query_queue_weigh(t->queue, query);
  if (err == ERR_OK) {
    query->deadline_ns = deadline_of(&query->query, query->received_ns);
    accept(t, query);
  } else if (err == ERR_WIRE) {
    send_dead_letter_once(t, record);
    query_queue_free_query(t->queue, query);
  } else if (err_class(err) == ERR_CLASS_REJECT) {
    refuse(t, query, ANSWER_BAD_QUERY, err_message());
  } else {
    return err;
  }
  return ERR_OK;
}

/* Are too many queries uncommitted, or too many replies undelivered, to take another query? The thread cannot wait for
 * a broker instead: it has to poll. */
static bool is_held(const struct query_thread *t)
{
  return offset_tracker_n_held(t->with.tracker) >= UNCOMMITTED_MAX || !delivery_has_room(t->with.delivery);
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

static void drop(struct query_thread *t, struct pending_query *queries)
{
  for (struct pending_query *query = queries, *next; query; query = next) {
    next = query->next;
    offset_tracker_done(t->with.tracker, query->ticket); /* its assignment is over: this commits nothing */
    query_queue_free_query(t->queue, query);
  }
}

/* After a new assignment the queries of the old one are read again, by this daemon or another. Drop those that no
 * worker has begun: they would be answered twice. */
static void drop_reassigned(struct query_thread *t)
{
  if (query_reader_generation(t->reader) == t->generation)
    return;
  t->generation = query_reader_generation(t->reader);
  drop(t, at_least_list_take_all(&t->unseen));
  drop(t, query_queue_take_all(t->queue));
}

/* Overrides the reader's default, which skips no query. */
static const struct kafka_property start_at_latest[] = { { "auto.offset.reset", "latest" } };

static err_t open_reader(const struct query_thread *t, const char *former, struct query_reader **out)
{
  const struct config *config = t->with.config;
  struct kafka_layers layers = kafka_setup_layers(t->with.kafka, &config->query.kafka, true);
  char group[CONFIG_GROUP_BYTES];

  config_shard_group(config, group);
  if (config->query.starts_at_latest)
    layers.layer[layers.n++] = (struct kafka_properties){ start_at_latest, 1 };
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
  drop(t, at_least_list_take_all(&t->unseen));
  drop(t, query_queue_take_all(t->queue));
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
  bool is_idle = query && t->unseen.n == 0 && !t->handover.next;
  struct query_record record;
  bool has_record = false;

  pulse_beat();
  if (!can_reply)
    log_held(t);
  TRY(query_reader_poll(t->reader, is_idle ? IDLE_POLL_MS : BUSY_POLL_MS, query != NULL, &has_record, &record));
  keep_member(t);
  drop_reassigned(t);
  if (has_record)
    TRY(take_record(t, &record, query));
  else if (query)
    query_queue_free_query(t->queue, query);
  if (can_reply)
    recheck_waiting(t);
  return ERR_OK;
}

static void refuse_waiting(struct query_thread *t)
{
  for (struct pending_query *query = at_least_list_take_all(&t->unseen), *next; query; query = next) {
    next = query->next;
    refuse(t, query, ANSWER_UNAVAILABLE, "the daemon is stopping: send the query again");
  }
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
  refuse_waiting(t);
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
  t->unseen.max_queries = queue_config.n_queries / 2;
  t->unseen.max_bytes = config->query.memory_bytes / 2;
  return query_queue_open(&queue_config, config->query.memory_bytes, &t->queue);
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
  t->sources = (struct at_least_sources){ context->engine, context->seen };
  t->reply = (struct reply_context){ context->delivery, context->counters, context->config };
  TRY(search_figures_open(context->config->n_spaces + ENGINE_SPACES_MORE, has_number, context->engine, &t->figures));
  TRY(open_queue(t));
  *out = t;
  t = NULL;
  return ERR_OK;
}

err_t query_thread_start(struct query_thread *t)
{
  const struct config *config = t->with.config;

  if (!config->embedded_broker.is_enabled) /* its groups end with the process */
    query_member_read(config->store_path, t->member);
  TRY(open_reader(t, t->member, &t->reader));
  struct search_context searches = { t->with.engine,           t->queue,    &t->reply, t->figures, t->with.alarm,
                                     config->query.batch_size, t->with.seen };
  TRY(search_workers_open(engine_setup_n_workers(config, t->with.engine), &searches, &t->workers));
  if (pthread_create(&t->thread, NULL, run, t) != 0)
    FAIL(ERR_SYSTEM, "the query thread cannot be started");
  t->has_thread = true;
  return ERR_OK;
}

void query_thread_stop(struct query_thread *t)
{
  atomic_store(&t->is_stopping, true);
  if (t->has_thread)
    pthread_join(t->thread, NULL);
  else
    query_queue_end(t->queue, 0);
  t->has_thread = false;
  search_workers_close(&t->workers);
}

void query_thread_leave(struct query_thread *t)
{
  if (!t->reader)
    return;
  query_handover_abort(&t->handover);
  query_reader_retire(&t->reader);
  query_member_keep(t->with.config->store_path, "");
}

void query_thread_close(struct query_thread **t)
{
  if (!*t)
    return;
  if ((*t)->queue)
    query_thread_stop(*t);
  query_handover_abort(&(*t)->handover);
  query_reader_close(&(*t)->reader);
  pthread_mutex_destroy(&(*t)->reader_lock);
  query_queue_close(&(*t)->queue);
  search_figures_close(&(*t)->figures);
  mem_free(&(*t)->weights);
  region_fini(&(*t)->scratch);
  region_fini(&(*t)->explain_scratch);
  mem_free(t);
}
