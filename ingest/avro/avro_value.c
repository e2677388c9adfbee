/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes are read from front to back. No length is believed before the bytes are there, and what takes no bytes is
 * counted. */
#include "ingest/avro/avro_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/region.h"
#include "base/utf8.h"
#include "ingest/json/json_make.h"
#include "ingest/json/value_place.h"

enum { DEPTH_MAX = 64, LONG_BYTES_MAX = 10, DECIMAL_BYTES_MAX = 8 };

struct reader {
  const uint8_t *at, *end;
  size_t n_values;
  char text[VALUE_PLACE_BYTES];
};

static err_t read_value(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out);

static const char *place_text(struct reader *rd, const struct value_place *at)
{
  return value_place_text(at, rd->text);
}

static err_t fail_short(struct reader *rd, const struct value_place *at)
{
  FAIL(ERR_WIRE, "%s: the bytes end in the middle of it: is this the schema that they were written with?",
       place_text(rd, at));
}

/* Bytes -------------------- */

static err_t take(struct reader *rd, const struct value_place *at, size_t n, const uint8_t **out)
{
  if ((size_t)(rd->end - rd->at) < n)
    return fail_short(rd, at);
  *out = rd->at;
  rd->at += n;
  return ERR_OK;
}

/* A zigzag number of variable length. */
static err_t take_long(struct reader *rd, const struct value_place *at, int64_t *out)
{
  uint64_t bits = 0;

  for (int i = 0; i < LONG_BYTES_MAX; i++) {
    const uint8_t *byte = NULL;
    TRY(take(rd, at, 1, &byte));
    bits |= (uint64_t)(*byte & 0x7f) << 7 * i;
    if (*byte < 0x80) {
      *out = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
      return ERR_OK;
    }
  }
  FAIL(ERR_WIRE, "%s: a number of more than %d bytes", place_text(rd, at), LONG_BYTES_MAX);
}

/* The bytes of text, of bytes, or of a map's key. */
static err_t take_bytes(struct reader *rd, const struct value_place *at, struct span *out)
{
  int64_t n = 0;
  const uint8_t *p = NULL;

  TRY(take_long(rd, at, &n));
  if (n < 0)
    FAIL(ERR_WIRE, "%s: a length of %" PRId64, place_text(rd, at), n);
  TRY(take(rd, at, (size_t)n, &p));
  *out = span_of(p, (size_t)n);
  return ERR_OK;
}

static err_t take_text(struct reader *rd, const struct value_place *at, struct span *out)
{
  TRY(take_bytes(rd, at, out));
  if (!utf8_is_valid(*out))
    FAIL(ERR_WIRE, "%s: the text is not UTF-8", place_text(rd, at));
  return ERR_OK;
}

/* Single values -------------------- */

static err_t read_boolean(struct reader *rd, const struct value_place *at, json_t **out)
{
  const uint8_t *byte = NULL;

  TRY(take(rd, at, 1, &byte));
  if (*byte > 1)
    FAIL(ERR_WIRE, "%s: a boolean is a byte 0 or 1, not %u", place_text(rd, at), *byte);
  return json_make_keep(json_boolean(*byte), out);
}

static int64_t divide_down(int64_t x, int64_t by)
{
  return x / by - (x % by < 0);
}

static int64_t milliseconds_of(enum avro_logical logical, int64_t x)
{
  switch (logical) {
  case AVRO_DATE:
    return x * 86400000; /* an int: no overflow */
  case AVRO_MICROS:
    return divide_down(x, 1000);
  case AVRO_NANOS:
    return divide_down(x, 1000000);
  default:
    return x;
  }
}

static err_t read_integer(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  int64_t x = 0;

  TRY(take_long(rd, at, &x));
  if (type->kind == AVRO_INT && (x < INT32_MIN || x > INT32_MAX))
    FAIL(ERR_WIRE, "%s: %" PRId64 " is beyond an int", place_text(rd, at), x);
  return json_make_keep(json_integer(milliseconds_of(type->logical, x)), out);
}

