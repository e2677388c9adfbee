#include "engine/recjpq_warm_up.h"

#include "engine/recjpq_levels.h"

enum { ITEMS_MIN = 256, ITEMS_PER_HIT = 4, ROWS_MIN = 3 };

struct warm_up {
  struct recjpq_search *search;
  struct recjpq_levels *levels; /* [M] */
  struct topk best;             /* of the pair at work */
  size_t want;                  /* items of a pair to score */
  uint8_t *codes;               /* [M] */
};

static int by_slot(const void *context, uint32_t a, uint32_t b)
{
  (void)context;
  return (a > b) - (a < b);
}

/* Order a split's sub-items by their scores, in 255 steps from the best to the worst. */
static void order_split(struct warm_up *w, size_t split)
{
  const struct cells *cells = &w->search->columns->cells;
  const float *scores = w->search->subitem_scores + split * PQ_SUBITEMS;
  const uint32_t *lengths = cells->lengths + split * cells->n_subitems;
  float best = -INFINITY, worst = INFINITY;
  uint8_t table[PQ_SUBITEMS];

  for (size_t b = 0; b < cells->n_subitems; b++) {
    best = lengths[b] ? fmaxf(best, scores[b]) : best;
    worst = lengths[b] ? fminf(worst, scores[b]) : worst;
  }
  float scale = RECJPQ_LEVELS / fmaxf(best - worst, 1e-30f);
  for (size_t b = 0; b < cells->n_subitems; b++)
    table[b] = lengths[b] ? (uint8_t)(int)fminf((best - scores[b]) * scale, RECJPQ_LEVELS) : 255;
  recjpq_levels_sort(table, lengths, cells->n_subitems, &w->levels[split]);
}

static void score_cell(struct warm_up *w, const struct cell_pair *p, size_t index)
{
  struct recjpq_search *s = w->search;
  const struct cells *cells = &s->columns->cells;
  struct cell cell = p->cells[index];
  size_t n = cell.n < w->want ? cell.n : w->want;

  for (size_t i = 0; i < n; i++) {
    uint32_t slot = s->result->admit.n_excluded ? cell_slots(p, cell)[i] : (uint32_t)i;
    cell_read(cells, p, index, i, w->codes);
    float score = recjpq_score(s->subitem_scores, w->codes, cells->n_splits);
    s->result->counts.scored++;
    if (score >= topk_threshold(&w->best) && recjpq_admit(s, slot))
      topk_push(&w->best, score, slot);
  }
}

/* How many of the best sub-items of each split of a pair have items enough in common. */
static size_t choose_rows(const struct warm_up *w, const struct cell_pair *p, uint64_t n_items)
{
  size_t n_cells = w->levels[p->first].n * (p->n_splits == 2 ? w->levels[p->first + 1].n : 1), rows = ROWS_MIN;

  for (; rows < PQ_SUBITEMS; rows++) {
    size_t n_taken = p->n_splits == 2 ? rows * rows : rows;
    if (n_taken >= n_cells || n_items * n_taken / n_cells >= w->want)
      break;
  }
  return rows;
}

static void score_pair(struct warm_up *w, const struct cell_pair *p, uint64_t n_items)
{
  const struct recjpq_levels *a = &w->levels[p->first], *b = p->n_splits == 2 ? a + 1 : NULL;
  size_t n_subitems = w->search->columns->cells.n_subitems, rows = choose_rows(w, p, n_items);

  for (size_t i = 0; i < rows && i < a->n; i++) {
    for (size_t j = 0; b && j < rows && j < b->n; j++)
      score_cell(w, p, a->subitems[i] * n_subitems + b->subitems[j]);
    if (!b)
      score_cell(w, p, a->subitems[i]);
  }
}

err_t recjpq_warm_up(struct recjpq_search *s, struct search_batch *batch)
{
  const struct cells *cells = &s->columns->cells;
  size_t k = s->result->topk.k;
  struct warm_up w = { .search = s, .want = k * ITEMS_PER_HIT > ITEMS_MIN ? k * ITEMS_PER_HIT : ITEMS_MIN };
  struct topk_entry *heap;

  TRY(region_array(batch->scratch, cells->n_splits, sizeof *w.levels, &w.levels));
  TRY(region_array(batch->scratch, cells->n_splits, 1, &w.codes));
  TRY(region_array(batch->scratch, k, sizeof *heap, &heap));
  for (size_t m = 0; m < cells->n_splits; m++)
    order_split(&w, m);
  for (size_t i = 0; i < cells->n_pairs; i++) {
    topk_init(&w.best, heap, k, by_slot, NULL);
    score_pair(&w, &cells->pairs[i], batch->n_items);
    s->floor = fmaxf(s->floor, topk_threshold(&w.best));
  }
  return ERR_OK;
}
