/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's report on the status page and among the metrics. Thread: any. */
#ifndef DAEMON_CATALOGUE_CATALOGUE_STATUS_H
#define DAEMON_CATALOGUE_CATALOGUE_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/catalogue/catalogue_report.h"

/* Add `problem`, `rebuild`, `catalogue_log`, `unknown_spaces` and `open_dead_letters` to an object. */
void catalogue_status_json(struct catalogue_report *r, json_t *root);

/* Print metrics for Prometheus. */
void catalogue_status_metrics(struct catalogue_report *r, FILE *out);

#endif
