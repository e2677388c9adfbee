/* SPDX-License-Identifier: Apache-2.0 */
/* The schema is known before the first record, so a path that leads nowhere is a mistake of the configuration. */
#include "daemon/config/config_message.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/config_settings.h"

/* Debezium's rows are in a field of the message. */
static const char *row_of(const struct config *c)
{
  return c->catalogue.mapping.is_debezium ? "after" : NULL;
}

static err_t verify_path(const struct config *c, const struct protobuf_source *source, const char *text, int line,
                         const char *setting)
{
  AUTO(json_path_fini) struct json_path path = { 0 };

  if (!text || !*text)
    return ERR_OK;
  TRY(json_path_init(span_of_str(text), &path));
  err_code_t err = protobuf_source_verify_path(source, row_of(c), &path);
  if (err == ERR_CONFIG)
    FAIL(err, "%s:%d: %s: %s: %s", c->path, line, setting, text, err_message());
  return err;
}

static err_t verify_fields(const struct config *c, const struct protobuf_source *source, const char *setting,
                           const struct config_fields *fields)
{
  for (size_t i = 0; i < fields->n; i++)
    TRY(verify_path(c, source, fields->v[i].path, fields->v[i].line, setting));
  return ERR_OK;
}

static err_t verify_paths(const struct config *c, const struct protobuf_source *source)
{
  const char *key = c->catalogue.mapping.key, *deleted = c->catalogue.mapping.deleted;

  TRY(verify_path(c, source, key, c->lines[settings_find("catalogue.mapping.key")], "catalogue.mapping.key"));
  TRY(verify_path(c, source, deleted, c->lines[settings_find("catalogue.mapping.deleted")],
                  "catalogue.mapping.deleted"));
  TRY(verify_fields(c, source, "catalogue.mapping.vectors", &c->catalogue.mapping.vectors));
  TRY(verify_fields(c, source, "catalogue.mapping.codes", &c->catalogue.mapping.codes));
  return verify_fields(c, source, "catalogue.mapping.attributes", &c->catalogue.mapping.attributes);
}

err_t config_message_open(const struct config *c, struct protobuf_source **out)
{
  AUTO(protobuf_source_close) struct protobuf_source *source = NULL;

  err_code_t err = protobuf_source_open(c->catalogue.schemas, c->catalogue.message, &source);
  if (err == ERR_CONFIG)
    return config_blame(c, "catalogue.schemas", err);
  TRY(err);
  TRY(verify_paths(c, source));
  *out = source;
  source = NULL;
  return ERR_OK;
}
