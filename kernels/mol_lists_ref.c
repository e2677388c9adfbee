/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar reference of the integer scans that append hits to lists, and of partition_ge(). Integer sums are exact:
 * a variant may add in any order.
 */
#include <string.h>

#include "kernels/variants.h"

enum { ITEMS = SKETCH_BLOCK_ITEMS };

/* Append the item if its sum is a hit. Returns how many entries were appended. */
static size_t append(struct scan_list *list, uint32_t sum, uint32_t slot)
{
  if ((int32_t)sum < 0)
    return 0;
  list->entries[list->n++] = (struct scan_entry){ (int32_t)(sum + (uint32_t)list->threshold), slot };
  return 1;
}

/* Return start + the dot product of row r with item i, of n_items, of a component. */
static uint32_t dot_bytes(const struct sketch_rows *rows, size_t r, const uint8_t *component, size_t n_items, size_t i,
                          int32_t start)
{
  uint32_t sum = (uint32_t)start;

  for (size_t g = 0; g < rows->n_groups; g++) {
    for (size_t k = 0; k < 4; k++) {
      int x = component[(g * n_items + i) * 4 + k];
      sum += (uint32_t)(x * rows->bytes[(g * rows->n_rows + r) * 4 + k]);
    }
  }
  return sum;
}

static size_t lists_ref(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t block_bytes,
                        size_t n_blocks, uint32_t first_slot, struct scan_list *lists)
{
  size_t component_bytes = rows->n_groups * ITEMS * 4, n = 0;

  for (size_t b = 0; b < n_blocks; b++) {
    for (size_t p = 0; p < rows->n_rows * n_components; p++) {
      const uint8_t *component = blocks + b * block_bytes + p % n_components * component_bytes;
      for (size_t i = 0; i < ITEMS; i++)
        n += append(&lists[p], dot_bytes(rows, p / n_components, component, ITEMS, i, lists[p].start),
                    first_slot + (uint32_t)(b * ITEMS + i));
    }
  }
  return n;
}

/* Does item i, of n_items, have a component and a row with a hit? */
static bool is_any(const struct sketch_rows *rows, size_t n_components, const uint8_t *items, size_t n_items, size_t i,
                   const int32_t *starts)
{
  for (size_t m = 0; m < n_components; m++, items += rows->n_groups * n_items * 4) {
    for (size_t r = 0; r < rows->n_rows; r++) {
      if ((int32_t)dot_bytes(rows, r, items, n_items, i, starts[r]) >= 0)
        return true;
    }
  }
  return false;
}

static void any_ref(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t n_blocks,
                    const int32_t *starts, uint16_t *masks)
{
  for (size_t b = 0; b < n_blocks; b++, blocks += n_components * rows->n_groups * ITEMS * 4) {
    unsigned mask = 0;
    for (size_t i = 0; i < ITEMS; i++)
      mask |= (unsigned)is_any(rows, n_components, blocks, ITEMS, i, starts) << i;
    masks[b] = (uint16_t)mask;
  }
}

static uint32_t any_tile_ref(const struct sketch_rows *rows, size_t n_components, const uint8_t *tile,
                             const int32_t *starts)
{
  uint32_t lanes = 0;

  for (size_t i = 0; i < MOL_LANES; i++)
    lanes |= (uint32_t)is_any(rows, n_components, tile, MOL_LANES, i, starts) << i;
  return lanes;
}

static size_t average_ref(const int16_t *rows, size_t n_rows, size_t n_groups, const int16_t *blocks, size_t n_blocks,
                          uint32_t first_slot, struct scan_list *lists)
{
  size_t n = 0;

  for (size_t b = 0; b < n_blocks; b++, blocks += n_groups * ITEMS * 2) {
    for (size_t r = 0; r < n_rows; r++) {
      for (size_t i = 0; i < ITEMS; i++) {
        uint32_t sum = (uint32_t)lists[r].start;
        for (size_t k = 0; k < 2 * n_groups; k++)
          sum += (uint32_t)(rows[(k / 2 * n_rows + r) * 2 + k % 2] * blocks[(k / 2 * ITEMS + i) * 2 + k % 2]);
        n += append(&lists[r], sum, first_slot + (uint32_t)(b * ITEMS + i));
      }
    }
  }
  return n;
}

/* Free of branches on scores: both arrays get every entry, and only one of the two counters advances. */
static size_t partition_ge_ref(struct scan_entry *entries, size_t n, int32_t threshold, struct scan_entry *spare)
{
  size_t n_front = 0, n_behind = 0;

  for (size_t i = 0; i < n; i++) {
    struct scan_entry entry = entries[i];
    size_t is_front = entry.score >= threshold;
    entries[n_front] = entry; /* n_front <= i: that entry has been read */
    spare[n_behind] = entry;
    n_front += is_front;
    n_behind += 1 - is_front;
  }
  memcpy(entries + n_front, spare, n_behind * sizeof *spare);
  return n_front;
}

void variant_mol_lists_ref(struct kernels *table)
{
  table->mol_lists = lists_ref;
  table->mol_any = any_ref;
  table->mol_any_tile = any_tile_ref;
  table->average_lists = average_ref;
  table->partition_ge = partition_ge_ref;
}
