/* SPDX-License-Identifier: Apache-2.0 */
/* Merging by space name, with a hash table of the put's spaces. */
#include "store/item_merge.h"

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

static err_t fill(const struct item_change *change, struct region *region, struct part_table *out)
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

err_t item_merge(const struct item_change *stored, const struct item_change *change, struct region *region,
                 struct item_change *out)
{
  struct part_table table;
  struct part *parts;
  size_t n = 0;

  TRY(fill(change, region, &table));
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
  return ERR_OK;
}
