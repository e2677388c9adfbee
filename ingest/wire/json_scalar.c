/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, text, bytes and enums of JSON, with the errors that name their place. */
#include "ingest/wire/json_scalar.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "ingest/json/base64.h"
#include "ingest/json/json_parse.h"

enum { NAMES_BYTES = 256 };

static size_t print_path(const struct json_place *at, char *out, size_t size)
{
  size_t n = at->up ? print_path(at->up, out, size) : 0;
  int more = 0;

  switch (at->kind) {
  case JSON_PLACE_FIELD:
    more = snprintf(out + n, size - n, "%s%s", at->up ? "." : "", at->name);
    break;
  case JSON_PLACE_KEY:
    more = snprintf(out + n, size - n, "[%s]", log_quote(span_of_str(at->name)));
    break;
  case JSON_PLACE_INDEX:
    more = snprintf(out + n, size - n, "[%zu]", at->index);
    break;
  }
  n += more > 0 ? (size_t)more : 0;
  return n < size ? n : size - 1;
}

const char *json_scalar_path(struct json_reader *rd, const struct json_place *at)
{
  print_path(at, rd->path, sizeof rd->path);
  return rd->path;
}

const char *json_scalar_kind(const json_t *json)
{
  switch (json_typeof(json)) {
  case JSON_OBJECT:
    return "an object";
  case JSON_ARRAY:
    return "a list";
  case JSON_STRING:
    return "text";
  case JSON_INTEGER:
    return "an integer";
  case JSON_REAL: /* 5.0 and 5e3 are no integers to the parser */
    return trunc(json_real_value(json)) == json_real_value(json) ? "a number with a decimal point or an exponent"
                                                                 : "a fraction";
  case JSON_TRUE:
    return "true";
  case JSON_FALSE:
    return "false";
  case JSON_NULL:
    return "null";
  }
  return "something else";
}

static struct span text_of(const json_t *json)
{
  return span_of(json_string_value(json), json_string_length(json));
}

static const char *large_of(const struct json_reader *rd, const json_t *json)
{
  return json_parse_large(rd->has_large, json);
}

bool json_scalar_is_large(const struct json_reader *rd, const json_t *json)
{
  return large_of(rd, json) != NULL;
}

bool json_scalar_is_large_integer(const struct json_reader *rd, const json_t *json)
{
  const char *large = large_of(rd, json);

  return large && strspn(large, "-0123456789") == strlen(large);
}

err_t json_scalar_fail(struct json_reader *rd, const struct json_place *at, const char *expected, const json_t *json)
{
  FAIL(rd->field_error, "%s: expected %s, not %s", json_scalar_path(rd, at), expected,
       large_of(rd, json) ? "a number beyond 64 bits" : json_scalar_kind(json));
}

/* An integer of at most 64 bits, of either sign. */
struct integer {
  bool is_negative;
  uint64_t magnitude;
};

static bool parse_integer(const char *text, struct integer *out)
{
  bool is_negative = *text == '-';
  const char *digits = text + is_negative;
  size_t n = strspn(digits, "0123456789");

  if (n == 0 || digits[n] != '\0')
    return false;
  errno = 0;
  *out = (struct integer){ .is_negative = is_negative, .magnitude = strtoull(digits, NULL, 10) };
  return errno != ERANGE;
}

/* Read an integer in -below..above, as two's complement. */
static err_t read_integer(struct json_reader *rd, const struct json_place *at, const json_t *json, uint64_t below,
                          uint64_t above, uint64_t *out)
{
  struct integer v = { 0 };
  const char *large = large_of(rd, json);

  if (large) {
    if (!parse_integer(large, &v))
      FAIL(rd->field_error, "%s: expected an integer of at most 64 bits, not %.40s", json_scalar_path(rd, at), large);
  } else if (json_is_integer(json)) {
    json_int_t value = json_integer_value(json);
    v.is_negative = value < 0;
    v.magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  } else if (!json_is_string(json)) {
    return json_scalar_fail(rd, at, "an integer", json);
  } else if (strlen(json_string_value(json)) != json_string_length(json) ||
             !parse_integer(json_string_value(json), &v)) {
    FAIL(rd->field_error, "%s: expected an integer of at most 64 bits, not %s", json_scalar_path(rd, at),
         log_quote(text_of(json)));
  }
  if (v.magnitude > (v.is_negative ? below : above))
    FAIL(rd->field_error, "%s: %s%" PRIu64 " is not between %s%" PRIu64 " and %" PRIu64, json_scalar_path(rd, at),
         v.is_negative ? "-" : "", v.magnitude, below ? "-" : "", below, above);
  *out = v.is_negative ? 0 - v.magnitude : v.magnitude;
  return ERR_OK;
}

