/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers for jansson's values. */
#include "daemon/ctl/text/ctl_json.h"

#include <string.h>

void ctl_json_close(json_t **json)
{
  json_decref(*json);
}

uint64_t ctl_json_count(const json_t *object, const char *name)
{
  json_int_t value = json_integer_value(json_object_get(object, name));

  return value > 0 ? (uint64_t)value : 0;
}

bool ctl_json_is_blank(struct span line)
{
  size_t i = 0;

  while (i < line.n && memchr(" \t\n\r", line.p[i], 4))
    i++;
  return i == line.n;
}
