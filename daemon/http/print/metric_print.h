/* SPDX-License-Identifier: Apache-2.0 */
/* Print metrics in the text format of Prometheus. Thread: any. */
#ifndef DAEMON_HTTP_METRIC_PRINT_H
#define DAEMON_HTTP_METRIC_PRINT_H

#include <stdio.h>

#include "base/hist.h"

/* Print the lines HELP and TYPE, which come before the values of a metric.
 *
 * type  "counter", "gauge" or "histogram"
 * help  what is measured, in which unit; without line feeds
 */
void metric_print_head(FILE *out, const char *name, const char *type, const char *help);

/* A label of a value, such as partition="3". */
struct metric_label {
  const char *name;
  const char *value;
};

/* The labels of a value; the list ends at the first without a name. */
enum { METRIC_LABELS_MAX = 3 };
struct metric_labels {
  struct metric_label label[METRIC_LABELS_MAX];
};

/* Print one value of a metric whose head has been printed.
 *
 * labels  NULL: none
 */
void metric_print_count(FILE *out, const char *name, const struct metric_labels *labels, uint64_t value);
void metric_print_real(FILE *out, const char *name, const struct metric_labels *labels, double value);

/* Print buckets, sum and count of a histogram of microseconds, in seconds. */
void metric_print_hist(FILE *out, const char *name, const struct metric_labels *labels, const struct hist *h);

/* Print a metric that has one value and no labels: its head and the value. */
void metric_print_counter(FILE *out, const char *name, const char *help, uint64_t value);
void metric_print_gauge(FILE *out, const char *name, const char *help, uint64_t value);
void metric_print_real_gauge(FILE *out, const char *name, const char *help, double value);

#endif
