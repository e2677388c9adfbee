/* SPDX-License-Identifier: Apache-2.0 */
/* The data of an item's part, read from the columns of the first backend that can tell. */
#include "engine/like.h"

#include <string.h>

static const struct columns_ops *ops_of(const struct backend *backend, const struct space *space)
{
  return backend->columns[space->similarity->kind];
}

static bool can_read(const struct space *space, const struct backends *backends)
{
  for (size_t b = 0; b < backends->n; b++) {
    if (ops_of(backends->at[b], space)->read_vector)
      return true;
  }
  return false;
}

bool like_is_possible(const struct space *space, const struct backends *backends)
{
  return space->similarity->has_alike_queries && can_read(space, backends);
}

err_t like_check(const struct query *query, const struct space *space, const struct backends *backends)
{
  if (query->vector.n || query->components.n || query->query_gate.n || query->has_user_id)
    FAIL(ERR_QUERY, "like: the query has a vector, or other data of its own, as well: leave one of the two out");
  if (!space->similarity->has_alike_queries)
    FAIL(ERR_QUERY, "like: a query of a %s space has other data than an item: send a vector", space->similarity->name);
  if (!can_read(space, backends))
    FAIL(ERR_QUERY, "like: the items are in the memory of a GPU only (engine.backend: cuda)");
  return ERR_OK;
}

/* Read the vector of a slot that has a part. */
static err_t read_vector(const struct arena *arena, const struct arena_space *space, uint32_t slot,
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

/* Exclude the item, before the keys that the query names. */
static err_t exclude_item(struct query *query, struct region *region)
{
  struct span *keys;

  TRY(region_array(region, query->n_exclude + 1, sizeof *keys, &keys));
  keys[0] = query->like;
  if (query->n_exclude)
    memcpy(keys + 1, query->exclude, query->n_exclude * sizeof *keys);
  query->exclude = keys;
  query->n_exclude++;
  return ERR_OK;
}

err_t like_resolve(const struct arena *arena, size_t space, const struct query *query, struct region *region,
                   const struct query **out, const char **problem)
{
  uint32_t slot = keys_find(&arena->keys, query->like);
  struct query *copy;

  *problem = slot == KEYS_NONE                                ? "like: no item has this key"
             : !bits_get(arena->spaces[space].has_part, slot) ? "like: the item has no part in this space"
                                                              : NULL;
  if (*problem)
    return ERR_OK;
  TRY(region_array(region, 1, sizeof *copy, &copy));
  *copy = *query;
  TRY(read_vector(arena, &arena->spaces[space], slot, region, &copy->vector));
  *out = copy;
  return exclude_item(copy, region);
}
