/* SPDX-License-Identifier: Apache-2.0 */
/* Method `exact`: pruning over pairs of splits. It follows RecJPQPrune's idea (section 4.1, Principles P1 and P2), with
 * cells in the place of sub-items. It is exact.
 *
 * A level (recjpq_deficits.h) counts how far a sub-item is below the best one of its split. The level of a cell is the
 * sum of its two levels. Each pair's cells are visited in rings of rising level. Suppose that every pair p has visited
 * all its cells below level next_p. An item that was not seen is in none of those cells, so the sum of its levels is at
 * least sum_p next_p. If that sum is above the limit, the item cannot be among the K best, and the search ends.
 *
 *   the paper, over splits                        here, over pairs
 *   sigma, sum of the best scores not visited     sum_p next_p, counted down from the highest possible score
 *   theta                                         the limit: the levels that reach the K-th best score found
 *   the split of the best sub-item comes next     the pair whose next ring has the fewest cells comes next
 *   BS sub-items at a time                        RING_LEVELS levels at a time
 *
 * A pair's bound is far sharper than the bounds of its two splits. With M = 8 splits of 256 sub-items, a few percent of
 * the items are visited; single splits visit a fifth. In a cell, only the items that pass the levels of the other
 * splits are scored. An item that was already seen in an earlier ring of another pair is skipped: its level in that
 * pair shows it. So no set of seen items is needed.
 *
 * Small catalogues are scanned instead, and so are queries whose rings turn out to be large: see is_worth_it().
 */
#include "engine/receipt.h"
#include "engine/recjpq/recjpq_levels.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_scan.h"

enum {
  RING_LEVELS = 8,
  CELL_ITEMS = 256,   /* items of a cell that are filtered in one call */
  GROUP_CELLS = 24,   /* cells between the prefetch of a cell and its visit */
  SLOTS_PER_ITEM = 2, /* scoring an item of a visited cell costs as much as scanning this many slots */
  PLANS = 16,         /* number of times that a search checks whether to give up */
};

struct ring_pair {
  const struct cell_pair *cells;
  const struct recjpq_levels *a, *b; /* of its splits; b is NULL if the pair has one split */
  const uint8_t *table_a, *table_b;
  const uint8_t **others; /* [n_others]: tables of the other splits, in the order of the deficits */
  uint8_t *rows;          /* [n_others]: the row of a cell's codes that belongs to each of these splits */
  int next;               /* all cells below this level have been visited */
  size_t next_cells;      /* cells in the next ring of RING_LEVELS */
};

struct visit {
  uint32_t cell;
  uint8_t level;
};

struct rings {
  struct recjpq_search *search;
  struct ring_pair *pairs;
  size_t n_pairs;
  const struct ring_pair *pair; /* the pair whose cells are in the groups */
  struct visit groups[2][GROUP_CELLS];
  size_t n[2];
  unsigned current; /* the group being filled; the cells of the other group are being prefetched */
  size_t n_visited;
  uint8_t *codes; /* [M] */
};

/* Rings -------------------- */

/* Number of cells of levels from `from` to `to` - 1. */
static size_t count_cells(const struct ring_pair *p, int from, int to)
{
  size_t n = 0, n_rows = recjpq_levels_below(p->a, to);

  if (!p->b)
    return n_rows - recjpq_levels_below(p->a, from);
  for (size_t i = 0; i < n_rows; i++) {
    int level = p->table_a[p->a->subitems[i]];
    n += recjpq_levels_below(p->b, to - level) - recjpq_levels_below(p->b, from - level);
  }
  return n;
}

static void set_next(struct ring_pair *p, int next)
{
  int end = next + RING_LEVELS < PQ_SUBITEMS ? next + RING_LEVELS : PQ_SUBITEMS - 1;

  p->next = next;
  p->next_cells = count_cells(p, next, end);
}

/* By how many levels must the rings rise until no unseen item can be among the K best? Zero or less: the search is
 * done. */
static int levels_left(const struct rings *r)
{
  int left = r->search->deficits.limit + 1;

  for (size_t i = 0; i < r->n_pairs; i++)
    left -= r->pairs[i].next;
  return left;
}

static struct ring_pair *cheapest_pair(struct rings *r)
{
  struct ring_pair *best = &r->pairs[0];

  for (size_t i = 1; i < r->n_pairs; i++) {
    if (r->pairs[i].next_cells < best->next_cells)
      best = &r->pairs[i];
  }
  return best;
}

/* The level at which the next ring of a pair ends. */
static int ring_end(const struct ring_pair *p, int left)
{
  int end = p->next + (left < RING_LEVELS ? left : RING_LEVELS);

  return end < PQ_SUBITEMS ? end : PQ_SUBITEMS - 1;
}

