/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON: jansson parses the text, then a recursive walk over the descriptors fills the message. The schema
 * limits the depth of the walk, not the text. */
#include "ingest/json_message.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "ingest/base64.h"
#include "ingest/json_text.h"
#include "ingest/message_field.h"

enum { PATH_BYTES = 320, NAMES_BYTES = 256, KEPT_BYTES = 768 };

/* The reader's place in the message: a linked list on the stack. It is printed only for an error. */
struct step {
  const struct step *up;
  enum { STEP_FIELD, STEP_KEY, STEP_INDEX } kind;
  const char *name; /* STEP_FIELD, STEP_KEY */
  size_t index;     /* STEP_INDEX */
};

struct reader {
  const struct json_rules *rules;
  struct region *region;
  err_code_t field_error;
  bool has_large; /* json_text_quote_large() was applied to the text */
  char path[PATH_BYTES];
};

static size_t print_path(const struct step *at, char *out, size_t size)
{
  size_t n = at->up ? print_path(at->up, out, size) : 0;
  int more = 0;

  switch (at->kind) {
  case STEP_FIELD:
    more = snprintf(out + n, size - n, "%s%s", at->up ? "." : "", at->name);
    break;
  case STEP_KEY:
    more = snprintf(out + n, size - n, "[%s]", log_quote(span_of_str(at->name)));
    break;
  case STEP_INDEX:
    more = snprintf(out + n, size - n, "[%zu]", at->index);
    break;
  }
  n += more > 0 ? (size_t)more : 0;
  return n < size ? n : size - 1;
}

/* Print a place, such as `parts["books"].vector[17]`, into the reader's buffer. */
static const char *path_of(struct reader *rd, const struct step *at)
{
  print_path(at, rd->path, sizeof rd->path);
  return rd->path;
}

static const char *kind_of(const json_t *json)
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
  case JSON_REAL:
    return "a fraction";
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

/* Return the digits of a number that was too large for jansson; NULL for any other value. */
static const char *large_of(const struct reader *rd, const json_t *json)
{
  struct span text = json_is_string(json) ? text_of(json) : (struct span){ 0 };
  bool is_large = rd->has_large && text.n > 1 && text.p[0] == JSON_TEXT_LARGE && strchr("-0123456789", text.p[1]);

  return is_large ? (const char *)text.p + 1 : NULL;
}

