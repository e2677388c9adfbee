/* SPDX-License-Identifier: Apache-2.0 */
/* The vector of an item's part, as that of a query. */
#include "engine/like.h"

#include <string.h>

#include "engine/item_vectors.h"

bool like_is_possible(const struct space *space, const struct backends *backends)
{
  return space->similarity->has_alike_queries && item_vectors_can_be_read(space, backends);
}

err_t like_check(const struct query *query, const struct space *space, const struct backends *backends)
{
  if (query->vector.n || query->components.n || query->query_gate.n || query->has_user_id)
    FAIL(ERR_QUERY, "like: the query has a vector, or other data of its own, as well: leave one of the two out");
  if (!space->similarity->has_alike_queries)
    FAIL(ERR_QUERY, "like: a query of a %s space has other data than an item: send a vector", space->similarity->name);
  return item_vectors_check(space, backends, "like");
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
  TRY(item_vectors_read(arena, &arena->spaces[space], slot, region, &copy->vector));
  *out = copy;
  return exclude_item(copy, region);
}
