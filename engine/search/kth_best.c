/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the K-th best score by partitions around random pivots. */
#include "engine/search/kth_best.h"

#include <string.h>

enum { SPARE = 64 }; /* gathered beyond 2 K, so that a small K is not cut all the time */

err_t kth_best_init(size_t k, struct region *region, struct kth_best *out)
{
  *out = (struct kth_best){ .k = k, .capacity = 2 * k + SPARE, .threshold = -INFINITY };
  TRY(region_array(region, out->capacity, sizeof *out->spare, &out->spare));
  return region_array(region, out->capacity, sizeof *out->scores, &out->scores);
}

/* Move the scores above the pivot to the front, and those equal to it unless only those above are wanted. Returns how
 * many are in front. Free of branches on scores: both arrays get every score, and only one of the two counters
 * advances. */
static inline size_t partition(float *x, size_t n, float pivot, bool is_above, float *spare)
{
  size_t n_front = 0, n_behind = 0;

  for (size_t i = 0; i < n; i++) {
    float score = x[i];
    size_t is_front = is_above ? score > pivot : score >= pivot;
    x[n_front] = score; /* n_front <= i: that score has been read */
    spare[n_behind] = score;
    n_front += is_front;
    n_behind += 1 - is_front;
  }
  memcpy(x + n_front, spare, n_behind * sizeof *spare);
  return n_front;
}

static float median(float a, float b, float c)
{
  float low = fminf(a, b), high = fmaxf(a, b);

  return fmaxf(low, fminf(high, c));
}

/* Return a score that is likely near the middle. `dice` makes each order of the scores equally fast. */
static float pick_pivot(const float *x, size_t n, uint64_t *dice)
{
  float picks[3];

  for (int i = 0; i < 3; i++) {
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    picks[i] = x[(*dice >> 33) % n];
  }
  return median(picks[0], picks[1], picks[2]);
}

/* Move the k best of n >= k scores to the front. Returns the k-th best. */
static float select_kth(float *x, size_t n, size_t k, float *spare)
{
  uint64_t dice = n;

  for (;;) {
    float pivot = pick_pivot(x, n, &dice);
    size_t n_front = partition(x, n, pivot, false, spare);
    if (n_front < k) {
      x += n_front;
      n -= n_front;
      k -= n_front;
      continue;
    }
    n = partition(x, n_front, pivot, true, spare);
    if (n < k)
      return pivot; /* the scores that follow are equal to it */
  }
}

void kth_best_cut(struct kth_best *b)
{
  if (b->n < b->k)
    return;
  b->threshold = select_kth(b->scores, b->n, b->k, b->spare);
  b->n = b->k;
}
