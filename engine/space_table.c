/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the spaces of an engine: places, numbers, and what names mean. */
#include "engine/space_table.h"

#include "base/mem.h"
#include "base/space_name.h"

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

static bool is_found(const struct space_entry *entry, struct span name, uint32_t generation)
{
  if (!entry->space || !span_equal(span_of_str(entry->space->name), name))
    return false;
  return generation ? entry->space->generation == generation : entry->is_current;
}

size_t space_table_find(const struct space_table *t, struct span name, uint32_t generation)
{
  for (size_t i = 0; i < t->n; i++) {
    if (is_found(&t->entries[i], name, generation))
      return i;
  }
  return SPACE_TABLE_NONE;
}

size_t space_table_find_part(const struct space_table *t, struct span part_name)
{
  struct space_name name;

  for (size_t i = 0; i < t->n; i++) {
    if (t->entries[i].space && span_equal(part_name, span_of_str(t->entries[i].space->part_name)))
      return i;
  }
  return space_name_parse(part_name, &name) && name.generation == 1 ? space_table_find(t, name.space, 1)
                                                                    : SPACE_TABLE_NONE;
}
