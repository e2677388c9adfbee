/* SPDX-License-Identifier: Apache-2.0 */
/* The generations of models as a field of /status and as metrics for Prometheus. Thread: any. */
#ifndef DAEMON_HTTP_MODELS_STATUS_H
#define DAEMON_HTTP_MODELS_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/models/models.h"

/* Make the field; null if there is no control topic. */
json_t *models_status_json(struct models *m, struct engine *engine);

/* Print the metrics. Without a control topic there are only their heads, and values that are always there. */
void models_status_metrics(struct models *m, struct engine *engine, FILE *out);

#endif
