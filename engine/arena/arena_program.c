/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a filter with the lives of items. These are two comparisons with the epoch's time, as users write them
 * (docs/filters.md): not begins > time and not expires <= time. So the device needs no bits of what is alive, and no
 * copy when time passes. */
#include "engine/arena/arena_program.h"

#include "engine/attributes/attribute_program.h"

/* Room for the nodes of a joined filter. */
struct joined {
  struct filter_node root, nots[2], ranges[2];
  const struct filter_node *operands[3], *inner[2];
};

/* Add: and not low <= attribute <= high. */
static void add_not(struct joined *j, size_t attribute, int64_t low, int64_t high)
{
  size_t n = j->root.operands.n, i = n - 1;

  j->ranges[i] = (struct filter_node){ .kind = FILTER_INTEGERS, .attribute = attribute, .integers = { low, high } };
  j->inner[i] = &j->ranges[i];
  j->nots[i] = (struct filter_node){ .kind = FILTER_NOT, .operands = { &j->inner[i], 1 } };
  j->operands[n] = &j->nots[i];
  j->root.operands.n++;
}

err_t arena_program_make(const struct arena *arena, const struct filter_node *filter, struct region *region,
                         const struct filter_program **out)
{
  const struct lifetimes *lives = &arena->lifetimes;
  struct joined j = { .operands = { filter } };

  j.root = (struct filter_node){ .kind = FILTER_AND, .operands = { j.operands, 1 } };
  if (lives->plan.expires != ATTRIBUTE_NONE)
    add_not(&j, lives->plan.expires, INT64_MIN, lives->time_ms);
  if (lives->plan.not_before != ATTRIBUTE_NONE && lives->time_ms < INT64_MAX)
    add_not(&j, lives->plan.not_before, lives->time_ms + 1, INT64_MAX);
  return attribute_program_make(arena->attributes, &j.root, region, out);
}
