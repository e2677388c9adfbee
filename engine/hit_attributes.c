/* SPDX-License-Identifier: Apache-2.0 */
/* Verify the names, and copy the values out of the columns. */
#include "engine/hit_attributes.h"

#include "base/attributes.h"
#include "engine/attributes/attribute_columns.h"

err_t hit_attributes_check(const struct query *query, const struct attributes *attributes)
{
  for (size_t i = 0; i < query->n_attributes; i++) {
    struct span name = query->attributes[i];
    size_t found;
    if (attributes_find_asked(attributes, name, &found) != ERR_OK)
      FAIL(ERR_QUERY, "attributes[%zu]: %s", i, err_message());
    for (size_t j = 0; j < i; j++) {
      if (span_equal(query->attributes[j], name))
        FAIL(ERR_QUERY, "attributes[%zu]: '%.*s' occurs twice", i, (int)name.n, (const char *)name.p);
    }
  }
  return ERR_OK;
}

/* An attribute that an item does not have is left out. */
static err_t copy_hit(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                      struct region *region, struct hit *hit)
{
  TRY(region_array(region, query->n_attributes, sizeof *hit->attributes, &hit->attributes));
  hit->n_attributes = 0;
  for (size_t i = 0; i < query->n_attributes; i++) {
    struct attribute_value *to = &hit->attributes[hit->n_attributes];
    size_t attribute = attributes_find(attributes, query->attributes[i], i);
    TRY(attribute_columns_copy_value(arena->attributes, attribute, hit->slot, region, &to->value));
    if (to->value.kind == VALUE_NULL)
      continue;
    to->name = attributes->v[attribute].name;
    hit->n_attributes++;
  }
  return ERR_OK;
}

err_t hit_attributes_copy(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                          struct region *region, struct answer *answer, const char **problem)
{
  size_t before = region->taken_bytes;

  for (size_t i = 0; i < answer->n_hits; i++) {
    TRY(copy_hit(arena, attributes, query, region, &answer->hits[i]));
    if (region->taken_bytes - before > HIT_ATTRIBUTES_BYTES_MAX) {
      *problem = "attributes: those of the hits take more than 16 MiB; ask for fewer of them, or for fewer hits";
      return ERR_OK;
    }
  }
  return ERR_OK;
}