err_t json_scalar_int64(struct json_reader *rd, const struct json_place *at, const json_t *json, int64_t *out)
{
  uint64_t bits;

  TRY(read_integer(rd, at, json, (uint64_t)INT64_MAX + 1, INT64_MAX, &bits));
  *out = (int64_t)bits;
  return ERR_OK;
}

/* Read a finite double; `type` is what the error says that the number does not fit. */
static err_t read_double(struct json_reader *rd, const struct json_place *at, const json_t *json, const char *type,
                         double *out)
{
  const char *large = large_of(rd, json);

  if (!large && !json_is_number(json))
    return json_scalar_fail(rd, at, "a number", json);
  *out = large ? strtod(large, NULL) : json_number_value(json);
  if (!isfinite(*out)) /* only large numbers are infinite */
    FAIL(rd->field_error, "%s: %.40s does not fit %s", json_scalar_path(rd, at), large ? large : "it", type);
  return ERR_OK;
}

err_t json_scalar_double(struct json_reader *rd, const struct json_place *at, const json_t *json, double *out)
{
  return read_double(rd, at, json, "a double", out);
}

err_t json_scalar_float(struct json_reader *rd, const struct json_place *at, const json_t *json, float *out)
{
  double value = 0;

  TRY(read_double(rd, at, json, "in 32 bits", &value));
  if (!isfinite((float)value))
    FAIL(rd->field_error, "%s: %g does not fit in 32 bits", json_scalar_path(rd, at), value);
  *out = (float)value;
  return ERR_OK;
}

/* Print the names of an enum, such as "F32, F16, BF16". */
static void print_enum_names(const ProtobufCEnumDescriptor *type, char *out, size_t size)
{
  size_t n = 0;

  out[0] = '\0';
  for (unsigned i = 0; i < type->n_values && n < size; i++)
    n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", type->values[i].name);
}

static err_t read_enum(struct json_reader *rd, const struct json_place *at, const ProtobufCEnumDescriptor *type,
                       const json_t *json, int *out)
{
  const ProtobufCEnumValue *value = NULL;
  char names[NAMES_BYTES];

  if (json_is_string(json))
    value = protobuf_c_enum_descriptor_get_value_by_name(type, json_string_value(json));
  else if (json_is_integer(json) && json_integer_value(json) == (int)json_integer_value(json))
    value = protobuf_c_enum_descriptor_get_value(type, (int)json_integer_value(json));
  if (!value) {
    print_enum_names(type, names, sizeof names);
    FAIL(rd->field_error, "%s: expected one of %s", json_scalar_path(rd, at), names);
  }
  *out = value->value;
  return ERR_OK;
}

static err_t read_string(struct json_reader *rd, const struct json_place *at, const json_t *json, char **out)
{
  struct span copy;

  if (!json_is_string(json) || large_of(rd, json))
    return json_scalar_fail(rd, at, "text", json);
  if (strlen(json_string_value(json)) != json_string_length(json)) /* only bytes fields may have one, such as keys */
    FAIL(rd->field_error, "%s: text with a zero character", json_scalar_path(rd, at));
  TRY(region_copy(rd->region, text_of(json), &copy));
  *out = (char *)copy.p;
  return ERR_OK;
}

err_t json_scalar_base64(struct json_reader *rd, const struct json_place *at, const json_t *json,
                         ProtobufCBinaryData *out)
{
  struct span text = text_of(json);
  uint8_t *bytes;
  size_t n;

  TRY(region_array(rd->region, text.n / 4 * 3 + 2, 1, &bytes));
  if (!base64_decode(text, bytes, &n))
    FAIL(rd->field_error, "%s: not Base64", json_scalar_path(rd, at));
  *out = (ProtobufCBinaryData){ .len = n, .data = bytes };
  return ERR_OK;
}

