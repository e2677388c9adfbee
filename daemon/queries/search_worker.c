/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a search worker: pop a batch, refuse late queries, search the rest, reply. */
#include "daemon/queries/search_worker.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/pulse.h"

struct worker {
  struct search_workers *all;
  struct searcher *searcher;
  struct query_batch batch;
  struct pending_query **pending; /* [max_batch]; the array of `batch` */
  const struct query **queries;   /* [max_batch] */
  struct answer *answers;         /* [max_batch] */
  struct region scratch;
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

struct search_workers {
  struct query_queue *queue;
  struct reply_context reply;
  struct alarm *alarm;
  _Atomic bool has_alarmed;
  struct worker *workers;
  size_t n;
};

/* Refuse the queries whose deadline has passed or would pass during the search. Keep the others in order. */
static void drop_late(struct worker *w, struct query_batch *batch, struct query_queue *queue, int64_t now_ns)
{
  int64_t expected_ns = now_ns + (batch->is_fresh ? batch->estimate_ns : 0);
  size_t n = 0;

  for (size_t i = 0; i < batch->n; i++) {
    struct pending_query *query = batch->queries[i];
    if (query->deadline_ns < expected_ns) {
      counters_add(&w->all->reply.counters->refused, 1);
      reply_error(&w->all->reply, query, ANSWER_DEADLINE_PASSED,
                  query->deadline_ns < now_ns ? "the deadline passed before the search began"
                                              : "the deadline is sooner than the search would end",
                  &w->scratch);
      query_queue_free_query(queue, query);
    } else {
      batch->queries[n++] = query;
    }
  }
  batch->n = n;
}

static void reply_all(struct worker *w, const struct query_batch *batch, int64_t began_ns)
{
  for (size_t i = 0; i < batch->n; i++) {
    int64_t queued_us = (began_ns - batch->queries[i]->received_ns) / CLOCK_NS_PER_US;
    w->answers[i].queued_us = queued_us > 0 ? (uint32_t)queued_us : 0;
    hist_add(&w->all->reply.counters->queued_us, w->answers[i].queued_us);
    reply_answer(&w->all->reply, batch->queries[i], &w->answers[i], &w->scratch);
  }
  hist_add(&w->all->reply.counters->search_us, w->answers[0].searched_us);
  counters_add(&w->all->reply.counters->searches, 1);
}

/* Search the batch and reply. Returns the time of the search. */
static int64_t search_batch(struct worker *w, const struct query_batch *batch, int64_t began_ns)
{
  const struct pending_query *first = batch->queries[0];

  for (size_t i = 0; i < batch->n; i++) {
    w->queries[i] = &batch->queries[i]->query;
    w->answers[i] = (struct answer){ 0 };
  }
  err_code_t err = searcher_search(w->searcher, first->space, &first->method, w->queries, batch->n, w->answers);
  int64_t cost_ns = clock_now_ns() - began_ns;
  if (err == ERR_OK) {
    reply_all(w, batch, began_ns);
    return cost_ns;
  }
  log_error("search_failed", "queries=%zu reason=%s", batch->n, log_failure());
  if (err == ERR_DEVICE && !atomic_exchange(&w->all->has_alarmed, true))
    alarm_raise(w->all->alarm, "search", err);
  for (size_t i = 0; i < batch->n; i++)
    reply_error(&w->all->reply, batch->queries[i], ANSWER_INTERNAL, "the search failed: see the daemon's log",
                &w->scratch);
  return cost_ns;
}

static void *run(void *context)
{
  struct worker *w = context;
  struct query_queue *queue = w->all->queue;

  w->batch.queries = w->pending;
  pulse_begin(&w->all->alarm->pulses, &w->pulse, "search");
  pulse_rest();
  while (query_queue_pop(queue, &w->batch)) {
    pulse_beat();
    int64_t began_ns = clock_now_ns();
    drop_late(w, &w->batch, queue, began_ns);
    int64_t cost_ns = w->batch.n ? search_batch(w, &w->batch, began_ns) : 0;
    query_queue_finish(queue, &w->batch, w->batch.n, cost_ns);
    pulse_rest();
  }
  return NULL;
}

static err_t open_worker(struct search_workers *all, struct engine *engine, size_t max_batch, struct worker *w)
{
  w->all = all;
  TRY(searcher_open(engine, &w->searcher));
  TRY(mem_array(max_batch, sizeof(struct pending_query *), &w->pending));
  TRY(mem_array(max_batch, sizeof *w->queries, &w->queries));
  TRY(mem_array(max_batch, sizeof *w->answers, &w->answers));
  if (pthread_create(&w->thread, NULL, run, w) != 0)
    FAIL(ERR_SYSTEM, "a search worker cannot be started");
  w->has_thread = true;
  return ERR_OK;
}

err_t search_workers_open(size_t n, struct engine *engine, struct query_queue *queue, const struct reply_context *reply,
                          struct alarm *alarm, size_t max_batch, struct search_workers **out)
{
  struct search_workers *all;

  TRY(mem_array(1, sizeof *all, &all));
  *out = all;
  all->queue = queue;
  all->reply = *reply;
  all->alarm = alarm;
  TRY(mem_array(n, sizeof *all->workers, &all->workers));
  all->n = n;
  for (size_t i = 0; i < n; i++)
    TRY(open_worker(all, engine, max_batch, &all->workers[i]));
  return ERR_OK;
}

void search_workers_close(struct search_workers **w)
{
  if (!*w)
    return;
  for (size_t i = 0; i < (*w)->n; i++) {
    struct worker *worker = &(*w)->workers[i];
    if (worker->has_thread)
      pthread_join(worker->thread, NULL);
    searcher_close(&worker->searcher);
    mem_free(&worker->pending);
    mem_free(&worker->queries);
    mem_free(&worker->answers);
    region_fini(&worker->scratch);
  }
  mem_free(&(*w)->workers);
  mem_free(w);
}
