/* SPDX-License-Identifier: Apache-2.0 */
/* Dividing numbers into buckets by quantiles of a sample. */
#include "engine/attributes/value_buckets.h"

#include <stdlib.h>

#include "base/compare.h"
#include "base/mem.h"

enum {
  SAMPLE = 4096, /* at most twice as many values are sampled */
  DIVIDE_FROM = 4096,
  GAIN_MAX = 4 /* usual buckets: with a larger gain, a bucket is too full */
};

/* One bucket takes all values until there is a sample. */
static void reset_starts(struct value_buckets *b)
{
  for (size_t i = 0; i < VALUE_BUCKETS - 1; i++)
    b->starts[i] = INT64_MAX;
}

static void reset_range(struct value_buckets *b)
{
  b->low = INT64_MAX;
  b->high = INT64_MIN;
}

static void widen_range(struct value_buckets *b, int64_t value)
{
  b->low = value < b->low ? value : b->low;
  b->high = value > b->high ? value : b->high;
}

err_t value_buckets_init(size_t n_words, struct value_buckets *out)
{
  *out = (struct value_buckets){ 0 };
  reset_starts(out);
  reset_range(out);
  return mem_reserve(n_words * 64, sizeof *out->of_slot, &out->of_slot);
}

void value_buckets_fini(struct value_buckets *b, size_t n_words)
{
  mem_release(&b->of_slot, n_words * 64, sizeof *b->of_slot);
}

uint8_t value_buckets_find(const struct value_buckets *b, int64_t value)
{
  size_t bucket = 0;

  for (size_t step = VALUE_BUCKETS / 2; step > 0; step /= 2)
    bucket += b->starts[bucket + step - 1] <= value ? step : 0;
  return (uint8_t)bucket;
}

/* Has a bucket gained too large a share of the values? It is not asked before a quarter of the values were written, so
 * that dividing costs each write a few values. */
static bool is_too_full(const struct value_buckets *b, uint8_t bucket)
{
  if (b->n_writes < DIVIDE_FROM || b->n_writes < b->n_divided / 4)
    return false;
  double usual = (double)b->n / VALUE_BUCKETS;
  double share = b->n_divided ? (double)b->divided[bucket] / (double)b->n_divided : 0;
  return (double)b->counts[bucket] > share * (double)b->n + GAIN_MAX * usual;
}

bool value_buckets_put(struct value_buckets *b, uint32_t slot, bool had_value, int64_t value)
{
  uint8_t bucket = value_buckets_find(b, value);

  if (had_value)
    b->counts[b->of_slot[slot]]--;
  else
    b->n++;
  b->counts[bucket]++;
  b->of_slot[slot] = bucket;
  widen_range(b, value);
  b->n_writes++;
  return is_too_full(b, bucket);
}

void value_buckets_drop(struct value_buckets *b, uint32_t slot)
{
  b->counts[b->of_slot[slot]]--;
  b->of_slot[slot] = 0;
  b->n--;
}

void value_buckets_move(struct value_buckets *b, uint32_t from, uint32_t to)
{
  b->of_slot[to] = b->of_slot[from];
  b->of_slot[from] = 0;
}

/* Take every step-th value. Returns how many. */
static size_t draw_sample(const uint64_t *present, const int64_t *values, size_t n_words, uint64_t n,
                          int64_t out[2 * SAMPLE])
{
  uint64_t step = n / SAMPLE > 1 ? n / SAMPLE : 1, skipped = 0;
  size_t n_drawn = 0;

  for (size_t w = 0; w < n_words && n_drawn < n / step; w++) {
    for (uint64_t rest = present[w]; rest && n_drawn < 2 * SAMPLE; rest &= rest - 1) {
      if (++skipped == step) {
        out[n_drawn++] = values[w * 64 + (size_t)__builtin_ctzll(rest)];
        skipped = 0;
      }
    }
  }
  return n_drawn;
}

static size_t remove_repeated(int64_t *sorted, size_t n)
{
  size_t n_unique = 0;

  for (size_t i = 0; i < n; i++) {
    if (i == 0 || sorted[i] != sorted[i - 1])
      sorted[n_unique++] = sorted[i];
  }
  return n_unique;
}

