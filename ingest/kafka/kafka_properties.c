/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of properties, and checking properties one by one. */
#include "ingest/kafka/kafka_properties.h"

#include <assert.h>
#include <librdkafka/rdkafka.h>
#include <string.h>

#include "base/log.h"

void kafka_layers_add(struct kafka_layers *layers, const struct kafka_property *items, size_t n)
{
  assert(layers->n < KAFKA_LAYERS_MAX);
  layers->layer[layers->n++] = (struct kafka_properties){ items, n };
}

struct kafka_layers kafka_layers_under(const struct kafka_property *defaults, size_t n,
                                       const struct kafka_layers *layers)
{
  struct kafka_layers all = { .client = layers->client };

  kafka_layers_add(&all, defaults, n);
  for (size_t i = 0; i < layers->n; i++)
    kafka_layers_add(&all, layers->layer[i].items, layers->layer[i].n);
  return all;
}

static void destroy_conf(rd_kafka_conf_t **conf)
{
  if (*conf)
    rd_kafka_conf_destroy(*conf);
}

/* Remove the line break that ends some of librdkafka's reasons. */
static void cut_line_break(char *text)
{
  text[strcspn(text, "\r\n")] = '\0';
}

static err_t verify_property(rd_kafka_conf_t *conf, const struct kafka_property *property)
{
  char reason[512] = "";

  /* Properties of librdkafka's own unit tests are function pointers: it would call the value. */
  if (strncmp(property->name, "ut_", 3) == 0)
    FAIL(ERR_CONFIG, "librdkafka has no property %s", log_quote(span_of_str(property->name)));
  rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, property->name, property->value, reason, sizeof reason);
  cut_line_break(reason);
  if (result == RD_KAFKA_CONF_UNKNOWN)
    FAIL(ERR_CONFIG, "librdkafka has no property %s", log_quote(span_of_str(property->name)));
  if (result != RD_KAFKA_CONF_OK)
    FAIL(ERR_CONFIG, "librdkafka refuses the value of %s: %s", property->name, reason);
  return ERR_OK;
}

err_t kafka_properties_check(const struct kafka_properties *properties)
{
  AUTO(destroy_conf) rd_kafka_conf_t *conf = rd_kafka_conf_new();

  for (size_t i = 0; i < properties->n; i++)
    TRY(verify_property(conf, &properties->items[i]));
  return ERR_OK;
}
