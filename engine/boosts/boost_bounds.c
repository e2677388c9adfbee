/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of levels, and their scan. */
#include "engine/boosts/boost_bounds.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/size.h"

/* Sums are rounded, and decay() is not quite monotone. Both errors are far below this share. */
#define SLACK 1e-11

/* A level of more is too low. */
enum { LEVEL_MAX = 254 };

enum { BLOCK_WORDS = PQ_BLOCK_ITEMS / 64 };

/* Does an item of the arena lack the attribute? */
static bool is_sparse(const struct boosts *b, size_t i)
{
  return attribute_columns_count(b->arena->attributes, b->v[i].attribute) < b->arena->n_slots;
}

/* Return what values from `low` to `high` add at most. A boost is monotone in its value. */
static double most_between(const struct boosts *b, size_t i, double low, double high)
{
  return fmax(boosts_of_value(b, i, low), boosts_of_value(b, i, high)) + SLACK * fabs(b->v[i].weight);
}

static double best_of(const struct boosts *b, size_t i)
{
  double low, high, best = -INFINITY;

  if (b->v[i].filter)
    return fmax(boosts_of_value(b, i, 0), 0.0);
  if (attribute_columns_range(b->arena->attributes, b->v[i].attribute, &low, &high))
    best = most_between(b, i, low, high);
  return is_sparse(b, i) ? fmax(best, 0.0) : best;
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
  if (is_sparse(b, i))
    most[0] = fmax(most[0], 0.0);
}

err_t boost_bounds_make(const struct boosts *b, const struct kernels *kernels, struct region *region,
                        struct boost_bounds **out)
{
  struct boost_bounds *made;

