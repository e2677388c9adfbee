/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read in the order in which it comes: a later value takes the place of an earlier one, and messages
 * are merged. The rest is done when all of it is there (protobuf_complete.h). */
#include "ingest/protobuf/protobuf_value.h"

#include <stdio.h>

#include "ingest/json/json_make.h"
#include "ingest/json/value_place.h"
#include "ingest/protobuf/protobuf_budget.h"
#include "ingest/protobuf/protobuf_complete.h"
#include "ingest/protobuf/protobuf_scalar.h"
#include "ingest/protobuf/protobuf_wire.h"

enum { DEPTH_MAX = 128, MESSAGE_VALUES = 4, FIELDS_PER_VALUE = 8 };

struct reader {
  const uint8_t *start;
  struct protobuf_budget budget;
  char text[VALUE_PLACE_BYTES];
};

/* A field that is being read, and what is left of the bytes. */
struct at {
  const struct value_place *place;
  const struct protobuf_field *field;
  struct protobuf_tag tag;
  struct span *bytes;
};

static err_t read_message(struct reader *rd, const struct at *at, json_t *object);

static const char *place_text(struct reader *rd, const struct value_place *place)
{
  return value_place_text(place, rd->text);
}

/* Say where the bytes are wrong. */
static err_t blame(struct reader *rd, const struct value_place *place, const struct span *bytes, err_code_t err)
{
  if (err != ERR_WIRE)
    return err;
  FAIL(err, "%s: byte %td: %s: is this the message that was written?", place_text(rd, place), bytes->p - rd->start,
       err_message());
}

/* Make the object of a message. Its fields will be looked through, so a type with many of them counts more. */
static err_t new_object(struct reader *rd, const struct value_place *place, const struct protobuf_type *type,
                        json_t **out)
{
  TRY(protobuf_budget_take(&rd->budget, place, MESSAGE_VALUES + type->n / FIELDS_PER_VALUE));
  return json_make_keep(json_object(), out);
}

static err_t verify_wire(struct reader *rd, const struct at *at, enum protobuf_wire_type due)
{
  static const char *const names[] = { "a varint", "8 bytes", "a length", "a group", "the end of a group", "4 bytes" };

  if (at->tag.type != due)
    FAIL(ERR_WIRE, "%s: byte %td: it is written as %s, but the schema says %s: is this the message that was written?",
         place_text(rd, at->place), at->bytes->p - rd->start, names[at->tag.type], names[due]);
  return ERR_OK;
}

/* Fields -------------------- */

static err_t read_scalar(struct reader *rd, const struct at *at, json_t **out)
{
  TRY(protobuf_budget_take(&rd->budget, at->place, 1));
  return blame(rd, at->place, at->bytes, protobuf_scalar_take(at->field, at->bytes, out));
}

/* Of a oneof the last one counts. One other at most is there; looking for it counts as the fields of a message do. */
static err_t clear_others(struct reader *rd, const struct at *at, json_t *object)
{
  const struct protobuf_field *other = at->field->next_in_oneof;
  size_t n = 0;

  for (; other && other != at->field && json_object_del(object, other->name) != 0; other = other->next_in_oneof)
    n++;
  return protobuf_budget_take(&rd->budget, at->place, n / FIELDS_PER_VALUE);
}

static err_t read_singular(struct reader *rd, const struct at *at, json_t *object)
{
  json_t *value = json_object_get(object, at->field->name);

  TRY(verify_wire(rd, at, protobuf_scalar_wire(at->field->kind)));
  if (!value)
    TRY(clear_others(rd, at, object));
  if (!protobuf_schema_is_message(at->field)) {
    TRY(read_scalar(rd, at, &value));
    return json_make_member(object, at->field->name, value);
  }
  if (!value) {
    TRY(new_object(rd, at->place, at->field->type, &value));
    TRY(json_make_member(object, at->field->name, value));
  }
  return read_message(rd, at, value);
}

