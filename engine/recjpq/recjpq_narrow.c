/* SPDX-License-Identifier: Apache-2.0 */
/* Which sub-items does no admitted item have? A sample of admitted items tells which splits may have lost their best
 * ones. One scan over the codes of such a split, with the filter's bits, proves it, for later queries too. */
#include "engine/recjpq/recjpq_narrow.h"

#include <math.h>

enum {
  SAMPLE_WORDS = 16,
  SAMPLE_ITEMS = 8, /* at most, of each word */
  SHARE_MIN = 8,  /* a split is scanned if the sub-items above the sample's best have one of this many items or more */
  SPLITS_MAX = 2, /* each scan takes a sixth of the time of a search of all items */
  BLOCKS_AHEAD = 3, /* a scan of one split reads a page of each block, and prefetches that of so many blocks later */
  TABLE_ALIGN = 64,
};

/* What the sample says of a split. */
struct split_bound {
  float best;       /* the best score of a sub-item that an item of the sample has */
  uint64_t n_above; /* items whose sub-item scores higher */
};

/* Raise the best scores to those of the admitted slots of a word. */
static void add_sample(const struct recjpq_columns *c, const struct admit *admit, size_t word, const float *scores,
                       struct split_bound *bounds)
{
  uint8_t codes[RECJPQ_SPLITS_MAX];
  uint64_t bits = admit->words[word];

  for (size_t i = 0; i < SAMPLE_ITEMS && bits; i++, bits &= bits - 1) {
    recjpq_codes_read(c, word * 64 + (size_t)__builtin_ctzll(bits), codes);
    for (size_t m = 0; m < c->model->n_splits; m++)
      bounds[m].best = fmaxf(bounds[m].best, scores[m * PQ_SUBITEMS + codes[m]]);
  }
}

static uint64_t count_above(const struct recjpq_subitems *s, size_t split, size_t n_subitems, float best)
{
  uint64_t n = 0;

  for (size_t b = 0; b < n_subitems; b++)
    n += s->scores[split * PQ_SUBITEMS + b] > best ? s->lengths[split * n_subitems + b] : 0;
  return n;
}

static void sample(const struct recjpq_columns *c, const struct search_batch *batch, const struct admit *admit,
                   const struct recjpq_subitems *s, struct split_bound *bounds)
{
  size_t n_words = bits_words(batch->n_slots);

  for (size_t m = 0; m < c->model->n_splits; m++)
    bounds[m].best = -INFINITY;
  for (size_t i = 0; i < SAMPLE_WORDS; i++)
    add_sample(c, admit, i * n_words / SAMPLE_WORDS, s->scores, bounds);
  for (size_t m = 0; m < c->model->n_splits; m++)
    bounds[m].n_above = count_above(s, m, c->model->n_subitems, bounds[m].best);
}

/* Return the split whose sample leaves out most items, of those that are not known. */
static size_t choose_split(const struct split_bound *bounds, size_t n_splits, uint64_t known)
{
  size_t chosen = n_splits;

  for (size_t m = 0; m < n_splits; m++) {
    if (!(known >> m & 1) && (chosen == n_splits || bounds[m].n_above > bounds[chosen].n_above))
      chosen = m;
  }
  return chosen;
}

/* Find the sub-items of a split that admitted items have. Only items with others pass, so there are few of them. */
static void find_present(const struct recjpq_columns *c, const struct search_batch *batch, const struct admit *admit,
                         size_t split, struct recjpq_present_set *out)
{
  _Alignas(TABLE_ALIGN) uint8_t table[PQ_SUBITEMS] = { 0 };
  const uint8_t *tables[] = { table };
  size_t n_slots = batch->n_slots, plane = split * RECJPQ_BLOCK_ITEMS;
  uint32_t others[RECJPQ_BLOCK_ITEMS];

  *out = (struct recjpq_present_set){ 0 };
  for (size_t first = 0; first < n_slots; first += RECJPQ_BLOCK_ITEMS) {
    size_t n = n_slots - first < RECJPQ_BLOCK_ITEMS ? n_slots - first : RECJPQ_BLOCK_ITEMS;
    size_t later = first + BLOCKS_AHEAD * RECJPQ_BLOCK_ITEMS;
    const uint8_t *row = recjpq_plane_of(c, first) + plane;
    const uint8_t *next = later < n_slots ? recjpq_plane_of(c, later) + plane : row;
    n = batch->kernels->pq_scan(tables, &row, 1, n, 0, admit->words + first / 64, &next, others);
    for (size_t i = 0; i < n; i++) {
      uint8_t subitem = row[others[i]];
      table[subitem] = UINT8_MAX;
      out->words[subitem / 64] |= UINT64_C(1) << subitem % 64;
    }
  }
}

