/* SPDX-License-Identifier: Apache-2.0 */
/* The warm-up of RecJPQ searches: which cells to score, and how to score them quickly. The first few items are
 * all scored. Their K-th best score lets the byte filter skip most of the others. */
#include "engine/recjpq/recjpq_warm_up.h"

#include "base/size.h"
#include "engine/recjpq/recjpq_unchecked.h"
#include "engine/search/kth_best.h"

enum {
  ITEMS_MIN = 128,
  ITEMS_PER_HIT = 4,
  SHARES_MAX = 16, /* at most this many times more items are seen for a filter */
  ROWS_MIN = 3,
  GROUP_PIECES = 16,
  FIRST_PIECES = 2
};

/* The best sub-items of one split. */
struct split_best {
  size_t n;
  uint8_t subitems[PQ_SUBITEMS]; /* [n]: the best of these, best first */
};

struct warm_up {
  struct recjpq_search *search;
  struct split_best *splits;                /* [M] */
  uint8_t *is_chosen;                       /* [M][PQ_SUBITEMS]: is this sub-item one of its split's best? */
  struct kth_best best;                     /* of the scores of the distinct items seen */
  struct recjpq_unchecked *unchecked;       /* the items of these scores; NULL: all of them are admitted */
  size_t want;                              /* number of items to see in each pair */
  const uint8_t *others[RECJPQ_SPLITS_MAX]; /* for the filter, of the pair at hand */
  uint8_t rows[RECJPQ_SPLITS_MAX];
  size_t n_pieces;
  struct pq_piece pieces[GROUP_PIECES];
  size_t cells[GROUP_PIECES];  /* the cell of each piece */
  size_t firsts[GROUP_PIECES]; /* its first item in the cell */
  uint32_t passed[GROUP_PIECES * PQ_PIECE_ITEMS];
  size_t n_scored; /* items of the group whose slots are being prefetched */
  struct recjpq_unchecked_item scored[GROUP_PIECES * PQ_PIECE_ITEMS];
};

/* Find the best n sub-items, best first. The n-th best of the lanes' best is a lower bound on the n-th best of all, so
 * few sub-items get past it. */
static void find_best(struct warm_up *w, size_t split, size_t n)
{
  const struct recjpq_search *s = w->search;
  const uint32_t *lengths = s->deficits.subitems.lengths + split * s->columns->cells.n_subitems;
  const float *scores = s->subitem_scores + split * PQ_SUBITEMS;
  struct split_best *best = &w->splits[split];
  uint32_t found[PQ_SUBITEMS];
  size_t n_found = s->kernels->filter_ge(scores, s->columns->cells.n_subitems,
                                         recjpq_deficits_lane_best(&s->deficits, split, n), found);

  for (size_t i = 0; i < n_found; i++) {
    uint32_t b = found[i];
    if (lengths[b] == 0 || (best->n == n && !(scores[b] > scores[best->subitems[n - 1]])))
      continue;
    size_t at = best->n < n ? best->n++ : n - 1;
    for (; at > 0 && scores[best->subitems[at - 1]] < scores[b]; at--)
      best->subitems[at] = best->subitems[at - 1];
    best->subitems[at] = (uint8_t)b;
  }
}

/* Was the item in a chosen cell of an earlier pair? */
static bool was_seen(const struct warm_up *w, const struct cell_pair *p, const uint8_t *codes)
{
  for (size_t m = 0; m < p->first; m += 2) { /* only the last pair can have one split */
    if (w->is_chosen[m * PQ_SUBITEMS + codes[m]] && w->is_chosen[(m + 1) * PQ_SUBITEMS + codes[m + 1]])
      return true;
  }
  return false;
}

static void score_item(struct warm_up *w, const struct cell_pair *p, size_t cell, size_t i)
{
  struct recjpq_search *s = w->search;
  const struct cells *cells = &s->columns->cells;
  uint8_t codes[RECJPQ_SPLITS_MAX];

  cell_read(cells, p, cell, i, codes);
  float score = recjpq_score(s->subitem_scores, codes, cells->n_splits);
  if (!(score > w->best.threshold) || was_seen(w, p, codes))
    return;
  const uint32_t *slot = &cell_slots(p, p->cells[cell])[i];
  if (!w->unchecked && !s->result->admit.admits_parts) {
    __builtin_prefetch(slot); /* in cold memory */
    w->scored[w->n_scored++] = (struct recjpq_unchecked_item){ score, slot };
    return;
  }
  if (w->unchecked)
    recjpq_unchecked_add(w->unchecked, score, slot, w->best.threshold);
  kth_best_add(&w->best, score);
}

