/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter: its thread gathers the traces of queries, sends their spans, and notes whether the collector takes
 * them. */
#include "daemon/tracing/tracing.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/size.h"
#include "daemon/pulse.h"
#include "daemon/tracing/collector.h"
#include "daemon/tracing/trace_queue.h"

/* Queries that are traced at a time, and of which the spans are sent together: about 300 KB. */
enum { TRACES_MAX = 4096, BATCH_TRACES = 128 };

/* How long spans are gathered, a request may take, and a collector that is away is left alone between two tries. */
enum { GATHER_MS = 1000, TIMEOUT_MS = 5000, TRIES = 3, RETRY_MS = 1000 };

/* How long a stop waits for the collector. */
enum { STOP_MS = 1000 };

/* How often the thread looks whether it is to stop. */
enum { STEP_MS = 20 };

struct tracing {
  struct tracing_config with;
  struct trace_queue *traces;
  struct collector *collector;
  bool is_dropping;           /* which is logged. Thread: the exporter */
  _Atomic int64_t give_up_ns; /* INT64_MAX until the daemon stops */
  struct pulse pulse;
  pthread_t thread;
  bool has_thread;
};

static bool is_stopping(const struct tracing *t)
{
  return atomic_load(&t->give_up_ns) != INT64_MAX;
}

/* ---- Sending ---- */

static void note_dropped(struct tracing *t, enum counters_span_drop reason, uint64_t n_spans, const char *text)
{
  counters_add(&t->with.counters->spans_dropped[reason], n_spans);
  if (!t->is_dropping)
    log_warn("spans_dropped", "spans=%" PRIu64 " reason=%s note=\"check tracing.endpoint and the collector\"", n_spans,
             log_quote(span_of_str(text)));
  t->is_dropping = true;
}

static void note_taken(struct tracing *t, uint64_t n_spans)
{
  counters_add(&t->with.counters->spans, n_spans);
  if (t->is_dropping)
    log_info("spans_taken", "note=\"the collector takes spans again\"");
  t->is_dropping = false;
}

static void note_answer(struct tracing *t, const struct collector_answer *answer, uint64_t n_spans)
{
  uint64_t n_rejected = size_min(answer->n_rejected, n_spans);

  if (answer->verdict != COLLECTOR_TOOK) {
    note_dropped(t, answer->verdict == COLLECTOR_AWAY ? SPAN_DROP_AWAY : SPAN_DROP_REFUSED, n_spans, answer->reason);
  } else if (n_rejected > 0) {
    counters_add(&t->with.counters->spans, n_spans - n_rejected);
    note_dropped(t, SPAN_DROP_REFUSED, n_rejected, answer->reason);
  } else {
    note_taken(t, n_spans);
  }
}

/* Wait before another try. Returns false if the daemon stops. */
static bool back_off(const struct tracing *t)
{
  int64_t until_ns = clock_now_ns() + RETRY_MS * CLOCK_NS_PER_MS;

  while (clock_now_ns() < until_ns && !is_stopping(t)) {
    pulse_beat();
    clock_sleep_ns(STEP_MS * CLOCK_NS_PER_MS);
  }
  return !is_stopping(t);
}

static void send_spans(struct tracing *t, const char *request, uint64_t n_spans)
{
  struct collector_answer answer;
  int n_tries = 0;

  do {
    pulse_beat();
    collector_post(t->collector, span_of_str(request), &t->give_up_ns, &answer);
  } while (answer.verdict == COLLECTOR_AWAY && ++n_tries < TRIES && back_off(t));
  note_answer(t, &answer, n_spans);
}

/* Send all that waits. */
static void export(struct tracing *t)
{
  struct query_trace *list;

  while ((list = trace_queue_pop(t->traces, BATCH_TRACES))) {
    size_t n_spans;
    char *request = query_spans_encode(list, &t->with.source, &n_spans);
    trace_queue_put(t->traces, list);
    if (request)
      send_spans(t, request, n_spans);
    free(request);
  }
}

static void *run(void *context)
{
  struct tracing *t = context;

  if (t->with.alarm)
    pulse_begin(&t->with.alarm->pulses, &t->pulse, "tracing");
  while (!is_stopping(t)) {
    pulse_rest();
    trace_queue_wait(t->traces, BATCH_TRACES, GATHER_MS);
    export(t);
  }
  export(t);
  pulse_rest();
  return NULL;
}

/* ---- Opening and closing ---- */

err_t tracing_open(const struct tracing_config *config, struct tracing **out)
{
  AUTO(tracing_close) struct tracing *t = NULL;

  TRY(mem_array(1, sizeof *t, &t));
  t->with = *config;
  atomic_store(&t->give_up_ns, INT64_MAX);
  TRY(trace_queue_open(TRACES_MAX, &t->traces));
  TRY(collector_open(config->endpoint, TIMEOUT_MS, &t->collector));
  if (pthread_create(&t->thread, NULL, run, t) != 0)
    FAIL(ERR_SYSTEM, "the exporter of spans cannot be started");
  t->has_thread = true;
  *out = t;
  t = NULL;
  return ERR_OK;
}

void tracing_close(struct tracing **t)
{
  if (!*t)
    return;
  atomic_store(&(*t)->give_up_ns, clock_now_ns() + STOP_MS * CLOCK_NS_PER_MS);
  if ((*t)->has_thread) {
    trace_queue_end((*t)->traces);
    pthread_join((*t)->thread, NULL);
  }
  collector_close(&(*t)->collector);
  trace_queue_close(&(*t)->traces);
  mem_free(t);
}

/* ---- Traces of queries ---- */

struct query_trace *tracing_begin(struct tracing *t, const struct trace_headers *headers, int64_t received_ns)
{
  struct traceparent parent;

  if (!t || !traceparent_parse(headers->value[TRACE_PARENT], &parent) || !parent.is_sampled)
    return NULL;
  struct query_trace *trace = trace_queue_take(t->traces);
  if (!trace) {
    counters_add(&t->with.counters->spans_dropped[SPAN_DROP_FULL], 1);
    return NULL;
  }
  trace->parent = parent;
  trace->unix_ahead_ns = clock_unix_ns() - clock_now_ns();
  trace->received_ns = received_ns;
  return trace;
}

void tracing_end(struct tracing *t, struct query_trace *trace, bool is_delivered)
{
  if (!trace)
    return;
  trace->is_delivered = is_delivered;
  trace->ended_ns = clock_now_ns();
  trace_queue_push(t->traces, trace);
}

void tracing_drop(struct tracing *t, struct query_trace *trace)
{
  if (trace)
    trace_queue_put(t->traces, trace);
}
