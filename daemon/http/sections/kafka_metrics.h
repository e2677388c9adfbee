/* SPDX-License-Identifier: Apache-2.0 */
/* Print librdkafka's statistics by client and broker. Thread: any. */
#ifndef DAEMON_HTTP_KAFKA_METRICS_H
#define DAEMON_HTTP_KAFKA_METRICS_H

#include <stdio.h>

void kafka_metrics_print(FILE *out);

#endif
