/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are decimal, an enum's value is its name, and bytes are escaped as in C. */
#include "ingest/protobuf/protobuf_default.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"

static bool read_double(const char *text, struct protobuf_field *field)
{
  char *end;
  double x = strtod(text, &end); /* also inf, -inf and nan */

  memcpy(&field->default_bits, &x, sizeof x);
  return *text && !*end;
}

static bool read_float(const char *text, struct protobuf_field *field)
{
  char *end;
  uint32_t bits;
  float x = strtof(text, &end);

  memcpy(&bits, &x, sizeof x);
  field->default_bits = bits;
  return *text && !*end;
}

static bool read_integer(const char *text, struct protobuf_field *field)
{
  char *end;

  errno = 0;
  field->default_bits = *text == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
  return *text && !*end && errno == 0;
}

static bool read_bool(const char *text, struct protobuf_field *field)
{
  field->default_bits = strcmp(text, "true") == 0;
  return field->default_bits || strcmp(text, "false") == 0;
}

static bool read_enum(const char *text, struct protobuf_field *field)
{
  for (size_t i = 0; i < field->enumeration->n; i++) {
    if (strcmp(field->enumeration->values[i].name, text) == 0) {
      field->default_bits = (uint64_t)(int64_t)field->enumeration->values[i].number;
      return true;
    }
  }
  return false;
}

static bool is_octal(char c)
{
  return c >= '0' && c <= '7';
}

/* Take a character off escaped text, which is not at its end. */
static uint8_t take_escaped(const char **text)
{
  static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
  const char *p = *text;
  uint8_t byte = 0;

  if (p[0] != '\\' || !p[1]) {
    *text = p + 1;
    return (uint8_t)p[0];
  }
  if (is_octal(p[1])) {
    const char *digit = p + 1;
    while (digit < p + 4 && is_octal(*digit))
      byte = (uint8_t)(byte << 3 | (*digit++ - '0'));
    *text = digit;
    return byte;
  }
  const char *letter = strchr(letters, p[1]);
  *text = p + 2;
  return (uint8_t)(letter ? values[letter - letters] : p[1]);
}

static err_t read_escaped(const char *text, struct region *r, struct protobuf_field *field)
{
  uint8_t *bytes;
  size_t n = 0;

  TRY(region_array(r, strlen(text) + 1, 1, &bytes));
  while (*text)
    bytes[n++] = take_escaped(&text);
  field->default_bytes = span_of(bytes, n);
  return ERR_OK;
}

static bool read_number(const char *text, struct protobuf_field *field)
{
  switch (field->kind) {
  case PROTOBUF_DOUBLE:
    return read_double(text, field);
  case PROTOBUF_FLOAT:
    return read_float(text, field);
  case PROTOBUF_BOOL:
    return read_bool(text, field);
  case PROTOBUF_ENUM:
    return read_enum(text, field);
  default:
    return read_integer(text, field);
  }
}

err_t protobuf_default_read(const char *text, struct region *r, struct protobuf_field *field)
{
  if (field->kind == PROTOBUF_STRING && utf8_is_valid(span_of_str(text)))
    return region_copy(r, span_of_str(text), &field->default_bytes);
  if (field->kind == PROTOBUF_BYTES)
    return read_escaped(text, r, field);
  if (field->kind == PROTOBUF_STRING || !read_number(text, field))
    FAIL(ERR_CONFIG, "its default %s is not a value of its type", log_quote(span_of_str(text)));
  return ERR_OK;
}
