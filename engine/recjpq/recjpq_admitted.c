/* SPDX-License-Identifier: Apache-2.0 */
/* The search of queries that admit few items. The codes of admitted items are gathered from all over the catalogue into
 * dense blocks, which are then scanned like blocks of the catalogue: full scores for those items that pass the filter
 * over bytes. So the time depends on how many items are admitted, and hardly on which. */
#include "engine/recjpq/recjpq_admitted.h"

#include "base/size.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_begin.h"
#include "engine/search/receipt.h"
#include "engine/search/share.h"

enum {
  BLOCK_WORDS = RECJPQ_BLOCK_ITEMS / 64,
  CLAIM_BLOCKS = 64, /* of the catalogue, divided by the queries */
  PIECE_ITEMS = 256, /* items that are scanned at a time while no threshold is known */
};

/* Scratch memory. */
struct gathered {
  uint32_t *slots; /* [2 * RECJPQ_BLOCK_ITEMS + LIST_PAD]: admitted slots */
  uint8_t *codes;  /* [M][RECJPQ_BLOCK_ITEMS]: of the first of these slots */
};

/* Without codes by item: one split after the other. */
static void gather_by_split(const struct recjpq_columns *c, const uint32_t *slots, size_t n, uint8_t *out)
{
  for (size_t i = 0; i < n; i++) {
    const uint8_t *plane = recjpq_plane_of(c, slots[i]);
    for (size_t m = 0; m < c->model->n_splits; m++)
      out[m * RECJPQ_BLOCK_ITEMS + i] = plane[m * RECJPQ_BLOCK_ITEMS];
  }
}

/* Scan n gathered items, the first of which is `first`, a multiple of 64. */
static void scan_piece(struct recjpq_search *s, const struct gathered *g, size_t first, size_t n)
{
  const struct recjpq_deficits *d = &s->deficits;
  const uint8_t *rows[RECJPQ_SPLITS_MAX];
  uint32_t passed[RECJPQ_BLOCK_ITEMS];

  recjpq_find_rows(g->codes + first, d->order, d->n_splits, rows);
  size_t n_passed = s->kernels->pq_scan(d->sorted, rows, d->n_splits, n, d->limit, NULL, NULL, passed);

  s->result->counts.candidates += n_passed;
  s->result->counts.scored += n_passed;
  for (size_t i = 0; i < n_passed; i++) {
    size_t at = first + passed[i];
    float score = recjpq_score_by_step(s->subitem_scores, g->codes + at, RECJPQ_BLOCK_ITEMS, d->n_splits);
    if (score >= recjpq_threshold(s) && score < s->ceiling && recjpq_is_candidate(s, g->slots[at]))
      recjpq_offer(s, score, g->slots[at]);
  }
  recjpq_lower_limit(s);
}

/* Gather and scan the first n listed slots, at most RECJPQ_BLOCK_ITEMS. */
static void scan_listed(struct recjpq_search *s, const struct gathered *g, size_t n)
{
  const struct recjpq_columns *c = s->columns;
  size_t at = 0;

  if (c->codes)
    s->kernels->pq_gather(c->codes, c->model->n_splits, g->slots, n, g->codes);
  else
    gather_by_split(c, g->slots, n, g->codes);
  for (; s->deficits.scale == 0.0f && at + PIECE_ITEMS < n; at += PIECE_ITEMS)
    scan_piece(s, g, at, PIECE_ITEMS);
  scan_piece(s, g, at, n - at);
}

/* Search the admitted slots of n words of bits, from word `first` on. */
static void search_words(struct recjpq_search *s, const struct gathered *g, size_t first, size_t n)
{
  const uint64_t *words = s->result->admit.words;
  size_t n_listed = 0;

  for (size_t w = first; w < first + n; w += BLOCK_WORDS) {
    size_t n_words = size_min(BLOCK_WORDS, first + n - w);
    n_listed += s->kernels->list_bits(words + w, n_words, (uint32_t)(w * 64), g->slots + n_listed);
    if (n_listed < RECJPQ_BLOCK_ITEMS)
      continue;
    scan_listed(s, g, RECJPQ_BLOCK_ITEMS);
    n_listed -= RECJPQ_BLOCK_ITEMS;
    memcpy(g->slots, g->slots + RECJPQ_BLOCK_ITEMS, n_listed * sizeof *g->slots);
  }
  scan_listed(s, g, n_listed);
}

static err_t init_gathered(const struct recjpq_columns *c, struct region *scratch, struct gathered *out)
{
  TRY(region_array(scratch, 2 * RECJPQ_BLOCK_ITEMS + LIST_PAD, sizeof *out->slots, &out->slots));
  return region_array(scratch, c->model->n_splits, RECJPQ_BLOCK_ITEMS, &out->codes);
}

err_t recjpq_scan_admitted(struct recjpq_search *s, size_t n_slots, struct region *scratch)
{
  struct gathered gathered;

  TRY(init_gathered(s->columns, scratch, &gathered));
  search_words(s, &gathered, 0, bits_words(n_slots));
  recjpq_offer_waiting(s);
  return ERR_OK;
}

static err_t search_items(const struct recjpq_columns *c, struct search_batch *batch)
{
  static const struct recjpq_rule no_warm_up = { .warm_up_items_min = UINT64_MAX };
  size_t n_words = bits_words(batch->n_slots), n_each = CLAIM_BLOCKS * BLOCK_WORDS;
  struct recjpq_search *searches;
  struct gathered gathered;
  struct share_steps steps;

  TRY(init_gathered(c, batch->scratch, &gathered));
  TRY(region_array(batch->scratch, batch->n, sizeof *searches, &searches));
  for (size_t q = 0; q < batch->n; q++)
    TRY(recjpq_begin(c, batch, q, &no_warm_up, &searches[q]));
  n_each = size_max(n_each / batch->n, BLOCK_WORDS);
  while (share_claim(batch, 0, n_words, n_each, &steps)) {
    for (size_t q = 0; q < batch->n; q++)
      search_words(&searches[q], &gathered, steps.first, steps.end - steps.first);
  }
  for (size_t q = 0; q < batch->n; q++)
    recjpq_offer_waiting(&searches[q]);
  return ERR_OK;
}

err_t recjpq_search_admitted(const struct columns *columns, struct search_batch *batch)
{
  if (batch->n_items > 0)
    TRY(search_items(recjpq_columns_of(columns), batch));
  for (size_t q = 0; q < batch->n; q++)
    receipt_exact(&batch->results[q], batch->n_items);
  return ERR_OK;
}