static err_t read_float(struct reader *rd, const struct value_place *at, json_t **out)
{
  const uint8_t *p = NULL;
  float x;

  TRY(take(rd, at, sizeof x, &p));
  memcpy(&x, p, sizeof x); /* little-endian, like the machine */
  return json_make_real((double)x, out);
}

static err_t read_double(struct reader *rd, const struct value_place *at, json_t **out)
{
  const uint8_t *p = NULL;
  double x;

  TRY(take(rd, at, sizeof x, &p));
  memcpy(&x, p, sizeof x);
  return json_make_real(x, out);
}

/* Leave out the bytes that only repeat the sign of two's complement. */
static struct span without_sign_bytes(struct span bytes)
{
  while (bytes.n > 1 && bytes.p[0] == (bytes.p[1] >= 0x80 ? 0xff : 0x00))
    bytes = span_of(bytes.p + 1, bytes.n - 1);
  return bytes;
}

/* A decimal is an integer of two's complement, the highest byte first, divided by 10^scale. */
static err_t give_decimal(uint32_t scale, struct span bytes, json_t **out)
{
  uint64_t bits = bytes.n > 0 && bytes.p[0] >= 0x80 ? UINT64_MAX : 0;
  char digits[24], text[32];

  for (size_t i = 0; i < bytes.n; i++)
    bits = bits << 8 | bytes.p[i];
  bool is_negative = bits > INT64_MAX;
  int n = snprintf(digits, sizeof digits, "%0*" PRIu64, (int)scale + 1, is_negative ? -bits : bits);
  int whole = n - (int)scale;
  snprintf(text, sizeof text, "%s%.*s%s%s", is_negative ? "-" : "", whole, digits, scale > 0 ? "." : "",
           digits + whole);
  return json_make_keep(json_string(text), out);
}

static err_t give_bytes(const struct avro_type *type, struct span bytes, json_t **out)
{
  struct span number = without_sign_bytes(bytes);

  if (type->logical == AVRO_DECIMAL && number.n <= DECIMAL_BYTES_MAX)
    return give_decimal(type->scale, number, out);
  return json_make_base64(bytes, out);
}

static err_t read_bytes(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  struct span bytes = { 0 };

  TRY(take_bytes(rd, at, &bytes));
  return give_bytes(type, bytes, out);
}

static err_t read_fixed(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  const uint8_t *p = NULL;

  TRY(take(rd, at, type->size, &p));
  return give_bytes(type, span_of(p, type->size), out);
}

static err_t read_string(struct reader *rd, const struct value_place *at, json_t **out)
{
  struct span text = { 0 };

  TRY(take_text(rd, at, &text));
  return json_make_keep(json_stringn((const char *)text.p, text.n), out);
}

/* The number of a symbol or of a branch. */
static err_t take_choice(struct reader *rd, const struct value_place *at, const struct avro_type *type, size_t *out)
{
  int64_t i = 0;

  TRY(take_long(rd, at, &i));
  if (i < 0 || (uint64_t)i >= type->n)
    FAIL(ERR_WIRE, "%s: number %" PRId64 " of the %zu in the schema: is this the schema that it was written with?",
         place_text(rd, at), i, type->n);
  *out = (size_t)i;
  return ERR_OK;
}

static err_t read_enum(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  size_t i = 0;

  TRY(take_choice(rd, at, type, &i));
  return json_make_keep(json_string(type->names[i]), out);
}

static err_t read_union(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  size_t i = 0;

  TRY(take_choice(rd, at, type, &i));
  return read_value(rd, at, type->types[i], out);
}

/* Values in values -------------------- */

static err_t read_record(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  AUTO(json_decrefp) json_t *object = NULL;

  TRY(json_make_keep(json_object(), &object));
  for (size_t i = 0; i < type->n; i++) {
    const struct value_place inner = value_place_in(at, type->names[i], 0);
    json_t *value = NULL;
    TRY(read_value(rd, &inner, type->types[i], &value));
    TRY(json_make_member(object, type->names[i], value));
  }
  *out = json_incref(object);
  return ERR_OK;
}

