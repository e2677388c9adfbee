/* SPDX-License-Identifier: Apache-2.0 */
/* Reading descriptors of protobuf-c messages. */
#include "ingest/wire/message_field.h"

#include <assert.h>

size_t message_field_size(const ProtobufCFieldDescriptor *field)
{
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32:
    return sizeof(uint32_t);
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_SFIXED64:
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
    return sizeof(uint64_t);
  case PROTOBUF_C_TYPE_FLOAT:
    return sizeof(float);
  case PROTOBUF_C_TYPE_DOUBLE:
    return sizeof(double);
  case PROTOBUF_C_TYPE_BOOL:
    return sizeof(protobuf_c_boolean);
  case PROTOBUF_C_TYPE_ENUM:
    return sizeof(int);
  case PROTOBUF_C_TYPE_STRING:
    return sizeof(char *);
  case PROTOBUF_C_TYPE_BYTES:
    return sizeof(ProtobufCBinaryData);
  case PROTOBUF_C_TYPE_MESSAGE:
    return sizeof(ProtobufCMessage *);
  }
  assert(false && "an unknown type of field");
  return 0;
}

void *message_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
  return (uint8_t *)message + field->offset;
}

size_t *message_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
  return (size_t *)((uint8_t *)message + field->quantifier_offset);
}

bool message_field_is_map(const ProtobufCFieldDescriptor *field)
{
  if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE)
    return false;

  const ProtobufCMessageDescriptor *entry = field->descriptor;
  size_t n = strlen(entry->short_name);
  return entry->n_fields == 2 && strcmp(entry->fields[0].name, "key") == 0 &&
         entry->fields[0].type == PROTOBUF_C_TYPE_STRING && strcmp(entry->fields[1].name, "value") == 0 && n > 5 &&
         strcmp(entry->short_name + n - 5, "Entry") == 0;
}

/* Does `name` spell `field`, in snake_case or in lowerCamelCase? */
static bool is_name_of(const char *field, const char *name)
{
  for (; *field; field++, name++) {
    bool is_camel = field[0] == '_' && field[1] >= 'a' && field[1] <= 'z' && *name == field[1] - 'a' + 'A';
    if (is_camel)
      field++;
    else if (*name != *field)
      return false;
  }
  return *name == '\0';
}

const ProtobufCFieldDescriptor *message_field_find(const ProtobufCMessageDescriptor *type, const char *name)
{
  for (unsigned i = 0; i < type->n_fields; i++) {
    if (is_name_of(type->fields[i].name, name))
      return &type->fields[i];
  }
  return NULL;
}

bool message_field_is_in(const ProtobufCFieldDescriptor *field, const char *const *names)
{
  for (; names && *names; names++) {
    if (strcmp(*names, field->name) == 0)
      return true;
  }
  return false;
}

size_t message_field_limit(const ProtobufCFieldDescriptor *field, const struct message_limit *limits)
{
  for (; limits && limits->field; limits++) {
    if (strcmp(limits->field, field->name) == 0)
      return limits->most;
  }
  return SIZE_MAX;
}

static bool is_all_zero(const uint8_t *p, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (p[i])
      return false;
  }
  return true;
}

bool message_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
  const uint8_t *at = message_field_at(message, field);
  const uint8_t *quantifier = (const uint8_t *)message + field->quantifier_offset;

  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return *message_field_count(message, field) > 0;
  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
    return *(const uint32_t *)quantifier == field->id;
  if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0)
    return *(const protobuf_c_boolean *)quantifier;
  if (field->type == PROTOBUF_C_TYPE_STRING)
    return *(char *const *)at && **(char *const *)at;
  if (field->type == PROTOBUF_C_TYPE_BYTES)
    return ((const ProtobufCBinaryData *)at)->len > 0;
  return !is_all_zero(at, message_field_size(field));
}

void message_field_mark(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
  uint8_t *quantifier = (uint8_t *)message + field->quantifier_offset;

  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
    *(uint32_t *)quantifier = field->id;
  else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0)
    *(protobuf_c_boolean *)quantifier = 1;
}

bool message_has(const ProtobufCMessage *message, const char *name)
{
  const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, name);

  assert(field);
  return message_field_is_set(message, field);
}

void message_mark(ProtobufCMessage *message, const char *name)
{
  const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, name);

  assert(field);
  message_field_mark(message, field);
}