/* With few different values each gets a bucket, which then lies in every range that has the value. */
static void choose_starts(struct value_buckets *b, int64_t *sample, size_t n)
{
  int64_t quantiles[VALUE_BUCKETS - 1];

  reset_starts(b);
  if (n == 0)
    return;
  qsort(sample, n, sizeof *sample, compare_int64);
  for (size_t i = 0; i < VALUE_BUCKETS - 1; i++)
    quantiles[i] = sample[(i + 1) * n / VALUE_BUCKETS];
  size_t n_unique = remove_repeated(sample, n);
  if (n_unique < VALUE_BUCKETS)
    memcpy(b->starts, sample, n_unique * sizeof *sample);
  else
    memcpy(b->starts, quantiles, sizeof quantiles);
}

void value_buckets_divide(struct value_buckets *b, const uint64_t *present, const int64_t *values, size_t n_words,
                          uint64_t n)
{
  int64_t sample[2 * SAMPLE];

  choose_starts(b, sample, draw_sample(present, values, n_words, n, sample));
  memset(b->counts, 0, sizeof b->counts);
  reset_range(b);
  b->n = 0;
  for (size_t w = 0; w < n_words && b->n < n; w++) {
    b->n += (uint64_t)__builtin_popcountll(present[w]);
    for (uint64_t rest = present[w]; rest; rest &= rest - 1) {
      size_t slot = w * 64 + (size_t)__builtin_ctzll(rest);
      b->of_slot[slot] = value_buckets_find(b, values[slot]);
      b->counts[b->of_slot[slot]]++;
      widen_range(b, values[slot]);
    }
  }
  memcpy(b->divided, b->counts, sizeof b->divided);
  b->n_divided = b->n;
  b->n_writes = 0;
}

/* A bucket begins at its start and ends before the next one's. */
struct value_range value_buckets_range(const struct value_buckets *b, int64_t low, int64_t high)
{
  struct value_range r = { .first = value_buckets_find(b, low), .last = value_buckets_find(b, high) };
  bool begins_with_bucket = low == (r.first > 0 ? b->starts[r.first - 1] : INT64_MIN);
  bool ends_with_bucket = r.last < VALUE_BUCKETS - 1 ? high == b->starts[r.last] - 1 : high == INT64_MAX;

  r.inner_first = begins_with_bucket ? r.first : r.first + 1;
  r.inner_last = ends_with_bucket ? r.last : r.last - 1;
  return r;
}

/* How many values has a bucket at most? 0: 2^64. */
static uint64_t width_of(const struct value_buckets *b, uint8_t bucket)
{
  int64_t first = bucket > 0 ? b->starts[bucket - 1] : INT64_MIN;

  return (bucket < VALUE_BUCKETS - 1 ? (uint64_t)b->starts[bucket] : (uint64_t)INT64_MAX + 1) - (uint64_t)first;
}

void value_buckets_set(const struct value_buckets *b, const int64_t *values, size_t n, struct value_bucket_set *out)
{
  uint64_t n_found = 0;

  *out = (struct value_bucket_set){ 0 };
  for (size_t i = 0; i < n; i++) {
    uint8_t bucket = value_buckets_find(b, values[i]);
    n_found = i > 0 && bucket == value_buckets_find(b, values[i - 1]) ? n_found + 1 : 1;
    out->touched[bucket / 8] |= (uint8_t)(1u << bucket % 8);
    if (n_found == width_of(b, bucket))
      out->inner[bucket / 8] |= (uint8_t)(1u << bucket % 8);
  }
}

bool value_buckets_bounds(const struct value_buckets *b, unsigned bucket, int64_t *low, int64_t *high)
{
  if (b->counts[bucket] == 0)
    return false;
  *low = bucket > 0 && b->starts[bucket - 1] > b->low ? b->starts[bucket - 1] : b->low;
  *high = bucket < VALUE_BUCKETS - 1 && b->starts[bucket] <= b->high ? b->starts[bucket] - 1 : b->high;
  return true;
}

uint64_t value_buckets_count(const struct value_buckets *b, int first, int last)
{
  uint64_t n = 0;

  for (int i = first; i <= last; i++)
    n += b->counts[i];
  return n;
}
