/* SPDX-License-Identifier: Apache-2.0 */
/* Print when the certificates of the Kafka clients expire. Thread: any. */
#ifndef DAEMON_HTTP_CERTIFICATE_METRICS_H
#define DAEMON_HTTP_CERTIFICATE_METRICS_H

#include <stdio.h>

#include "daemon/config/config.h"

/* Print the metric in the text format of Prometheus: a value for each certificate that the clients use. */
void certificate_metrics_print(const struct config *config, FILE *out);

#endif
