/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON: the text is parsed, then a recursive walk over the descriptors fills the message. The schema limits the
 * depth of the walk, not the text. */
#include "ingest/wire/json_message.h"

#include <stdio.h>

#include "base/edit_distance.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/json/json_parse.h"
#include "ingest/wire/json_plain.h"
#include "ingest/wire/json_scalar.h"

static err_t read_message(struct json_reader *rd, const struct json_place *at, json_t *json,
                          const ProtobufCMessageDescriptor *type, ProtobufCMessage **out);

static err_t read_value(struct json_reader *rd, const struct json_place *at, const ProtobufCFieldDescriptor *field,
                        json_t *json, void *slot)
{
  if (field->type == PROTOBUF_C_TYPE_MESSAGE)
    return read_message(rd, at, json, field->descriptor, slot);
  return json_scalar_read(rd, at, field, json, slot);
}

static err_t read_list(struct json_reader *rd, const struct json_place *at, const ProtobufCFieldDescriptor *field,
                       json_t *json, ProtobufCMessage *message)
{
  size_t n = json_array_size(json), size = message_field_size(field);
  uint8_t *elements;

  if (!json_is_array(json))
    return json_scalar_fail(rd, at, "a list", json);
  TRY(json_scalar_verify_count(rd, at, field, n));
  TRY(region_array(rd->region, n, size, &elements));
  for (size_t i = 0; i < n; i++) {
    struct json_place child = { .up = at, .kind = JSON_PLACE_INDEX, .index = i };
    TRY(read_value(rd, &child, field, json_array_get(json, i), elements + i * size));
  }
  mem_pointer_set(message_field_at(message, field), elements);
  *message_field_count(message, field) = n;
  return ERR_OK;
}

static err_t read_map(struct json_reader *rd, const struct json_place *at, const ProtobufCFieldDescriptor *field,
                      json_t *json, ProtobufCMessage *message)
{
  const ProtobufCMessageDescriptor *type = field->descriptor;
  ProtobufCMessage **entries;
  struct span key;
  const char *name;
  json_t *value;
  size_t n = 0;

  if (!json_is_object(json))
    return json_scalar_fail(rd, at, "an object", json);
  TRY(json_scalar_verify_count(rd, at, field, json_object_size(json)));
  TRY(region_array(rd->region, json_object_size(json), sizeof *entries, &entries));
  json_object_foreach(json, name, value)
  {
    struct json_place child = { .up = at, .kind = JSON_PLACE_KEY, .name = name };
    ProtobufCMessage *entry;
    TRY(json_scalar_new_message(rd, type, &entry));
    TRY(region_copy(rd->region, span_of_str(name), &key));
    *(const char **)message_field_at(entry, &type->fields[0]) = (const char *)key.p;
    TRY(read_value(rd, &child, &type->fields[1], value, message_field_at(entry, &type->fields[1])));
    entries[n++] = entry;
  }
  mem_pointer_set(message_field_at(message, field), entries);
  *message_field_count(message, field) = n;
  return ERR_OK;
}

static err_t read_field(struct json_reader *rd, const struct json_place *at, const ProtobufCFieldDescriptor *field,
                        json_t *json, ProtobufCMessage *message)
{
  if (message_field_is_map(field))
    return read_map(rd, at, field, json, message);
  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return read_list(rd, at, field, json, message);
  TRY(read_value(rd, at, field, json, message_field_at(message, field)));
  message_field_mark(message, field);
  return ERR_OK;
}

/* Every message has a field. */
static const char *find_nearest(const ProtobufCMessageDescriptor *type, const char *name)
{
  const char *nearest = "";
  size_t least = SIZE_MAX;

  for (unsigned i = 0; i < type->n_fields; i++) {
    size_t distance = edit_distance_by_letter(type->fields[i].name, name);
    if (distance < least) {
      least = distance;
      nearest = type->fields[i].name;
    }
  }
  return nearest;
}

/* Read one member of an object.
 *
 * at  the place of the message; NULL for the outermost one
 */
static err_t read_member(struct json_reader *rd, const struct json_place *at, const char *name, json_t *json,
                         ProtobufCMessage *message)
{
  const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, name);
  struct json_place child = { .up = at, .kind = JSON_PLACE_FIELD, .name = name };

  if (!field)
    FAIL(rd->field_error, "%s%sunknown field %s; the nearest is \"%s\"", at ? json_scalar_path(rd, at) : "",
         at ? ": " : "", log_quote(span_of_str(name)), find_nearest(message->descriptor, name));
  if (json_is_null(json))
    return ERR_OK;
  return read_field(rd, &child, field, json, message);
}

static err_t read_message(struct json_reader *rd, const struct json_place *at, json_t *json,
                          const ProtobufCMessageDescriptor *type, ProtobufCMessage **out)
{
  bool may_be_list = type == rd->rules->list_type;
  ProtobufCMessage *message;
  const char *name;
  json_t *value;

  TRY(json_scalar_new_message(rd, type, &message));
  if (type == rd->rules->plain_type && !json_is_object(json)) {
    TRY(json_plain_read(rd, at, json, message));
  } else if (may_be_list && json_is_array(json)) {
    TRY(read_list(rd, at, message_field_find(type, rd->rules->list_field), json, message));
  } else if (json_is_object(json)) {
    json_object_foreach(json, name, value) TRY(read_member(rd, at, name, value, message));
  } else {
    return json_scalar_fail(rd, at, may_be_list ? "a list or an object" : "an object", json);
  }
  *out = message;
  return ERR_OK;
}

/* Read all members that can be read. Report the first one that cannot. */
static err_t read_top(struct json_reader *rd, json_t *json, ProtobufCMessage *message)
{
  struct err_kept first = { 0 };
  const char *name;
  json_t *value;

  json_object_foreach(json, name, value)
  {
    if (first.code != ERR_OK && !message_field_find(message->descriptor, name))
      continue; /* printing an error for each of a million members would take a second */
    struct region_mark start = region_mark(rd->region);
    err_code_t err = read_member(rd, NULL, name, value, message);
    if (err == ERR_OK)
      continue;
    if (err != rd->field_error && err != ERR_TOO_LARGE)
      return err;
    region_rewind(rd->region, start);
    if (first.code == ERR_OK)
      err_keep(err, &first);
  }
  return err_give_back(&first);
}

err_t json_message_read(struct span text, const ProtobufCMessageDescriptor *type, const struct json_rules *rules,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out)
{
  struct json_reader rd = { .rules = rules, .region = r, .field_error = field_error };
  ProtobufCMessage *message;
  AUTO(json_decrefp) json_t *json = NULL;

  TRY(json_parse(text, JSON_DECODE_ANY, r, &rd.has_large, &json));
  if (!json_is_object(json))
    FAIL(ERR_WIRE, "JSON, but %s where an object is expected", json_scalar_kind(json));
  TRY(json_scalar_new_message(&rd, type, &message));

  err_code_t err = read_top(&rd, json, message);
  if (err == ERR_OK || err == field_error || err == ERR_TOO_LARGE)
    *out = message;
  return err;
}
