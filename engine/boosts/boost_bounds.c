/* SPDX-License-Identifier: Apache-2.0 */
/* What boosts add at most, and the scans for one boost. Those for several are in boost_levels.c. */
#include "engine/boosts/boost_levels.h"

#include <math.h>

#include "base/size.h"

enum { BLOCK_WORDS = PQ_BLOCK_ITEMS / 64 };

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

/* The items that the filter admits, or the others, or all. */
static void narrow_by_filter(const struct boost_bounds *bounds, double least, uint64_t *words)
{
  const struct boosts *b = bounds->boosts;
  bool is_enough = bounds->most[0][1] >= least, is_enough_without = 0.0 >= least;

  for (size_t w = 0; w < bits_words(b->arena->n_slots); w++) {
    uint64_t matched = b->v[0].words[w];
    words[w] &= (is_enough ? matched : 0) | (is_enough_without ? ~matched : 0);
  }
}

/* The items whose bucket may have enough. */
static void narrow_by_bucket(const struct boost_bounds *bounds, double least, uint64_t *words)
{
  const struct boosts *b = bounds->boosts;
  size_t n_words = bits_words(b->arena->n_slots);
  const uint8_t *buckets = attribute_columns_buckets(b->arena->attributes, b->v[0].attribute);
  const uint64_t *present = attribute_columns_present(b->arena->attributes, b->v[0].attribute);
  uint8_t set[VALUE_BUCKETS / 8] = { 0 };
  uint64_t found[BLOCK_WORDS];

  for (size_t bucket = 0; bucket < VALUE_BUCKETS; bucket++)
    set[bucket / 8] |= (uint8_t)((bounds->most[0][bucket] >= least) << bucket % 8);
  for (size_t first = 0; first < n_words; first += BLOCK_WORDS) {
    size_t n = size_min(BLOCK_WORDS, n_words - first);
    bounds->kernels->select_set_u8(buckets + first * 64, n, set, found);
    for (size_t w = 0; w < n; w++)
      words[first + w] &= found[w] & (least > 0 ? present[first + w] : UINT64_MAX);
  }
}

/* ---- Several boosts ---- */

/* An item of at least `least` has levels of BOOST_LEVEL_MAX or less together. */
static void narrow_by_sums(const struct boost_bounds *bounds, double least, uint64_t *words)
{
  static const struct boost_tables no_others = { 0 };
  size_t n_slots = bounds->boosts->arena->n_slots;

  boost_levels_choose(bounds->levels, least);
  boost_levels_quantise(bounds->levels, BOOST_LEVEL_MAX / boost_levels_range(bounds->levels, least));
  for (size_t first = 0; first < n_slots; first += PQ_BLOCK_ITEMS) {
    size_t n = size_min(PQ_BLOCK_ITEMS, n_slots - first);
    if (bits_count(words + first / 64, bits_words(n)) > 0)
      boost_levels_narrow(bounds->levels, &no_others, first, n, BOOST_LEVEL_MAX, words + first / 64);
  }
}

/* ---- All ---- */

uint64_t boost_bounds_narrow(const struct boost_bounds *bounds, double least, uint64_t *words)
{
  const struct boosts *b = bounds->boosts;

  if (least == -INFINITY)
    return bits_count(words, bits_words(b->arena->n_slots));
  if (b->n > 1)
    narrow_by_sums(bounds, least, words);
  else
    (b->v[0].filter ? narrow_by_filter : narrow_by_bucket)(bounds, least, words);
  return bits_count(words, bits_words(b->arena->n_slots));
}
