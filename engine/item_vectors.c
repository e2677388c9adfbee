/* SPDX-License-Identifier: Apache-2.0 */
/* Asks one backend after the other. */
#include "engine/item_vectors.h"

bool item_vectors_can_be_read(const struct space *space, const struct backends *backends)
{
  for (size_t b = 0; b < backends->n; b++) {
    if (backends->at[b]->columns[space->similarity->kind]->read_vector)
      return true;
  }
  return false;
}

err_t item_vectors_check(const struct space *space, const struct backends *backends, const char *field)
{
  if (!item_vectors_can_be_read(space, backends))
    FAIL(ERR_QUERY, "%s: the items are in the memory of a GPU only (engine.backend: cuda)", field);
  return ERR_OK;
}

err_t item_vectors_read(const struct arena *arena, const struct arena_space *space, uint32_t slot,
                        struct region *region, struct floats *out)
{
  *out = (struct floats){ 0 };
  ARENA_FOR_EACH_BACKEND (arena, b) {
    const struct columns *columns = space->on[b];
    if (columns->ops->read_vector && out->n == 0)
      TRY(columns->ops->read_vector(columns, slot, region, out));
  }
  return ERR_OK;
}
