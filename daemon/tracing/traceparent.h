/* SPDX-License-Identifier: Apache-2.0 */
/* The header `traceparent`: which trace a query belongs to, which span of it has sent the query, and whether that trace
 * is sampled. Thread: any. */
#ifndef DAEMON_TRACING_TRACEPARENT_H
#define DAEMON_TRACING_TRACEPARENT_H

#include <stdbool.h>

#include "base/span.h"

enum { TRACE_ID_DIGITS = 32, SPAN_ID_DIGITS = 16 };

/* Ids stay the lower-case hexadecimal digits of the header: OTLP's JSON has the same. */
struct traceparent {
  char trace_id[TRACE_ID_DIGITS + 1];
  char span_id[SPAN_ID_DIGITS + 1]; /* of the caller */
  bool is_sampled;
};

/* Parse the value of a header. Returns false if it is not valid.
 *
 * Source: W3C Trace Context, section 3.2
 */
bool traceparent_parse(struct span text, struct traceparent *out);

#endif