static err_t fail_kind(struct reader *rd, const struct step *at, const char *expected, const json_t *json)
{
  FAIL(rd->field_error, "%s: expected %s, not %s", path_of(rd, at), expected,
       large_of(rd, json) ? "a number beyond 64 bits" : kind_of(json));
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
static err_t read_integer(struct reader *rd, const struct step *at, const json_t *json, uint64_t below, uint64_t above,
                          uint64_t *out)
{
  struct integer v = { 0 };
  const char *large = large_of(rd, json);

  if (large) {
    if (!parse_integer(large, &v))
      FAIL(rd->field_error, "%s: expected an integer of at most 64 bits, not %.40s", path_of(rd, at), large);
  } else if (json_is_integer(json)) {
    json_int_t value = json_integer_value(json);
    v.is_negative = value < 0;
    v.magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  } else if (!json_is_string(json)) {
    return fail_kind(rd, at, "an integer", json);
  } else if (strlen(json_string_value(json)) != json_string_length(json) ||
             !parse_integer(json_string_value(json), &v)) {
    FAIL(rd->field_error, "%s: expected an integer of at most 64 bits, not %s", path_of(rd, at),
         log_quote(text_of(json)));
  }
  if (v.magnitude > (v.is_negative ? below : above))
    FAIL(rd->field_error, "%s: %s%" PRIu64 " is not between %s%" PRIu64 " and %" PRIu64, path_of(rd, at),
         v.is_negative ? "-" : "", v.magnitude, below ? "-" : "", below, above);
  *out = v.is_negative ? 0 - v.magnitude : v.magnitude;
  return ERR_OK;
}

static err_t read_float(struct reader *rd, const struct step *at, const json_t *json, float *out)
{
  const char *large = large_of(rd, json);

  if (!large && !json_is_number(json))
    return fail_kind(rd, at, "a number", json);

  double value = large ? strtod(large, NULL) : json_number_value(json);
  if (!isfinite(value)) /* only large numbers are infinite */
    FAIL(rd->field_error, "%s: %.40s does not fit in 32 bits", path_of(rd, at), large ? large : "it");
  if (!isfinite((float)value))
    FAIL(rd->field_error, "%s: %g does not fit in 32 bits", path_of(rd, at), value);
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

static err_t read_enum(struct reader *rd, const struct step *at, const ProtobufCEnumDescriptor *type,
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
    FAIL(rd->field_error, "%s: expected one of %s", path_of(rd, at), names);
  }
  *out = value->value;
  return ERR_OK;
}

static err_t read_string(struct reader *rd, const struct step *at, const json_t *json, char **out)
{
  struct span copy;

  if (!json_is_string(json) || large_of(rd, json))
    return fail_kind(rd, at, "text", json);
  if (strlen(json_string_value(json)) != json_string_length(json)) /* only bytes fields may have one, such as keys */
    FAIL(rd->field_error, "%s: text with a zero character", path_of(rd, at));
  TRY(region_copy(rd->region, text_of(json), &copy));
  *out = (char *)copy.p;
  return ERR_OK;
}

static err_t read_base64(struct reader *rd, const struct step *at, const json_t *json, ProtobufCBinaryData *out)
{
  struct span text = text_of(json);
  uint8_t *bytes;
  size_t n;

  TRY(region_array(rd->region, text.n / 4 * 3 + 2, 1, &bytes));
  if (!base64_decode(text, bytes, &n))
    FAIL(rd->field_error, "%s: not Base64", path_of(rd, at));
  *out = (ProtobufCBinaryData){ .len = n, .data = bytes };
  return ERR_OK;
}

static err_t read_byte_list(struct reader *rd, const struct step *at, const json_t *json, ProtobufCBinaryData *out)
{
  size_t n = json_array_size(json);
  uint8_t *bytes;

  TRY(region_array(rd->region, n, 1, &bytes));
  for (size_t i = 0; i < n; i++) {
    struct step child = { .up = at, .kind = STEP_INDEX, .index = i };
    uint64_t value;
    if (json_is_string(json_array_get(json, i))) /* numbers as text are only for large integers */
      return fail_kind(rd, &child, "an integer", json_array_get(json, i));
    TRY(read_integer(rd, &child, json_array_get(json, i), 0, UINT8_MAX, &value));
    bytes[i] = (uint8_t)value;
  }
  *out = (ProtobufCBinaryData){ .len = n, .data = bytes };
  return ERR_OK;
}

static err_t read_bytes(struct reader *rd, const struct step *at, bool is_text, const json_t *json,
                        ProtobufCBinaryData *out)
{
  const json_t *base64 = json_object_size(json) == 1 ? json_object_get(json, "base64") : NULL;

  if (json_is_string(base64))
    return read_base64(rd, at, base64, out);
  if (large_of(rd, json))
    return fail_kind(rd, at, "bytes", json);
  if (is_text && json_is_string(json)) {
    struct span copy;
    TRY(region_copy(rd->region, text_of(json), &copy));
    *out = (ProtobufCBinaryData){ .len = copy.n, .data = (uint8_t *)copy.p };
    return ERR_OK;
  }
  if (!is_text && json_is_string(json))
    return read_base64(rd, at, json, out);
  if (!is_text && json_is_array(json))
    return read_byte_list(rd, at, json, out);
  return fail_kind(rd, at, is_text ? "text or {\"base64\": ...}" : "a list of 0..255 or Base64 text", json);
}

static err_t read_message(struct reader *rd, const struct step *at, json_t *json,
                          const ProtobufCMessageDescriptor *type, ProtobufCMessage **out);

/* Read a value of any type.
 *
 * slot  where to write the value; it has room for message_field_size(field) bytes
 */
static err_t read_value(struct reader *rd, const struct step *at, const ProtobufCFieldDescriptor *field, json_t *json,
                        void *slot)
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
    TRY(read_integer(rd, at, json, (uint64_t)INT64_MAX + 1, INT64_MAX, &bits));
    *(int64_t *)slot = (int64_t)bits;
    return ERR_OK;
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
    return read_integer(rd, at, json, 0, UINT64_MAX, slot);
  case PROTOBUF_C_TYPE_FLOAT:
    return read_float(rd, at, json, slot);
  case PROTOBUF_C_TYPE_DOUBLE:
    if (!json_is_number(json))
      return fail_kind(rd, at, "a number", json);
    *(double *)slot = json_number_value(json);
    return ERR_OK;
  case PROTOBUF_C_TYPE_BOOL:
    if (!json_is_boolean(json))
      return fail_kind(rd, at, "true or false", json);
    *(protobuf_c_boolean *)slot = json_is_true(json);
    return ERR_OK;
  case PROTOBUF_C_TYPE_ENUM:
    return read_enum(rd, at, field->descriptor, json, slot);
  case PROTOBUF_C_TYPE_STRING:
    return read_string(rd, at, json, slot);
  case PROTOBUF_C_TYPE_BYTES:
    return read_bytes(rd, at, message_field_is_in(field, rd->rules->text_fields), json, slot);
  case PROTOBUF_C_TYPE_MESSAGE:
    return read_message(rd, at, json, field->descriptor, slot);
  }
  FAIL(rd->field_error, "%s: its type has no JSON form", path_of(rd, at));
}

