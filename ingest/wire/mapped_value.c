/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each thing that a mapped value can be. Lists may be text, as columns of JSON are. */
#include "ingest/wire/mapped_value.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/rfc3339.h"
#include "ingest/json/json_parse.h"
#include "ingest/json/numbers.h"

enum { INTEGER_BYTES = 24 };

/* The end of the year 9999. A larger number is not in milliseconds. */
#define TIME_MAX_MS INT64_C(253402300799999)

static struct span text_of(const json_t *json)
{
  return span_of(json_string_value(json), json_string_length(json));
}

/* ---- Lists ---- */

static bool is_list_as_text(const json_t *json)
{
  struct span text = json_is_string(json) ? text_of(json) : (struct span){ 0 };

  return text.n > 0 && text.p[0] == '[';
}

/* Get a list: the value itself, or what its text says.
 *
 * inner  the reader to read it with
 * owned  what was parsed, if anything was
 */
static err_t open_list(struct json_reader *rd, const struct json_place *at, const json_t *json,
                       struct json_reader *inner, json_t **owned, const json_t **out)
{
  *inner = *rd;
  *out = json;
  if (!is_list_as_text(json))
    return ERR_OK;
  err_code_t err = json_parse(text_of(json), 0, rd->region, &inner->has_large, owned);
  if (err == ERR_WIRE)
    FAIL(rd->field_error, "%s: a list as text, but %s", json_scalar_path(rd, at), err_message());
  TRY(err);
  *out = *owned;
  return ERR_OK;
}

static err_t read_numbers(struct json_reader *rd, const struct json_place *at, const json_t *list, struct floats *out)
{
  size_t n = json_array_size(list);
  float *v;

  TRY(region_array(rd->region, n, sizeof *v, &v));
  for (size_t i = 0; i < n; i++) {
    struct json_place child = { .up = at, .kind = JSON_PLACE_INDEX, .index = i };
    TRY(json_scalar_float(rd, &child, json_array_get(list, i), &v[i]));
  }
  *out = (struct floats){ v, n };
  return ERR_OK;
}

/* Read bytes that are numbers: little-endian f32. */
static err_t read_base64_numbers(struct json_reader *rd, const struct json_place *at, const json_t *json,
                                 struct floats *out)
{
  ProtobufCBinaryData bytes;
  float *v;

  TRY(json_scalar_base64(rd, at, json, &bytes));
  if (bytes.len % sizeof *v != 0)
    FAIL(rd->field_error, "%s: Base64 of %zu bytes, not a multiple of 4 (little-endian f32)", json_scalar_path(rd, at),
         bytes.len);
  *out = (struct floats){ NULL, bytes.len / sizeof *v };
  TRY(region_array(rd->region, out->n, sizeof *v, &v));
  numbers_decode(span_of(bytes.data, bytes.len), NUMBERS_F32, v);
  size_t bad = numbers_find_not_finite(v, out->n);
  if (bad < out->n)
    FAIL(rd->field_error, "%s: number %zu is not finite", json_scalar_path(rd, at), bad);
  out->v = v;
  return ERR_OK;
}

err_t mapped_value_vector(struct json_reader *rd, const struct json_place *at, const json_t *json, struct floats *out)
{
  AUTO(json_decrefp) json_t *owned = NULL;
  struct json_reader inner;
  const json_t *list;

  TRY(open_list(rd, at, json, &inner, &owned, &list));
  if (json_is_array(list))
    TRY(read_numbers(&inner, at, list, out));
  else if (json_is_string(json) && !json_scalar_is_large(rd, json))
    TRY(read_base64_numbers(rd, at, json, out));
  else
    return json_scalar_fail(rd, at, "a list of numbers, or Base64 text", json);
  if (out->n == 0)
    FAIL(rd->field_error, "%s: expected numbers, but there are none", json_scalar_path(rd, at));
  return ERR_OK;
}

err_t mapped_value_codes(struct json_reader *rd, const struct json_place *at, const json_t *json, struct span *out)
{
  AUTO(json_decrefp) json_t *owned = NULL;
  struct json_reader inner;
  ProtobufCBinaryData bytes;
  const json_t *list;

  TRY(open_list(rd, at, json, &inner, &owned, &list));
  if (json_is_array(list))
    TRY(json_scalar_byte_list(&inner, at, list, &bytes));
  else if (json_is_string(json) && !json_scalar_is_large(rd, json))
    TRY(json_scalar_base64(rd, at, json, &bytes));
  else
    return json_scalar_fail(rd, at, "a list of 0..255, or Base64 text", json);
  if (bytes.len == 0)
    FAIL(rd->field_error, "%s: expected codes, but there are none", json_scalar_path(rd, at));
  *out = span_of(bytes.data, bytes.len);
  return ERR_OK;
}

/* ---- Attributes ---- */

