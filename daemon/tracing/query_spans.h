/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of traced queries, as a request of OTLP in JSON. */
#ifndef DAEMON_TRACING_QUERY_SPANS_H
#define DAEMON_TRACING_QUERY_SPANS_H

#include "daemon/tracing/query_trace.h"

enum { QUERY_SPANS_NAME_BYTES = 400 };

/* What all spans of a daemon have in common. */
struct query_spans_source {
  const char *topic;                     /* that the traced records are from */
  char group[QUERY_SPANS_NAME_BYTES];    /* that reads it */
  char instance[QUERY_SPANS_NAME_BYTES]; /* name of the daemon */
};

/* Make the request with the spans of a list of queries. The ids of spans are random.
 *
 * n_spans  set: how many spans there are
 *
 * Returns a text that the caller frees with free(); NULL: out of memory.
 * Thread: any.
 */
char *query_spans_encode(const struct query_trace *list, const struct query_spans_source *source, size_t *n_spans);

#endif
