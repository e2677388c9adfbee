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
#include "daemon/health/pulse.h"
#include "daemon/tracing/collector.h"
#include "daemon/tracing/trace_queue.h"

/* Queries that are traced at a time, and of which the spans are sent together: about 300 KB. */
enum { TRACES_MAX = 4096, BATCH_TRACES = 128 };

/* How long spans are gathered, a request may take, and a collector is left alone between the first tries. */
enum { GATHER_MS = 1000, TIMEOUT_MS = 5000, TRIES = 3, RETRY_MS = 1000 };

/* How long a stop waits for the collector. */
enum { STOP_MS = 1000 };

/* How often the thread looks whether it is to stop. */
enum { STEP_MS = 20 };

struct tracing {
  struct tracing_config with;
  struct trace_queue *traces;
  struct collector *collector;
  bool is_away;               /* after the newest request. These three are the exporter's */
  bool is_dropping;           /* which is logged */
  uint64_t n_full;            /* queries that found no free record, as far as that is logged */
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

/* Say that spans are dropped, once until none are. */
static void log_dropped(struct tracing *t, uint64_t n_spans, const char *text)
{
  if (!t->is_dropping)
    log_warn("spans_dropped", "spans=%" PRIu64 " reason=%s note=\"check tracing.endpoint and the collector\"", n_spans,
             log_quote(span_of_str(text)));
  t->is_dropping = true;
}

static void note_dropped(struct tracing *t, enum counters_span_drop reason, uint64_t n_spans, const char *text)
{
  counters_add(&t->with.counters->spans_dropped[reason], n_spans);
  log_dropped(t, n_spans, text);
}

/* Returns true if all spans were taken. */
static bool note_answer(struct tracing *t, const struct collector_answer *answer, uint64_t n_spans)
{
  uint64_t n_rejected = answer->verdict == COLLECTOR_TOOK ? size_min(answer->n_rejected, n_spans) : n_spans;

  t->is_away = answer->verdict == COLLECTOR_AWAY;
  counters_add(&t->with.counters->spans, n_spans - n_rejected);
  if (n_rejected > 0)
    note_dropped(t, t->is_away ? SPAN_DROP_AWAY : SPAN_DROP_REFUSED, n_rejected, answer->reason);
  return n_rejected == 0;
}

/* Queries that find no free record have been counted. Returns true if there are new ones. */
static bool note_full(struct tracing *t)
{
  uint64_t n = counters_get(&t->with.counters->spans_dropped[SPAN_DROP_FULL]) - t->n_full;

  t->n_full += n;
  if (n > 0)
    log_dropped(t, n, "too many queries are traced at a time, or the collector is slow");
  return n > 0;
}

static void note_none_dropped(struct tracing *t)
{
  if (t->is_dropping)
    log_info("spans_taken", "note=\"the collector takes spans again\"");
  t->is_dropping = false;
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

/* A collector that was away is tried once. Returns true if all spans were taken. */
static bool send_spans(struct tracing *t, const char *request, uint64_t n_spans)
{
  struct collector_answer answer;
  int n_tries = t->is_away ? TRIES - 1 : 0;

  do {
    pulse_beat();
    collector_post(t->collector, span_of_str(request), &t->give_up_ns, &answer);
  } while (answer.verdict == COLLECTOR_AWAY && ++n_tries < TRIES && back_off(t));
  return note_answer(t, &answer, n_spans);
}

/* Send the spans of a list of queries, or drop them. Returns true if all were taken. */
static bool export_list(struct tracing *t, struct query_trace *list, bool is_dropped)
{
  size_t n_spans;
  bool is_taken = false;
  char *request = query_spans_encode(list, &t->with.source, &n_spans);

  trace_queue_put(t->traces, list);
  if (!request)
    note_dropped(t, SPAN_DROP_FULL, n_spans, "out of memory");
  else if (is_dropped)
    counters_add(&t->with.counters->spans_dropped[SPAN_DROP_AWAY], n_spans);
  else
    is_taken = send_spans(t, request, n_spans);
  free(request);
  return is_taken;
}

/* Send all that waits. Once the collector is away, the rest is dropped: tries take seconds, and the pool fills. */
static void export(struct tracing *t)
{
  struct query_trace *list;
  bool is_first = true, is_complete = true;

  while ((list = trace_queue_pop(t->traces, BATCH_TRACES))) {
    is_complete &= export_list(t, list, t->is_away && !is_first);
    is_complete &= !note_full(t);
    is_first = false;
  }
  is_complete &= !note_full(t); /* perhaps all records are with queries */
  if (is_complete && !is_first)
    note_none_dropped(t);
}

static void *run(void *context)
{
  struct tracing *t = context;

  if (t->with.alarm)
    pulse_begin(&t->with.alarm->pulses, &t->pulse, "tracing");
  while (!is_stopping(t)) {
    pulse_rest();
    trace_queue_wait(t->traces, t->is_away ? TRACES_MAX : BATCH_TRACES, GATHER_MS);
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
