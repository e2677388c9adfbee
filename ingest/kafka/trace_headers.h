/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a record that say which trace it belongs to (W3C Trace Context and Baggage). The answer to a query has
 * those of the query, so that the client's tracing knows it again. Nothing in this folder reads them. */
#ifndef INGEST_TRACE_HEADERS_H
#define INGEST_TRACE_HEADERS_H

#include "base/span.h"

/* A longer value is left out. Baggage of this size is what every program must be able to pass on. */
enum { TRACE_PARENT = 0, TRACE_HEADERS = 3, TRACE_HEADER_MAX = 8192 };

static const char *const trace_header_names[TRACE_HEADERS] = { "traceparent", "tracestate", "baggage" };

/* Their values, in the order of the names; empty for those that the record does not have. */
struct trace_headers {
  struct span value[TRACE_HEADERS];
};

#endif