/* Get the list or the map of a repeated field. */
static err_t open_many(struct reader *rd, const struct at *at, json_t *object, json_t **out)
{
  *out = json_object_get(object, at->field->name);
  if (*out)
    return ERR_OK;
  TRY(protobuf_budget_take(&rd->budget, at->place, MESSAGE_VALUES));
  TRY(json_make_keep(at->field->is_map ? json_object() : json_array(), out));
  return json_make_member(object, at->field->name, *out);
}

static err_t read_element(struct reader *rd, const struct at *at, json_t *list)
{
  const struct value_place place = value_place_in(at->place, NULL, json_array_size(list));
  const struct at inner = { &place, at->field, at->tag, at->bytes };
  json_t *value = NULL;

  if (!protobuf_schema_is_message(at->field)) {
    TRY(read_scalar(rd, &inner, &value));
    return json_make_element(list, value);
  }
  TRY(new_object(rd, &place, at->field->type, &value));
  TRY(json_make_element(list, value));
  return read_message(rd, &inner, value);
}

/* Numbers may be written one by one or packed, whatever the schema says. */
static err_t read_list(struct reader *rd, const struct at *at, json_t *list)
{
  enum protobuf_wire_type due = protobuf_scalar_wire(at->field->kind);
  bool is_number = due == PROTOBUF_WIRE_VARINT || due == PROTOBUF_WIRE_FIXED32 || due == PROTOBUF_WIRE_FIXED64;
  struct span packed = { 0 };

  if (!is_number || at->tag.type != PROTOBUF_WIRE_BYTES) {
    TRY(verify_wire(rd, at, due));
    return read_element(rd, at, list);
  }
  TRY(blame(rd, at->place, at->bytes, protobuf_wire_take_bytes(at->bytes, &packed)));
  const struct at inner = { at->place, at->field, { at->tag.number, due }, &packed };
  while (packed.n > 0)
    TRY(read_element(rd, &inner, list));
  return ERR_OK;
}

/* Maps -------------------- */

/* Print a key: text, an integer or a bool. Returns what lives as long as the key and the buffer. */
static const char *key_text(const json_t *key, char *buffer, size_t size)
{
  if (json_is_string(key))
    return json_string_value(key);
  if (json_is_boolean(key))
    return json_is_true(key) ? "true" : "false";
  snprintf(buffer, size, "%" JSON_INTEGER_FORMAT, json_integer_value(key));
  return buffer;
}

static err_t read_entry_field(struct reader *rd, const struct at *at, json_t **key, json_t *holder)
{
  const struct protobuf_tag *tag = &at->tag;

  if (!at->field)
    return blame(rd, at->place, at->bytes, protobuf_wire_skip(at->bytes, tag));
  if (tag->number == 2)
    return read_singular(rd, at, holder);
  TRY(verify_wire(rd, at, protobuf_scalar_wire(at->field->kind)));
  json_decref(*key);
  *key = NULL;
  return read_scalar(rd, at, key);
}

/* Read the key and the value of an entry. holder: an object that gets the value as a member. */
static err_t read_entry_fields(struct reader *rd, const struct value_place *place, const struct protobuf_type *entry,
                               struct span *bytes, json_t **key, json_t *holder)
{
  while (bytes->n > 0) {
    struct protobuf_tag tag = { 0 };
    TRY(blame(rd, place, bytes, protobuf_wire_take_tag(bytes, &tag)));
    const struct at inner = { place, tag.number <= 2 ? protobuf_schema_find(entry, tag.number) : NULL, tag, bytes };
    TRY(read_entry_field(rd, &inner, key, holder));
  }
  return ERR_OK;
}

