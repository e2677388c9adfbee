/* SPDX-License-Identifier: Apache-2.0 */
/* Checking the name and type of an attribute. */
#include "daemon/config/config_attributes.h"

#include <stdio.h>

#include "base/edit_distance.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/filter/filter.h"

enum { TYPES_BYTES = 128 };

/* An abbreviation, such as "int", means the type that begins with it, although another one may have fewer edits. */
static const char *nearest_type(const char *text)
{
  size_t best = SIZE_MAX;
  const char *nearest = NULL;

  for (int i = 0; i < N_ATTRIBUTE_TYPES; i++) {
    const char *name = attribute_type_name((enum attribute_type)i);
    bool is_abbreviated = *text && strncmp(name, text, strlen(text)) == 0;
    size_t distance = is_abbreviated ? 0 : edit_distance(name, text);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

static void print_types(char out[TYPES_BYTES])
{
  size_t n = 0;

  for (int i = 0; i < N_ATTRIBUTE_TYPES; i++)
    n += (size_t)snprintf(out + n, TYPES_BYTES - n, "%s%s", i ? ", " : "", attribute_type_name((enum attribute_type)i));
}

static err_t fail_type(struct span name, struct span type)
{
  AUTO(mem_free) char *text = NULL;
  char types[TYPES_BYTES];

  TRY(mem_copy(type, &text));
  print_types(types);
  FAIL(ERR_CONFIG, "%.*s: there is no type %s; the nearest is %s, of %s", (int)name.n, (const char *)name.p,
       log_quote(type), nearest_type(text), types);
}

err_t config_attributes_add(struct attribute *v, size_t *n, struct span name, struct span type)
{
  enum attribute_type found;
  char *copy;

  if (!attribute_name_is_valid(name))
    FAIL(ERR_CONFIG, "%s: the name of an attribute is a letter or _, then letters, digits and _, at most %d bytes",
         log_quote(name), ATTRIBUTE_NAME_MAX);
  if (filter_is_keyword(name))
    FAIL(ERR_CONFIG, "%s is a keyword of filters, in upper or lower case: give the attribute another name",
         log_quote(name));
  if (!attribute_type_find(type, &found))
    return fail_type(name, type);
  TRY(mem_copy(name, &copy));
  v[(*n)++] = (struct attribute){ span_of(copy, name.n), found };
  return ERR_OK;
}
