/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of Kafka clients, from the configuration. Any property of librdkafka is allowed. */
#ifndef INGEST_KAFKA_PROPERTIES_H
#define INGEST_KAFKA_PROPERTIES_H

#include <stdbool.h>

#include "base/err.h"

struct kafka_property {
  const char *name;
  const char *value;
};

/* A list of properties. Later lists override earlier ones: our defaults, then those of all clients, then those of one
 * client. */
struct kafka_properties {
  const struct kafka_property *items;
  size_t n;
};

enum { KAFKA_LAYERS_MAX = 7 };

/* Lists of properties, in the order in which they are set. */
struct kafka_layers {
  struct kafka_properties layer[KAFKA_LAYERS_MAX];
  size_t n;
  const char *client; /* name of the client in the statistics, a literal; NULL: it has none */
};

/* Add properties, which override those before them. They must outlive the layers. */
void kafka_layers_add(struct kafka_layers *layers, const struct kafka_property *items, size_t n);

/* Return the layers with a client's defaults below them. The other layers override the defaults. */
struct kafka_layers kafka_layers_under(const struct kafka_property *defaults, size_t n,
                                       const struct kafka_layers *layers);

/* Verify that librdkafka knows each property and accepts its value. Returns ERR_CONFIG with the property and
 * librdkafka's reason. */
err_t kafka_properties_check(const struct kafka_properties *properties);

/* Verify that librdkafka accepts all properties together and can read the files that they name. Makes a client without
 * a broker, and destroys it. Returns ERR_CONFIG with librdkafka's reason. */
err_t kafka_client_check(bool is_consumer, const struct kafka_layers *layers);

#endif
