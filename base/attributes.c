/* SPDX-License-Identifier: Apache-2.0 */
/* Linear searches: a list has at most ATTRIBUTES_MAX attributes. */
#include "base/attributes.h"

#include <assert.h>
#include <stdio.h>

#include "base/edit_distance.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/size.h"

static_assert((int)ATTRIBUTE_NAME_MAX < (int)EDIT_TEXT_MAX, "whole names are compared");

static const char *const type_names[] = {
  [ATTRIBUTE_BOOL] = "bool",       [ATTRIBUTE_KEYWORD] = "keyword", [ATTRIBUTE_KEYWORDS] = "keywords",
  [ATTRIBUTE_INTEGER] = "integer", [ATTRIBUTE_NUMBER] = "number",   [ATTRIBUTE_TIME] = "time",
};

size_t attributes_find(const struct attributes *attributes, struct span name, size_t hint)
{
  if (hint < attributes->n && span_equal(attributes->v[hint].name, name))
    return hint;
  for (size_t i = 0; i < attributes->n; i++) {
    if (span_equal(attributes->v[i].name, name))
      return i;
  }
  return ATTRIBUTE_NONE;
}

static const char *copy_name(struct span name, char out[EDIT_TEXT_MAX + 1])
{
  snprintf(out, EDIT_TEXT_MAX + 1, "%.*s", (int)size_min(name.n, EDIT_TEXT_MAX), (const char *)name.p);
  return out;
}

struct span attributes_nearest(const struct attributes *attributes, struct span name)
{
  char wanted[EDIT_TEXT_MAX + 1], candidate[EDIT_TEXT_MAX + 1];
  size_t least = SIZE_MAX, nearest = 0;

  copy_name(name, wanted);
  for (size_t i = 0; i < attributes->n; i++) {
    size_t distance = edit_distance_by_letter(copy_name(attributes->v[i].name, candidate), wanted);
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return attributes->v[nearest].name;
}

err_t attributes_get(const struct attributes *attributes, struct span name, size_t *out)
{
  size_t found = attributes_find(attributes, name, 0);

  if (attributes->n == 0)
    FAIL(ERR_QUERY, "the configuration has no attributes");
  if (found == ATTRIBUTE_NONE) {
    struct span nearest = attributes_nearest(attributes, name);
    FAIL(ERR_QUERY, "%s is not an attribute; the nearest is '%.*s'", log_quote(name), (int)nearest.n,
         (const char *)nearest.p);
  }
  *out = found;
  return ERR_OK;
}

err_t attributes_copy(const struct attributes *from, struct attributes *out)
{
  AUTO(attributes_free) struct attributes copy = { 0 };
  struct attribute *v;

  TRY(mem_array(from->n, sizeof *v, &v));
  copy.v = v;
  for (; copy.n < from->n; copy.n++) {
    void *name;
    TRY(mem_copy(from->v[copy.n].name, &name));
    v[copy.n] = (struct attribute){ span_of(name, from->v[copy.n].name.n), from->v[copy.n].type };
  }
  *out = copy;
  copy = (struct attributes){ 0 };
  return ERR_OK;
}

void attributes_free(struct attributes *attributes)
{
  for (size_t i = 0; i < attributes->n; i++) {
    void *name = (void *)attributes->v[i].name.p;
    mem_free(&name);
  }
  mem_free(&attributes->v);
  attributes->n = 0;
}

const char *attribute_type_name(enum attribute_type type)
{
  return type_names[type];
}

bool attribute_type_find(struct span name, enum attribute_type *out)
{
  for (int i = 0; i < N_ATTRIBUTE_TYPES; i++) {
    if (span_equal(name, span_of_str(type_names[i]))) {
      *out = (enum attribute_type)i;
      return true;
    }
  }
  return false;
}

static bool is_letter(uint8_t c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool attribute_name_is_valid(struct span name)
{
  if (name.n < 1 || name.n > ATTRIBUTE_NAME_MAX || !is_letter(name.p[0]))
    return false;
  for (size_t i = 1; i < name.n; i++) {
    if (!is_letter(name.p[i]) && !(name.p[i] >= '0' && name.p[i] <= '9'))
      return false;
  }
  return true;
}
