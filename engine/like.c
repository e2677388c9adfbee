/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of items, as that of a query. */
#include "engine/like.h"

#include <math.h>
#include <string.h>

#include "engine/item_vectors.h"

bool like_is_possible(const struct space *space, const struct backends *backends)
{
  return space->similarity->has_alike_queries && item_vectors_can_be_read(space, backends);
}

err_t like_check(const struct query *query, const struct space *space, const struct backends *backends)
{
  if (query->vector.n || query->components.n || query->query_gate.n || query->has_user_id)
    FAIL(ERR_QUERY,
         "like or likes: the query has a vector, or other data of its own, as well: leave one of the two out");
  if (!space->similarity->has_alike_queries)
    FAIL(ERR_QUERY, "like: a query of a %s space has other data than an item: send a vector", space->similarity->name);
  return item_vectors_check(space, backends, "like");
}

/* Exclude the items, before the keys that the query names. */
static err_t exclude_items(struct query *query, struct region *region)
{
  struct span *keys;

  TRY(region_array(region, query->n_likes + query->n_exclude, sizeof *keys, &keys));
  for (size_t i = 0; i < query->n_likes; i++)
    keys[i] = query->likes[i].key;
  if (query->n_exclude)
    memcpy(keys + query->n_likes, query->exclude, query->n_exclude * sizeof *keys);
  query->exclude = keys;
  query->n_exclude += query->n_likes;
  return ERR_OK;
}

/* A weighted mean of vectors. */
struct mean {
  double *sums; /* [n]; NULL: no vector was added */
  size_t n;
  double weight; /* of all vectors, in magnitude */
};

static err_t add(struct mean *mean, struct floats vector, double weight, struct region *region)
{
  if (!mean->sums) {
    TRY(region_array(region, vector.n, sizeof *mean->sums, &mean->sums));
    memset(mean->sums, 0, vector.n * sizeof *mean->sums);
    mean->n = vector.n;
  }
  for (size_t i = 0; i < mean->n; i++)
    mean->sums[i] += weight * (double)vector.v[i];
  mean->weight += fabs(weight);
  return ERR_OK;
}

static err_t take(const struct mean *mean, struct region *region, struct floats *out)
{
  float *v;

  TRY(region_array(region, mean->n, sizeof *v, &v));
  for (size_t i = 0; i < mean->n; i++)
    v[i] = (float)(mean->sums[i] / mean->weight);
  *out = (struct floats){ v, mean->n };
  return ERR_OK;
}

/* Why is there no vector, although there are items to be like? */
static const char *problem_of(const struct arena *arena, const struct query *query)
{
  if (query->n_likes > 1)
    return "likes: none of these items has a part in this space";
  return keys_find(&arena->keys, query->likes[0].key) == KEYS_NONE ? "like: no item has this key"
                                                                   : "like: the item has no part in this space";
}

err_t like_resolve(const struct arena *arena, size_t space, const struct query *query, struct region *region,
                   const struct query **out, struct answer *answer, const char **problem)
{
  const struct arena_space *in = &arena->spaces[space];
  struct mean mean = { 0 };
  struct floats vector;
  struct query *copy;

  TRY(region_array(region, query->n_likes, sizeof *answer->likes_missing, &answer->likes_missing));
  answer->n_likes_missing = 0;
  for (size_t i = 0; i < query->n_likes; i++) {
    const struct like *like = &query->likes[i];
    uint32_t slot = keys_find(&arena->keys, like->key);
    if (slot == KEYS_NONE || !bits_get(in->has_part, slot)) {
      answer->likes_missing[answer->n_likes_missing++] = like->key;
      continue;
    }
    TRY(item_vectors_read(arena, in, slot, region, &vector));
    TRY(add(&mean, vector, like->weight, region));
  }
  *problem = mean.sums ? NULL : problem_of(arena, query);
  if (*problem)
    return ERR_OK;
  TRY(region_array(region, 1, sizeof *copy, &copy));
  *copy = *query;
  TRY(take(&mean, region, &copy->vector));
  *out = copy;
  return exclude_items(copy, region);
}
