/* SPDX-License-Identifier: Apache-2.0 */
/* Adding entries, and checking what they name. */
#include "daemon/config/config_fields.h"

#include <string.h>

#include "base/mem.h"
#include "daemon/config/config_settings.h"
#include "ingest/json/json_path.h"

err_t config_fields_add(struct config_fields *fields, struct span name, struct span path, int line)
{
  struct config_field *field = &fields->v[fields->n];

  TRY(json_path_verify(path));
  TRY(mem_copy(name, &field->name));
  fields->n++; /* from now on it is freed */
  field->line = line;
  return mem_copy(path, &field->path);
}

void config_fields_free(struct config_fields *fields)
{
  for (size_t i = 0; i < fields->n; i++) {
    mem_free(&fields->v[i].name);
    mem_free(&fields->v[i].path);
  }
  mem_free(&fields->v);
  fields->n = 0;
}

static bool has_space(const struct config *c, const char *name)
{
  for (size_t i = 0; i < c->n_spaces; i++) {
    if (strcmp(c->spaces[i].name, name) == 0)
      return true;
  }
  return false;
}

static err_t verify_space(const struct config *c, const char *setting, const struct config_field *field)
{
  if (!has_space(c, field->name))
    FAIL(ERR_CONFIG, "%s:%d: %s: there is no space %s: add it to `spaces`, or remove the line", c->path, field->line,
         setting, log_quote(span_of_str(field->name)));
  return ERR_OK;
}

static err_t verify_attribute(const struct config *c, const struct config_field *field)
{
  if (attributes_find(&c->attributes, span_of_str(field->name), 0) == ATTRIBUTE_NONE)
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.mapping.attributes: there is no attribute %s: add it to `attributes`, or remove "
         "the line",
         c->path, field->line, log_quote(span_of_str(field->name)));
  return ERR_OK;
}

/* An item has a vector or codes in a space, never both. */
static err_t verify_one_kind(const struct config *c, const struct config_field *codes)
{
  const struct config_fields *vectors = &c->catalogue.mapping.vectors;

  for (size_t i = 0; i < vectors->n; i++) {
    if (strcmp(vectors->v[i].name, codes->name) == 0)
      FAIL(ERR_CONFIG, "%s:%d: the space %s has codes here and a vector in line %d: choose one", c->path, codes->line,
           codes->name, vectors->v[i].line);
  }
  return ERR_OK;
}

static err_t check_names(const struct config *c, struct problems *problems)
{
  const struct config_fields *vectors = &c->catalogue.mapping.vectors, *codes = &c->catalogue.mapping.codes;

  for (size_t i = 0; i < vectors->n; i++)
    TRY(problems_note(problems, verify_space(c, "catalogue.mapping.vectors", &vectors->v[i])));
  for (size_t i = 0; i < codes->n; i++) {
    TRY(problems_note(problems, verify_space(c, "catalogue.mapping.codes", &codes->v[i])));
    TRY(problems_note(problems, verify_one_kind(c, &codes->v[i])));
  }
  for (size_t i = 0; i < c->catalogue.mapping.attributes.n; i++)
    TRY(problems_note(problems, verify_attribute(c, &c->catalogue.mapping.attributes.v[i])));
  return ERR_OK;
}

/* Is the topic in somebody else's form? */
static bool is_mapped(const struct config *c)
{
  return c->catalogue.format != CONFIG_FORMAT_SLUICE;
}

/* Does a setting below catalogue.mapping differ from its default? */
static bool is_set(const struct config *c, const struct setting *s)
{
  const void *field = (const char *)c + s->offset;

  if (s->type == SETTING_FIELDS)
    return ((const struct config_fields *)field)->n > 0;
  if (s->type == SETTING_EITHER)
    return *(const bool *)field;
  return **(char *const *)field;
}

/* Does the file map anything? Looks for the settings that have no effect alone. */
static err_t verify_has_effect(const struct config *c, size_t index)
{
  if (is_set(c, &settings[index]) && !is_mapped(c))
    FAIL(ERR_CONFIG, "%s:%d: %s has an effect with catalogue.format: json, avro or protobuf only", c->path,
         c->lines[index], settings[index].path);
  return ERR_OK;
}

