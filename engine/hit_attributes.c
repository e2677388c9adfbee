/* SPDX-License-Identifier: Apache-2.0 */
/* Verify the names, and copy the values out of the columns. */
#include "engine/hit_attributes.h"

#include "base/attributes.h"
#include "base/bits.h"
#include "engine/attributes/attribute_columns.h"

/* Are all attributes of the configuration wanted? No attribute has this name. */
static bool wants_all(const struct query *query)
{
  return query->n_attributes == 1 && span_equal(query->attributes[0], span_of_str("*"));
}

err_t hit_attributes_check(const struct query *query, const struct attributes *attributes)
{
  if (wants_all(query))
    return ERR_OK;
  for (size_t i = 0; i < query->n_attributes; i++) {
    struct span name = query->attributes[i];
    size_t found;
    if (span_equal(name, span_of_str("*")))
      FAIL(ERR_QUERY, "attributes[%zu]: \"*\" stands for all of them: give it alone", i);
    if (attributes_get(attributes, name, &found) != ERR_OK)
      FAIL(ERR_QUERY, "attributes[%zu]: %s", i, err_message());
    for (size_t j = 0; j < i; j++) {
      if (span_equal(query->attributes[j], name))
        FAIL(ERR_QUERY, "attributes[%zu]: '%.*s' occurs twice", i, (int)name.n, (const char *)name.p);
    }
  }
  return ERR_OK;
}

/* The attributes that a query wants, by their index. */
struct named {
  size_t v[ATTRIBUTES_MAX];
  size_t n;
};

static struct named find_named(const struct attributes *attributes, const struct query *query)
{
  bool is_all = wants_all(query);
  struct named named = { .n = is_all ? attributes->n : query->n_attributes };

  for (size_t i = 0; i < named.n; i++)
    named.v[i] = is_all ? i : attributes_find(attributes, query->attributes[i], 0);
  return named;
}

static bool has_attribute(const struct arena *arena, size_t attribute, uint32_t slot)
{
  return bits_get(attribute_columns_present(arena->attributes, attribute), slot);
}

/* An attribute that an item does not have is left out, and takes no memory. */
static err_t copy_hit(const struct arena *arena, const struct attributes *attributes, const struct named *named,
                      struct region *region, struct hit *hit)
{
  size_t n = 0;

  for (size_t i = 0; i < named->n; i++)
    n += has_attribute(arena, named->v[i], hit->slot);
  TRY(region_array(region, n, sizeof *hit->attributes, &hit->attributes));
  hit->n_attributes = 0;
  for (size_t i = 0; i < named->n; i++) {
    if (!has_attribute(arena, named->v[i], hit->slot))
      continue;
    struct attribute_value *to = &hit->attributes[hit->n_attributes++];
    to->name = attributes->v[named->v[i]].name;
    TRY(attribute_columns_copy_value(arena->attributes, named->v[i], hit->slot, region, &to->value));
  }
  return ERR_OK;
}

err_t hit_attributes_copy(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                          struct region *region, struct answer *answer, const char **problem)
{
  const struct named named = find_named(attributes, query);
  size_t before = region->taken_bytes;

  *problem = NULL;
  for (size_t i = 0; i < answer->n_hits; i++) {
    TRY(copy_hit(arena, attributes, &named, region, &answer->hits[i]));
    if (region->taken_bytes - before > HIT_ATTRIBUTES_BYTES_MAX) {
      *problem = "attributes: those of the hits take more than 16 MiB; ask for fewer of them, or for fewer hits";
      return ERR_OK;
    }
  }
  return ERR_OK;
}