static err_t verify_count(struct reader *rd, const struct step *at, const ProtobufCFieldDescriptor *field, size_t n)
{
  size_t most = message_field_limit(field, rd->rules->limits);

  if (n > most)
    FAIL(rd->field_error, "%s: %zu elements, at most %zu", path_of(rd, at), n, most);
  return ERR_OK;
}

static err_t read_list(struct reader *rd, const struct step *at, const ProtobufCFieldDescriptor *field, json_t *json,
                       ProtobufCMessage *message)
{
  size_t n = json_array_size(json), size = message_field_size(field);
  uint8_t *elements;

  if (!json_is_array(json))
    return fail_kind(rd, at, "a list", json);
  TRY(verify_count(rd, at, field, n));
  TRY(region_array(rd->region, n, size, &elements));
  for (size_t i = 0; i < n; i++) {
    struct step child = { .up = at, .kind = STEP_INDEX, .index = i };
    TRY(read_value(rd, &child, field, json_array_get(json, i), elements + i * size));
  }
  mem_pointer_set(message_field_at(message, field), elements);
  *message_field_count(message, field) = n;
  return ERR_OK;
}

static err_t new_message(struct reader *rd, const ProtobufCMessageDescriptor *type, ProtobufCMessage **out)
{
  TRY(region_array(rd->region, 1, type->sizeof_message, out));
  protobuf_c_message_init(type, *out);
  return ERR_OK;
}

static err_t read_map(struct reader *rd, const struct step *at, const ProtobufCFieldDescriptor *field, json_t *json,
                      ProtobufCMessage *message)
{
  const ProtobufCMessageDescriptor *type = field->descriptor;
  ProtobufCMessage **entries;
  struct span key;
  const char *name;
  json_t *value;
  size_t n = 0;

  if (!json_is_object(json))
    return fail_kind(rd, at, "an object", json);
  TRY(verify_count(rd, at, field, json_object_size(json)));
  TRY(region_array(rd->region, json_object_size(json), sizeof *entries, &entries));
  json_object_foreach(json, name, value)
  {
    struct step child = { .up = at, .kind = STEP_KEY, .name = name };
    ProtobufCMessage *entry;
    TRY(new_message(rd, type, &entry));
    TRY(region_copy(rd->region, span_of_str(name), &key));
    *(const char **)message_field_at(entry, &type->fields[0]) = (const char *)key.p;
    TRY(read_value(rd, &child, &type->fields[1], value, message_field_at(entry, &type->fields[1])));
    entries[n++] = entry;
  }
  mem_pointer_set(message_field_at(message, field), entries);
  *message_field_count(message, field) = n;
  return ERR_OK;
}

