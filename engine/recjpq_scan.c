#include "engine/recjpq_scan.h"

#include "engine/recjpq_warm_up.h"

enum { CACHE_LINE = 64, BLOCKS_AHEAD = 4 };

const struct recjpq_rule recjpq_rule_usual = {
  .warm_up_items_min = 1 << 15,
  .scan_items_max = 1 << 17,
  .slots_per_cell = 140,
};

err_t recjpq_search_init(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                         const struct recjpq_rule *rule, struct recjpq_search *out)
{
  *out = (struct recjpq_search){
    .columns = c,
    .kernels = batch->kernels,
    .subitem_scores = ((const struct recjpq_query *)batch->prepared)[query].subitem_scores,
    .result = &batch->results[query],
    .floor = -INFINITY,
  };
  if (batch->n_items >= rule->warm_up_items_min)
    TRY(recjpq_warm_up(out, batch));
  TRY(recjpq_deficits_init(&c->cells, out->subitem_scores, batch->scratch, &out->deficits));
  recjpq_deficits_quantise(&out->deficits, out->floor);
  return ERR_OK;
}

static void score_slot(struct recjpq_search *s, uint32_t slot)
{
  size_t n_splits = s->columns->model->n_splits;
  float score = recjpq_score(s->subitem_scores, s->columns->codes + slot * n_splits, n_splits);

  s->result->counts.scored++;
  if (score >= recjpq_threshold(s) && admit_slot(&s->result->admit, slot))
    topk_push(&s->result->topk, score, slot);
}

/* Splits are read in the order of their deficits, not in that of memory, which the processor would foresee by itself.
 * The last splits are read for few items, so their memory is not asked for. */
static void prefetch_block(const struct recjpq_deficits *d, const uint8_t *codes)
{
  size_t n_rows = d->n_splits - d->n_splits * 3 / 8; /* as many as pq_filter() takes at first */

  for (size_t i = 0; i < n_rows; i++) {
    for (size_t at = 0; at < RECJPQ_BLOCK_ITEMS; at += CACHE_LINE)
      __builtin_prefetch(codes + d->order[i] * RECJPQ_BLOCK_ITEMS + at);
  }
}

/* Items of one block. */
static void scan_block(struct recjpq_search *s, size_t first, size_t n)
{
  struct recjpq_deficits *d = &s->deficits;
  const uint8_t *codes = s->columns->planes + first * d->n_splits;
  uint32_t passed[RECJPQ_BLOCK_ITEMS];
  size_t n_passed;

  prefetch_block(d, codes + BLOCKS_AHEAD * RECJPQ_BLOCK_ITEMS * d->n_splits);
  n_passed = s->kernels->pq_filter(d->sorted, d->order, d->n_splits, codes, RECJPQ_BLOCK_ITEMS, n, 0, d->limit, passed);
  s->result->counts.candidates += n_passed;
  for (size_t i = 0; i < n_passed; i++)
    score_slot(s, (uint32_t)first + passed[i]);
  if (n_passed == 0)
    return;
  recjpq_deficits_tighten(d, recjpq_threshold(s));
  if (d->scale == 0.0f || d->limit < RECJPQ_LEVELS - RECJPQ_LEVELS / 8)
    recjpq_deficits_quantise(d, recjpq_threshold(s)); /* the bytes' whole range for what is left of the gap */
}

void recjpq_scan(struct recjpq_search *s, size_t first, size_t n)
{
  for (size_t end = first + n; first < end; first += RECJPQ_BLOCK_ITEMS)
    scan_block(s, first, end - first < RECJPQ_BLOCK_ITEMS ? end - first : RECJPQ_BLOCK_ITEMS);
}
