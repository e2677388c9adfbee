/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a search worker: pop a batch, refuse late queries, search the rest, reply. */
#include "daemon/queries/search_worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/health/pulse.h"
#include "daemon/queries/query_check.h"
#include "daemon/queries/seen_sets.h"
#include "daemon/queries/shadow_thread.h"

/* Memory that a lane keeps between batches, to read what users have seen, and for sets that are not kept. */
enum { SEEN_KEPT_BYTES = 32 << 20 };

/* What a worker needs to search one batch. */
struct lane {
  struct searcher *searcher;
  struct reply_context reply;
  struct query_batch batch;
  struct pending_query **pending; /* [max_batch]; the array of `batch` */
  const struct query **queries;   /* [max_batch] */
  struct answer *answers;         /* [max_batch] */
  struct region seen;             /* what users of the batch have seen, if it is not held */
  struct seen_set **held;         /* [max_batch]: the first n_held: what the others have seen */
  size_t n_held;
  size_t n_searched; /* queries of the batch */
};

struct worker {
  struct search_workers *all;
  struct lane usual, between; /* `between` has short batches, between the steps of the other one's search */
  int64_t between_ns;         /* time of those since the usual search began */
  bool has_paused;            /* the usual search has */
  struct region scratch;
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

struct search_workers {
  struct engine *engine;
  struct query_queue *queue;
  struct reply_context reply;
  struct seen_sets *seen;        /* NULL: there is no seen topic */
  struct shadow_thread *shadows; /* NULL: nothing is compared */
  struct switch_board *switches;
  struct search_counters *search_counters;
  struct alarm *alarm;
  _Atomic bool has_alarmed;
  struct worker *workers;
  size_t n;
};

/* Refuse the queries whose deadline has passed or would pass during the search. Keep the others in order. */
static void drop_late(struct worker *w, struct lane *lane, int64_t now_ns)
{
  struct query_batch *batch = &lane->batch;
  int64_t expected_ns = now_ns + (batch->is_fresh ? batch->estimate_ns : 0);
  size_t n = 0;

  for (size_t i = 0; i < batch->n; i++) {
    struct pending_query *query = batch->queries[i];
    if (query->deadline_ns < expected_ns) {
      counters_add(&lane->reply.counters->refused, 1);
      reply_error(&lane->reply, query, ANSWER_DEADLINE_PASSED,
                  query->deadline_ns < now_ns ? "the deadline passed before the search began"
                                              : "the deadline is sooner than the search would end",
                  &w->scratch);
      query_queue_free_query(w->all->queue, query);
    } else {
      batch->queries[n++] = query;
    }
  }
  batch->n = n;
}

/* Leave out what the user of a query has seen. If that cannot be read, the query is answered with an error: no item may
 * be repeated silently. Returns false then. */
static bool exclude_seen(struct worker *w, struct lane *lane, struct pending_query *query)
{
  int64_t began_ns = clock_now_ns();
  struct seen_set *held;

  if (query->query.exclude_seen_by.n == 0)
    return true;
  if (seen_sets_acquire(w->all->seen, query->query.exclude_seen_by, &lane->seen, &query->query.seen, &held) != ERR_OK) {
    log_error("seen_failed", "reason=%s", log_failure());
    reply_error(&lane->reply, query, ANSWER_INTERNAL, "what the user has seen cannot be read: see the daemon's log",
                &w->scratch);
    return false;
  }
  if (held)
    lane->held[lane->n_held++] = held;
  counters_add(&lane->reply.counters->seen_queries, 1);
  hist_add(&lane->reply.counters->seen_us, (uint64_t)((clock_now_ns() - began_ns) / CLOCK_NS_PER_US));
  return true;
}

/* Do that for the queries of a batch, and keep those that can be searched in order. */
static void exclude_all_seen(struct worker *w, struct lane *lane)
{
  struct query_batch *batch = &lane->batch;
  size_t n = 0;

  region_trim(&lane->seen, SEEN_KEPT_BYTES);
  for (size_t i = 0; i < batch->n; i++) {
    struct pending_query *query = batch->queries[i];
    if (exclude_seen(w, lane, query))
      batch->queries[n++] = query;
    else
      query_queue_free_query(w->all->queue, query);
  }
  batch->n = n;
}

static void release_seen(struct worker *w, struct lane *lane)
{
  while (lane->n_held > 0)
    seen_sets_release(w->all->seen, lane->held[--lane->n_held]);
}

static void count_filtered(struct counters *counters, const struct counts *counts)
{
  counters_add(&counters->filtered, 1);
  counters_add(&counters->filter_plans[counts->plan], 1);
  if (!counts->has_admitted)
    return;
  counters_add(&counters->filtered_items, counts->items);
  counters_add(&counters->filtered_admitted, counts->admitted);
}

static void reply_all(struct worker *w, const struct lane *lane, int64_t began_ns)
{
  const struct query_batch *batch = &lane->batch;

  search_counters_add(w->all->search_counters, batch->queries[0]->number & ~ENGINE_PINNED, &batch->queries[0]->method,
                      lane->answers, batch->n);
  for (size_t i = 0; i < batch->n; i++) {
    int64_t queued_us = (began_ns - batch->queries[i]->received_ns) / CLOCK_NS_PER_US;
    lane->answers[i].queued_us = queued_us > 0 ? (uint32_t)queued_us : 0;
    if (!batch->queries[i]->trial && !batch->queries[i]->query.is_background) /* those wait for others, however long */
      hist_add(&lane->reply.counters->queued_us, lane->answers[i].queued_us);
    if (lane->answers[i].error) {
      reply_error(&lane->reply, batch->queries[i], lane->answers[i].error, lane->answers[i].error_message, &w->scratch);
      continue;
    }
    if (batch->queries[i]->query.is_background)
      counters_add(&lane->reply.counters->background, 1);
    if (batch->queries[i]->query.tree)
      count_filtered(lane->reply.counters, &lane->answers[i].counts);
    reply_answer(&lane->reply, batch->queries[i], &lane->answers[i], &w->scratch);
  }
  hist_add(&lane->reply.counters->search_us, lane->answers[0].searched_us);
  counters_add(&lane->reply.counters->searches, 1);
}

/* Let the shadow thread take answered queries. The others stay in the batch. */
static void offer_to_shadows(struct worker *w, struct lane *lane)
{
  struct query_batch *batch = &lane->batch;
  size_t n = 0;

  for (size_t i = 0; i < batch->n; i++) {
    struct pending_query *query = batch->queries[i];
    if (query->trial || lane->answers[i].error || !shadow_thread_offer(w->all->shadows, query))
      batch->queries[n++] = query;
  }
  batch->n = n;
}

/* The generation that the queries were checked for was removed, or is not current any more. Check them again, and let
 * them wait for their search again. One that names the generation itself is refused. */
static void check_again(struct worker *w, struct lane *lane)
{
  struct query_batch *batch = &lane->batch;

  for (size_t i = 0; i < batch->n; i++) {
    struct pending_query *query = batch->queries[i];
    err_code_t err = query_check(w->all->engine, w->all->switches, query);
    if (err == ERR_OK) {
      query_queue_push(w->all->queue, query);
    } else {
      reply_error(&lane->reply, query, reply_error_of(err), err_message(), &w->scratch);
      query_queue_free_query(w->all->queue, query);
    }
  }
  batch->n = lane->n_searched = 0;
}

/* Search the batch of a lane and reply. Returns the time of the search. */
static int64_t search_batch(struct worker *w, struct lane *lane, int64_t began_ns)
{
  struct query_batch *batch = &lane->batch;
  const struct pending_query *first = batch->queries[0];
  int64_t searched_ns = clock_now_ns(); /* what users have seen was read before */

  for (size_t i = 0; i < batch->n; i++) {
    lane->queries[i] = &batch->queries[i]->query;
    lane->answers[i] = (struct answer){ 0 };
    if (batch->queries[i]->traced)
      batch->queries[i]->traced->searched_ns = searched_ns;
  }
  err_code_t err =
      searcher_search(lane->searcher, first->number, &first->method, lane->queries, batch->n, lane->answers);
  int64_t cost_ns = clock_now_ns() - began_ns;
  if (err == ERR_OK) {
    reply_all(w, lane, began_ns);
    if (w->all->shadows)
      offer_to_shadows(w, lane);
    return cost_ns;
  }
  if (err == ERR_SPACE_CHANGED) {
    check_again(w, lane);
    return cost_ns;
  }
  log_error("search_failed", "queries=%zu reason=%s", batch->n, log_failure());
  if (err == ERR_DEVICE && !atomic_exchange(&w->all->has_alarmed, true))
    alarm_raise(w->all->alarm, "search", err);
  for (size_t i = 0; i < batch->n; i++)
    reply_error(&lane->reply, batch->queries[i], ANSWER_INTERNAL, "the search failed: see the daemon's log",
                &w->scratch);
  return cost_ns;
}

/* Do all that a popped batch needs. */
static void serve(struct worker *w, struct lane *lane)
{
  int64_t began_ns = clock_now_ns();

  w->between_ns = 0;
  drop_late(w, lane, began_ns);
  exclude_all_seen(w, lane);
  lane->n_searched = lane->batch.n;
  int64_t cost_ns = lane->batch.n ? search_batch(w, lane, began_ns) : 0;
  release_seen(w, lane);
  query_queue_finish(w->all->queue, &lane->batch, lane->n_searched, cost_ns - w->between_ns);
}

/* Between two steps of the usual search: serve the short batches that come first, while there is room for replies. That
 * search keeps its epoch, for which updates wait: so nothing here may wait for a broker. */
static void serve_between(void *context)
{
  struct worker *w = context;
  int64_t began_ns = 0, so_far_ns = w->between_ns;

  pulse_beat();
  if (!w->has_paused)
    query_queue_note_pause(w->all->queue, &w->usual.batch);
  w->has_paused = true;
  while (delivery_has_room(w->between.reply.delivery) &&
         query_queue_pop_between(w->all->queue, &w->usual.batch, &w->between.batch)) {
    began_ns = began_ns ? began_ns : clock_now_ns();
    serve(w, &w->between);
  }
  w->between_ns = so_far_ns + (began_ns ? clock_now_ns() - began_ns : 0);
}

static void *run(void *context)
{
  struct worker *w = context;
  struct query_queue *queue = w->all->queue;

  pulse_begin(&w->all->alarm->pulses, &w->pulse, "search");
  pulse_rest();
  while (query_queue_pop(queue, &w->usual.batch)) {
    pulse_beat();
    w->has_paused = false;
    serve(w, &w->usual);
    pulse_rest();
  }
  return NULL;
}

static err_t open_lane(const struct worker *w, struct engine *engine, size_t max_batch, struct lane *lane)
{
  lane->reply = w->all->reply;
  lane->reply.never_blocks = lane == &w->between;
  TRY(searcher_open(engine, &lane->searcher));
  TRY(mem_array(max_batch, sizeof(struct pending_query *), &lane->pending));
  TRY(mem_array(max_batch, sizeof *lane->queries, &lane->queries));
  TRY(mem_array(max_batch, sizeof *lane->answers, &lane->answers));
  TRY(mem_array(max_batch, sizeof *lane->held, &lane->held));
  lane->batch.queries = lane->pending;
  return ERR_OK;
}

static void close_lane(struct lane *lane)
{
  searcher_close(&lane->searcher);
  mem_free(&lane->pending);
  mem_free(&lane->queries);
  mem_free(&lane->answers);
  mem_free(&lane->held);
  region_fini(&lane->seen);
}

/* Searches on a GPU have no pauses, and a second searcher would take memory there. */
static err_t open_between(struct worker *w, struct engine *engine, size_t max_batch)
{
  size_t n_failed;

  if (strcmp(engine_backend_name(engine, &n_failed), "cpu") != 0)
    return ERR_OK;
  TRY(open_lane(w, engine, max_batch, &w->between));
  searcher_set_pause(w->usual.searcher, w->between.searcher, serve_between, w);
  return ERR_OK;
}

static err_t open_worker(struct search_workers *all, struct engine *engine, size_t max_batch, struct worker *w)
{
  w->all = all;
  TRY(open_lane(w, engine, max_batch, &w->usual));
  TRY(open_between(w, engine, max_batch));
  if (pthread_create(&w->thread, NULL, run, w) != 0)
    FAIL(ERR_SYSTEM, "a search worker cannot be started");
  w->has_thread = true;
  return ERR_OK;
}

static err_t open_shadows(const struct search_context *context, struct search_workers *all)
{
  const struct shadow_context shadows = {
    .config = context->reply->config,
    .kafka = context->kafka,
    .engine = context->engine,
    .queue = context->queue,
    .board = context->shadows,
    .seen = all->seen,
    .counters = context->reply->counters,
  };

  return context->shadows ? shadow_thread_open(&shadows, &all->shadows) : ERR_OK;
}

err_t search_workers_open(size_t n, const struct search_context *context, struct search_workers **out)
{
  struct search_workers *all;

  TRY(mem_array(1, sizeof *all, &all));
  *out = all;
  all->engine = context->engine;
  all->queue = context->queue;
  all->reply = *context->reply;
  if (context->seen)
    TRY(seen_sets_open(context->seen, engine_key_hash(context->engine), SEEN_SETS_BYTES, &all->seen));
  all->search_counters = context->search_counters;
  all->alarm = context->alarm;
  TRY(open_shadows(context, all));
  all->switches = context->switches;
  TRY(mem_array(n, sizeof *all->workers, &all->workers));
  all->n = n;
  for (size_t i = 0; i < n; i++)
    TRY(open_worker(all, context->engine, context->max_batch, &all->workers[i]));
  return ERR_OK;
}

void search_workers_stop(struct search_workers *w)
{
  if (w->shadows)
    shadow_thread_ask_to_stop(w->shadows);
  for (size_t i = 0; i < w->n; i++) {
    if (w->workers[i].has_thread)
      pthread_join(w->workers[i].thread, NULL);
    w->workers[i].has_thread = false;
  }
}

void search_workers_close(struct search_workers **w)
{
  if (!*w)
    return;
  search_workers_stop(*w);
  for (size_t i = 0; i < (*w)->n; i++) {
    struct worker *worker = &(*w)->workers[i];
    close_lane(&worker->usual);
    close_lane(&worker->between);
    region_fini(&worker->scratch);
  }
  shadow_thread_close(&(*w)->shadows);
  seen_sets_close(&(*w)->seen);
  mem_free(&(*w)->workers);
  mem_free(w);
}
