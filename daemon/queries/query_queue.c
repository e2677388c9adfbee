/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of pending queries and the fair queue, under one lock. */
#include "daemon/queries/query_queue.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"

/* Memory that one free query keeps for the next use, and that all free ones may keep together. */
enum { KEPT_BYTES = 64 << 10, ALL_KEPT_BYTES = 32 << 20 };

/* Background queries have at most this share of the pool, and of its memory. */
enum { BACKGROUND_SHARE = 4 };

struct query_queue {
  pthread_mutex_t mutex;
  pthread_cond_t pushed;
  struct fair_queue *fair;
  _Atomic size_t n_waiting;      /* fair_queue_n(), for those who look without the lock */
  struct pending_query *trial;   /* it waits until no other query does; NULL: there is none */
  struct pending_query *queries; /* [n_queries]; the first n_used have been in use */
  size_t n_queries;
  size_t n_used;
  struct pending_query *free_queries; /* the last freed first: it is in the cache */
  size_t memory_bytes;
  size_t bytes; /* of the queries in use */
  size_t n_background, background_bytes;
  size_t kept_bytes; /* of the free ones */
  bool is_ended;
  int64_t end_ns;
};

err_t query_queue_open(const struct fair_queue_config *config, size_t memory_bytes, struct query_queue **out)
{
  AUTO(query_queue_close) struct query_queue *q = NULL;

  TRY(mem_array(1, sizeof *q, &q));
  pthread_mutex_init(&q->mutex, NULL);
  pthread_cond_init(&q->pushed, NULL);
  q->n_queries = config->n_queries;
  q->memory_bytes = memory_bytes;
  TRY(mem_reserve(q->n_queries, sizeof *q->queries, &q->queries));
  TRY(fair_queue_open(config, &q->fair));
  *out = q;
  q = NULL;
  return ERR_OK;
}

void query_queue_close(struct query_queue **q)
{
  if (!*q)
    return;
  for (size_t i = 0; i < (*q)->n_used; i++)
    region_fini(&(*q)->queries[i].region);
  mem_release(&(*q)->queries, (*q)->n_queries, sizeof *(*q)->queries);
  fair_queue_close(&(*q)->fair);
  pthread_mutex_destroy(&(*q)->mutex);
  pthread_cond_destroy(&(*q)->pushed);
  mem_free(q);
}

static void note_waiting(struct query_queue *q)
{
  atomic_store_explicit(&q->n_waiting, fair_queue_n(q->fair), memory_order_relaxed);
}

static struct pending_query *take(struct query_queue *q)
{
  struct pending_query *query = q->free_queries;

  if (q->bytes >= q->memory_bytes)
    return NULL;
  if (query) {
    q->free_queries = query->next;
    q->kept_bytes -= query->bytes;
  } else if (q->n_used < q->n_queries) {
    query = &q->queries[q->n_used++];
  } else {
    return NULL;
  }
  query->next = NULL;
  q->bytes += query->bytes;
  return query;
}

struct pending_query *query_queue_take_query(struct query_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  struct pending_query *query = take(q);
  pthread_mutex_unlock(&q->mutex);
  return query;
}

bool query_queue_take_background(struct query_queue *q, struct pending_query *query)
{
  pthread_mutex_lock(&q->mutex);
  query->is_in_background =
      q->n_background < q->n_queries / BACKGROUND_SHARE && q->background_bytes < q->memory_bytes / BACKGROUND_SHARE;
  if (query->is_in_background) {
    q->n_background++;
    q->background_bytes += query->bytes;
  }
  pthread_mutex_unlock(&q->mutex);
  return query->is_in_background;
}

void query_queue_weigh(struct query_queue *q, struct pending_query *query)
{
  size_t bytes = region_bytes(&query->region);

  if (bytes == query->bytes) /* the usual case: the memory of the previous use was enough */
    return;
  pthread_mutex_lock(&q->mutex);
  q->bytes = q->bytes - query->bytes + bytes;
  if (query->is_in_background)
    q->background_bytes = q->background_bytes - query->bytes + bytes;
  query->bytes = bytes;
  pthread_mutex_unlock(&q->mutex);
}

