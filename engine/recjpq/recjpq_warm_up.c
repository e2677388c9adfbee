/* SPDX-License-Identifier: Apache-2.0 */
/* The warm-up of RecJPQ searches: which cells to score, and how to score them quickly. */
#include "engine/recjpq/recjpq_warm_up.h"

enum { ITEMS_MIN = 128, ITEMS_PER_HIT = 4, ROWS_MIN = 3, GROUP_ITEMS = 64 };

/* The best sub-items of one split. */
struct split_best {
  size_t n_used; /* sub-items that have items */
  size_t n;
  uint8_t subitems[PQ_SUBITEMS]; /* [n]: the best of these, best first */
};

struct warm_up {
  struct recjpq_search *search;
  struct split_best *splits; /* [M] */
  struct topk best;          /* the best items of the current pair */
  size_t want;               /* number of items to score in each pair */
};

static void count_used(struct warm_up *w, size_t split)
{
  const struct cells *cells = &w->search->columns->cells;
  const uint32_t *lengths = cells->lengths + split * cells->n_subitems;

  for (size_t b = 0; b < cells->n_subitems; b++)
    w->splits[split].n_used += lengths[b] > 0;
}

/* Find the best n sub-items, best first. Of 256 sub-items, few get past the comparison with the last one kept. */
static void find_best(struct warm_up *w, size_t split, size_t n)
{
  const struct cells *cells = &w->search->columns->cells;
  const uint32_t *lengths = cells->lengths + split * cells->n_subitems;
  const float *scores = w->search->subitem_scores + split * PQ_SUBITEMS;
  struct split_best *best = &w->splits[split];
  float last = -INFINITY;

  for (size_t b = 0; b < cells->n_subitems; b++) {
    if (lengths[b] == 0 || (best->n == n && !(scores[b] > last)))
      continue;
    size_t at = best->n < n ? best->n++ : n - 1;
    for (; at > 0 && scores[best->subitems[at - 1]] < scores[b]; at--)
      best->subitems[at] = best->subitems[at - 1];
    best->subitems[at] = (uint8_t)b;
    last = scores[best->subitems[best->n - 1]];
  }
}

/* Compute the scores of n <= GROUP_ITEMS items of a cell, starting at item `first`: the sum of their sub-items' scores
 * in the order of the splits. */
static void score_items(const struct warm_up *w, const struct cell_pair *p, size_t index, size_t first, size_t n,
                        float *scores)
{
  const struct cells *cells = &w->search->columns->cells;
  struct cell cell = p->cells[index];
  const uint8_t *row = cell_codes(p, cell) + first;
  size_t own[2] = { p->n_splits == 2 ? index / cells->n_subitems : index, index % cells->n_subitems };

  for (size_t m = 0; m < cells->n_splits; m++) {
    const float *table = w->search->subitem_scores + m * PQ_SUBITEMS;
    bool is_own = m - p->first < p->n_splits;
    float shared = is_own ? table[own[m - p->first]] : 0;
    for (size_t i = 0; i < n; i++) {
      float x = is_own ? shared : table[row[i]];
      scores[i] = m == 0 ? x : scores[i] + x;
    }
    row += is_own ? 0 : cell_entries(cell);
  }
}

/* Score the items of a cell. Only scores above the current floor can raise it. */
static void score_cell(struct warm_up *w, const struct cell_pair *p, size_t index)
{
  struct recjpq_search *s = w->search;
  struct cell cell = p->cells[index];
  size_t n = cell.n < w->want ? cell.n : w->want;
  float scores[GROUP_ITEMS];

  s->result->counts.scored += n;
  for (size_t first = 0; first < n; first += GROUP_ITEMS) {
    size_t n_group = n - first < GROUP_ITEMS ? n - first : GROUP_ITEMS;
    score_items(w, p, index, first, n_group, scores);
    for (size_t i = 0; i < n_group; i++) {
      if (scores[i] < s->floor || scores[i] < topk_threshold(&w->best))
        continue;
      uint32_t slot = s->result->admit.n_excluded ? cell_slots(p, cell)[first + i] : (uint32_t)(first + i);
      if (recjpq_admit(s, slot))
        topk_push(&w->best, scores[i], slot);
    }
  }
}

/* How many of the best sub-items of each split are needed so that their cells hold enough items? */
static size_t choose_rows(const struct warm_up *w, const struct cell_pair *p, uint64_t n_items)
{
  size_t n_cells = w->splits[p->first].n_used * (p->n_splits == 2 ? w->splits[p->first + 1].n_used : 1);
  size_t rows = ROWS_MIN;

  for (; rows < PQ_SUBITEMS; rows++) {
    size_t n_taken = p->n_splits == 2 ? rows * rows : rows;
    if (n_taken >= n_cells || n_items * n_taken / n_cells >= w->want)
      break;
  }
  return rows;
}

static void choose_cells(struct warm_up *w, const struct cell_pair *p, uint64_t n_items)
{
  for (size_t i = 0; i < p->n_splits; i++)
    count_used(w, p->first + i);
  size_t rows = choose_rows(w, p, n_items);
  for (size_t i = 0; i < p->n_splits; i++)
    find_best(w, p->first + i, rows);
}

/* Cells are scattered in memory. First their heads are prefetched, for all pairs, then the codes they point to. */
enum step { PREFETCH_HEADS, PREFETCH_ITEMS, SCORE };

/* Take one step for the cells of the best sub-items. */
static void visit_pair(struct warm_up *w, const struct cell_pair *p, enum step step)
{
  const struct split_best *a = &w->splits[p->first], *b = p->n_splits == 2 ? a + 1 : NULL;
  size_t n_subitems = w->search->columns->cells.n_subitems, n_columns = b ? b->n : 1;

  for (size_t i = 0; i < a->n; i++) {
    for (size_t j = 0; j < n_columns; j++) {
      size_t cell = b ? a->subitems[i] * n_subitems + b->subitems[j] : a->subitems[i];
      if (step == PREFETCH_HEADS)
        __builtin_prefetch(&p->cells[cell]);
      else if (step == PREFETCH_ITEMS)
        cell_prefetch(p, p->cells[cell]);
      else
        score_cell(w, p, cell);
    }
  }
}

err_t recjpq_warm_up(struct recjpq_search *s, struct search_batch *batch)
{
  const struct cells *cells = &s->columns->cells;
  size_t k = s->result->topk.k;
  struct warm_up w = { .search = s, .want = k * ITEMS_PER_HIT > ITEMS_MIN ? k * ITEMS_PER_HIT : ITEMS_MIN };
  struct topk_entry *heap;

  TRY(region_array(batch->scratch, cells->n_splits, sizeof *w.splits, &w.splits));
  TRY(region_array(batch->scratch, k, sizeof *heap, &heap));
  for (size_t i = 0; i < cells->n_pairs; i++) {
    choose_cells(&w, &cells->pairs[i], batch->n_items);
    visit_pair(&w, &cells->pairs[i], PREFETCH_HEADS);
  }
  for (size_t i = 0; i < cells->n_pairs; i++)
    visit_pair(&w, &cells->pairs[i], PREFETCH_ITEMS);
  for (size_t i = 0; i < cells->n_pairs; i++) {
    topk_init(&w.best, heap, k, topk_by_slot, NULL);
    visit_pair(&w, &cells->pairs[i], SCORE);
    s->floor = fmaxf(s->floor, topk_threshold(&w.best));
  }
  return ERR_OK;
}
