/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: a recursive walk over the descriptors makes jansson values, and jansson prints them. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "ingest/json/base64.h"
#include "ingest/wire/json_message.h"
#include "ingest/wire/message_field.h"

/* So many digits tell any f32, and any f64, from its neighbours. Most f64 need fewer: 9.99 does. */
enum { F32_DIGITS = 9, F64_FEW_DIGITS = 15, F64_DIGITS = 17, REAL_BYTES = 32 };

struct writer {
  const struct json_rules *rules;
  struct region *region;
  int digits;        /* that all reals so far need: jansson writes all with as many */
  bool is_f32_short; /* f32 are written as the f64 that shows no more than their own digits */
};

/* Check a value that jansson made. It is NULL only if memory ran out. */
static err_t give(json_t *json, json_t **out)
{
  if (!json)
    FAIL(ERR_MEMORY, "no memory for JSON");
  *out = json;
  return ERR_OK;
}

static err_t append(json_t *list, json_t *element)
{
  if (json_array_append_new(list, element) != 0) /* releases the element, also on error */
    FAIL(ERR_MEMORY, "no memory for JSON");
  return ERR_OK;
}

static err_t put(json_t *object, const char *name, json_t *value)
{
  if (json_object_set_new(object, name, value) != 0) /* releases the value, also on error */
    FAIL(ERR_MEMORY, "no memory for JSON");
  return ERR_OK;
}

static err_t write_string(const char *name, const char *text, json_t **out)
{
  if (!utf8_is_valid(span_of_str(text)))
    FAIL(ERR_WIRE, "%s: not UTF-8", name);
  return give(json_string(text), out);
}

static err_t write_unsigned(uint64_t value, json_t **out)
{
  char digits[24];

  if (value <= INT64_MAX)
    return give(json_integer((json_int_t)value), out);
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
  return give(json_string(digits), out);
}

/* Round a number to its first digits. */
static double rounded(double value, int digits)
{
  char text[REAL_BYTES];

  snprintf(text, sizeof text, "%.*g", digits, value);
  return strtod(text, NULL);
}

static int digits_of(double value)
{
  return rounded(value, F32_DIGITS) == value       ? F32_DIGITS
         : rounded(value, F64_FEW_DIGITS) == value ? F64_FEW_DIGITS
                                                   : F64_DIGITS;
}

static err_t write_real(const char *name, double value, json_t **out)
{
  if (!isfinite(value))
    FAIL(ERR_WIRE, "%s: not finite", name);
  return give(json_real(value), out);
}

static err_t write_f32(const struct writer *w, const char *name, float value, json_t **out)
{
  double number = (double)value;

  return write_real(name, w->is_f32_short && isfinite(value) ? rounded(number, F32_DIGITS) : number, out);
}

static err_t write_f64(struct writer *w, const char *name, double value, json_t **out)
{
  int digits = digits_of(value);

  w->digits = digits > w->digits ? digits : w->digits;
  return write_real(name, value, out);
}

static err_t write_enum(const ProtobufCEnumDescriptor *type, int value, json_t **out)
{
  const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(type, value);

  return give(known ? json_string(known->name) : json_integer(value), out);
}

static err_t write_text_bytes(struct writer *w, struct span bytes, json_t **out)
{
  char *base64;

  if (utf8_is_valid(bytes))
    return give(json_stringn((const char *)bytes.p, bytes.n), out);
  TRY(base64_encode(w->region, bytes, &base64));
  return give(json_pack("{s:s}", "base64", base64), out);
}

static err_t write_byte_list(struct span bytes, json_t **out)
{
  AUTO(json_decrefp) json_t *list = json_array();

  for (size_t i = 0; i < bytes.n; i++)
    TRY(append(list, json_integer(bytes.p[i])));
  return give(json_incref(list), out);
}

static err_t write_message(struct writer *w, const ProtobufCMessage *message, json_t **out);
static err_t write_plain(struct writer *w, const ProtobufCMessage *message, json_t **out);

static err_t write_value(struct writer *w, const ProtobufCFieldDescriptor *field, const void *slot, json_t **out)
{
  const ProtobufCBinaryData *data = slot;

  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
    return give(json_integer(*(const int32_t *)slot), out);
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32:
    return give(json_integer(*(const uint32_t *)slot), out);
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_SFIXED64:
    return give(json_integer(*(const int64_t *)slot), out);
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
    return write_unsigned(*(const uint64_t *)slot, out);
  case PROTOBUF_C_TYPE_FLOAT:
    return write_f32(w, field->name, *(const float *)slot, out);
  case PROTOBUF_C_TYPE_DOUBLE:
    return write_f64(w, field->name, *(const double *)slot, out);
  case PROTOBUF_C_TYPE_BOOL:
    return give(json_boolean(*(const protobuf_c_boolean *)slot), out);
  case PROTOBUF_C_TYPE_ENUM:
    return write_enum(field->descriptor, *(const int *)slot, out);
  case PROTOBUF_C_TYPE_STRING:
    return write_string(field->name, *(char *const *)slot ? *(char *const *)slot : "", out);
  case PROTOBUF_C_TYPE_BYTES:
    if (message_field_is_in(field, w->rules->text_fields))
      return write_text_bytes(w, span_of(data->data, data->len), out);
    return write_byte_list(span_of(data->data, data->len), out);
  case PROTOBUF_C_TYPE_MESSAGE:
    if (field->descriptor == w->rules->plain_type)
      return write_plain(w, *(ProtobufCMessage *const *)slot, out);
    return write_message(w, *(ProtobufCMessage *const *)slot, out);
  }
  FAIL(ERR_WIRE, "%s: its type has no JSON form", field->name);
}

