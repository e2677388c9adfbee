/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenTelemetry collector: spans are sent to it by OTLP over HTTP, as JSON. Thread: one. */
#ifndef DAEMON_TRACING_COLLECTOR_H
#define DAEMON_TRACING_COLLECTOR_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/span.h"

struct collector;

enum { COLLECTOR_REASON_BYTES = 400 };

enum collector_verdict {
  COLLECTOR_TOOK,    /* all spans but `n_rejected` */
  COLLECTOR_AWAY,    /* it cannot be reached, or has too much to do: another try may succeed */
  COLLECTOR_REFUSED, /* the same request would be refused again */
};

struct collector_answer {
  enum collector_verdict verdict;
  uint64_t n_rejected;
  char reason[COLLECTOR_REASON_BYTES]; /* why spans were not taken */
};

/* Prepare for requests to a URL, which the caller keeps. Nothing is sent yet.
 *
 * timeout_ms  for each request
 */
err_t collector_open(const char *url, int64_t timeout_ms, struct collector **out);
void collector_close(struct collector **c);

/* Send a request and wait for the answer.
 *
 * give_up_ns  when to stop waiting, by clock_now_ns(), though the timeout is not over; INT64_MAX: not before. Another
 *             thread may set it meanwhile
 */
void collector_post(struct collector *c, struct span body, const _Atomic int64_t *give_up_ns,
                    struct collector_answer *out);

#endif