/* Number of cells still to visit if the threshold does not rise any more. */
static size_t plan(struct rings *r)
{
  struct ring_pair saved[(RECJPQ_SPLITS_MAX + 1) / 2];
  size_t n = 0;

  memcpy(saved, r->pairs, r->n_pairs * sizeof *saved);
  for (int left = levels_left(r); left > 0; left = levels_left(r)) {
    struct ring_pair *p = cheapest_pair(r);
    int end = ring_end(p, left);
    n += count_cells(p, p->next, end);
    set_next(p, end);
  }
  memcpy(r->pairs, saved, r->n_pairs * sizeof *saved);
  return n;
}

/* Cells -------------------- */

/* Was the item in a cell that another pair has visited? */
static bool was_seen(const struct rings *r, const uint8_t *codes)
{
  for (size_t i = 0; i < r->n_pairs; i++) {
    const struct ring_pair *p = &r->pairs[i];
    int level = p->table_a[codes[p->cells->first]] + (p->b ? p->table_b[codes[p->cells->first + 1]] : 0);
    if (p != r->pair && level < p->next)
      return true;
  }
  return false;
}

static void visit_item(struct rings *r, size_t cell, size_t i)
{
  struct recjpq_search *s = r->search;
  const struct cells *cells = &s->columns->cells;

  cell_read(cells, r->pair->cells, cell, i, r->codes);
  float score = recjpq_score(s->subitem_scores, r->codes, cells->n_splits);
  s->result->counts.scored++;
  if (score < recjpq_threshold(s) || was_seen(r, r->codes))
    return;
  uint32_t slot = cell_slots(r->pair->cells, r->pair->cells->cells[cell])[i];
  if (recjpq_admit(s, slot))
    topk_push(&s->result->topk, score, slot);
}

static void visit_cell(struct rings *r, struct visit visit)
{
  const struct cell_pair *p = r->pair->cells;
  struct recjpq_search *s = r->search;
  struct cell cell = p->cells[visit.cell];
  const uint8_t *codes = cell_codes(p, cell);
  uint32_t passed[CELL_ITEMS];

  for (size_t first = 0; first < cell.n; first += CELL_ITEMS) {
    size_t n = cell.n - first < CELL_ITEMS ? cell.n - first : CELL_ITEMS;
    n = s->kernels->pq_filter(r->pair->others, r->pair->rows, p->n_others, codes + first, cell_entries(cell), n,
                              visit.level, s->deficits.limit, passed);
    s->result->counts.candidates += n;
    for (size_t i = 0; i < n; i++)
      visit_item(r, visit.cell, first + passed[i]);
  }
}

/* Visit the cells of the prefetched group. Between its cells, prefetch the cells of the group that is now full: waiting
 * for memory and arithmetic overlap. */
static void swap_groups(struct rings *r)
{
  const struct cell_pair *p = r->pair->cells;
  unsigned full = r->current, other = 1 - full;

  for (size_t i = 0; i < GROUP_CELLS; i++) {
    if (i < r->n[full])
      cell_prefetch(p, p->cells[r->groups[full][i].cell]);
    if (i < r->n[other])
      visit_cell(r, r->groups[other][i]);
  }
  recjpq_deficits_tighten(&r->search->deficits, recjpq_threshold(r->search));
  r->n_visited += r->n[other];
  r->n[other] = 0;
  r->current = other;
}

static void add_cell(struct rings *r, size_t cell, int level)
{
  __builtin_prefetch(&r->pair->cells->cells[cell]);
  r->groups[r->current][r->n[r->current]++] = (struct visit){ (uint32_t)cell, (uint8_t)level };
  if (r->n[r->current] == GROUP_CELLS)
    swap_groups(r);
}

static void visit_ring(struct rings *r, struct ring_pair *p, int end)
{
  size_t n_subitems = r->search->columns->cells.n_subitems, n_rows = recjpq_levels_below(p->a, end);

  r->pair = p;
  for (size_t i = p->b ? 0 : recjpq_levels_below(p->a, p->next); i < n_rows; i++) {
    size_t a = p->a->subitems[i];
    int level = p->table_a[a];
    if (!p->b) {
      add_cell(r, a, level);
      continue;
    }
    size_t last = recjpq_levels_below(p->b, end - level);
    for (size_t j = recjpq_levels_below(p->b, p->next - level); j < last; j++)
      add_cell(r, a * n_subitems + p->b->subitems[j], level + p->table_b[p->b->subitems[j]]);
  }
  swap_groups(r);
  swap_groups(r);
  set_next(p, end);
}

/* A query -------------------- */

static void list_others(const struct recjpq_deficits *d, struct ring_pair *p)
{
  size_t first = p->cells->first, n_splits = p->cells->n_splits, n = 0;

  for (size_t i = 0; i < d->n_splits; i++) {
    size_t m = d->order[i];
    if (m >= first && m < first + n_splits)
      continue;
    p->others[n] = d->sorted[i];
    p->rows[n++] = (uint8_t)(m < first ? m : m - n_splits);
  }
}

