/* SPDX-License-Identifier: Apache-2.0 */
/* Print how far the seen topic was read, for /status and /metrics. Thread: any. */
#ifndef DAEMON_HTTP_SEEN_STATUS_H
#define DAEMON_HTTP_SEEN_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/seen/seen.h"

/* Return the field `seen` of /status; null if no seen topic is read. */
json_t *seen_status_json(struct seen *s);

/* Print the metrics in the text format of Prometheus; without a seen topic, all are 0. */
void seen_status_metrics(struct seen *s, FILE *out);

#endif
