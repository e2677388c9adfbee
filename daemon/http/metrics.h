/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's metrics for Prometheus. Thread: any. */
#ifndef DAEMON_HTTP_METRICS_H
#define DAEMON_HTTP_METRICS_H

#include <stdio.h>

#include "daemon/http/status.h"

/* Return the body of /metrics. The caller frees it with free(); NULL: out of memory. */
char *metrics_text(struct status *s);

/* Print the counters and histograms that every role has. */
void metrics_print_counters(const struct counters *c, FILE *out);

#endif
