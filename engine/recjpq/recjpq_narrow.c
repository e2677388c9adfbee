/* SPDX-License-Identifier: Apache-2.0 */
/* Which sub-items does no admitted item have? A sample of admitted items tells which splits may have lost their best
 * ones. One scan over the codes of such a split, with the filter's bits, proves it. */
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

/* What is known of a split. */
struct split_bound {
  float best;       /* the best score of a sub-item that an admitted item has: in the sample, or in the catalogue */
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

/* Return the split whose sample leaves out most items. */
static size_t choose_split(const struct split_bound *bounds, size_t n_splits)
{
  size_t chosen = 0;

  for (size_t m = 1; m < n_splits; m++)
    chosen = bounds[m].n_above > bounds[chosen].n_above ? m : chosen;
  return chosen;
}

/* Only sub-items better than `best` pass. table [PQ_SUBITEMS] */
static void pass_better(const float *scores, float best, uint8_t *table)
{
  for (size_t b = 0; b < PQ_SUBITEMS; b++)
    table[b] = scores[b] > best ? 0 : UINT8_MAX;
}

/* Find the best score of a split's sub-items that admitted items have. Fewer items pass as it rises. */
static void find_best(const struct recjpq_columns *c, const struct search_batch *batch, const struct admit *admit,
                      const float *scores, size_t split, float *best)
{
  _Alignas(TABLE_ALIGN) uint8_t table[PQ_SUBITEMS];
  const uint8_t *tables[] = { table };
  size_t n_slots = batch->n_slots, plane = split * RECJPQ_BLOCK_ITEMS;
  uint32_t better[RECJPQ_BLOCK_ITEMS];

  pass_better(scores, *best, table);
  for (size_t first = 0; first < n_slots; first += RECJPQ_BLOCK_ITEMS) {
    size_t n = n_slots - first < RECJPQ_BLOCK_ITEMS ? n_slots - first : RECJPQ_BLOCK_ITEMS;
    size_t later = first + BLOCKS_AHEAD * RECJPQ_BLOCK_ITEMS;
    const uint8_t *row = recjpq_plane_of(c, first) + plane;
    const uint8_t *next = later < n_slots ? recjpq_plane_of(c, later) + plane : row;
    n = batch->kernels->pq_scan(tables, &row, 1, n, 0, admit->words + first / 64, &next, better);
    for (size_t i = 0; i < n; i++)
      *best = fmaxf(*best, scores[row[better[i]]]);
    if (n > 0)
      pass_better(scores, *best, table);
  }
}

/* Leave out the sub-items of a split that score above `best`. */
static void leave_out(float *scores, uint32_t *lengths, size_t n_subitems, float best)
{
  for (size_t b = 0; b < n_subitems; b++) {
    if (scores[b] > best) {
      scores[b] = -INFINITY;
      lengths[b] = 0;
    }
  }
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

err_t recjpq_narrow(const struct recjpq_columns *c, const struct search_batch *batch, const struct admit *admit,
                    struct recjpq_subitems *s)
{
  struct split_bound bounds[RECJPQ_SPLITS_MAX];
  size_t n_subitems = c->model->n_subitems;
  uint64_t n_items = s->n_items;
  float *scores = NULL;
  uint32_t *lengths;

  sample(c, batch, admit, s, bounds);
  for (size_t i = 0; i < SPLITS_MAX; i++) {
    size_t m = choose_split(bounds, c->model->n_splits);
    if (bounds[m].n_above < n_items / SHARE_MIN + 1 || bounds[m].best == -INFINITY)
      return ERR_OK; /* or the sample is empty */
    if (!scores)
      TRY(copy_subitems(c, batch->scratch, s, &scores, &lengths));
    find_best(c, batch, admit, s->scores + m * PQ_SUBITEMS, m, &bounds[m].best);
    uint64_t n_above = count_above(s, m, n_subitems, bounds[m].best);
    s->n_items = n_items - n_above < s->n_items ? n_items - n_above : s->n_items;
    leave_out(scores + m * PQ_SUBITEMS, lengths + m * n_subitems, n_subitems, bounds[m].best);
    s->scores = scores;
    s->lengths = lengths;
    bounds[m].n_above = 0;
  }
  return ERR_OK;
}