/* Add the scores of admitted items. */
static void admit_scored(struct warm_up *w)
{
  for (size_t i = 0; i < w->n_scored; i++) {
    const struct recjpq_unchecked_item *item = &w->scored[i];
    if (item->score > w->best.threshold && recjpq_admit(w->search, *item->slot))
      kth_best_add(&w->best, item->score);
  }
  w->n_scored = 0;
}

/* Quantise for the floor: without one, every item passes. */
static void start_filter(struct warm_up *w, const struct cell_pair *p)
{
  recjpq_deficits_quantise(&w->search->deficits, w->search->floor);
  recjpq_deficits_others(&w->search->deficits, p, w->others, w->rows);
}

/* Score the items of the pieces that can raise the floor. */
static void score_pieces(struct warm_up *w, const struct cell_pair *p)
{
  struct recjpq_search *s = w->search;
  size_t n = s->kernels->pq_cells(w->others, w->rows, p->n_others, w->pieces, w->n_pieces, NULL, 0, s->deficits.limit,
                                  w->passed);

  s->result->counts.scored += n;
  for (size_t i = 0; i < n; i++) {
    size_t piece = w->passed[i] / PQ_PIECE_ITEMS;
    score_item(w, p, w->cells[piece], w->firsts[piece] + w->passed[i] % PQ_PIECE_ITEMS);
  }
  admit_scored(w);
  w->n_pieces = 0;
  if (s->floor > -INFINITY) {
    recjpq_deficits_tighten(&s->deficits, w->best.threshold);
    return;
  }
  kth_best_cut(&w->best);
  s->floor = w->best.threshold;
  if (s->floor > -INFINITY)
    start_filter(w, p);
}

static void add_cell(struct warm_up *w, const struct cell_pair *p, size_t index, uint8_t level)
{
  struct cell cell = p->cells[index];
  size_t n = cell.n < w->want ? cell.n : w->want;

  for (size_t first = 0; first < n; first += PQ_PIECE_ITEMS) {
    w->pieces[w->n_pieces] = (struct pq_piece){
      .codes = cell_codes(p, cell) + first,
      .stride = (uint32_t)cell_entries(cell),
      .n = (uint8_t)(n - first < PQ_PIECE_ITEMS ? n - first : PQ_PIECE_ITEMS),
      .base = level,
    };
    w->cells[w->n_pieces] = index;
    w->firsts[w->n_pieces] = first;
    if (++w->n_pieces == (w->search->floor > -INFINITY ? GROUP_PIECES : FIRST_PIECES))
      score_pieces(w, p);
  }
}

/* How many of the best sub-items of each split are needed so that their cells hold enough items? */
static size_t choose_rows(const struct warm_up *w, const struct cell_pair *p, uint64_t n_items)
{
  const size_t *n_used = w->search->deficits.n_used + p->first;
  size_t n_cells = n_used[0] * (p->n_splits == 2 ? n_used[1] : 1);
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
  size_t rows = choose_rows(w, p, n_items);
  for (size_t m = p->first; m < p->first + p->n_splits; m++) {
    find_best(w, m, rows);
    for (size_t i = 0; i < w->splits[m].n; i++)
      w->is_chosen[m * PQ_SUBITEMS + w->splits[m].subitems[i]] = 1;
  }
}

/* Cells are scattered in memory. First their heads are prefetched, for all pairs, then the codes they point to. */
enum step { PREFETCH_HEADS, PREFETCH_ITEMS, SCORE };

static unsigned level_of(const struct warm_up *w, size_t split, uint8_t subitem)
{
  return recjpq_deficits_table(&w->search->deficits, split)[subitem];
}

