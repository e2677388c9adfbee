/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the daemon's Kafka clients: those of the configuration, and what the embedded broker asks for. */
#ifndef DAEMON_KAFKA_SETUP_H
#define DAEMON_KAFKA_SETUP_H

#include "daemon/config/config.h"
#include "ingest/embedded_broker.h"

struct kafka_setup {
  struct embedded_broker *broker; /* NULL: a real one */
  struct kafka_property embedded[2];
  const struct config *config;
};

/* Start the embedded broker with its topics where the configuration asks for it. */
err_t kafka_setup_open(const struct config *config, struct kafka_setup *out);
void kafka_setup_close(struct kafka_setup *s);

/* Where clients find the broker. */
const char *kafka_setup_bootstrap(const struct kafka_setup *s);

/* Layers of a client with properties of its own. Valid while the setup is open. */
struct kafka_layers kafka_setup_layers(const struct kafka_setup *s, const struct kafka_properties *own,
                                       bool is_consumer);

#endif
