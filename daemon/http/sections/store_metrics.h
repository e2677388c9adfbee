/* SPDX-License-Identifier: Apache-2.0 */
/* Print the sizes of the stores, and the room on their disk. Thread: any. */
#ifndef DAEMON_HTTP_STORE_METRICS_H
#define DAEMON_HTTP_STORE_METRICS_H

#include <stdio.h>

#include "daemon/http/status.h"

/* Print the metrics in the text format of Prometheus. */
void store_metrics_print(const struct status *s, FILE *out);

/* Return the bytes that the disk of the store has left for us; 0 if the system does not say. */
uint64_t store_metrics_disk_free_bytes(const struct status *s);

#endif
