/* SPDX-License-Identifier: Apache-2.0 */
/* Collect the paths of the configuration in a mapping. */
#include "daemon/catalogue/catalogue_format.h"

#include "daemon/config/config_message.h"
#include "daemon/config/config_schemas.h"

static err_t add_fields(const struct config *config, const struct config_fields *fields, enum mapping_kind kind,
                        struct mapping *out)
{
  for (size_t i = 0; i < fields->n; i++) {
    enum attribute_type type = N_ATTRIBUTE_TYPES;
    if (kind == MAPPING_ATTRIBUTE)
      type = config->attributes.v[attributes_find(&config->attributes, span_of_str(fields->v[i].name), i)].type;
    TRY(mapping_add(out, kind, fields->v[i].name, type, fields->v[i].path));
  }
  return ERR_OK;
}

static err_t read_path(const char *text, struct json_path *out)
{
  return text && *text ? json_path_init(span_of_str(text), out) : ERR_OK;
}

err_t catalogue_format_init(const struct config *config, struct item_format *out)
{
  struct mapping *mapping = &out->mapping;
  const struct avro_sources schemas = config_schemas(config);

  *out = (struct item_format){ .is_framed = config->catalogue.is_framed,
                               .is_mapped = config->catalogue.format != CONFIG_FORMAT_SLUICE };
  mapping->is_debezium = config->catalogue.mapping.is_debezium;
  if (config->catalogue.format == CONFIG_FORMAT_AVRO)
    TRY(avro_schemas_open(&schemas, &mapping->schemas));
  if (config->catalogue.format == CONFIG_FORMAT_PROTOBUF)
    TRY(config_message_open(config, &mapping->messages));
  TRY(read_path(config->catalogue.mapping.key, &mapping->key));
  TRY(read_path(config->catalogue.mapping.deleted, &mapping->deleted));
  TRY(add_fields(config, &config->catalogue.mapping.vectors, MAPPING_VECTOR, mapping));
  TRY(add_fields(config, &config->catalogue.mapping.codes, MAPPING_CODES, mapping));
  return add_fields(config, &config->catalogue.mapping.attributes, MAPPING_ATTRIBUTE, mapping);
}
