/* SPDX-License-Identifier: Apache-2.0 */
/* Quicksort whose partitions have no branches on scores: a processor cannot predict those. Of two parts the larger one
 * waits, so that at most one part for each power of two waits at a time. */
#include "kernels/score_sort.h"

#include <math.h>
#include <string.h>

enum { SHORT = 16, WAITING_MAX = 64 };

struct part {
  struct topk_entry *entries;
  size_t n;
};

/* Count for each entry how many come before it. */
static void sort_short(struct part p)
{
  struct topk_entry copy[SHORT];

  memcpy(copy, p.entries, p.n * sizeof *copy);
  for (size_t i = 0; i < p.n; i++) {
    size_t n_before = 0;
    for (size_t j = 0; j < p.n; j++)
      n_before += (copy[j].score > copy[i].score) | ((copy[j].score == copy[i].score) & (j < i));
    p.entries[n_before] = copy[i];
  }
}

/* Move the entries above the pivot to the front, and those equal to it unless only those above are wanted. Returns how
 * many are in front. */
static inline size_t partition(struct part p, float pivot, bool is_above)
{
  size_t n_front = 0;

  for (size_t i = 0; i < p.n; i++) {
    struct topk_entry entry = p.entries[i];
    p.entries[i] = p.entries[n_front];
    p.entries[n_front] = entry;
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
static float pick_pivot(struct part p, uint64_t *dice)
{
  float picks[3];

  for (int i = 0; i < 3; i++) {
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    picks[i] = p.entries[(*dice >> 33) % p.n].score;
  }
  return median(picks[0], picks[1], picks[2]);
}

/* Split a part around a pivot. What is equal to the pivot is in its place then. */
static void split(struct part p, float pivot, struct part *above, struct part *below)
{
  size_t n_above = partition(p, pivot, true);
  struct part rest = { p.entries + n_above, p.n - n_above };
  size_t n_equal = partition(rest, pivot, false);

  *above = (struct part){ p.entries, n_above };
  *below = (struct part){ rest.entries + n_equal, rest.n - n_equal };
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
  struct part waiting[WAITING_MAX], p = { entries, n };
  size_t n_waiting = 0;
  uint64_t dice = n;

  if (never_falls(entries, n)) {
    reverse(entries, n);
    return;
  }
  for (;;) {
    while (p.n > SHORT) {
      struct part above, below;
      split(p, pick_pivot(p, &dice), &above, &below);
      p = above.n < below.n ? above : below;
      waiting[n_waiting++] = above.n < below.n ? below : above;
    }
    sort_short(p);
    if (n_waiting == 0)
      return;
    p = waiting[--n_waiting];
  }
}
