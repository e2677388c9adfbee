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

bool ctl_json_is_blank(struct span line)
{
  return json_text_blanks(line) == line.n;
}