/* Leave out the sub-items of a split that no admitted item has. Returns how many items have them. */
static uint64_t leave_out(const struct recjpq_present_set *present, float *scores, uint32_t *lengths, size_t n_subitems)
{
  uint64_t n = 0;

  for (size_t b = 0; b < n_subitems; b++) {
    if (recjpq_present_has(present, b))
      continue;
    n += lengths[b];
    scores[b] = -INFINITY;
    lengths[b] = 0;
  }
  return n;
}

static err_t copy_subitems(const struct recjpq_columns *c, struct region *scratch, const struct recjpq_subitems *s,
                           float **scores, uint32_t **lengths)
{
  size_t n_splits = c->model->n_splits, n_lengths = n_splits * c->model->n_subitems;

  TRY(region_array(scratch, n_splits * PQ_SUBITEMS, sizeof **scores, scores));
  TRY(region_array(scratch, n_lengths, sizeof **lengths, lengths));
  memcpy(*scores, s->scores, n_splits * PQ_SUBITEMS * sizeof **scores);
  memcpy(*lengths, s->lengths, n_lengths * sizeof **lengths);
  return ERR_OK;
}

/* Find the sets of the splits that a sample lets expect to be worth it, beside those that are known. Returns a bit for
 * each split whose set there is. */
static uint64_t find_sets(const struct recjpq_columns *c, const struct search_batch *batch, const struct admit *admit,
                          const struct recjpq_subitems *s, struct recjpq_present_set *sets)
{
  struct split_bound bounds[RECJPQ_SPLITS_MAX];
  uint64_t known = recjpq_present_get(c->present, admit->words_id, sets);

  sample(c, batch, admit, s, bounds);
  for (size_t i = 0; i < SPLITS_MAX; i++) {
    size_t m = choose_split(bounds, c->model->n_splits, known);
    if (m == c->model->n_splits || bounds[m].n_above < s->n_items / SHARE_MIN + 1 || bounds[m].best == -INFINITY)
      break; /* or the sample is empty */
    find_present(c, batch, admit, m, &sets[m]);
    recjpq_present_put(c->present, admit->words_id, m, &sets[m]);
    known |= UINT64_C(1) << m;
  }
  return known;
}

err_t recjpq_narrow(const struct recjpq_columns *c, const struct search_batch *batch, const struct admit *admit,
                    struct recjpq_subitems *s)
{
  struct recjpq_present_set sets[RECJPQ_SPLITS_MAX];
  size_t n_subitems = c->model->n_subitems;
  uint64_t n_items = s->n_items, known = find_sets(c, batch, admit, s, sets);
  float *scores;
  uint32_t *lengths;

  if (known == 0)
    return ERR_OK;
  TRY(copy_subitems(c, batch->scratch, s, &scores, &lengths));
  for (size_t m = 0; m < c->model->n_splits; m++) {
    if (!(known >> m & 1))
      continue;
    uint64_t n_left_out = leave_out(&sets[m], scores + m * PQ_SUBITEMS, lengths + m * n_subitems, n_subitems);
    s->n_items = n_items - n_left_out < s->n_items ? n_items - n_left_out : s->n_items;
  }
  s->scores = scores;
  s->lengths = lengths;
  return ERR_OK;
}
