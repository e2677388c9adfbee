/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of Kafka clients, as the configuration gives them: any of librdkafka's. */
#ifndef INGEST_KAFKA_PROPERTIES_H
#define INGEST_KAFKA_PROPERTIES_H

#include <stdbool.h>

#include "base/err.h"

struct kafka_property {
  const char *name;
  const char *value;
};

/* Later lists override earlier ones: our defaults, then what all clients share, then what one client has of its own. */
struct kafka_properties {
  const struct kafka_property *items;
  size_t n;
};

enum { KAFKA_LAYERS_MAX = 7 };

struct kafka_layers {
  struct kafka_properties layer[KAFKA_LAYERS_MAX];
  size_t n;
};

/* Verify that librdkafka knows the properties and takes their values. Returns ERR_CONFIG with the property and its
 * reason. */
err_t kafka_properties_check(const struct kafka_properties *properties);

/* Verify that librdkafka takes them all together, and can read the files that they name. A client is made and let go,
 * without a broker. Returns ERR_CONFIG with its reason. */
err_t kafka_client_check(bool is_consumer, const struct kafka_layers *layers);

#endif