err_t json_scalar_byte_list(struct json_reader *rd, const struct json_place *at, const json_t *json,
                            ProtobufCBinaryData *out)
{
  size_t n = json_array_size(json);
  uint8_t *bytes;

  TRY(region_array(rd->region, n, 1, &bytes));
  for (size_t i = 0; i < n; i++) {
    struct json_place child = { .up = at, .kind = JSON_PLACE_INDEX, .index = i };
    uint64_t value;
    if (json_is_string(json_array_get(json, i))) /* numbers as text are only for large integers */
      return json_scalar_fail(rd, &child, "an integer", json_array_get(json, i));
    TRY(read_integer(rd, &child, json_array_get(json, i), 0, UINT8_MAX, &value));
    bytes[i] = (uint8_t)value;
  }
  *out = (ProtobufCBinaryData){ .len = n, .data = bytes };
  return ERR_OK;
}

static err_t read_bytes(struct json_reader *rd, const struct json_place *at, bool is_text, const json_t *json,
                        ProtobufCBinaryData *out)
{
  const json_t *base64 = json_object_size(json) == 1 ? json_object_get(json, "base64") : NULL;

  if (json_is_string(base64))
    return json_scalar_base64(rd, at, base64, out);
  if (large_of(rd, json))
    return json_scalar_fail(rd, at, "bytes", json);
  if (is_text && json_is_string(json)) {
    struct span copy;
    TRY(region_copy(rd->region, text_of(json), &copy));
    *out = (ProtobufCBinaryData){ .len = copy.n, .data = (uint8_t *)copy.p };
    return ERR_OK;
  }
  if (!is_text && json_is_string(json))
    return json_scalar_base64(rd, at, json, out);
  if (!is_text && json_is_array(json))
    return json_scalar_byte_list(rd, at, json, out);
  return json_scalar_fail(rd, at, is_text ? "text or {\"base64\": ...}" : "a list of 0..255 or Base64 text", json);
}

err_t json_scalar_read(struct json_reader *rd, const struct json_place *at, const ProtobufCFieldDescriptor *field,
                       const json_t *json, void *slot)
{
  uint64_t bits = 0;

  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
    TRY(read_integer(rd, at, json, (uint64_t)INT32_MAX + 1, INT32_MAX, &bits));
    *(int32_t *)slot = (int32_t)(int64_t)bits;
    return ERR_OK;
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32:
    TRY(read_integer(rd, at, json, 0, UINT32_MAX, &bits));
    *(uint32_t *)slot = (uint32_t)bits;
    return ERR_OK;
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_SFIXED64:
    return json_scalar_int64(rd, at, json, slot);
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
    return read_integer(rd, at, json, 0, UINT64_MAX, slot);
  case PROTOBUF_C_TYPE_FLOAT:
    return json_scalar_float(rd, at, json, slot);
  case PROTOBUF_C_TYPE_DOUBLE:
    return json_scalar_double(rd, at, json, slot);
  case PROTOBUF_C_TYPE_BOOL:
    if (!json_is_boolean(json))
      return json_scalar_fail(rd, at, "true or false", json);
    *(protobuf_c_boolean *)slot = json_is_true(json);
    return ERR_OK;
  case PROTOBUF_C_TYPE_ENUM:
    return read_enum(rd, at, field->descriptor, json, slot);
  case PROTOBUF_C_TYPE_STRING:
    return read_string(rd, at, json, slot);
  case PROTOBUF_C_TYPE_BYTES:
    return read_bytes(rd, at, message_field_is_in(field, rd->rules->text_fields), json, slot);
  case PROTOBUF_C_TYPE_MESSAGE:
    break;
  }
  FAIL(rd->field_error, "%s: its type has no JSON form", json_scalar_path(rd, at));
}

err_t json_scalar_verify_count(struct json_reader *rd, const struct json_place *at,
                               const ProtobufCFieldDescriptor *field, size_t n)
{
  size_t most = message_field_limit(field, rd->rules->limits);

  if (n > most)
    FAIL(rd->field_error, "%s: %zu elements, at most %zu", json_scalar_path(rd, at), n, most);
  return ERR_OK;
}

err_t json_scalar_new_message(struct json_reader *rd, const ProtobufCMessageDescriptor *type, ProtobufCMessage **out)
{
  TRY(region_array(rd->region, 1, type->sizeof_message, out));
  protobuf_c_message_init(type, *out);
  return ERR_OK;
}
