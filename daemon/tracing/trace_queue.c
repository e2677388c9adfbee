/* SPDX-License-Identifier: Apache-2.0 */
/* One array of records, a list of free ones, and a list of finished ones. */
#include "daemon/tracing/trace_queue.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"

struct trace_queue {
  pthread_mutex_t mutex;
  pthread_cond_t pushed;
  struct query_trace *traces; /* [n_traces] */
  struct query_trace *free_traces;
  struct query_trace *first, *last; /* to be exported */
  size_t n_waiting;
  size_t n_wanted; /* wake the exporter when so many wait: not for each query */
  bool is_ended;
};

err_t trace_queue_open(size_t n_traces, struct trace_queue **out)
{
  AUTO(trace_queue_close) struct trace_queue *q = NULL;
  pthread_condattr_t monotonic;

  TRY(mem_array(1, sizeof *q, &q));
  pthread_mutex_init(&q->mutex, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&q->pushed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  TRY(mem_array(n_traces, sizeof *q->traces, &q->traces));
  for (size_t i = 0; i < n_traces; i++)
    trace_queue_put(q, &q->traces[i]);
  *out = q;
  q = NULL;
  return ERR_OK;
}

void trace_queue_close(struct trace_queue **q)
{
  if (!*q)
    return;
  mem_free(&(*q)->traces);
  pthread_cond_destroy(&(*q)->pushed);
  pthread_mutex_destroy(&(*q)->mutex);
  mem_free(q);
}

struct query_trace *trace_queue_take(struct trace_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  struct query_trace *trace = q->free_traces;
  if (trace)
    q->free_traces = trace->next;
  pthread_mutex_unlock(&q->mutex);
  if (trace)
    *trace = (struct query_trace){ 0 };
  return trace;
}

void trace_queue_put(struct trace_queue *q, struct query_trace *list)
{
  struct query_trace *last = list;

  if (!list)
    return;
  while (last->next)
    last = last->next;
  pthread_mutex_lock(&q->mutex);
  last->next = q->free_traces;
  q->free_traces = list;
  pthread_mutex_unlock(&q->mutex);
}

void trace_queue_push(struct trace_queue *q, struct query_trace *trace)
{
  trace->next = NULL;
  pthread_mutex_lock(&q->mutex);
  if (q->first)
    q->last->next = trace;
  else
    q->first = trace;
  q->last = trace;
  if (++q->n_waiting == q->n_wanted)
    pthread_cond_signal(&q->pushed);
  pthread_mutex_unlock(&q->mutex);
}

void trace_queue_wait(struct trace_queue *q, size_t n, int64_t timeout_ms)
{
  int64_t until_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;
  struct timespec until = { until_ns / CLOCK_NS_PER_S, until_ns % CLOCK_NS_PER_S };
  int failed = 0;

  pthread_mutex_lock(&q->mutex);
  q->n_wanted = n;
  while (q->n_waiting < n && !q->is_ended && failed == 0)
    failed = pthread_cond_timedwait(&q->pushed, &q->mutex, &until);
  pthread_mutex_unlock(&q->mutex);
}

struct query_trace *trace_queue_pop(struct trace_queue *q, size_t n)
{
  struct query_trace *list = NULL, **end = &list;

  pthread_mutex_lock(&q->mutex);
  for (size_t i = 0; i < n && q->first; i++) {
    *end = q->first;
    end = &q->first->next;
    q->first = q->first->next;
    q->n_waiting--;
  }
  pthread_mutex_unlock(&q->mutex);
  *end = NULL;
  return list;
}

void trace_queue_end(struct trace_queue *q)
{
  pthread_mutex_lock(&q->mutex);
  q->is_ended = true;
  pthread_cond_broadcast(&q->pushed);
  pthread_mutex_unlock(&q->mutex);
}
