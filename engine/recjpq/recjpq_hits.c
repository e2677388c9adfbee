/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts: the K-th best score, and what reaches it moves to the front. */
#include "engine/recjpq/recjpq_hits.h"

enum { SPARE_MIN = 64, SPARE_PART = 4 }; /* beyond K: so that a cut serves many additions */

err_t recjpq_hits_init(size_t k, struct region *region, struct recjpq_hits *out)
{
  *out =
      (struct recjpq_hits){ .k = k, .capacity = k + k / SPARE_PART + SPARE_MIN, .cut_at = k, .threshold = -INFINITY };
  TRY(kth_best_init(k, region, &out->kth));
  return region_array(region, out->capacity, sizeof *out->entries, &out->entries);
}

/* Raise the threshold to the K-th best score, if there are K, and drop what is below. */
static void drop_losers(struct recjpq_hits *h)
{
  size_t n = 0;

  kth_best_restart(&h->kth, h->k);
  for (size_t i = 0; i < h->n; i++)
    kth_best_add(&h->kth, h->entries[i].score);
  kth_best_cut(&h->kth);
  h->threshold = fmaxf(h->threshold, h->kth.threshold);
  for (size_t i = 0; i < h->n; i++) {
    struct topk_entry entry = h->entries[i];
    h->entries[n] = entry; /* n <= i: that entry has been read */
    n += entry.score >= h->threshold;
  }
  h->n = n;
}

static void give_all(struct recjpq_hits *h, struct topk *out)
{
  for (size_t i = 0; i < h->n; i++)
    topk_push(out, h->entries[i].score, h->entries[i].slot);
  h->n = 0;
}

void recjpq_hits_cut(struct recjpq_hits *h, struct topk *out)
{
  drop_losers(h);
  h->cut_at = h->capacity;
  if (h->capacity - h->n < SPARE_MIN)
    give_all(h, out);
}

void recjpq_hits_give(struct recjpq_hits *h, struct topk *out)
{
  if (h->n > h->k)
    drop_losers(h);
  give_all(h, out);
}