static err_t init_pair(struct rings *r, const struct recjpq_levels *levels, struct region *scratch, size_t index)
{
  const struct recjpq_deficits *d = &r->search->deficits;
  struct ring_pair *p = &r->pairs[index];

  p->cells = &r->search->columns->cells.pairs[index];
  p->a = &levels[p->cells->first];
  p->table_a = recjpq_deficits_table(d, p->cells->first);
  if (p->cells->n_splits == 2) {
    p->b = p->a + 1;
    p->table_b = recjpq_deficits_table(d, p->cells->first + 1);
  }
  TRY(region_array(scratch, p->cells->n_others, sizeof *p->others, &p->others));
  TRY(region_array(scratch, p->cells->n_others, 1, &p->rows));
  list_others(d, p);
  set_next(p, 0);
  return ERR_OK;
}

static err_t init_rings(struct recjpq_search *s, struct region *scratch, struct rings *r)
{
  const struct cells *cells = &s->columns->cells;
  struct recjpq_levels *levels;

  *r = (struct rings){ .search = s, .n_pairs = cells->n_pairs };
  TRY(region_array(scratch, cells->n_splits, 1, &r->codes));
  TRY(region_array(scratch, cells->n_splits, sizeof *levels, &levels));
  for (size_t m = 0; m < cells->n_splits; m++)
    recjpq_levels_sort(recjpq_deficits_table(&s->deficits, m), cells->lengths + m * cells->n_subitems,
                       cells->n_subitems, &levels[m]);
  TRY(region_array(scratch, r->n_pairs, sizeof *r->pairs, &r->pairs));
  for (size_t i = 0; i < r->n_pairs; i++)
    TRY(init_pair(r, levels, scratch, i));
  return ERR_OK;
}

/* Is it worth going on after the given part of the cells that may be visited? The threshold rises as rings are visited,
 * so early plans come out too long. They are given more room. */
static bool is_worth_it(struct rings *r, size_t part, size_t n_cells_max)
{
  size_t room = part == 0 ? 3 * n_cells_max : part == 1 ? n_cells_max + n_cells_max / 2 : n_cells_max;

  return r->n_visited + plan(r) <= room;
}

/* Visit rings until the answer is proven. Returns false if scanning is faster. */
static bool visit_rings(struct rings *r, size_t n_cells_max)
{
  size_t part = 0;

  for (int left = levels_left(r); left > 0; left = levels_left(r)) {
    struct ring_pair *p = cheapest_pair(r);
    if (r->n_visited + p->next_cells > n_cells_max / PLANS * part && !is_worth_it(r, part++, n_cells_max))
      return false;
    visit_ring(r, p, ring_end(p, left));
  }
  return true;
}

/* Number of cells that can be visited in the time of a scan. */
static size_t n_cells_max(const struct recjpq_columns *c, const struct search_batch *batch,
                          const struct recjpq_rule *rule)
{
  size_t n_cells = c->model->n_subitems * (c->model->n_splits > 1 ? c->model->n_subitems : 1);

  if (rule->slots_per_cell == 0)
    return SIZE_MAX / 4;
  return batch->n_slots / (rule->slots_per_cell + SLOTS_PER_ITEM * batch->n_items / n_cells);
}

static err_t search_query(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                          const struct recjpq_rule *rule)
{
  struct recjpq_search s;
  struct rings rings;

  TRY(recjpq_search_init(c, batch, query, rule, &s));
  if (batch->n_items > rule->scan_items_max && s.floor > -INFINITY) {
    TRY(init_rings(&s, batch->scratch, &rings));
    if (visit_rings(&rings, n_cells_max(c, batch, rule)))
      return ERR_OK;
    s.floor = recjpq_threshold(&s); /* K items reach it; the scan sees them again */
    s.result->topk.n = 0;
    recjpq_deficits_quantise(&s.deficits, s.floor);
  }
  for (size_t first = 0; first < batch->n_slots; first += RECJPQ_BLOCK_ITEMS)
    recjpq_scan_block(&s, first, batch->n_slots);
  recjpq_scan_end(&s);
  return ERR_OK;
}

err_t recjpq_search_exact_by(const struct recjpq_columns *c, struct search_batch *batch, const struct recjpq_rule *rule)
{
  for (size_t q = 0; q < batch->n; q++) {
    if (batch->n_items > 0)
      TRY(search_query(c, batch, q, rule));
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}

err_t recjpq_search_exact(const struct columns *columns, struct search_batch *batch)
{
  return recjpq_search_exact_by(recjpq_columns_of(columns), batch, &recjpq_rule_usual);
}
