/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a JSON value is the kind of the value. */
#include "daemon/ctl/eval/ctl_value.h"

#include "daemon/ctl/text/ctl_json.h"

static err_t read_text(const json_t *json, struct region *region, struct value *out)
{
  out->kind = VALUE_TEXT;
  return region_copy(region, span_of(json_string_value(json), json_string_length(json)), &out->text);
}

/* Read a value that is not a list. */
static err_t read_plain(const json_t *json, struct region *region, struct value *out)
{
  *out = (struct value){ .kind = VALUE_NULL };
  switch (json_typeof(json)) {
  case JSON_NULL:
    return ERR_OK;
  case JSON_TRUE:
  case JSON_FALSE:
    *out = (struct value){ .kind = VALUE_BOOL, .is_true = json_is_true(json) };
    return ERR_OK;
  case JSON_INTEGER:
    *out = (struct value){ .kind = VALUE_INTEGER, .integer = json_integer_value(json) };
    return ERR_OK;
  case JSON_REAL:
    *out = (struct value){ .kind = VALUE_NUMBER, .number = json_real_value(json) };
    return ERR_OK;
  case JSON_STRING:
    return read_text(json, region, out);
  case JSON_ARRAY:
  case JSON_OBJECT:
    break;
  }
  FAIL(ERR_ITEM, "expected true, false, a number, text, or a list of these");
}

err_t ctl_value_read(const json_t *json, struct region *region, struct value *out)
{
  struct value *elements;
  size_t n = json_array_size(json);

  if (!json_is_array(json))
    return read_plain(json, region, out);
  TRY(region_array(region, n, sizeof *elements, &elements));
  for (size_t i = 0; i < n; i++) {
    TRY(read_plain(json_array_get(json, i), region, &elements[i]));
    if (elements[i].kind == VALUE_NULL)
      FAIL(ERR_ITEM, "expected no null in a list");
  }
  *out = (struct value){ .kind = VALUE_LIST, .list = { elements, n } };
  return ERR_OK;
}

err_t ctl_values_read(const char *text, struct region *region, const struct value **out, size_t *n)
{
  json_error_t error;
  AUTO(ctl_json_close) json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  struct value *values;

  if (!json)
    FAIL(ERR_USAGE, "cannot be read as JSON: %s", ctl_json_reason(&error));
  if (!json_is_array(json))
    FAIL(ERR_USAGE, "expected a list, such as '[20, [\"de\", \"at\"]]'");
  TRY(region_array(region, json_array_size(json), sizeof *values, &values));
  for (size_t i = 0; i < json_array_size(json); i++)
    TRY(ctl_value_read(json_array_get(json, i), region, &values[i]));
  *out = values;
  *n = json_array_size(json);
  return ERR_OK;
}
