/* SPDX-License-Identifier: Apache-2.0 */
/* A short list of queries, and the loop that compares the first one. */
#include "daemon/queries/shadow_thread.h"

#include <pthread.h>

#include "base/stand_back.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/queries/shadow_search.h"
#include "daemon/shadow/shadow_topic.h"

/* How long to wait while queries wait for a worker; for reports, while there is nothing to compare. */
enum { BUSY_MS = 1, REPORTS_MS = 20, SEEN_KEPT_BYTES = 1 << 20 };

struct shadow_thread {
  struct shadow_context with;
  pthread_mutex_t mutex;
  pthread_cond_t offered;
  struct pending_query *first, *last; /* linked by `next` */
  size_t n_waiting;
  size_t bytes; /* of those */
  _Atomic bool is_stopping;
  struct shadow_search search;
  struct shadow_topic topic;
  struct region seen; /* what a user has seen, if no set is held */
  pthread_t thread;
  bool has_thread;
};

static uint64_t draw_of(const struct pending_query *query)
{
  return shadow_board_draw(query->partition, query->offset);
}

/* ---- Queries that wait ---- */

static bool has_room(const struct shadow_thread *t, const struct pending_query *query)
{
  return !atomic_load(&t->is_stopping) && t->n_waiting < SHADOW_WAITING_MAX &&
         t->bytes + query->bytes <= t->with.config->query.memory_bytes / SHADOW_MEMORY_SHARE;
}

static bool push(struct shadow_thread *t, struct pending_query *query)
{
  pthread_mutex_lock(&t->mutex);
  bool is_taken = has_room(t, query);
  if (is_taken) {
    query->next = NULL;
    *(t->first ? &t->last->next : &t->first) = query;
    t->last = query;
    t->n_waiting++;
    t->bytes += query->bytes;
    pthread_cond_signal(&t->offered);
  }
  pthread_mutex_unlock(&t->mutex);
  return is_taken;
}

/* Return NULL if none waits. */
static struct pending_query *pop(struct shadow_thread *t, bool may_wait)
{
  pthread_mutex_lock(&t->mutex);
  while (may_wait && !t->first && !atomic_load(&t->is_stopping))
    pthread_cond_wait(&t->offered, &t->mutex);
  struct pending_query *query = t->first;
  if (query) {
    t->first = query->next;
    t->n_waiting--;
    t->bytes -= query->bytes;
  }
  pthread_mutex_unlock(&t->mutex);
  return query;
}

/* Count the query as dropped, for each generation that wants it. */
static void drop(struct shadow_thread *t, const struct pending_query *query, enum shadow_drop why)
{
  uint32_t generations[SHADOW_AT_ONCE];
  size_t n = shadow_board_targets(t->with.board, query->space, draw_of(query), generations);

  for (size_t i = 0; i < n; i++)
    shadow_board_drop(t->with.board, query->space, generations[i], why, NULL);
}

bool shadow_thread_offer(struct shadow_thread *t, struct pending_query *query)
{
  if ((query->number & ENGINE_PINNED) || !shadow_board_wants(t->with.board, query->space, draw_of(query)))
    return false;
  query->query.seen = NULL; /* the caller releases it */
  if (push(t, query))
    return true;
  drop(t, query, SHADOW_BUSY);
  return false;
}

/* ---- Comparing ---- */

static enum shadow_drop drop_of(err_code_t err)
{
  switch (err) {
  case ERR_METHOD:
  case ERR_QUERY:
    return SHADOW_REFUSED;
  case ERR_SPACE:
  case ERR_SPACE_CHANGED:
    return SHADOW_CHANGED;
  default:
    return SHADOW_FAILED;
  }
}

static void note_failure(struct shadow_thread *t, const struct pending_query *query, uint32_t generation,
                         err_code_t err)
{
  enum shadow_drop why = drop_of(err);

  if (why == SHADOW_FAILED)
    log_warn("shadow_failed", "reason=%s", log_failure());
  shadow_board_drop(t->with.board, query->space, generation, why, why == SHADOW_CHANGED ? NULL : err_message());
}

static err_t measure(struct shadow_thread *t, const struct pending_query *query, uint32_t generation,
                     const struct shadow_pair *pair)
{
  const struct answer *current = &pair->current, *shadow = &pair->shadow;
  struct shadow_record record = { .has_key = query->has_key,
                                  .key = query->key,
                                  .id = query->query.id,
                                  .k = query->query.k,
                                  .current = current,
                                  .shadow = shadow };

  if (current->n_hits + shadow->n_hits == 0) {
    shadow_board_drop(t->with.board, query->space, generation, SHADOW_EMPTY, NULL);
    return ERR_OK;
  }
  TRY(shadow_measures_take(current->hits, current->n_hits, shadow->hits, shadow->n_hits, &t->search.region,
                           &record.measures));
  shadow_topic_send(&t->topic, &record, &t->search.region);
  shadow_board_count(t->with.board, query->space, generation, &record.measures, current->searched_us,
                     shadow->searched_us);
  return ERR_OK;
}

