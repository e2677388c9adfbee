/* SPDX-License-Identifier: Apache-2.0 */
/* Merging parts by space name, with a hash table of the put's spaces. Attributes are few, and are compared by name. */
#include "store/record/item_merge.h"

#include <xxhash.h>

/* The put's parts by space name. Open addressing, at most half full. */
struct part_table {
  const struct part **slots; /* [mask + 1], a power of 2; NULL: free */
  size_t mask;
};

/* Return the slot of a space's part, or the free slot where it would go. */
static const struct part **find(const struct part_table *table, struct span space)
{
  size_t i = XXH3_64bits(space.p, space.n) & table->mask;

  while (table->slots[i] && !span_equal(table->slots[i]->space, space))
    i = (i + 1) & table->mask;
  return &table->slots[i];
}

static err_t index_parts(const struct item_change *change, struct region *region, struct part_table *out)
{
  size_t capacity = 2;

  while (capacity < 2 * change->n_parts)
    capacity *= 2;
  out->mask = capacity - 1;
  TRY(region_array(region, capacity, sizeof *out->slots, &out->slots));
  for (size_t i = change->n_parts; i-- > 0;) { /* backwards: the last part of a space comes first and stays */
    const struct part **slot = find(out, change->parts[i].space);
    if (!*slot)
      *slot = &change->parts[i];
  }
  return ERR_OK;
}

/* Find the last value of an attribute in a list. */
static const struct attribute_value *find_attribute(const struct attribute_value *v, size_t n, struct span name)
{
  while (n-- > 0) {
    if (span_equal(v[n].name, name))
      return &v[n];
  }
  return NULL;
}

static err_t merge_attributes(const struct item_change *stored, const struct item_change *change, struct region *region,
                              struct item_change *out)
{
  struct attribute_value *merged;
  size_t n = 0;

  TRY(region_array(region, stored->n_attributes + change->n_attributes, sizeof *merged, &merged));
  for (size_t i = 0; i < stored->n_attributes; i++)
    if (!find_attribute(change->attributes, change->n_attributes, stored->attributes[i].name))
      merged[n++] = stored->attributes[i];
  for (size_t i = 0; i < change->n_attributes; i++) {
    const struct attribute_value *a = &change->attributes[i];
    if (a->value.kind != VALUE_NULL && find_attribute(change->attributes, change->n_attributes, a->name) == a)
      merged[n++] = *a;
  }
  out->attributes = merged;
  out->n_attributes = n;
  return ERR_OK;
}

err_t item_merge(const struct item_change *stored, const struct item_change *change, struct region *region,
                 struct item_change *out)
{
  struct part_table table;
  struct part *parts;
  size_t n = 0;

  TRY(index_parts(change, region, &table));
  TRY(region_array(region, stored->n_parts + change->n_parts, sizeof *parts, &parts));
  for (size_t i = 0; i < stored->n_parts; i++)
    if (!*find(&table, stored->parts[i].space))
      parts[n++] = stored->parts[i];
  for (size_t i = 0; i < change->n_parts; i++)
    if (*find(&table, change->parts[i].space) == &change->parts[i])
      parts[n++] = change->parts[i];
  *out = *change;
  out->parts = parts;
  out->n_parts = n;
  return merge_attributes(stored, change, region, out);
}