/* What an entry does not have is its default, or an empty message. */
static err_t complete_entry(struct reader *rd, const struct value_place *place, const struct protobuf_type *entry,
                            json_t **key, json_t *holder)
{
  const struct protobuf_field *value = protobuf_schema_find(entry, 2);
  json_t *made = NULL;

  if (!*key)
    TRY(protobuf_scalar_default(protobuf_schema_find(entry, 1), key));
  if (json_object_get(holder, value->name))
    return ERR_OK;
  if (protobuf_schema_is_message(value))
    TRY(new_object(rd, place, value->type, &made));
  else
    TRY(protobuf_scalar_default(value, &made));
  return json_make_member(holder, value->name, made);
}

static err_t read_entry(struct reader *rd, const struct at *at, json_t *map)
{
  const struct protobuf_type *entry = at->field->type;
  AUTO(json_decrefp) json_t *holder = NULL, *key = NULL;
  struct span bytes = { 0 };
  char buffer[24];

  TRY(verify_wire(rd, at, PROTOBUF_WIRE_BYTES));
  TRY(blame(rd, at->place, at->bytes, protobuf_wire_take_bytes(at->bytes, &bytes)));
  const struct value_place place = value_place_in(at->place, NULL, json_object_size(map));
  TRY(new_object(rd, &place, entry, &holder));
  TRY(read_entry_fields(rd, &place, entry, &bytes, &key, holder));
  TRY(complete_entry(rd, &place, entry, &key, holder));
  json_t *value = json_object_get(holder, protobuf_schema_find(entry, 2)->name);
  return json_make_member(map, key_text(key, buffer, sizeof buffer), json_incref(value));
}

/* Messages -------------------- */

static err_t read_field(struct reader *rd, const struct at *at, json_t *object)
{
  json_t *many = NULL;

  if (!at->field->is_repeated)
    return read_singular(rd, at, object);
  TRY(open_many(rd, at, object, &many));
  return at->field->is_map ? read_entry(rd, at, many) : read_list(rd, at, many);
}

/* Read fields to the end of the bytes or of the group.
 *
 * group  its number; 0: it is none */
static err_t read_fields(struct reader *rd, const struct value_place *up, const struct protobuf_type *type,
                         uint32_t group, struct span *bytes, json_t *object)
{
  while (bytes->n > 0) {
    struct protobuf_tag tag = { 0 };
    TRY(blame(rd, up, bytes, protobuf_wire_take_tag(bytes, &tag)));
    if (group && tag.type == PROTOBUF_WIRE_GROUP_END && tag.number == group)
      return ERR_OK;
    const struct protobuf_field *field = protobuf_schema_find(type, tag.number);
    if (!field) {
      TRY(blame(rd, up, bytes, protobuf_wire_skip(bytes, &tag)));
      continue;
    }
    const struct value_place place = value_place_in(up, field->name, 0);
    TRY(read_field(rd, &(struct at){ &place, field, tag, bytes }, object));
  }
  if (group)
    FAIL(ERR_WIRE, "%s: the bytes end in the middle of it", place_text(rd, up));
  return ERR_OK;
}

static err_t read_message(struct reader *rd, const struct at *at, json_t *object)
{
  struct span content = { 0 };

  if (at->place->depth > DEPTH_MAX)
    FAIL(ERR_WIRE, "%s: values are nested more than %d deep", place_text(rd, at->place), DEPTH_MAX);
  if (at->field->kind == PROTOBUF_GROUP)
    return read_fields(rd, at->place, at->field->type, at->field->number, at->bytes, object);
  TRY(blame(rd, at->place, at->bytes, protobuf_wire_take_bytes(at->bytes, &content)));
  return read_fields(rd, at->place, at->field->type, 0, &content, object);
}

err_t protobuf_value_read(const struct protobuf_type *type, struct span bytes, json_t **out)
{
  struct reader rd = { .start = bytes.p };
  AUTO(json_decrefp) json_t *object = NULL;

  TRY(new_object(&rd, NULL, type, &object));
  TRY(read_fields(&rd, NULL, type, 0, &bytes, object));
  TRY(protobuf_complete(type, &rd.budget, object));
  *out = json_incref(object);
  return ERR_OK;
}
