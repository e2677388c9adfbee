#include "base/hist.h"

/* Buckets 0..3 hold the values 0..3; above, four buckets a power of two. */
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

uint64_t hist_count(const struct hist *h)
{
  uint64_t n = 0;

  for (unsigned i = 0; i < HIST_BUCKETS; i++)
    n += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
  return n;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
  uint64_t n = hist_count(h);
  double rank = q * (double)n;
  uint64_t seen = 0;

  for (unsigned i = 0; i < HIST_BUCKETS && n; i++) {
    seen += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
    if ((double)seen >= rank && seen)
      return upper_end(i);
  }
  return 0;
}
