/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of sampled queries, for an OpenTelemetry collector.
 *
 * A query whose caller has sampled it gets a record (query_trace.h). The threads that the query passes note times in
 * it. When the reply is delivered, the exporter makes spans of the record and sends them, with those of other queries.
 * Queries never wait for that: without a free record a query is not traced, and spans that the collector does not take
 * are dropped and counted. An unsampled query costs a look at its traceparent; without tracing, that of a NULL.
 */
#ifndef DAEMON_TRACING_TRACING_H
#define DAEMON_TRACING_TRACING_H

#include "daemon/counters/counters.h"
#include "daemon/health/alarm.h"
#include "daemon/tracing/query_spans.h"
#include "ingest/kafka/trace_headers.h"

struct tracing;

/* What the exporter is opened with; copied. Texts and objects that it points to outlive the exporter. */
struct tracing_config {
  const char *endpoint; /* URL */
  struct query_spans_source source;
  struct counters *counters;
  struct alarm *alarm; /* its pulses watch the thread; NULL: none do */
};

/* Start the exporter. */
err_t tracing_open(const struct tracing_config *config, struct tracing **out);

/* Send what is left, and stop. Nobody else may have a record. Blocks: for about a second at most. */
void tracing_close(struct tracing **t);

/* The rest is for threads that have queries. They may pass NULL for what there is not. Thread: any. Blocks: no. */

/* Begin the trace of a record that was received at a time, by clock_now_ns().
 *
 * Returns NULL if its caller has not sampled it, or no record is free.
 */
struct query_trace *tracing_begin(struct tracing *t, const struct trace_headers *headers, int64_t received_ns);

/* End the trace: its spans are exported.
 *
 * is_delivered  a broker has the reply
 */
void tracing_end(struct tracing *t, struct query_trace *trace, bool is_delivered);

/* Drop the trace of a query that is read again, here or by another daemon. */
void tracing_drop(struct tracing *t, struct query_trace *trace);

#endif
