/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the spaces of an engine: places, numbers, and what names mean. */
#include "engine/arena/space_table.h"

#include "base/mem.h"

err_t space_table_init(size_t capacity, struct space_table *out)
{
  *out = (struct space_table){ .capacity = capacity };
  return mem_array(capacity, sizeof *out->entries, &out->entries);
}

void space_table_fini(struct space_table *t)
{
  for (size_t i = 0; i < t->n; i++) {
    struct space *space = space_table_take(t, i);
    if (space)
      space_fini(space);
    mem_free(&space);
  }
  mem_free(&t->entries);
}

size_t space_table_room(const struct space_table *t)
{
  size_t place = 0;

  while (place < t->n && t->entries[place].space)
    place++;
  return place < t->capacity ? place : SPACE_TABLE_NONE;
}

void space_table_put(struct space_table *t, size_t place, struct space *space, bool is_current)
{
  space->number = t->next_number++;
  t->entries[place] = (struct space_entry){ space, is_current };
  t->n = place < t->n ? t->n : place + 1;
}

struct space *space_table_take(struct space_table *t, size_t place)
{
  struct space *space = t->entries[place].space;

  t->entries[place] = (struct space_entry){ 0 };
  return space;
}

size_t space_table_find(const struct space_table *t, struct span name, uint32_t generation)
{
  for (size_t i = 0; i < t->n; i++) {
    const struct space_entry *entry = &t->entries[i];
    if (entry->space && space_is(entry->space, entry->is_current, name, generation))
      return i;
  }
  return SPACE_TABLE_NONE;
}

static bool uses(const struct space *space, struct span part_name)
{
  static const char first[] = "@1"; /* `books@1` is another name for `books` */
  struct span used = span_of_str(space->part_name);

  if (part_name.n == used.n + 2 && memcmp(part_name.p + used.n, first, 2) == 0)
    part_name.n = used.n;
  return span_equal(part_name, used);
}

size_t space_table_next_user(const struct space_table *t, struct span part_name, size_t from)
{
  for (size_t i = from; i < t->n; i++) {
    if (t->entries[i].space && uses(t->entries[i].space, part_name))
      return i;
  }
  return SPACE_TABLE_NONE;
}
