#include "engine/recjpq_scan.h"

#include "engine/recjpq_warm_up.h"

const struct recjpq_rule recjpq_rule_usual = {
  .warm_up_items_min = 1 << 17,
  .scan_items_max = 1 << 18,
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
  float score;

  if (!admit_slot(&s->result->admit, slot)) /* slots without codes are in the blocks too */
    return;
  score = recjpq_score(s->subitem_scores, s->columns->codes + slot * n_splits, n_splits);
  s->result->counts.candidates++;
  s->result->counts.scored++;
  if (score >= recjpq_threshold(s))
    topk_push(&s->result->topk, score, slot);
}

/* Items of one block. */
static void scan_block(struct recjpq_search *s, size_t first, size_t n)
{
  struct recjpq_deficits *d = &s->deficits;
  const uint8_t *codes = s->columns->planes + first * d->n_splits;
  uint32_t passed[RECJPQ_BLOCK_ITEMS];
  size_t n_passed;

  n_passed =
      s->kernels->pq_filter(d->splits, d->numbers, d->n_splits, codes, RECJPQ_BLOCK_ITEMS, n, 0, d->limit, passed);
  for (size_t i = 0; i < n_passed; i++)
    score_slot(s, (uint32_t)first + passed[i]);
  if (n_passed == 0)
    return;
  recjpq_deficits_tighten(d, recjpq_threshold(s));
  if (d->scale == 0.0f || d->limit < RECJPQ_LEVELS - RECJPQ_LEVELS / 4)
    recjpq_deficits_quantise(d, recjpq_threshold(s)); /* the bytes' whole range for what is left of the gap */
}

void recjpq_scan(struct recjpq_search *s, size_t first, size_t n)
{
  for (size_t end = first + n; first < end; first += RECJPQ_BLOCK_ITEMS)
    scan_block(s, first, end - first < RECJPQ_BLOCK_ITEMS ? end - first : RECJPQ_BLOCK_ITEMS);
}
