/* SPDX-License-Identifier: Apache-2.0 */
/* The exhaustive scan: a filter over bytes for all items, full scores for those that pass. */
#include "engine/recjpq/recjpq_scan.h"

enum {
  PIECE_ITEMS = 256, /* items filtered in one call while every item passes */
  PASSED_MANY = 16,  /* if this many items of a block pass, one more table costs less than scoring them */
  PASSED_FEW = 1,    /* if this few items of a block pass, one table less costs less */
  QUIET_BLOCKS = 8,
};

static void score_slot(struct recjpq_search *s, uint32_t slot)
{
  const struct recjpq_columns *c = s->columns;
  size_t n_splits = c->model->n_splits;
  float score = c->codes
                    ? recjpq_score(s->subitem_scores, c->codes + slot * n_splits, n_splits)
                    : recjpq_score_by_step(s->subitem_scores, recjpq_plane_of(c, slot), RECJPQ_BLOCK_ITEMS, n_splits);

  if (score >= recjpq_threshold(s) && score < s->ceiling && recjpq_is_candidate(s, slot))
    recjpq_offer(s, score, slot);
}

static void score_pending(struct recjpq_search *s)
{
  for (size_t i = 0; i < s->n_pending; i++)
    score_slot(s, s->pending[i]);
  s->n_pending = 0;
}

/* Prefetch what scoring a slot reads. Without codes by item, the planes that were filtered are in the cache. */
static void prefetch_slot(const struct recjpq_search *s, uint32_t slot)
{
  const struct recjpq_columns *c = s->columns;

  if (c->codes) {
    __builtin_prefetch(c->codes + slot * c->model->n_splits);
    return;
  }
  for (size_t t = s->n_tables; t < c->model->n_splits; t++)
    __builtin_prefetch(recjpq_plane_of(c, slot) + s->deficits.order[t] * RECJPQ_BLOCK_ITEMS);
}

/* Score the items that passed. Their codes are not in the memory that was filtered. If there are few, they are only
 * prefetched now and scored after the next block has been filtered. */
static void score_passed(struct recjpq_search *s, size_t first, const uint32_t *passed, size_t n)
{
  score_pending(s);
  s->result->counts.candidates += n;
  s->result->counts.scored += n;
  for (size_t i = 0; i < n; i++) {
    uint32_t slot = (uint32_t)first + passed[i];
    if (n > RECJPQ_PENDING_MAX) {
      score_slot(s, slot);
      continue;
    }
    prefetch_slot(s, slot);
    s->pending[s->n_pending++] = slot;
  }
}

/* One more table costs time for the whole block. One less lets more items pass, and each must be scored. */
static void choose_n_tables(struct recjpq_search *s, size_t n_passed)
{
  s->n_quiet = n_passed <= PASSED_FEW ? s->n_quiet + 1 : 0;
  if (n_passed >= PASSED_MANY && s->n_tables < s->deficits.n_splits)
    s->n_tables++;
  if (s->n_quiet == QUIET_BLOCKS && s->n_tables > 1) {
    s->n_tables--;
    s->n_quiet = 0;
  }
}

/* Scan n items of a block, starting at a multiple of 64. next: the block after this one, or NULL. */
static size_t scan_items(struct recjpq_search *s, size_t first, size_t n, const uint8_t *next)
{
  const struct recjpq_deficits *d = &s->deficits;
  const struct admit *admit = &s->result->admit;
  size_t n_splits = d->n_splits, at = first % RECJPQ_BLOCK_ITEMS;
  const uint8_t *codes = s->columns->planes + (first - at) * n_splits + at;
  const uint64_t *admitted = admit->admits_all ? NULL : admit->words + first / 64;
  const uint8_t *rows[RECJPQ_SPLITS_MAX], *next_rows[RECJPQ_SPLITS_MAX];
  uint32_t passed[RECJPQ_BLOCK_ITEMS];

  recjpq_find_rows(codes, d->order, s->n_tables, rows);
  if (next)
    recjpq_find_rows(next, d->order, s->n_tables, next_rows);
  n = s->kernels->pq_scan(d->sorted, rows, s->n_tables, n, d->limit, admitted, next ? next_rows : NULL, passed);
  score_passed(s, first, passed, n);
  recjpq_lower_limit(s);
  return n;
}

void recjpq_scan_block(struct recjpq_search *s, size_t first, size_t n_slots)
{
  size_t end = n_slots - first < RECJPQ_BLOCK_ITEMS ? n_slots : first + RECJPQ_BLOCK_ITEMS;
  const uint8_t *next = end < n_slots ? s->columns->planes + end * s->deficits.n_splits : NULL;

  for (; s->deficits.scale == 0.0f && end - first > PIECE_ITEMS; first += PIECE_ITEMS)
    scan_items(s, first, PIECE_ITEMS, NULL);
  choose_n_tables(s, scan_items(s, first, end - first, next));
}

void recjpq_scan_end(struct recjpq_search *s)
{
  score_pending(s);
  recjpq_offer_waiting(s);
}

void recjpq_scan(struct recjpq_search *s, size_t n_slots)
{
  for (size_t first = 0; first < n_slots; first += RECJPQ_BLOCK_ITEMS)
    recjpq_scan_block(s, first, n_slots);
  recjpq_scan_end(s);
}