  TRY(region_array(region, 1, sizeof *made, &made));
  TRY(region_aligned(region, b->n, PQ_SUBITEMS, &made->levels));
  TRY(region_aligned(region, b->n * PQ_BLOCK_ITEMS + PQ_FILTER_PAD, 1, &made->block));
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
  return ERR_OK;
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

/* Write a byte for each bit. */
static void spread_bits(const uint64_t *words, size_t n_words, uint8_t *bytes)
{
  for (size_t i = 0; i < n_words * 8; i++) {
    uint64_t eight = (words[i / 8] >> i % 8 * 8 & 0xff) * 0x0101010101010101; /* in each byte */
    uint64_t each = eight & 0x8040201008040201;                               /* byte k keeps bit k */
    each = (each + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;             /* 1 if there is one */
    memcpy(bytes + i * 8, &each, sizeof each);
  }
}

/* Find the buckets of n slots. */
static void find_rows(const struct boost_bounds *bounds, size_t first, size_t n, const uint8_t **rows)
{
  const struct boosts *b = bounds->boosts;

  for (size_t i = 0; i < b->n; i++) {
    uint8_t *of_filter = bounds->block + i * PQ_BLOCK_ITEMS;
    if (b->v[i].filter)
      spread_bits(b->v[i].words + first / 64, bits_words(n), of_filter);
    rows[i] = b->v[i].filter ? of_filter : attribute_columns_buckets(b->arena->attributes, b->v[i].attribute) + first;
  }
}

/* Levels, and for each boost the bucket whose items pass whatever their levels; -1: none. */
struct scan {
  const struct boost_bounds *bounds;
  int passes[QUERY_BOOSTS_MAX];
};

/* Find the bucket that adds most, and what the others add at most. */
static int find_top(const double most[VALUE_BUCKETS], double *others)
{
  int top = 0;

  *others = -INFINITY;
  for (int bucket = 1; bucket < VALUE_BUCKETS; bucket++) {
    bool is_more = most[bucket] > most[top];
    *others = fmax(*others, is_more ? most[top] : most[bucket]);
    top = is_more ? bucket : top;
  }
  return top;
}

/* Let the items in the bucket with the largest values of a boost pass in any case, if these are far above the others:
 * the levels of all others would be alike. Returns how far.
 *
 * range  between the best levels and the worst that pass
 * best   what the boost adds at most; updated
 */
static double skip_top(struct scan *scan, size_t i, double range, double *best)
{
  double others;
  const struct boosts *b = scan->bounds->boosts;
  int top = find_top(scan->bounds->most[i], &others);

  if (b->v[i].filter || scan->passes[i] >= 0 || others == -INFINITY)
    return 0.0;
  if (top == 0 && is_sparse(b, i))
    others = fmax(others, 0.0); /* slots without the attribute lie in this bucket, and do not pass in any case */
  if (*best - others <= range / 2)
    return 0.0;
  double above = *best - others;
  scan->passes[i] = top;
  *best = others;
  return above;
}

/* Find what each boost adds at most but for the items that pass in any case. Returns the sum less `least`. */
static double find_range(struct scan *scan, double least, double best[QUERY_BOOSTS_MAX])
{
  const struct boost_bounds *bounds = scan->bounds;
  double range = bounds->highest - least, before;

  for (size_t i = 0; i < bounds->boosts->n; i++) {
    scan->passes[i] = -1;
    best[i] = bounds->best[i];
  }
  do {
    before = range;
    for (size_t i = 0; i < bounds->boosts->n; i++)
      range -= skip_top(scan, i, range, &best[i]);
  } while (range < before);
  return range;
}

/* Quantise how far each bucket is below the best: rounded down, so that an item of at least `least` has levels of
 * LEVEL_MAX or less together. */
static void make_levels(const struct boost_bounds *bounds, double least, struct scan *out)
{
  double slack = SLACK * (bounds->magnitude + fabs(least)) + DBL_MIN;
  double best[QUERY_BOOSTS_MAX];

  out->bounds = bounds;
  double scale = LEVEL_MAX / fmax(find_range(out, least, best) + slack, DBL_MIN);
  for (size_t i = 0; i < bounds->boosts->n; i++) {
    for (size_t bucket = 0; bucket < VALUE_BUCKETS; bucket++) {
      double level = (best[i] - bounds->most[i][bucket]) * scale;
      bounds->levels[i * PQ_SUBITEMS + bucket] = (uint8_t)fmin(fmax(level, 0.0), LEVEL_MAX + 1);
    }
  }
}

/* Set the bits of `before` that pass whatever their levels. Slots without the attribute do not. */
static void add_passing(const struct scan *scan, size_t first, const uint8_t *const *rows, const uint64_t *before,
                        size_t n_words, uint64_t *words)
{
  const struct boost_bounds *bounds = scan->bounds;
  const struct boosts *b = bounds->boosts;
  uint64_t found[BLOCK_WORDS];

  for (size_t i = 0; i < b->n; i++) {
    uint8_t set[VALUE_BUCKETS / 8] = { 0 };
    if (scan->passes[i] < 0)
      continue;
    const uint64_t *present = attribute_columns_present(b->arena->attributes, b->v[i].attribute) + first / 64;
    set[scan->passes[i] / 8] = (uint8_t)(1u << scan->passes[i] % 8);
    bounds->kernels->select_set_u8(rows[i], n_words, set, found);
    for (size_t w = 0; w < n_words; w++)
      words[w] |= found[w] & before[w] & present[w];
  }
}

static void narrow_block(const struct scan *scan, size_t first, size_t n, uint64_t *words)
{
  const struct boost_bounds *bounds = scan->bounds;
  const uint8_t *tables[QUERY_BOOSTS_MAX], *rows[QUERY_BOOSTS_MAX];
  uint32_t found[PQ_BLOCK_ITEMS];
  uint64_t before[BLOCK_WORDS];

  for (size_t i = 0; i < bounds->boosts->n; i++)
    tables[i] = bounds->levels + i * PQ_SUBITEMS;
  find_rows(bounds, first, n, rows);
  memcpy(before, words, bits_words(n) * sizeof *words);
  size_t n_found = bounds->kernels->pq_scan(tables, rows, bounds->boosts->n, n, LEVEL_MAX, before, NULL, found);
  memset(words, 0, bits_words(n) * sizeof *words);
  for (size_t i = 0; i < n_found; i++)
    bits_set(words, found[i]);
  add_passing(scan, first, rows, before, bits_words(n), words);
}

static void narrow_by_sums(const struct boost_bounds *bounds, double least, uint64_t *words)
{
  size_t n_slots = bounds->boosts->arena->n_slots;
  struct scan scan;

  make_levels(bounds, least, &scan);
  for (size_t first = 0; first < n_slots; first += PQ_BLOCK_ITEMS) {
    size_t n = size_min(PQ_BLOCK_ITEMS, n_slots - first);
    if (bits_count(words + first / 64, bits_words(n)) > 0)
      narrow_block(&scan, first, n, words + first / 64);
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
