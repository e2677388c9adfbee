/* SPDX-License-Identifier: Apache-2.0 */
/* Quicksort whose partitions have no branches on scores: a processor cannot predict those. Of two ranges the larger one
 * waits, so that at most one range for each power of two waits at a time. */
#include "kernels/score_sort.h"

#include <math.h>
#include <string.h>

enum { SHORT = 16, WAITING_MAX = 64 };

struct range {
  struct topk_entry *entries;
  size_t n;
};

/* Count for each entry how many come before it. */
static void sort_short(struct range r)
{
  struct topk_entry copy[SHORT];

  memcpy(copy, r.entries, r.n * sizeof *copy);
  for (size_t i = 0; i < r.n; i++) {
    size_t n_before = 0;
    for (size_t j = 0; j < r.n; j++)
      n_before += (copy[j].score > copy[i].score) | ((copy[j].score == copy[i].score) & (j < i));
    r.entries[n_before] = copy[i];
  }
}

/* Move the entries above the pivot to the front, and those equal to it unless only those above are wanted. Returns how
 * many are in front. */
static inline size_t partition(struct range r, float pivot, bool is_above)
{
  size_t n_front = 0;

  for (size_t i = 0; i < r.n; i++) {
    struct topk_entry entry = r.entries[i];
    r.entries[i] = r.entries[n_front];
    r.entries[n_front] = entry;
    n_front += is_above ? entry.score > pivot : entry.score >= pivot;
  }
  return n_front;
}

static float median(float a, float b, float c)
{
  float low = fminf(a, b), high = fmaxf(a, b);

  return fmaxf(low, fminf(high, c));
}

/* Return a score that is likely near the middle. `dice` makes each order of the entries equally fast. */
static float pick_pivot(struct range r, uint64_t *dice)
{
  float picks[3];

  for (int i = 0; i < 3; i++) {
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    picks[i] = r.entries[(*dice >> 33) % r.n].score;
  }
  return median(picks[0], picks[1], picks[2]);
}

/* Split a range around a pivot. What is equal to the pivot is in its place then. */
static void split(struct range r, float pivot, struct range *above, struct range *below)
{
  size_t n_above = partition(r, pivot, true);
  struct range rest = { r.entries + n_above, r.n - n_above };
  size_t n_equal = partition(rest, pivot, false);

  *above = (struct range){ r.entries, n_above };
  *below = (struct range){ rest.entries + n_equal, rest.n - n_equal };
}

static bool never_falls(const struct topk_entry *entries, size_t n)
{
  for (size_t i = 1; i < n; i++) {
    if (entries[i].score < entries[i - 1].score)
      return false;
  }
  return true;
}

static void reverse(struct topk_entry *entries, size_t n)
{
  for (size_t i = 0; i < n / 2; i++) {
    struct topk_entry low = entries[i];
    entries[i] = entries[n - 1 - i];
    entries[n - 1 - i] = low;
  }
}

void score_sort(struct topk_entry *entries, size_t n)
{
  struct range waiting[WAITING_MAX], r = { entries, n };
  size_t n_waiting = 0;
  uint64_t dice = n;

  if (never_falls(entries, n)) {
    reverse(entries, n);
    return;
  }
  for (;;) {
    while (r.n > SHORT) {
      struct range above, below;
      split(r, pick_pivot(r, &dice), &above, &below);
      r = above.n < below.n ? above : below;
      waiting[n_waiting++] = above.n < below.n ? below : above;
    }
    sort_short(r);
    if (n_waiting == 0)
      return;
    r = waiting[--n_waiting];
  }
}
