/* SPDX-License-Identifier: Apache-2.0 */
/* Histogram buckets, and the counts and quantiles taken from them. */
#include "base/hist.h"

/* Return the bucket of a value. Buckets 0..3 have the values 0..3; above, each power of two has four buckets. */
static unsigned bucket_of(uint64_t value)
{
  if (value < 4)
    return (unsigned)value;
  unsigned power = 63 - (unsigned)__builtin_clzll(value);
  unsigned bucket = 4 * (power - 1) + (unsigned)(value >> (power - 2) & 3);
  return bucket < HIST_BUCKETS ? bucket : HIST_BUCKETS - 1;
}

static uint64_t upper_end(unsigned bucket)
{
  if (bucket < 4)
    return bucket;
  unsigned power = bucket / 4 + 1;
  return ((uint64_t)(4 + bucket % 4 + 1) << (power - 2)) - 1;
}

void hist_add(struct hist *h, uint64_t value)
{
  atomic_fetch_add_explicit(&h->counts[bucket_of(value)], 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *count)
{
  return atomic_load_explicit(count, memory_order_relaxed);
}

static uint64_t sum_of(const uint64_t counts[HIST_BUCKETS])
{
  uint64_t n = 0;

  for (unsigned i = 0; i < HIST_BUCKETS; i++)
    n += counts[i];
  return n;
}

static uint64_t quantile_of(const uint64_t counts[HIST_BUCKETS], double q)
{
  uint64_t n = sum_of(counts);
  double rank = q * (double)n;
  uint64_t seen = 0;

  for (unsigned i = 0; i < HIST_BUCKETS && n; i++) {
    seen += counts[i];
    if ((double)seen >= rank && seen)
      return upper_end(i);
  }
  return 0;
}

static void copy_counts(const struct hist *h, uint64_t counts[HIST_BUCKETS])
{
  for (unsigned i = 0; i < HIST_BUCKETS; i++)
    counts[i] = get(&h->counts[i]);
}

/* Copy the counts of a window. If another thread turns the window at the same time, the copy mixes buckets of the old
 * and the new window. Quantiles tolerate that. */
static void copy_window(const struct hist_window *w, const struct hist *h, uint64_t counts[HIST_BUCKETS])
{
  for (unsigned i = 0; i < HIST_BUCKETS; i++) {
    uint64_t before = get(&w->before[1][i]);
    uint64_t now = get(&h->counts[i]);
    counts[i] = now > before ? now - before : 0;
  }
}

void hist_powers_get(const struct hist *h, struct hist_powers *out)
{
  uint64_t counts[HIST_BUCKETS];
  uint64_t n = 0;
  unsigned bucket = 0;

  copy_counts(h, counts);
  for (unsigned power = 0; power < HIST_POWERS; power++) {
    while (bucket < bucket_of(UINT64_C(1) << power)) /* a power of two is the smallest value of its bucket */
      n += counts[bucket++];
    out->below[power] = n;
  }
  out->n = sum_of(counts);
}

void hist_window_turn(struct hist_window *w, const struct hist *h)
{
  for (unsigned i = 0; i < HIST_BUCKETS; i++) {
    atomic_store_explicit(&w->before[1][i], get(&w->before[0][i]), memory_order_relaxed);
    atomic_store_explicit(&w->before[0][i], get(&h->counts[i]), memory_order_relaxed);
  }
}

uint64_t hist_window_count(const struct hist_window *w, const struct hist *h)
{
  uint64_t counts[HIST_BUCKETS];

  copy_window(w, h, counts);
  return sum_of(counts);
}

uint64_t hist_window_quantile(const struct hist_window *w, const struct hist *h, double q)
{
  uint64_t counts[HIST_BUCKETS];

  copy_window(w, h, counts);
  return quantile_of(counts, q);
}