/* Print an integer as text. */
static err_t print_integer(struct json_reader *rd, const json_t *json, struct span *out)
{
  char digits[INTEGER_BYTES];
  int n = snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(json));

  return region_copy(rd->region, span_of(digits, (size_t)n), out);
}

/* Read text of at most `most` bytes without zero characters. An integer is taken as its digits. */
static err_t read_text(struct json_reader *rd, const struct json_place *at, const json_t *json, struct span *out)
{
  const char *large = json_parse_large(rd->has_large, json);

  if (json_is_integer(json))
    return print_integer(rd, json, out);
  if (json_scalar_is_large_integer(rd, json))
    return region_copy(rd->region, span_of_str(large), out);
  if (large || !json_is_string(json))
    return json_scalar_fail(rd, at, "text or an integer", json);
  if (strlen(json_string_value(json)) != json_string_length(json))
    FAIL(rd->field_error, "%s: text with a zero character", json_scalar_path(rd, at));
  return region_copy(rd->region, text_of(json), out);
}

static err_t read_keyword(struct json_reader *rd, const struct json_place *at, const json_t *json, struct value *out)
{
  *out = (struct value){ .kind = VALUE_TEXT };
  TRY(read_text(rd, at, json, &out->text));
  if (out->text.n > ATTRIBUTE_TEXT_MAX)
    FAIL(rd->field_error, "%s: a text of %zu bytes, at most %d", json_scalar_path(rd, at), out->text.n,
         ATTRIBUTE_TEXT_MAX);
  return ERR_OK;
}

static err_t read_elements(struct json_reader *rd, const struct json_place *at, const json_t *list, struct value *out)
{
  size_t n = json_array_size(list);
  struct value *v;

  if (n > ATTRIBUTE_SET_MAX)
    FAIL(rd->field_error, "%s: %zu elements, at most %d", json_scalar_path(rd, at), n, ATTRIBUTE_SET_MAX);
  TRY(region_array(rd->region, n, sizeof *v, &v));
  for (size_t i = 0; i < n; i++) {
    struct json_place child = { .up = at, .kind = JSON_PLACE_INDEX, .index = i };
    TRY(read_keyword(rd, &child, json_array_get(list, i), &v[i]));
  }
  *out = (struct value){ .kind = VALUE_LIST, .list = { v, n } };
  return ERR_OK;
}

static err_t read_keywords(struct json_reader *rd, const struct json_place *at, const json_t *json, struct value *out)
{
  AUTO(json_decrefp) json_t *owned = NULL;
  struct json_reader inner;
  const json_t *list;

  TRY(open_list(rd, at, json, &inner, &owned, &list));
  if (!json_is_array(list))
    return json_scalar_fail(rd, at, "a list of texts", json);
  return read_elements(&inner, at, list, out);
}

/* Some databases have no type for it: 0 and 1 are taken, too. */
static err_t read_bool(struct json_reader *rd, const struct json_place *at, const json_t *json, struct value *out)
{
  bool is_bit = json_is_integer(json) && (json_integer_value(json) == 0 || json_integer_value(json) == 1);

  if (!is_bit && !json_is_boolean(json))
    return json_scalar_fail(rd, at, "true, false, 1 or 0", json);
  *out = (struct value){ .kind = VALUE_BOOL, .is_true = is_bit ? json_integer_value(json) == 1 : json_is_true(json) };
  return ERR_OK;
}

/* Some producers write all numbers as fractions: 1990.0 is taken, too, as long as a double holds it exactly. */
static err_t read_whole(struct json_reader *rd, const struct json_place *at, const json_t *json, int64_t *out)
{
  double number = json_real_value(json); /* 0 of another type */

  if (!json_is_real(json) || trunc(number) != number)
    return json_scalar_int64(rd, at, json, out);
  if (number < -0x1p63 || number >= 0x1p63)
    FAIL(rd->field_error, "%s: expected an integer of at most 64 bits, not %g", json_scalar_path(rd, at), number);
  if (fabs(number) >= 0x1p53) /* 2^53 itself may be a rounded 2^53 + 1 */
    FAIL(rd->field_error,
         "%s: %.17g is not below 2^53, from where on doubles are rounded: write it without a point or an exponent",
         json_scalar_path(rd, at), number);
  *out = (int64_t)number;
  return ERR_OK;
}

static err_t read_integer(struct json_reader *rd, const struct json_place *at, const json_t *json, struct value *out)
{
  *out = (struct value){ .kind = VALUE_INTEGER };
  return read_whole(rd, at, json, &out->integer);
}

/* Is it a decimal number, and nothing else? */
static bool parse_number(struct span text, double *out)
{
  char *end;

  if (text.n == 0 || strspn((const char *)text.p, "+-.eE0123456789") != text.n)
    return false;
  *out = strtod((const char *)text.p, &end);
  return *end == '\0' && isfinite(*out);
}