static err_t read_field(struct reader *rd, const struct step *at, const ProtobufCFieldDescriptor *field, json_t *json,
                        ProtobufCMessage *message)
{
  if (message_field_is_map(field))
    return read_map(rd, at, field, json, message);
  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return read_list(rd, at, field, json, message);
  TRY(read_value(rd, at, field, json, message_field_at(message, field)));
  message_field_mark(message, field);
  return ERR_OK;
}

/* Read one member of an object.
 *
 * at  the place of the message; NULL for the outermost one
 */
static err_t read_member(struct reader *rd, const struct step *at, const char *name, json_t *json,
                         ProtobufCMessage *message)
{
  const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, name);
  struct step child = { .up = at, .kind = STEP_FIELD, .name = name };

  if (!field)
    FAIL(rd->field_error, "%s%sunknown field %s", at ? path_of(rd, at) : "", at ? ": " : "",
         log_quote(span_of_str(name)));
  if (json_is_null(json))
    return ERR_OK;
  return read_field(rd, &child, field, json, message);
}

static err_t read_message(struct reader *rd, const struct step *at, json_t *json,
                          const ProtobufCMessageDescriptor *type, ProtobufCMessage **out)
{
  bool may_be_list = type == rd->rules->list_type;
  ProtobufCMessage *message;
  const char *name;
  json_t *value;

  TRY(new_message(rd, type, &message));
  if (may_be_list && json_is_array(json)) {
    TRY(read_list(rd, at, message_field_find(type, rd->rules->list_field), json, message));
  } else if (json_is_object(json)) {
    json_object_foreach(json, name, value) TRY(read_member(rd, at, name, value, message));
  } else {
    return fail_kind(rd, at, may_be_list ? "a list or an object" : "an object", json);
  }
  *out = message;
  return ERR_OK;
}

/* Read all members that can be read. Report the first one that cannot. */
static err_t read_top(struct reader *rd, json_t *json, ProtobufCMessage *message)
{
  char kept[KEPT_BYTES];
  err_code_t first = ERR_OK;
  const char *name;
  json_t *value;

  json_object_foreach(json, name, value)
  {
    if (first != ERR_OK && !message_field_find(message->descriptor, name))
      continue; /* printing an error for each of a million members would take a second */
    struct region_mark start = region_mark(rd->region);
    err_code_t err = read_member(rd, NULL, name, value, message);
    if (err == ERR_OK)
      continue;
    if (err != rd->field_error && err != ERR_TOO_LARGE)
      return err;
    region_rewind(rd->region, start);
    if (first == ERR_OK)
      snprintf(kept, sizeof kept, "%s", err_message());
    first = first == ERR_OK ? err : first;
  }
  if (first != ERR_OK)
    FAIL(first, "%s", kept);
  return ERR_OK;
}

/* Parse a text. jansson fails on numbers beyond 64 bits: then they are turned into strings, and it parses again. */
static err_t parse(struct reader *rd, struct span text, json_t **out)
{
  json_error_t error;

  if (json_text_cost(text) > JSON_COST_MAX)
    FAIL(ERR_WIRE, "the JSON takes more than %d bytes of memory to parse: too many values", (int)JSON_COST_MAX);
  json_t *json = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, &error);
  if (!json && json_error_code(&error) == json_error_numeric_overflow) {
    TRY(json_text_quote_large(text, rd->region, &text));
    rd->has_large = true;
    json = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, &error);
  }
  if (!json)
    FAIL(ERR_WIRE, "not JSON: %s (line %d, column %d)", error.text, error.line, error.column);
  *out = json;
  return ERR_OK;
}

err_t json_message_read(struct span text, const ProtobufCMessageDescriptor *type, const struct json_rules *rules,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out)
{
  struct reader rd = { .rules = rules, .region = r, .field_error = field_error };
  ProtobufCMessage *message;
  AUTO(json_decrefp) json_t *json = NULL;

  TRY(parse(&rd, text, &json));
  if (!json_is_object(json))
    FAIL(ERR_WIRE, "JSON, but %s where an object is expected", kind_of(json));
  TRY(new_message(&rd, type, &message));

  err_code_t err = read_top(&rd, json, message);
  if (err == ERR_OK || err == field_error || err == ERR_TOO_LARGE)
    *out = message;
  return err;
}
