/* SPDX-License-Identifier: Apache-2.0 */
/* A broker inside this process, for the first five minutes and for tests: librdkafka's mock cluster on a loopback port.
 * It keeps nothing beyond the process, and about 5 MB a partition.
 * Thread: main opens and closes it. */
#ifndef INGEST_EMBEDDED_BROKER_H
#define INGEST_EMBEDDED_BROKER_H

#include "base/err.h"

struct embedded_broker;

err_t embedded_broker_open(struct embedded_broker **out);
void embedded_broker_close(struct embedded_broker **b);

/* Stop answering, or answer again: for tests of what clients do meanwhile. */
void embedded_broker_set_down(struct embedded_broker *b, bool is_down);

/* "127.0.0.1:port", valid while it is open. */
const char *embedded_broker_bootstrap(const struct embedded_broker *b);

err_t embedded_broker_create_topic(struct embedded_broker *b, const char *topic, int n_partitions);

#endif
