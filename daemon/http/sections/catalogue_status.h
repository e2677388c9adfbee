/* SPDX-License-Identifier: Apache-2.0 */
/* Print the catalogue's report for /status and /metrics. Thread: any. */
#ifndef DAEMON_HTTP_CATALOGUE_STATUS_H
#define DAEMON_HTTP_CATALOGUE_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/catalogue/catalogue_report.h"

/* Add the fields `problem`, `rebuild`, `catalogue_log`, `unknown_spaces`, `unknown_attributes` and
 * `undelivered_dead_letters` to /status. */
void catalogue_status_json(struct catalogue_report *r, json_t *root);

/* Return how many records are not applied yet, of all partitions. */
uint64_t catalogue_status_lag(struct catalogue_report *r);

/* Print the metrics of the catalogue in the text format of Prometheus. */
void catalogue_status_metrics(struct catalogue_report *r, FILE *out);

#endif
