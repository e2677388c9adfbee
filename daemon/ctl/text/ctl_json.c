/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers for jansson's values. */
#include "daemon/ctl/text/ctl_json.h"

#include "ingest/json/json_text.h"

void ctl_json_close(json_t **json)
{
  json_decref(*json);
}

uint64_t ctl_json_count(const json_t *object, const char *name)
{
  json_int_t value = json_integer_value(json_object_get(object, name));

  return value > 0 ? (uint64_t)value : 0;
}

const char *ctl_json_text(const json_t *object, const char *name)
{
  const char *text = json_string_value(json_object_get(object, name));

  return text ? text : "?";
}

const char *ctl_json_reason(const json_error_t *error)
{
  switch (json_error_code(error)) {
  case json_error_numeric_overflow:
    return "a number is beyond 64 bits";
  case json_error_null_character:
  case json_error_null_byte_in_key:
    return "a text has a zero character";
  default:
    return error->text;
  }
}

bool ctl_json_is_blank(struct span line)
{
  return json_text_blanks(line) == line.n;
}
