/* SPDX-License-Identifier: Apache-2.0 */
/* Printing a place, from the outside to the inside. */
#include "ingest/json/value_place.h"

#include <stdio.h>

struct value_place value_place_in(const struct value_place *up, const char *name, size_t index)
{
  return (struct value_place){ up, name, index, up ? up->depth + 1 : 1 };
}

static size_t print(const struct value_place *at, char *text)
{
  if (!at)
    return 0;
  size_t n = print(at->up, text);
  int added = at->name ? snprintf(text + n, VALUE_PLACE_BYTES - n, "%s%s", n > 0 ? "." : "", at->name)
                       : snprintf(text + n, VALUE_PLACE_BYTES - n, "[%zu]", at->index);
  return added < 0 || n + (size_t)added >= VALUE_PLACE_BYTES ? VALUE_PLACE_BYTES - 1 : n + (size_t)added;
}

const char *value_place_text(const struct value_place *at, char text[VALUE_PLACE_BYTES])
{
  text[0] = '\0';
  return print(at, text) > 0 ? text : "the value";
}
