/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up the best items of a warm-up. */
#include "engine/recjpq/recjpq_unchecked.h"

#include <math.h>
#include <stdlib.h>

enum { ITEMS_MIN = 256, ITEMS_PER_HIT = 8 };

err_t recjpq_unchecked_init(size_t k, struct region *region, struct recjpq_unchecked *out)
{
  *out = (struct recjpq_unchecked){ .capacity = ITEMS_MIN + ITEMS_PER_HIT * k, .k = k };
  return region_array(region, out->capacity, sizeof *out->items, &out->items);
}

/* Move the items that reach the threshold to the front. Returns how many they are. */
static size_t partition(struct recjpq_unchecked *u, float threshold)
{
  size_t n = 0;

  for (size_t i = 0; i < u->n; i++) {
    struct recjpq_unchecked_item item = u->items[i];
    if (item.score < threshold)
      continue;
    u->items[i] = u->items[n];
    u->items[n++] = item;
  }
  return n;
}

void recjpq_unchecked_add(struct recjpq_unchecked *u, float score, const uint32_t *slot, float threshold)
{
  if (u->n == u->capacity)
    u->n = partition(u, threshold);
  if (u->n < u->capacity)
    u->items[u->n++] = (struct recjpq_unchecked_item){ score, slot };
}

static void prefetch(const struct recjpq_unchecked *u, const struct admit *admit, size_t n)
{
  for (size_t i = 0; i < n; i++)
    __builtin_prefetch(u->items[i].slot);
  for (size_t i = 0; i < n; i++)
    keys_prefetch_hash(admit->late->keys, *u->items[i].slot);
}

static int best_first(const void *a, const void *b)
{
  const struct recjpq_unchecked_item *x = a, *y = b;

  return (x->score < y->score) - (x->score > y->score);
}

/* Return the K-th best score of the admitted items. */
static float find_kth(struct recjpq_unchecked *u, const struct admit *admit)
{
  size_t n_admitted = 0;

  qsort(u->items, u->n, sizeof *u->items, best_first);
  for (size_t i = 0; i < u->n; i++) {
    n_admitted += admit_slot(admit, *u->items[i].slot);
    if (n_admitted == u->k)
      return u->items[i].score;
  }
  return -INFINITY;
}

float recjpq_unchecked_floor(struct recjpq_unchecked *u, const struct admit *admit, float threshold)
{
  size_t n = partition(u, threshold), n_admitted = 0;

  prefetch(u, admit, n);
  for (size_t i = 0; i < n; i++)
    n_admitted += admit_slot(admit, *u->items[i].slot);
  return n_admitted >= u->k ? threshold : find_kth(u, admit);
}
