/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a JSON value chooses the field. */
#include "ingest/wire/json_plain.h"

#include "base/mem.h"

/* Find the field for values of this kind: of the message, or for elements, of the list. NULL: there is none. An integer
 * beyond 64 bits gets the field of integers, which refuses it: as a number it would be rounded unnoticed. */
static const ProtobufCFieldDescriptor *field_for(const struct json_reader *rd, const ProtobufCMessageDescriptor *type,
                                                 const json_t *json)
{
  bool is_integer = json_is_integer(json) || json_scalar_is_large_integer(rd, json);
  bool is_number = json_is_real(json) || json_scalar_is_large(rd, json);
  ProtobufCType wanted = json_is_boolean(json)  ? PROTOBUF_C_TYPE_BOOL
                         : is_integer           ? PROTOBUF_C_TYPE_INT64
                         : is_number            ? PROTOBUF_C_TYPE_DOUBLE
                         : json_is_string(json) ? PROTOBUF_C_TYPE_STRING
                                                : PROTOBUF_C_TYPE_MESSAGE;

  for (unsigned i = 0; i < type->n_fields; i++) {
    if (type->fields[i].type == wanted)
      return &type->fields[i];
  }
  return NULL;
}

/* Count the elements of each field, and allocate them. */
static err_t make_room(struct json_reader *rd, const struct json_place *at, json_t *json, ProtobufCMessage *list)
{
  for (size_t i = 0; i < json_array_size(json); i++) {
    struct json_place child = { .up = at, .kind = JSON_PLACE_INDEX, .index = i };
    const ProtobufCFieldDescriptor *field = field_for(rd, list->descriptor, json_array_get(json, i));
    if (!field)
      return json_scalar_fail(rd, &child, "text, a number, true or false", json_array_get(json, i));
    ++*message_field_count(list, field);
  }
  for (unsigned i = 0; i < list->descriptor->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &list->descriptor->fields[i];
    uint8_t *elements;
    TRY(region_array(rd->region, *message_field_count(list, field), message_field_size(field), &elements));
    mem_pointer_set(message_field_at(list, field), elements);
    *message_field_count(list, field) = 0;
  }
  return ERR_OK;
}

static err_t read_list(struct json_reader *rd, const struct json_place *at, json_t *json, ProtobufCMessage *list)
{
  TRY(make_room(rd, at, json, list));
  for (size_t i = 0; i < json_array_size(json); i++) {
    struct json_place child = { .up = at, .kind = JSON_PLACE_INDEX, .index = i };
    json_t *element = json_array_get(json, i);
    const ProtobufCFieldDescriptor *field = field_for(rd, list->descriptor, element);
    uint8_t *elements = mem_pointer_get(message_field_at(list, field));
    TRY(json_scalar_read(rd, &child, field, element,
                         elements + (*message_field_count(list, field))++ * message_field_size(field)));
  }
  return ERR_OK;
}

err_t json_plain_read(struct json_reader *rd, const struct json_place *at, json_t *json, ProtobufCMessage *message)
{
  const ProtobufCFieldDescriptor *field = field_for(rd, message->descriptor, json);
  ProtobufCMessage *list;

  if (json_is_null(json))
    return ERR_OK;
  if (json_is_array(json)) {
    TRY(json_scalar_verify_count(rd, at, field, json_array_size(json)));
    TRY(json_scalar_new_message(rd, field->descriptor, &list));
    TRY(read_list(rd, at, json, list));
    mem_pointer_set(message_field_at(message, field), list);
  } else {
    TRY(json_scalar_read(rd, at, field, json, message_field_at(message, field)));
  }
  message_field_mark(message, field);
  return ERR_OK;
}
