/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of levels, and the scan of a block. */
#include "engine/boosts/boost_levels.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BLOCK_WORDS = PQ_BLOCK_ITEMS / 64 };

err_t boost_levels_init(const struct boost_bounds *bounds, struct region *region, struct boost_levels *out)
{
  size_t n = bounds->boosts->n;

  *out = (struct boost_levels){ .bounds = bounds };
  TRY(region_aligned(region, n, PQ_SUBITEMS, &out->tables));
  return region_aligned(region, n * PQ_BLOCK_ITEMS + PQ_FILTER_PAD, 1, &out->matched);
}

/* ---- The items that pass in any case ---- */

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

/* Let the items in the bucket with the largest values of a boost pass in any case, if these are far above the others.
 * Returns how far.
 *
 * range  between the best levels and the worst that pass
 */
static double skip_top(struct boost_levels *l, size_t i, double range)
{
  const struct boosts *b = l->bounds->boosts;
  double others;
  int top = find_top(l->bounds->most[i], &others);

  if (b->v[i].filter || l->passes[i] >= 0 || others == -INFINITY)
    return 0.0;
  if (top == 0 && boost_is_sparse(b, i))
    others = fmax(others, 0.0); /* slots without the attribute lie in this bucket, and do not pass in any case */
  if (l->best[i] - others <= range / 2)
    return 0.0;
  double above = l->best[i] - others;
  l->passes[i] = top;
  l->best[i] = others;
  return above;
}

void boost_levels_choose(struct boost_levels *l, double least)
{
  const struct boost_bounds *bounds = l->bounds;
  double range = bounds->highest - least, before;

  for (size_t i = 0; i < bounds->boosts->n; i++) {
    l->passes[i] = -1;
    l->best[i] = bounds->best[i];
  }
  do {
    before = range;
    for (size_t i = 0; i < bounds->boosts->n; i++)
      range -= skip_top(l, i, range);
  } while (range < before);
}

double boost_levels_range(const struct boost_levels *l, double least)
{
  double best = 0.0;

  for (size_t i = 0; i < l->bounds->boosts->n; i++)
    best += l->best[i];
  return fmax(best - least + BOOST_SLACK * (l->bounds->magnitude + fabs(least)), DBL_MIN);
}

/* ---- The others ---- */

void boost_levels_quantise(struct boost_levels *l, double scale)
{
  for (size_t i = 0; i < l->bounds->boosts->n; i++) {
    for (size_t bucket = 0; bucket < VALUE_BUCKETS; bucket++) {
      double level = (l->best[i] - l->bounds->most[i][bucket]) * scale;
      l->tables[i * PQ_SUBITEMS + bucket] = (uint8_t)fmin(fmax(level, 0.0), BOOST_LEVEL_MAX + 1);
    }
  }
}

/* Write a byte for each bit. */
static void spread_bits(const uint64_t *words, size_t n_words, uint8_t *bytes)
{
  for (size_t w = 0; w < n_words; w++) {
    if (words[w] == 0) {
      memset(bytes + w * 64, 0, 64);
      continue;
    }
    for (size_t i = 0; i < 8; i++) {
      uint64_t eight = (words[w] >> i * 8 & 0xff) * 0x0101010101010101; /* in each byte */
      uint64_t each = eight & 0x8040201008040201;                       /* byte k keeps bit k */
      each = (each + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;     /* 1 if there is one */
      memcpy(bytes + w * 64 + i * 8, &each, sizeof each);
    }
  }
}

/* Find the row of a boost: the buckets of n slots. */
static const uint8_t *find_row(const struct boost_levels *l, size_t i, size_t first, size_t n)
{
  const struct boosts *b = l->bounds->boosts;
  uint8_t *matched = l->matched + i * PQ_BLOCK_ITEMS;

  if (!b->v[i].filter)
    return attribute_columns_buckets(b->arena->attributes, b->v[i].attribute) + first;
  spread_bits(b->v[i].words + first / 64, bits_words(n), matched);
  return matched;
}

/* Set the bits of `before` that pass in any case. Slots without the attribute do not. rows [n] */
static void add_passing(const struct boost_levels *l, size_t first, const uint8_t *const *rows, const uint64_t *before,
                        size_t n_words, uint64_t *words)
{
  const struct boosts *b = l->bounds->boosts;
  uint64_t found[BLOCK_WORDS];

  for (size_t i = 0; i < b->n; i++) {
    uint8_t set[VALUE_BUCKETS / 8] = { 0 };
    if (l->passes[i] < 0)
      continue;
    const uint64_t *present = attribute_columns_present(b->arena->attributes, b->v[i].attribute) + first / 64;
    set[l->passes[i] / 8] = (uint8_t)(1u << l->passes[i] % 8);
    l->bounds->kernels->select_set_u8(rows[i], n_words, set, found);
    for (size_t w = 0; w < n_words; w++)
      words[w] |= found[w] & before[w] & present[w];
  }
}

void boost_levels_narrow(const struct boost_levels *l, const struct boost_tables *others, size_t first, size_t n,
                         uint8_t limit, uint64_t *words)
{
  const struct boost_bounds *bounds = l->bounds;
  const uint8_t *tables[PQ_TABLES_MAX], *rows[PQ_TABLES_MAX], *next[PQ_TABLES_MAX];
  size_t n_boosts = bounds->boosts->n, n_words = bits_words(n);
  uint32_t found[PQ_BLOCK_ITEMS];
  uint64_t before[BLOCK_WORDS];

  for (size_t i = 0; i < n_boosts; i++) {
    tables[i] = l->tables + i * PQ_SUBITEMS;
    rows[i] = find_row(l, i, first, n);
    next[i] = others->next && !bounds->boosts->v[i].filter ? rows[i] + PQ_BLOCK_ITEMS : rows[i];
  }
  for (size_t i = 0; i < others->n; i++) {
    tables[n_boosts + i] = others->tables[i];
    rows[n_boosts + i] = others->rows[i];
    next[n_boosts + i] = others->next ? others->next[i] : others->rows[i];
  }
  memcpy(before, words, n_words * sizeof *words);
  size_t n_found = bounds->kernels->pq_scan(tables, rows, n_boosts + others->n, n, limit, before, next, found);
  memset(words, 0, n_words * sizeof *words);
  for (size_t i = 0; i < n_found; i++)
    bits_set(words, found[i]);
  add_passing(l, first, rows, before, n_words, words);
}