static err_t compare_with(struct shadow_thread *t, const struct pending_query *query, uint32_t generation)
{
  struct shadow_pair pair;
  bool is_shadow_first = query->offset & 1;

  TRY(shadow_search_both(&t->search, &query->query, generation, is_shadow_first, &pair));
  return measure(t, query, generation, &pair);
}

static err_t acquire_seen(struct shadow_thread *t, struct pending_query *query, struct seen_set **held)
{
  *held = NULL;
  region_trim(&t->seen, SEEN_KEPT_BYTES);
  if (query->query.exclude_seen_by.n == 0)
    return ERR_OK;
  return seen_sets_acquire(t->with.seen, query->query.exclude_seen_by, &t->seen, &query->query.seen, held);
}

/* Wait until no query waits for a worker. Returns false if the thread has to end. */
static bool give_way(const struct shadow_thread *t)
{
  while (query_queue_n_waiting(t->with.queue) > 0 && !atomic_load(&t->is_stopping))
    clock_sleep_ns(BUSY_MS * CLOCK_NS_PER_MS);
  return !atomic_load(&t->is_stopping);
}

static void compare(struct shadow_thread *t, struct pending_query *query)
{
  uint32_t generations[SHADOW_AT_ONCE];
  size_t n = shadow_board_targets(t->with.board, query->space, draw_of(query), generations);
  struct seen_set *held;
  err_code_t seen_err = acquire_seen(t, query, &held);

  for (size_t i = 0; i < n && give_way(t); i++) {
    err_code_t err = seen_err == ERR_OK ? compare_with(t, query, generations[i]) : seen_err;
    if (err != ERR_OK && err != ERR_STOPPING)
      note_failure(t, query, generations[i], err);
  }
  if (held)
    seen_sets_release(t->with.seen, held);
}

static void step(struct shadow_thread *t)
{
  bool awaits_reports = shadow_topic_poll(&t->topic, 0);
  struct pending_query *query = pop(t, !awaits_reports);

  if (query) {
    compare(t, query);
    query_queue_free_query(t->with.queue, query);
  } else if (awaits_reports) {
    shadow_topic_poll(&t->topic, REPORTS_MS);
  }
}

/* The thread runs when the others do not need the core. Not at the lowest priority: an epoch that it searches cannot be
 * replaced until it has ended. It has no pulse: with its priority a long search may take minutes, and that is no reason
 * for a restart. */
static void *run(void *context)
{
  struct shadow_thread *t = context;

  pthread_setname_np(pthread_self(), "shadow");
  if (!stand_back_for_good())
    log_info("shadow_thread", "note=\"it has the priority of the others: the system does not allow a lower one\"");
  while (!atomic_load(&t->is_stopping))
    step(t);
  return NULL;
}

/* ---- Opening and closing ---- */

err_t shadow_thread_open(const struct shadow_context *context, struct shadow_thread **out)
{
  AUTO(shadow_thread_close) struct shadow_thread *t = NULL;

  TRY(mem_array(1, sizeof *t, &t));
  t->with = *context;
  t->search = (struct shadow_search){ .engine = context->engine, .is_stopping = &t->is_stopping };
  pthread_mutex_init(&t->mutex, NULL);
  pthread_cond_init(&t->offered, NULL);
  TRY(shadow_topic_open(context->config, context->kafka, context->counters, &t->topic));
  if (pthread_create(&t->thread, NULL, run, t) != 0)
    FAIL(ERR_SYSTEM, "the shadow thread cannot be started");
  t->has_thread = true;
  *out = t;
  t = NULL;
  return ERR_OK;
}

void shadow_thread_ask_to_stop(struct shadow_thread *t)
{
  pthread_mutex_lock(&t->mutex);
  atomic_store(&t->is_stopping, true);
  pthread_cond_signal(&t->offered);
  pthread_mutex_unlock(&t->mutex);
}

void shadow_thread_close(struct shadow_thread **t)
{
  struct pending_query *query;

  if (!*t)
    return;
  shadow_thread_ask_to_stop(*t);
  if ((*t)->has_thread)
    pthread_join((*t)->thread, NULL);
  while ((query = pop(*t, false)))
    query_queue_free_query((*t)->with.queue, query);
  shadow_topic_close(&(*t)->topic);
  shadow_search_fini(&(*t)->search);
  region_fini(&(*t)->seen);
  pthread_cond_destroy(&(*t)->offered);
  pthread_mutex_destroy(&(*t)->mutex);
  mem_free(t);
}
