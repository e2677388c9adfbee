/* SPDX-License-Identifier: Apache-2.0 */
/* A Kafka broker inside this process, for first steps and for tests: librdkafka's mock cluster on a loopback port. It
 * keeps about 5 MB of each partition, in memory only.
 *
 * Thread: main opens and closes it. */
#ifndef INGEST_EMBEDDED_BROKER_H
#define INGEST_EMBEDDED_BROKER_H

#include "base/err.h"

struct embedded_broker;

/* Start the broker. */
err_t embedded_broker_open(struct embedded_broker **out);
void embedded_broker_close(struct embedded_broker **b);

/* Stop answering, or answer again. For tests of clients without a broker. */
void embedded_broker_set_down(struct embedded_broker *b, bool is_down);

/* Return its address, "127.0.0.1:port". Valid while it is open. */
const char *embedded_broker_bootstrap(const struct embedded_broker *b);

/* Create a topic. Returns ERR_KAFKA with the reason. */
err_t embedded_broker_create_topic(struct embedded_broker *b, const char *topic, int n_partitions);

#endif
