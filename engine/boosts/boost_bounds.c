/* SPDX-License-Identifier: Apache-2.0 */
/* What boosts add at most, and the scans for one boost. Those for several are in boost_levels.c. */
#include "engine/boosts/boost_levels.h"

#include <math.h>
#include <string.h>

#include "base/size.h"

enum { BLOCK_WORDS = PQ_BLOCK_ITEMS / 64, SAMPLE_BLOCKS = 16 };

/* Return what values from `low` to `high` add at most. A boost is monotone in its value. */
static double most_between(const struct boosts *b, size_t i, double low, double high)
{
  return fmax(boosts_of_value(b, i, low), boosts_of_value(b, i, high)) + BOOST_SLACK * fabs(b->v[i].weight);
}

static double best_of(const struct boosts *b, size_t i)
{
  double low, high, best = -INFINITY;

  if (b->v[i].filter)
    return fmax(boosts_of_value(b, i, 0), 0.0);
  if (attribute_columns_range(b->arena->attributes, b->v[i].attribute, &low, &high))
    best = most_between(b, i, low, high);
  return boost_is_sparse(b, i) ? fmax(best, 0.0) : best;
}

double boost_bounds_highest(const struct boosts *b)
{
  double sum = 0.0;

  for (size_t i = 0; i < b->n; i++)
    sum += best_of(b, i);
  return sum;
}

/* Bucket 0 has the slots without the attribute, too. */
static void find_most(const struct boosts *b, size_t i, double most[VALUE_BUCKETS])
{
  double low, high;

  for (unsigned bucket = 0; bucket < VALUE_BUCKETS; bucket++) {
    most[bucket] = -INFINITY;
    if (attribute_columns_bucket_range(b->arena->attributes, b->v[i].attribute, bucket, &low, &high))
      most[bucket] = most_between(b, i, low, high);
  }
  if (boost_is_sparse(b, i))
    most[0] = fmax(most[0], 0.0);
}

err_t boost_bounds_make(const struct boosts *b, const struct kernels *kernels, struct region *region,
                        struct boost_bounds **out)
{
  struct boost_bounds *made;

  TRY(region_array(region, 1, sizeof *made, &made));
  TRY(region_array(region, 1, sizeof *made->levels, &made->levels));
  made->boosts = b;
  made->kernels = kernels;
  for (size_t i = 0; i < b->n; i++) {
    made->best[i] = best_of(b, i);
    made->highest += made->best[i];
    made->magnitude += fabs(made->best[i]);
    if (b->v[i].filter)
      made->most[i][1] = boosts_of_value(b, i, 0);
    else
      find_most(b, i, made->most[i]);
  }
  *out = made;
  return boost_levels_init(made, region, made->levels);
}

/* ---- One boost ---- */

/* Keep the items that the filter admits, or the others, or all. */
static void narrow_by_filter(const struct boost_bounds *bounds, double least, size_t first, size_t n, uint64_t *words)
{
  const uint64_t *matched = bounds->boosts->v[0].words + first;
  bool is_enough = bounds->most[0][1] >= least, is_enough_without = 0.0 >= least;

  for (size_t w = 0; w < n; w++)
    words[w] &= (is_enough ? matched[w] : 0) | (is_enough_without ? ~matched[w] : 0);
}

/* Which buckets may have enough? */
static void choose_buckets(const struct boost_bounds *bounds, double least, uint8_t set[VALUE_BUCKETS / 8])
{
  memset(set, 0, VALUE_BUCKETS / 8);
  for (size_t bucket = 0; bucket < VALUE_BUCKETS; bucket++)
    set[bucket / 8] |= (uint8_t)((bounds->most[0][bucket] >= least) << bucket % 8);
}

/* Keep the items of these buckets. */
static void narrow_by_bucket(const struct boost_bounds *bounds, double least, const uint8_t *set, size_t first,
                             size_t n, uint64_t *words)
{
  const struct boosts *b = bounds->boosts;
  const uint8_t *buckets = attribute_columns_buckets(b->arena->attributes, b->v[0].attribute);
  const uint64_t *present = attribute_columns_present(b->arena->attributes, b->v[0].attribute);
  uint64_t found[BLOCK_WORDS];

  bounds->kernels->select_set_u8(buckets + first * 64, n, set, found);
  for (size_t w = 0; w < n; w++)
    words[w] &= found[w] & (least > 0 ? present[first + w] : UINT64_MAX);
}

/* ---- Several boosts ---- */

/* An item of at least `least` has levels of BOOST_LEVEL_MAX or less together. */
static void choose_levels(const struct boost_bounds *bounds, double least)
{
  boost_levels_choose(bounds->levels, least);
  boost_levels_quantise(bounds->levels, BOOST_LEVEL_MAX / boost_levels_range(bounds->levels, least));
}

static void narrow_by_sums(const struct boost_bounds *bounds, size_t first, size_t n, uint64_t *words)
{
  static const struct boost_tables no_others = { 0 };
  size_t n_slots = size_min(n * 64, bounds->boosts->arena->n_slots - first * 64);

  if (bits_count(words, n) > 0)
    boost_levels_narrow(bounds->levels, &no_others, first * 64, n_slots, BOOST_LEVEL_MAX, words);
}

/* ---- All ---- */

/* Narrow the bits of a block, and of every `step`-th one after it. Returns how many are left in these. */
static uint64_t narrow_blocks(const struct boost_bounds *bounds, double least, size_t step, uint64_t *words)
{
  const struct boosts *b = bounds->boosts;
  size_t n_words = bits_words(b->arena->n_slots);
  uint8_t set[VALUE_BUCKETS / 8];
  uint64_t n_left = 0;

  if (b->n > 1)
    choose_levels(bounds, least);
  else if (!b->v[0].filter)
    choose_buckets(bounds, least, set);
  for (size_t first = 0; first < n_words; first += step * BLOCK_WORDS) {
    size_t n = size_min(BLOCK_WORDS, n_words - first);
    if (b->n > 1)
      narrow_by_sums(bounds, first, n, words + first);
    else if (b->v[0].filter)
      narrow_by_filter(bounds, least, first, n, words + first);
    else
      narrow_by_bucket(bounds, least, set, first, n, words + first);
    n_left += bits_count(words + first, n);
  }
  return n_left;
}

uint64_t boost_bounds_narrow(const struct boost_bounds *bounds, double least, uint64_t *words)
{
  if (least == -INFINITY)
    return bits_count(words, bits_words(bounds->boosts->arena->n_slots));
  return narrow_blocks(bounds, least, 1, words);
}

uint64_t boost_bounds_estimate(const struct boost_bounds *bounds, double least, const uint64_t *words,
                               uint64_t *scratch)
{
  size_t n_words = bits_words(bounds->boosts->arena->n_slots);
  size_t step = size_max(n_words / BLOCK_WORDS / SAMPLE_BLOCKS, 1);

  for (size_t first = 0; first < n_words; first += step * BLOCK_WORDS)
    memcpy(scratch + first, words + first, size_min(BLOCK_WORDS, n_words - first) * sizeof *scratch);
  return step * narrow_blocks(bounds, least, step, scratch);
}