/* Decimal columns may come as text: "12.50". */
static err_t read_number(struct json_reader *rd, const struct json_place *at, const json_t *json, struct value *out)
{
  *out = (struct value){ .kind = VALUE_NUMBER };
  if (!json_is_string(json) || json_scalar_is_large(rd, json))
    return json_scalar_double(rd, at, json, &out->number);
  if (!parse_number(text_of(json), &out->number))
    FAIL(rd->field_error, "%s: expected a number, not the text %s", json_scalar_path(rd, at), log_quote(text_of(json)));
  return ERR_OK;
}

static err_t read_time(struct json_reader *rd, const struct json_place *at, const json_t *json, struct value *out)
{
  bool is_between;

  *out = (struct value){ .kind = VALUE_INTEGER };
  if (!json_is_string(json) || json_scalar_is_large(rd, json))
    TRY(read_whole(rd, at, json, &out->integer));
  else if (!rfc3339_read(text_of(json), &out->integer, &is_between))
    FAIL(rd->field_error, "%s: expected milliseconds since 1970 or text such as \"2026-11-22T12:00:00Z\", not %s",
         json_scalar_path(rd, at), log_quote(text_of(json)));
  if (out->integer < 0)
    FAIL(rd->field_error, "%s: a time before 1970", json_scalar_path(rd, at));
  if (out->integer > TIME_MAX_MS)
    FAIL(rd->field_error, "%s: %" PRId64 " is after the year 9999: is it not in milliseconds?",
         json_scalar_path(rd, at), out->integer);
  return ERR_OK;
}

err_t mapped_value_attribute(struct json_reader *rd, const struct json_place *at, enum attribute_type type,
                             const json_t *json, struct value *out)
{
  switch (type) {
  case ATTRIBUTE_BOOL:
    return read_bool(rd, at, json, out);
  case ATTRIBUTE_KEYWORD:
    return read_keyword(rd, at, json, out);
  case ATTRIBUTE_KEYWORDS:
    return read_keywords(rd, at, json, out);
  case ATTRIBUTE_INTEGER:
    return read_integer(rd, at, json, out);
  case ATTRIBUTE_NUMBER:
    return read_number(rd, at, json, out);
  case ATTRIBUTE_TIME:
    return read_time(rd, at, json, out);
  case N_ATTRIBUTE_TYPES:
    break;
  }
  return json_scalar_fail(rd, at, "a type", json);
}

/* ---- Keys and flags ---- */

err_t mapped_value_key(struct json_reader *rd, const struct json_place *at, const json_t *json, struct span *out)
{
  return read_text(rd, at, json, out);
}

/* Is the text zero, or a time of zeros, such as MySQL's "0000-00-00 00:00:00"? */
static bool is_zero(struct span text)
{
  return text.n > 0 && text.p[0] == '0' && strspn((const char *)text.p, "0-:. TZ") == text.n;
}

err_t mapped_value_flag(struct json_reader *rd, const struct json_place *at, const json_t *json, bool *out)
{
  struct span text = json_is_string(json) ? text_of(json) : (struct span){ 0 };
  bool is_false = text.n == 0 || span_equal(text, span_of_str("false")) || is_zero(text);
  bool is_time = text.n > 0 && text.p[0] >= '0' && text.p[0] <= '9';

  if (!json || json_is_null(json))
    *out = false;
  else if (json_scalar_is_large(rd, json))
    *out = true;
  else if (json_is_boolean(json))
    *out = json_is_true(json);
  else if (json_is_number(json))
    *out = json_number_value(json) != 0;
  else if (json_is_string(json) && (is_false || is_time || span_equal(text, span_of_str("true"))))
    *out = !is_false;
  else
    FAIL(rd->field_error, "%s: expected true, false or a time, not %s", json_scalar_path(rd, at),
         json_is_string(json) ? log_quote(text) : json_scalar_kind(json));
  return ERR_OK;
}

/* In a list of numbers, each byte of the placeholder is a number. */
static bool is_list_of_bytes(const json_t *list, const char *bytes)
{
  bool is_same = json_array_size(list) == strlen(bytes);

  for (size_t i = 0; is_same && bytes[i]; i++) {
    const json_t *element = json_array_get(list, i);
    is_same = json_is_number(element) && json_number_value(element) == bytes[i];
  }
  return is_same;
}

bool mapped_value_is_unavailable(const json_t *json)
{
  static const char placeholder[] = "__debezium_unavailable_value";
  static const char placeholder_base64[] = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";
  const char *text = json_string_value(json_array_size(json) == 1 ? json_array_get(json, 0) : json);

  if (is_list_of_bytes(json, placeholder))
    return true;
  return text && (strcmp(text, placeholder) == 0 || strcmp(text, placeholder_base64) == 0);
}
