/* SPDX-License-Identifier: Apache-2.0 */
/* The two lines that Prometheus wants before the values of a metric. Thread: any. */
#ifndef DAEMON_HTTP_METRIC_HEAD_H
#define DAEMON_HTTP_METRIC_HEAD_H

#include <stdio.h>

/* Print the lines HELP and TYPE.
 *
 * type  "counter", "gauge" or "histogram"
 * help  what is measured, in which unit; without line feeds
 */
static inline void metric_head_print(FILE *out, const char *name, const char *type, const char *help)
{
  fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

#endif