static void put(struct query_queue *q, struct pending_query *query)
{
  bool has_room = q->kept_bytes < ALL_KEPT_BYTES;

  q->bytes -= query->bytes;
  if (query->is_in_background) {
    q->n_background--;
    q->background_bytes -= query->bytes;
  }
  query->is_in_background = false;
  region_trim(&query->region, has_room ? KEPT_BYTES : 0);
  query->bytes = region_bytes(&query->region);
  query->trial = NULL;
  query->traced = NULL;
  q->kept_bytes += query->bytes;
  query->next = q->free_queries;
  q->free_queries = query;
}

void query_queue_free_query(struct query_queue *q, struct pending_query *query)
{
  pthread_mutex_lock(&q->mutex);
  put(q, query);
  pthread_mutex_unlock(&q->mutex);
}

void query_queue_push(struct query_queue *q, struct pending_query *query)
{
  pthread_mutex_lock(&q->mutex);
  if (query->trial)
    q->trial = query;
  else
    fair_queue_push(q->fair, query);
  note_waiting(q);
  pthread_cond_signal(&q->pushed);
  pthread_mutex_unlock(&q->mutex);
}

size_t query_queue_n_waiting(const struct query_queue *q)
{
  return atomic_load_explicit(&q->n_waiting, memory_order_relaxed);
}

int64_t query_queue_estimate_ns(struct query_queue *q, const struct pending_query *query)
{
  const struct query_class of = query_class_of(query);
  int64_t now_ns = clock_now_ns();

  pthread_mutex_lock(&q->mutex);
  int64_t estimate_ns = fair_queue_estimate_ns(q->fair, &of, now_ns);
  pthread_mutex_unlock(&q->mutex);
  return estimate_ns;
}

/* Is there a trial, and nothing else that waits? */
static bool has_trial_only(const struct query_queue *q)
{
  return q->trial && fair_queue_n(q->fair) == 0 && !q->is_ended;
}

bool query_queue_pop(struct query_queue *q, struct query_batch *batch)
{
  pthread_mutex_lock(&q->mutex);
  while (fair_queue_n(q->fair) == 0 && !q->trial && !q->is_ended)
    pthread_cond_wait(&q->pushed, &q->mutex);
  if (has_trial_only(q)) {
    fair_queue_push(q->fair, q->trial);
    q->trial = NULL;
  }
  int64_t now_ns = clock_now_ns();
  bool has_batch = !(q->is_ended && now_ns >= q->end_ns) && fair_queue_pop(q->fair, now_ns, batch);
  note_waiting(q);
  pthread_mutex_unlock(&q->mutex);
  return has_batch;
}

void query_queue_note_pause(struct query_queue *q, const struct query_batch *running)
{
  pthread_mutex_lock(&q->mutex);
  fair_queue_note_pause(q->fair, running);
  pthread_mutex_unlock(&q->mutex);
}

bool query_queue_pop_between(struct query_queue *q, const struct query_batch *running, struct query_batch *batch)
{
  if (query_queue_n_waiting(q) == 0)
    return false;
  pthread_mutex_lock(&q->mutex);
  bool has_batch = !q->is_ended && fair_queue_pop_between(q->fair, running, clock_now_ns(), batch);
  note_waiting(q);
  pthread_mutex_unlock(&q->mutex);
  return has_batch;
}

void query_queue_finish(struct query_queue *q, struct query_batch *batch, size_t n_searched, int64_t cost_ns)
{
  pthread_mutex_lock(&q->mutex);
  fair_queue_done(q->fair, batch, n_searched, cost_ns, clock_now_ns());
  for (size_t i = 0; i < batch->n; i++)
    put(q, batch->queries[i]);
  batch->n = 0;
  pthread_mutex_unlock(&q->mutex);
}

bool query_queue_withdraw_trial(struct query_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  struct pending_query *query = q->trial;
  q->trial = NULL;
  if (query)
    put(q, query);
  pthread_mutex_unlock(&q->mutex);
  return query != NULL;
}

struct pending_query *query_queue_take_all(struct query_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  struct pending_query *all = fair_queue_take_all(q->fair);
  note_waiting(q);
  pthread_mutex_unlock(&q->mutex);
  return all;
}

void query_queue_end(struct query_queue *q, int64_t end_ns)
{
  pthread_mutex_lock(&q->mutex);
  q->is_ended = true;
  q->end_ns = end_ns;
  pthread_cond_broadcast(&q->pushed);
  pthread_mutex_unlock(&q->mutex);
}
