/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the lengths that two models need. */
#include "engine/arena/shared_parts.h"

#include <stdio.h>

enum { TEXT_BYTES = 48 };

static bool is_alike(const struct space *a, const struct space *b)
{
  struct model_lengths x = a->similarity->lengths(a->model), y = b->similarity->lengths(b->model);

  return x.item_vector == y.item_vector && x.item_codes == y.item_codes;
}

static const char *describe(const struct space *space, char text[TEXT_BYTES])
{
  struct model_lengths lengths = space->similarity->lengths(space->model);

  if (lengths.item_codes > 0)
    snprintf(text, TEXT_BYTES, "%zu codes", lengths.item_codes);
  else
    snprintf(text, TEXT_BYTES, "a vector of %zu numbers", lengths.item_vector);
  return text;
}

err_t shared_parts_verify(const struct space_table *table, const struct space *space)
{
  size_t place = space_table_next_user(table, span_of_str(space->part_name), 0);
  char needed[TEXT_BYTES], there[TEXT_BYTES];

  if (place == SPACE_TABLE_NONE || is_alike(space, table->entries[place].space))
    return ERR_OK;
  const struct space *other = table->entries[place].space;
  FAIL(ERR_MODEL,
       "generation %u of space %s cannot use the parts of generation %u: its model needs %s of an item, and a part has "
       "%s. Add it with parts of its own",
       space->generation, space->name, other->generation, describe(space, needed), describe(other, there));
}