/* Append the elements of a repeated field to a list. */
static err_t append_all(struct writer *w, const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message,
                        json_t *list)
{
  const uint8_t *elements = *(const uint8_t *const *)message_field_at(message, field);
  size_t n = *message_field_count(message, field), size = message_field_size(field);

  for (size_t i = 0; i < n; i++) {
    json_t *element;
    TRY(write_value(w, field, elements + i * size, &element));
    TRY(append(list, element));
  }
  return ERR_OK;
}

static err_t write_list(struct writer *w, const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message,
                        json_t **out)
{
  AUTO(json_decrefp) json_t *list = json_array();

  TRY(append_all(w, field, message, list));
  return give(json_incref(list), out);
}

/* Write the one field that is set; none: null. Its message field is a list of all elements in that message. */
static err_t write_plain(struct writer *w, const ProtobufCMessage *message, json_t **out)
{
  const ProtobufCFieldDescriptor *field = NULL;

  for (unsigned i = 0; message && i < message->descriptor->n_fields; i++) {
    if (message_field_is_set(message, &message->descriptor->fields[i]))
      field = &message->descriptor->fields[i];
  }
  if (!field)
    return give(json_null(), out);
  if (field->type != PROTOBUF_C_TYPE_MESSAGE)
    return write_value(w, field, message_field_at(message, field), out);

  AUTO(json_decrefp) json_t *list = json_array();
  const ProtobufCMessage *elements = *(ProtobufCMessage *const *)message_field_at(message, field);
  for (unsigned i = 0; i < elements->descriptor->n_fields; i++)
    TRY(append_all(w, &elements->descriptor->fields[i], elements, list));
  return give(json_incref(list), out);
}

static err_t write_map(struct writer *w, const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message,
                       json_t **out)
{
  AUTO(json_decrefp) json_t *object = json_object();
  const ProtobufCMessageDescriptor *type = field->descriptor;
  ProtobufCMessage *const *entries = *(ProtobufCMessage *const *const *)message_field_at(message, field);

  for (size_t i = 0; i < *message_field_count(message, field); i++) {
    const char *key = *(char *const *)message_field_at(entries[i], &type->fields[0]);
    json_t *value;
    if (!utf8_is_valid(span_of_str(key)))
      FAIL(ERR_WIRE, "%s: a name in it is not UTF-8", field->name);
    TRY(write_value(w, &type->fields[1], message_field_at(entries[i], &type->fields[1]), &value));
    TRY(put(object, key, value));
  }
  return give(json_incref(object), out);
}

static err_t write_field(struct writer *w, const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message,
                         json_t **out)
{
  if (message_field_is_map(field))
    return write_map(w, field, message, out);
  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return write_list(w, field, message, out);
  return write_value(w, field, message_field_at(message, field), out);
}

/* Can the message be written as a list? It can if its type may be one and no other field is set. */
static bool is_list(const struct writer *w, const ProtobufCMessage *message)
{
  const ProtobufCMessageDescriptor *type = message->descriptor;

  if (type != w->rules->list_type)
    return false;
  for (unsigned i = 0; i < type->n_fields; i++) {
    if (strcmp(type->fields[i].name, w->rules->list_field) != 0 && message_field_is_set(message, &type->fields[i]))
      return false;
  }
  return true;
}

/* Is the field written even without a value? */
static bool is_always_written(const struct writer *w, const ProtobufCFieldDescriptor *field)
{
  bool can_be = field->label == PROTOBUF_C_LABEL_REPEATED ||
                (field->type != PROTOBUF_C_TYPE_MESSAGE && !(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
                 field->label != PROTOBUF_C_LABEL_OPTIONAL);

  return can_be && message_field_is_in(field, w->rules->always);
}

static err_t write_message(struct writer *w, const ProtobufCMessage *message, json_t **out)
{
  if (!message) /* the value of a map entry that has none */
    return give(json_object(), out);

  const ProtobufCMessageDescriptor *type = message->descriptor;
  if (is_list(w, message))
    return write_list(w, message_field_find(type, w->rules->list_field), message, out);

  AUTO(json_decrefp) json_t *object = json_object();
  for (unsigned i = 0; i < type->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &type->fields[i];
    json_t *value;
    if (!message_field_is_set(message, field) && !is_always_written(w, field))
      continue;
    TRY(write_field(w, field, message, &value));
    TRY(put(object, field->name, value));
  }
  return give(json_incref(object), out);
}

err_t json_message_write(const ProtobufCMessage *message, const struct json_rules *rules, struct region *r,
                         struct span *out)
{
  struct writer w = { .rules = rules, .region = r, .digits = F32_DIGITS };
  AUTO(json_decrefp) json_t *json = NULL;

  TRY(write_message(&w, message, &json));
  if (w.digits > F32_DIGITS) {
    json_decrefp(&json);
    w.is_f32_short = true;
    TRY(write_message(&w, message, &json));
  }
  AUTO(mem_free) char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION((size_t)w.digits));
  if (!text)
    FAIL(ERR_MEMORY, "no memory for JSON");
  return region_copy(r, span_of_str(text), out);
}
