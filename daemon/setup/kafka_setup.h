/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the daemon's Kafka clients: from the configuration, and for the embedded broker. It also runs that
 * broker. */
#ifndef DAEMON_SETUP_KAFKA_SETUP_H
#define DAEMON_SETUP_KAFKA_SETUP_H

#include "daemon/config/config.h"
#include "ingest/kafka/embedded_broker.h"

struct kafka_setup {
  struct embedded_broker *broker;     /* NULL: a real broker is used */
  struct kafka_property embedded[2];  /* what clients of the embedded broker need */
  struct kafka_property reader_group; /* of consumers of whole topics, outside of any group */
  const struct config *config;
};

/* If the configuration enables the embedded broker, start it and create its topics. */
err_t kafka_setup_open(const struct config *config, struct kafka_setup *out);
void kafka_setup_close(struct kafka_setup *s);

/* Return bootstrap.servers of the clients; "" if it is not set. */
const char *kafka_setup_bootstrap(const struct kafka_setup *s);

/* Return the property layers of a client. Valid while the setup is open.
 *
 * own  the client's own section of the configuration, such as catalogue.kafka
 */
struct kafka_layers kafka_setup_layers(const struct kafka_setup *s, const struct kafka_properties *own,
                                       bool is_consumer);

/* The same for a consumer that reads a whole topic. librdkafka asks for a group, although the consumer is in none: it
 * is the one to which the catalogue's positions are committed, if they are, because we may use that one.
 *
 * client  the consumer's name in the log and in the statistics, a literal
 */
struct kafka_layers kafka_setup_reader_layers(const struct kafka_setup *s, const struct kafka_properties *own,
                                              const char *client);

#endif