/* Take one step for the cells of the best sub-items. */
static void visit_pair(struct warm_up *w, const struct cell_pair *p, enum step step)
{
  const struct split_best *a = &w->splits[p->first], *b = p->n_splits == 2 ? a + 1 : NULL;
  size_t n_subitems = w->search->columns->cells.n_subitems, n_columns = b ? b->n : 1;

  for (size_t i = 0; i < a->n; i++) {
    for (size_t j = 0; j < n_columns; j++) {
      size_t cell = b ? a->subitems[i] * n_subitems + b->subitems[j] : a->subitems[i];
      if (step == PREFETCH_HEADS) {
        __builtin_prefetch(&p->cells[cell]);
        continue;
      }
      if (step == PREFETCH_ITEMS) {
        cell_prefetch(p, p->cells[cell]);
        continue;
      }
      unsigned level = level_of(w, p->first, a->subitems[i]) + (b ? level_of(w, p->first + 1, b->subitems[j]) : 0);
      if (level <= w->search->deficits.limit)
        add_cell(w, p, cell, (uint8_t)level);
    }
  }
}

static void score_pair(struct warm_up *w, const struct cell_pair *p)
{
  recjpq_deficits_others(&w->search->deficits, p, w->others, w->rows);
  visit_pair(w, p, SCORE);
  score_pieces(w, p);
}

/* How many items to see in each pair, so that enough of them are admitted. */
static size_t choose_want(const struct search_result *result, uint64_t n_items)
{
  size_t want = size_max(result->topk.k * ITEMS_PER_HIT, ITEMS_MIN);
  uint64_t n_admitted = result->admit.n_admitted;
  size_t items_per_admitted = (size_t)((n_items + n_admitted / 2) / (n_admitted + 1));

  return want * size_max(size_min(items_per_admitted, SHARES_MAX), 1);
}

/* Score the cells, from no floor on. The K-th best score becomes the floor. */
static void score_pairs(struct warm_up *w)
{
  struct recjpq_search *s = w->search;
  const struct cells *cells = &s->columns->cells;

  s->floor = -INFINITY;
  recjpq_deficits_quantise(&s->deficits, s->floor);
  for (size_t i = 0; i < cells->n_pairs; i++)
    score_pair(w, &cells->pairs[i]);
  kth_best_cut(&w->best);
  s->floor = w->best.threshold;
}

/* The same with excluded keys that are looked up late. Only the best items are looked up. If K admitted ones are not
 * among them, the cells are scored again, and then every item is looked up before it counts. */
static err_t score_pairs_late(struct warm_up *w, struct region *region)
{
  struct recjpq_search *s = w->search;
  struct recjpq_unchecked unchecked;

  TRY(recjpq_unchecked_init(s->result->topk.k, region, &unchecked));
  w->unchecked = &unchecked;
  score_pairs(w);
  s->floor = recjpq_unchecked_floor(&unchecked, &s->result->admit, s->floor);
  w->unchecked = NULL;
  if (s->floor > -INFINITY)
    return ERR_OK;
  kth_best_restart(&w->best, s->result->topk.k);
  score_pairs(w);
  return ERR_OK;
}

err_t recjpq_warm_up(struct recjpq_search *s, struct search_batch *batch)
{
  const struct cells *cells = &s->columns->cells;
  size_t k = s->result->topk.k;
  struct warm_up w = { .search = s, .want = choose_want(s->result, s->deficits.subitems.n_items) };

  TRY(region_array(batch->scratch, cells->n_splits, sizeof *w.splits, &w.splits));
  TRY(region_array(batch->scratch, cells->n_splits, PQ_SUBITEMS, &w.is_chosen));
  TRY(kth_best_init(k, batch->scratch, &w.best));
  for (size_t i = 0; i < cells->n_pairs; i++) {
    choose_cells(&w, &cells->pairs[i], s->deficits.subitems.n_items);
    visit_pair(&w, &cells->pairs[i], PREFETCH_HEADS);
  }
  for (size_t i = 0; i < cells->n_pairs; i++)
    visit_pair(&w, &cells->pairs[i], PREFETCH_ITEMS);
  if (s->result->admit.late && !admit_leaves_out(&s->result->admit, batch->n_items))
    return score_pairs_late(&w, batch->scratch);
  score_pairs(&w);
  return ERR_OK;
}
