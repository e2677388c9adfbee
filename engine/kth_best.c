/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the K-th best score: Hoare's FIND. */
#include "engine/kth_best.h"

enum { SPARE = 64 }; /* gathered beyond 2 K, so that a small K is not cut all the time */

err_t kth_best_init(size_t k, struct region *region, struct kth_best *out)
{
  *out = (struct kth_best){ .k = k, .capacity = 2 * k + SPARE, .threshold = -INFINITY };
  return region_array(region, out->capacity, sizeof *out->scores, &out->scores);
}

static void swap(float *a, float *b)
{
  float old = *a;

  *a = *b;
  *b = old;
}

/* Reorder: the k best come first, and the k-th best is in its place. */
static void select_kth(float *x, size_t n, size_t k)
{
  ptrdiff_t low = 0, high = (ptrdiff_t)n - 1, kth = (ptrdiff_t)k - 1;

  while (low < high) {
    float pivot = x[(low + high) / 2];
    ptrdiff_t i = low, j = high;
    while (i <= j) {
      while (x[i] > pivot)
        i++;
      while (x[j] < pivot)
        j--;
      if (i <= j)
        swap(&x[i++], &x[j--]);
    }
    if (kth <= j)
      high = j;
    else if (kth >= i)
      low = i;
    else
      return;
  }
}

void kth_best_cut(struct kth_best *b)
{
  if (b->n < b->k)
    return;
  select_kth(b->scores, b->n, b->k);
  b->n = b->k;
  b->threshold = b->scores[b->k - 1];
}
