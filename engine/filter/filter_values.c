/* SPDX-License-Identifier: Apache-2.0 */
/* Checking the values of a comparison. Every refusal is one sentence: what the attribute is, and what the value is. */
#include "engine/filter/filter_values.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/rfc3339.h"
#include "base/utf8.h"
#include "engine/filter/filter_fail.h"

/* Bytes that name a value in an error. */
enum { NAME_BYTES = FILTER_PIECE_BYTES };

const char *filter_values_type(enum attribute_type type)
{
  static const char *const names[N_ATTRIBUTE_TYPES] = {
    [ATTRIBUTE_BOOL] = "a bool",        [ATTRIBUTE_KEYWORD] = "a keyword", [ATTRIBUTE_KEYWORDS] = "a set of keywords",
    [ATTRIBUTE_INTEGER] = "an integer", [ATTRIBUTE_NUMBER] = "a number",   [ATTRIBUTE_TIME] = "a time",
  };

  return names[type];
}

static const char *name_literal(const struct value *value, char out[NAME_BYTES])
{
  if (value->kind == VALUE_TEXT)
    return filter_fail_quote(value->text, "'", out);
  if (value->kind == VALUE_INTEGER)
    snprintf(out, NAME_BYTES, "%" PRId64, value->integer);
  else if (value->kind == VALUE_NUMBER)
    snprintf(out, NAME_BYTES, "%.*g", VALUE_SHOWN_DIGITS, value->number);
  else
    snprintf(out, NAME_BYTES, "%s", value->is_true ? "true" : "false");
  return out;
}

/* Write what a value is called: the literal, $1, or "value 3 of $1". */
static const char *name_value(const struct filter_values *values, size_t i, char out[NAME_BYTES])
{
  size_t parameter = values->places[values->is_parameter_list ? 0 : i].parameter;

  if (parameter == 0)
    return name_literal(&values->v[i], out);
  if (values->is_parameter_list)
    snprintf(out, NAME_BYTES, "value %zu of $%zu", i + 1, parameter);
  else
    snprintf(out, NAME_BYTES, "$%zu", parameter);
  return out;
}

/* Fail with what is wrong about a value: "is text". */
static err_t refuse(const struct filter_values *values, size_t i, const char *what)
{
  const struct attribute *attribute = values->attribute;
  size_t offset = values->places[values->is_parameter_list ? 0 : i].offset;
  char name[NAME_BYTES];

  FILTER_FAIL(values->text, offset, "%.*s is %s, and %s %s", (int)attribute->name.n, (const char *)attribute->name.p,
              filter_values_type(attribute->type), name_value(values, i, name), what);
}

static err_t refuse_kind(const struct filter_values *values, size_t i)
{
  static const char *const kinds[] = {
    [VALUE_NULL] = "is null",       [VALUE_BOOL] = "is a bool", [VALUE_INTEGER] = "is an integer",
    [VALUE_NUMBER] = "is a number", [VALUE_TEXT] = "is text",   [VALUE_LIST] = "is a list",
  };

  return refuse(values, i, kinds[values->v[i].kind]);
}

err_t filter_values_bool(const struct filter_values *values, size_t i, bool *out)
{
  if (values->v[i].kind != VALUE_BOOL)
    return refuse_kind(values, i);
  *out = values->v[i].is_true;
  return ERR_OK;
}

err_t filter_values_text(const struct filter_values *values, size_t i, struct span *out)
{
  const struct value *value = &values->v[i];

  if (value->kind != VALUE_TEXT)
    return refuse_kind(values, i);
  if (value->text.n > ATTRIBUTE_TEXT_MAX)
    return refuse(values, i, "has more than 256 bytes");
  if (!utf8_is_valid(value->text))
    return refuse(values, i, "is not UTF-8, or has a zero byte");
  *out = value->text;
  return ERR_OK;
}

static_assert(ATTRIBUTE_TEXT_MAX == 256, "the message above says so");

static struct filter_point point_of(double number)
{
  double below = floor(number);

  /* Doubles beyond 64 bits need not be told apart: no attribute has such a value. */
  return (struct filter_point){ (__int128)fmin(fmax(below, -0x1p100), 0x1p100), number > below };
}

static err_t read_time(const struct filter_values *values, size_t i, struct filter_point *out)
{
  int64_t ms;

  if (!rfc3339_read(values->v[i].text, &ms, &out->is_between))
    return refuse(values, i, "is not a time such as '2026-11-22T12:00:00Z'");
  out->floor = ms;
  return ERR_OK;
}

err_t filter_values_point(const struct filter_values *values, size_t i, struct filter_point *out)
{
  const struct value *value = &values->v[i];
  bool is_time = values->attribute->type == ATTRIBUTE_TIME;

  if (value->kind == VALUE_INTEGER)
    *out = (struct filter_point){ value->integer, false };
  else if (value->kind == VALUE_NUMBER && !isfinite(value->number))
    return refuse(values, i, "is not finite");
  else if (value->kind == VALUE_NUMBER)
    *out = point_of(value->number);
  else if (value->kind == VALUE_TEXT && is_time)
    TRY(read_time(values, i, out));
  else
    return refuse_kind(values, i);
  if (is_time && out->floor < 0)
    return refuse(values, i, "is before 1970");
  return ERR_OK;
}

/* An integer that a double cannot hold would be compared with another one, and `=` would find what it does not name. */
static err_t number_of_integer(const struct filter_values *values, size_t i, double *out)
{
  int64_t integer = values->v[i].integer;
  double number = (double)integer;

  if (number >= 0x1p63 || (int64_t)number != integer)
    return refuse(values, i, "has more digits than a number keeps: write it as a decimal, which is rounded");
  *out = number;
  return ERR_OK;
}

err_t filter_values_number(const struct filter_values *values, size_t i, double *out)
{
  const struct value *value = &values->v[i];

  if (value->kind == VALUE_INTEGER)
    return number_of_integer(values, i, out);
  if (value->kind != VALUE_NUMBER)
    return refuse_kind(values, i);
  if (!isfinite(value->number))
    return refuse(values, i, "is not finite");
  *out = value->number + 0.0; /* -0 becomes 0 */
  return ERR_OK;
}