static err_t verify_maps_something(const struct config *c)
{
  static const char *const formats[] = { "sluice", "json", "avro", "protobuf" };
  const size_t n = c->catalogue.mapping.vectors.n + c->catalogue.mapping.codes.n + c->catalogue.mapping.attributes.n;

  if (is_mapped(c) && n == 0 && !c->may_lack_mapping)
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.format is %s, but catalogue.mapping names no vectors, codes or attributes: sluicectl map "
         "suggests some",
         c->path, c->lines[settings_find("catalogue.format")], formats[c->catalogue.format]);
  return ERR_OK;
}

static bool asks_registry(const struct config *c)
{
  return *c->catalogue.registry.url;
}

/* What belongs to a registry needs its URL. */
static err_t verify_has_registry(const struct config *c, const char *path)
{
  size_t index = settings_find(path);

  if (is_set(c, &settings[index]) && !asks_registry(c))
    FAIL(ERR_CONFIG, "%s:%d: %s is set, but catalogue.registry.url is not", c->path, c->lines[index], path);
  return ERR_OK;
}

static err_t verify_registry(const struct config *c)
{
  bool has_ids = c->catalogue.format == CONFIG_FORMAT_AVRO && c->catalogue.is_framed;

  if (asks_registry(c) && !has_ids)
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.registry.url has an effect with catalogue.format: avro and catalogue.framing: "
         "confluent only",
         c->path, c->lines[settings_find("catalogue.registry.url")]);
  TRY(verify_has_registry(c, "catalogue.registry.user"));
  TRY(verify_has_registry(c, "catalogue.registry.password"));
  TRY(verify_has_registry(c, "catalogue.registry.ca_file"));
  if (strchr(c->catalogue.registry.user, ':')) /* it would end there: RFC 7617 */
    FAIL(ERR_CONFIG, "%s:%d: catalogue.registry.user expects a name without a colon", c->path,
         c->lines[settings_find("catalogue.registry.user")]);
  if (*c->catalogue.registry.password && !*c->catalogue.registry.user)
    FAIL(ERR_CONFIG, "%s:%d: catalogue.registry.password is set, but catalogue.registry.user is not", c->path,
         c->lines[settings_find("catalogue.registry.password")]);
  return ERR_OK;
}

static err_t verify_message(const struct config *c)
{
  bool is_protobuf = c->catalogue.format == CONFIG_FORMAT_PROTOBUF;

  if (is_protobuf && !*c->catalogue.schemas)
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.format is protobuf, but catalogue.schemas does not say where the descriptor set is: make it "
         "with protoc --include_imports --descriptor_set_out=FILE",
         c->path, c->lines[settings_find("catalogue.format")]);
  if (is_protobuf && !*c->catalogue.message)
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.format is protobuf, but catalogue.message does not name the message that each value is",
         c->path, c->lines[settings_find("catalogue.format")]);
  if (!is_protobuf && *c->catalogue.message)
    FAIL(ERR_CONFIG, "%s:%d: catalogue.message has an effect with catalogue.format: protobuf only", c->path,
         c->lines[settings_find("catalogue.message")]);
  return ERR_OK;
}

/* Values of Avro say nothing about themselves. */
static err_t verify_schemas(const struct config *c)
{
  bool is_avro = c->catalogue.format == CONFIG_FORMAT_AVRO;
  bool has_schemas = is_avro || c->catalogue.format == CONFIG_FORMAT_PROTOBUF;

  if (is_avro && !*c->catalogue.schemas && !asks_registry(c))
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.format is avro, but neither catalogue.schemas nor catalogue.registry.url says where the "
         "schema is",
         c->path, c->lines[settings_find("catalogue.format")]);
  if (!has_schemas && *c->catalogue.schemas)
    FAIL(ERR_CONFIG, "%s:%d: catalogue.schemas has an effect with catalogue.format: avro or protobuf only", c->path,
         c->lines[settings_find("catalogue.schemas")]);
  return ERR_OK;
}

err_t config_fields_check(const struct config *c, struct problems *problems)
{
  static const char section[] = "catalogue.mapping.";

  for (size_t i = 0; i < n_settings; i++) {
    if (strncmp(settings[i].path, section, strlen(section)) == 0)
      TRY(problems_note(problems, verify_has_effect(c, i)));
  }
  TRY(problems_note(problems, verify_maps_something(c)));
  TRY(problems_note(problems, verify_schemas(c)));
  TRY(problems_note(problems, verify_message(c)));
  TRY(problems_note(problems, verify_registry(c)));
  return check_names(c, problems);
}
