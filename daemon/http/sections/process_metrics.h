/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a process, under the names that all programs with Prometheus metrics use. */
#ifndef DAEMON_HTTP_PROCESS_METRICS_H
#define DAEMON_HTTP_PROCESS_METRICS_H

#include <stdint.h>
#include <stdio.h>

/* Return the bytes of memory that the process has in RAM, pages of the mapped store included; 0: unknown. */
uint64_t process_resident_bytes(void);

void process_metrics_print(FILE *out);

#endif