/* How many elements follow? Lists and maps come in blocks; the last one has none. A negative count comes with the
 * block's bytes, for those who skip it. */
static err_t take_count(struct reader *rd, const struct value_place *at, uint64_t *out)
{
  int64_t n = 0, bytes;

  TRY(take_long(rd, at, &n));
  *out = n < 0 ? -(uint64_t)n : (uint64_t)n;
  return n < 0 ? take_long(rd, at, &bytes) : ERR_OK;
}

static err_t read_element(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t *list)
{
  const struct value_place inner = value_place_in(at, NULL, json_array_size(list));
  json_t *value = NULL;

  TRY(read_value(rd, &inner, type->types[0], &value));
  return json_make_element(list, value);
}

static err_t read_entry(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t *object)
{
  AUTO(region_fini) struct region region = { 0 };
  struct span key = { 0 }, name;
  json_t *value = NULL;

  TRY(take_text(rd, at, &key));
  TRY(region_copy(&region, key, &name));
  const struct value_place inner = value_place_in(at, (const char *)name.p, 0);
  TRY(read_value(rd, &inner, type->types[0], &value));
  return json_make_member(object, (const char *)name.p, value);
}

typedef err_code_t read_one(struct reader *rd, const struct value_place *at, const struct avro_type *type,
                            json_t *into);

static err_t read_blocks(struct reader *rd, const struct value_place *at, const struct avro_type *type, read_one *read,
                         json_t *into)
{
  uint64_t n = 0;

  do {
    TRY(take_count(rd, at, &n));
    for (uint64_t i = 0; i < n; i++)
      TRY(read(rd, at, type, into));
  } while (n > 0);
  return ERR_OK;
}

static err_t read_many(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  bool is_list = type->kind == AVRO_ARRAY;
  AUTO(json_decrefp) json_t *into = NULL;

  TRY(json_make_keep(is_list ? json_array() : json_object(), &into));
  TRY(read_blocks(rd, at, type, is_list ? read_element : read_entry, into));
  *out = json_incref(into);
  return ERR_OK;
}

static err_t read_value(struct reader *rd, const struct value_place *at, const struct avro_type *type, json_t **out)
{
  if (++rd->n_values > AVRO_VALUES_MAX)
    FAIL(ERR_WIRE, "%s: more than %d values", place_text(rd, at), AVRO_VALUES_MAX);
  if (at && at->depth > DEPTH_MAX)
    FAIL(ERR_WIRE, "%s: values are nested more than %d deep", place_text(rd, at), DEPTH_MAX);
  switch (type->kind) {
  case AVRO_NULL:
    return json_make_keep(json_null(), out);
  case AVRO_BOOLEAN:
    return read_boolean(rd, at, out);
  case AVRO_INT:
  case AVRO_LONG:
    return read_integer(rd, at, type, out);
  case AVRO_FLOAT:
    return read_float(rd, at, out);
  case AVRO_DOUBLE:
    return read_double(rd, at, out);
  case AVRO_BYTES:
    return read_bytes(rd, at, type, out);
  case AVRO_STRING:
    return read_string(rd, at, out);
  case AVRO_RECORD:
    return read_record(rd, at, type, out);
  case AVRO_ENUM:
    return read_enum(rd, at, type, out);
  case AVRO_ARRAY:
  case AVRO_MAP:
    return read_many(rd, at, type, out);
  case AVRO_UNION:
    return read_union(rd, at, type, out);
  case AVRO_FIXED:
    return read_fixed(rd, at, type, out);
  }
  FAIL(ERR_WIRE, "%s: a type that cannot be read", place_text(rd, at));
}

err_t avro_value_read(const struct avro_type *type, struct span bytes, json_t **out)
{
  struct reader rd = { .at = bytes.p, .end = bytes.p + bytes.n };
  json_t *value = NULL;

  TRY(read_value(&rd, NULL, type, &value));
  if (rd.at < rd.end) {
    json_decref(value);
    FAIL(ERR_WIRE, "%td bytes follow the value: is this the schema that it was written with?", rd.end - rd.at);
  }
  *out = value;
  return ERR_OK;
}
