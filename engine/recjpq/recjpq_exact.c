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
 * splits are scored. An item that was already seen in an earlier ring of another pair is skipped (recjpq_seen.h).
 *
 * Small catalogues are scanned instead, and columns without cells. A query whose rings turn out to be large is scanned
 * too. After a trial of 3 % of a scan's time, the threshold is nearly final, and cells are counted before they are
 * visited: see is_worth_it(). The scan keeps the hits of the rings and skips the items that they have seen.
 */
#include <math.h>

#include "base/size.h"
#include "engine/recjpq/recjpq_admitted.h"
#include "engine/recjpq/recjpq_guess.h"
#include "engine/recjpq/recjpq_levels.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_unchecked.h"
#include "engine/search/kth_best.h"
#include "engine/search/receipt.h"

enum {
  RING_LEVELS = 8,
  GROUP_PIECES = 24,  /* pieces of cells between their prefetch and the filter */
  VISITS = 32,        /* cells between the prefetch of a cell's head and its use */
  RINGS_MAX = 64,     /* more rings than can have cells in flight, in `visits` and two groups, and one that begins */
  CELLS_PER_HIT = 3,  /* for each of the K, cells score more items than a scan; scoring them costs as much as this */
  SLOTS_PER_ITEM = 2, /* filtering an item of a visited cell costs as much as scanning this many slots */
  TRIAL = 32,         /* the rings' cost after this part of the time of a scan is known well enough to choose */
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

/* A ring whose cells may be in flight: their memory is being prefetched, while other rings have begun. */
struct ring {
  const struct ring_pair *pair;
  struct recjpq_seen seen; /* by the other pairs' rings when this ring began */
};

struct visit {
  uint32_t cell;
  uint8_t level;
  uint8_t ring;
};

/* Pieces of cells of one ring. */
struct ring_group {
  uint8_t ring;
  size_t n;
  struct pq_piece pieces[GROUP_PIECES];
  uint32_t cells[GROUP_PIECES];  /* the cell of each piece */
  uint32_t firsts[GROUP_PIECES]; /* its first item in the cell */
};

struct rings {
  struct recjpq_search *search;
  struct ring_pair *pairs;
  size_t n_pairs;
  struct ring rings[RINGS_MAX];
  uint8_t ring;                /* the ring that is being enumerated */
  struct visit visits[VISITS]; /* cells whose heads are being prefetched: the oldest is visits[n_visited % VISITS] */
  size_t n_visited, n_begun;   /* cells whose pieces have been added, and cells added */
  size_t n_before;             /* n_begun when the ring began */
  struct ring_group groups[2];
  unsigned current;      /* the group being filled; the pieces of the other one are being prefetched */
  size_t n_cells_max;    /* cells that can be visited in the time of a scan */
  size_t n_unchecked;    /* up to this cost, in cells, is_worth_it() is not asked */
  size_t n_before_look;  /* candidates when it was asked last, or when the search began */
  size_t n_tolerated;    /* is_worth_it() tolerates this cost, in cells: at first more than that of a scan */
  struct kth_best found; /* scratch memory of predict_threshold() */
  uint8_t *codes;        /* [M] */
  uint32_t passed[GROUP_PIECES * PQ_PIECE_ITEMS]; /* of a group */
  size_t n_scored;                                /* items of the group whose slots are being prefetched */
  struct recjpq_unchecked_item scored[GROUP_PIECES * PQ_PIECE_ITEMS];
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

/* By how many levels must the rings rise until no unseen item can reach the limit? Zero or less: the search is done. */
static int levels_left(const struct rings *r, int limit)
{
  int left = limit + 1;

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

/* Number of cells still to visit for a limit, the last ring counted in full. Above `most`, counting stops. */
static size_t plan(struct rings *r, int limit, size_t most)
{
  struct ring_pair saved[(RECJPQ_SPLITS_MAX + 1) / 2];
  size_t n = 0;

  memcpy(saved, r->pairs, r->n_pairs * sizeof *saved);
  for (int left = levels_left(r, limit); left > 0 && n <= most; left = levels_left(r, limit)) {
    struct ring_pair *p = cheapest_pair(r);
    n += p->next_cells;
    set_next(p, ring_end(p, left));
  }
  memcpy(r->pairs, saved, r->n_pairs * sizeof *saved);
  return n;
}

/* Cells -------------------- */

static void score_item(struct rings *r, const struct ring *ring, size_t cell, size_t i)
{
  struct recjpq_search *s = r->search;
  const struct cells *cells = &s->columns->cells;
  const struct cell_pair *p = ring->pair->cells;

  cell_read(cells, p, cell, i, r->codes);
  float score = recjpq_score(s->subitem_scores, r->codes, cells->n_splits);
  s->result->counts.scored++;
  if (score < recjpq_threshold(s) || recjpq_was_seen(&ring->seen, r->codes))
    return;
  const uint32_t *slot = &cell_slots(p, p->cells[cell])[i];
  __builtin_prefetch(slot); /* in cold memory */
  r->scored[r->n_scored++] = (struct recjpq_unchecked_item){ score, slot };
}

/* Offer the admitted items. */
static void offer_scored(struct rings *r)
{
  struct recjpq_search *s = r->search;

  for (size_t i = 0; i < r->n_scored; i++) {
    const struct recjpq_unchecked_item *item = &r->scored[i];
    if (item->score >= recjpq_threshold(s) && recjpq_admit(s, *item->slot))
      recjpq_offer(s, item->score, *item->slot);
  }
  r->n_scored = 0;
}

/* Filter the pieces that have been prefetched, and score the items that pass. Meanwhile, prefetch the pieces of the
 * group that was filled last: waiting for memory and arithmetic overlap. */
static void swap_groups(struct rings *r)
{
  struct recjpq_search *s = r->search;
  struct ring_group *full = &r->groups[r->current], *due = &r->groups[1 - r->current];
  const struct ring *ring = &r->rings[due->ring];
  const struct ring_pair *p = ring->pair;
  size_t n = s->kernels->pq_cells(p->others, p->rows, p->cells->n_others, due->pieces, due->n, full->pieces, full->n,
                                  s->deficits.limit, r->passed);

  s->result->counts.candidates += n;
  for (size_t i = 0; i < n; i++) {
    size_t piece = r->passed[i] / PQ_PIECE_ITEMS;
    score_item(r, ring, due->cells[piece], due->firsts[piece] + r->passed[i] % PQ_PIECE_ITEMS);
  }
  offer_scored(r);
  recjpq_deficits_tighten(&s->deficits, recjpq_threshold(s));
  due->n = 0;
  due->ring = full->ring;
  r->current = 1 - r->current;
}

/* Return the group for a piece of a ring. */
static struct ring_group *find_group(struct rings *r, uint8_t ring)
{
  struct ring_group *group = &r->groups[r->current];

  if (group->n == GROUP_PIECES || (group->n > 0 && group->ring != ring)) {
    swap_groups(r);
    group = &r->groups[r->current];
  }
  group->ring = ring;
  return group;
}

/* Add the pieces of the oldest cell whose head was prefetched. */
static void visit_oldest(struct rings *r)
{
  struct visit visit = r->visits[r->n_visited++ % VISITS];
  const struct cell_pair *p = r->rings[visit.ring].pair->cells;
  struct cell cell = p->cells[visit.cell];

  for (uint32_t first = 0; first < cell.n; first += PQ_PIECE_ITEMS) {
    struct ring_group *group = find_group(r, visit.ring);
    uint32_t left = cell.n - first;
    group->pieces[group->n] = (struct pq_piece){
      .codes = cell_codes(p, cell) + first,
      .stride = (uint32_t)cell_entries(cell),
      .n = (uint8_t)(left < PQ_PIECE_ITEMS ? left : PQ_PIECE_ITEMS),
      .base = visit.level,
    };
    group->cells[group->n] = visit.cell;
    group->firsts[group->n++] = first;
  }
}

static void add_cell(struct rings *r, size_t cell, int level)
{
  __builtin_prefetch(&r->rings[r->ring].pair->cells->cells[cell]);
  if (r->n_begun - r->n_visited == VISITS)
    visit_oldest(r);
  r->visits[r->n_begun++ % VISITS] = (struct visit){ (uint32_t)cell, (uint8_t)level, r->ring };
}

/* Visit the cells in flight. */
static void finish_rings(struct rings *r)
{
  while (r->n_visited < r->n_begun)
    visit_oldest(r);
  swap_groups(r);
  swap_groups(r);
}

/* Begin a ring: enumerate its cells. The last ones stay in flight. */
static void visit_ring(struct rings *r, struct ring_pair *p, int end)
{
  size_t n_subitems = r->search->columns->cells.n_subitems, n_rows = recjpq_levels_below(p->a, end);

  if (r->n_begun > r->n_before) /* an empty ring's place is used again */
    r->ring = (uint8_t)((r->ring + 1) % RINGS_MAX);
  r->n_before = r->n_begun;
  r->rings[r->ring].pair = p;
  for (size_t i = 0; i < r->n_pairs; i++)
    r->rings[r->ring].seen.nexts[i] = &r->pairs[i] == p ? 0 : r->pairs[i].next;
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
  set_next(p, end);
}

/* A query -------------------- */

/* Does gathering the admitted items take less time than a scan of all slots? */
static bool admits_few(const struct admit *admit, size_t n_slots)
{
  return admit->n_admitted < n_slots / RECJPQ_SLOTS_PER_ADMITTED;
}

/* Number of slots that are scanned in the time of the faster scan. */
static size_t n_slots_scanned(const struct admit *admit, size_t n_slots)
{
  return admits_few(admit, n_slots) ? (size_t)admit->n_admitted * RECJPQ_SLOTS_PER_ADMITTED : n_slots;
}

/* Number of cells that can be visited in the time of a scan. */
static size_t n_cells_max(const struct recjpq_columns *c, const struct search_batch *batch,
                          const struct search_result *result, const struct recjpq_rule *rule)
{
  size_t n_cells = c->model->n_subitems * (c->model->n_splits > 1 ? c->model->n_subitems : 1);
  size_t per_cell =
      rule->slots_per_cell == RECJPQ_BY_KERNELS ? batch->kernels->pq_slots_per_cell : rule->slots_per_cell;

  if (per_cell == 0)
    return SIZE_MAX / 4;
  size_t n = n_slots_scanned(&result->admit, batch->n_slots) / (per_cell + SLOTS_PER_ITEM * batch->n_items / n_cells);
  return n - size_min(n / 2, CELLS_PER_HIT * result->topk.k);
}

/* With a filter, the few admitted items that were found at first hardly tell how far the threshold will rise, and the
 * next look comes soon: so twice the cost of a scan is tolerated. A guess tells it from the start. */
static size_t n_tolerated_at_first(const struct rings *r)
{
  const struct recjpq_search *s = r->search;

  return s->admits_most || s->is_guess ? r->n_cells_max : 2 * r->n_cells_max;
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
  recjpq_deficits_others(d, p->cells, p->others, p->rows);
  set_next(p, 0);
  return ERR_OK;
}

static err_t init_rings(struct recjpq_search *s, const struct search_batch *batch, const struct recjpq_rule *rule,
                        struct rings *r)
{
  const struct cells *cells = &s->columns->cells;
  struct region *scratch = batch->scratch;
  struct recjpq_levels *levels;
  int *nexts;

  r->search = s;
  r->n_pairs = cells->n_pairs;
  r->n_visited = r->n_begun = r->n_before = r->n_scored = 0;
  r->n_cells_max = n_cells_max(s->columns, batch, s->result, rule);
  r->n_unchecked = s->is_guess ? 0 : r->n_cells_max / TRIAL; /* a guess is nearly final from the start */
  r->n_before_look = s->result->counts.candidates;
  r->n_tolerated = n_tolerated_at_first(r);
  r->groups[0].n = r->groups[1].n = 0;
  r->groups[0].ring = r->groups[1].ring = r->ring = 0;
  r->current = 0;
  TRY(kth_best_init(s->result->topk.k, scratch, &r->found));
  TRY(region_array(scratch, cells->n_splits, 1, &r->codes));
  TRY(region_array(scratch, cells->n_splits, sizeof *levels, &levels));
  for (size_t m = 0; m < cells->n_splits; m++)
    recjpq_levels_sort(recjpq_deficits_table(&s->deficits, m), s->deficits.subitems.lengths + m * cells->n_subitems,
                       cells->n_subitems, &levels[m]);
  TRY(region_array(scratch, r->n_pairs, sizeof *r->pairs, &r->pairs));
  for (size_t i = 0; i < r->n_pairs; i++)
    TRY(init_pair(r, levels, scratch, i));
  TRY(region_array(scratch, RINGS_MAX * r->n_pairs, sizeof *nexts, &nexts));
  for (size_t i = 0; i < RINGS_MAX; i++)
    r->rings[i] = (struct ring){ &r->pairs[0], { cells, s->deficits.tables, nexts + i * r->n_pairs } };
  return ERR_OK;
}

/* Return the score that the K-th best item will have, judged by the items found so far. Suppose that the levels of such
 * an item are spread over the pairs at random. While the rings have yet to cover the part x of the limit, all pairs
 * have missed it with probability x^(pairs - 1) at most. The others have been found. */
static float predict_threshold(struct rings *r)
{
  const struct topk *found = &r->search->result->topk;
  const struct recjpq_hits *hits = &r->search->hits;
  double x = (double)levels_left(r, r->search->deficits.limit) / (r->search->deficits.limit + 1), missed = 1;

  for (size_t i = 1; i < r->n_pairs; i++)
    missed *= x;
  kth_best_restart(&r->found, 1 + (size_t)((double)(found->k - 1) * (1 - missed)));
  for (size_t i = 0; i < found->n; i++)
    kth_best_add(&r->found, found->heap[i].score);
  for (size_t i = 0; i < hits->n; i++)
    kth_best_add(&r->found, hits->entries[i].score);
  kth_best_cut(&r->found);
  return fmaxf(fmaxf(recjpq_threshold(r->search), r->search->expected), r->found.threshold);
}

/* What the rings have cost until now, in cells. With a filter, items that are scored but not admitted raise no
 * threshold, and a query that dislikes what is admitted meets many of them. Scoring one costs about as much as
 * visiting a cell. */
static size_t n_spent(const struct rings *r)
{
  const struct recjpq_search *s = r->search;

  return r->n_begun + (s->admits_most ? 0 : s->result->counts.candidates);
}

/* Estimate what the cells of a limit will cost, in cells. Above `most`, counting stops. The best cells come first. So
 * suppose that each doubling of the cells meets as many items to score as were met since the last look. */
static size_t predict_cost(struct rings *r, int limit, size_t most)
{
  const struct recjpq_search *s = r->search;
  size_t n_cells = plan(r, limit, most);

  if (s->admits_most || r->n_begun == 0 || n_cells == 0)
    return n_cells;
  double n_doublings = log2((double)(r->n_begun + n_cells) / (double)r->n_begun);
  return n_cells + (size_t)(n_doublings * (double)(s->result->counts.candidates - r->n_before_look));
}

/* Will the remaining cells take no longer than a scan? The predicted threshold decides. The threshold only rises. So if
 * there is time even for the cells that the present one needs, nothing more is checked. */
static bool is_worth_it(struct rings *r)
{
  const struct recjpq_deficits *d = &r->search->deficits;

  finish_rings(r);
  size_t most = r->n_tolerated;
  if (levels_left(r, d->limit) <= 0)
    return true; /* the threshold has risen so far that nothing is left */
  if (predict_cost(r, recjpq_deficits_limit(d, predict_threshold(r)), most) > most)
    return false;
  bool is_sure = predict_cost(r, d->limit, r->n_cells_max) <= r->n_cells_max;
  r->n_unchecked = is_sure ? SIZE_MAX : 2 * n_spent(r);
  r->n_before_look = r->search->result->counts.candidates;
  r->n_tolerated -= (r->n_tolerated - r->n_cells_max) / 2;
  return true;
}

/* Visit rings until the answer is proven. Returns false if scanning is faster. */
static bool visit_rings(struct rings *r)
{
  const uint8_t *limit = &r->search->deficits.limit;

  for (int left = levels_left(r, *limit); left > 0; left = levels_left(r, *limit)) {
    struct ring_pair *p = cheapest_pair(r);
    if (n_spent(r) + p->next_cells > r->n_unchecked && !is_worth_it(r))
      return false;
    visit_ring(r, p, ring_end(p, left));
  }
  finish_rings(r);
  recjpq_offer_waiting(r->search);
  return true;
}

/* Let a scan find the items that the rings have not seen. The scan changes the tables, so it gets a copy. */
static err_t start_scan(const struct rings *r, struct recjpq_search *s, struct region *scratch)
{
  struct recjpq_seen *seen = &s->seen;
  size_t n_bytes = r->search->deficits.n_splits * PQ_SUBITEMS;
  uint8_t *tables;

  TRY(region_array(scratch, n_bytes, 1, &tables));
  TRY(region_array(scratch, r->n_pairs, sizeof *seen->nexts, &seen->nexts));
  memcpy(tables, s->deficits.tables, n_bytes);
  seen->cells = &s->columns->cells;
  seen->tables = tables;
  for (size_t i = 0; i < r->n_pairs; i++)
    seen->nexts[i] = r->pairs[i].next;
  recjpq_deficits_quantise(&s->deficits, recjpq_threshold(s));
  return ERR_OK;
}

/* By the faster one of two scans. */
static err_t scan(struct recjpq_search *s, const struct search_batch *batch)
{
  if (admits_few(&s->result->admit, batch->n_slots))
    return recjpq_scan_admitted(s, batch->n_slots, batch->scratch);
  recjpq_scan(s, batch->n_slots);
  return ERR_OK;
}

/* Find all items that reach the floor. */
static err_t find_hits(struct recjpq_search *s, const struct search_batch *batch, const struct recjpq_rule *rule)
{
  struct rings rings;

  if (cells_are_complete(&s->columns->cells) && batch->n_items > rule->scan_items_max && s->floor > -INFINITY) {
    TRY(init_rings(s, batch, rule, &rings));
    if (visit_rings(&rings))
      return ERR_OK;
    if (rings.n_begun > 0)
      TRY(start_scan(&rings, s, batch->scratch));
  }
  return scan(s, batch);
}

static err_t search_query(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                          const struct recjpq_rule *rule)
{
  struct recjpq_search s;

  TRY(recjpq_search_init(c, batch, query, rule, &s));
  TRY(find_hits(&s, batch, rule));
  return recjpq_guess_failed(&s) ? scan(&s, batch) : ERR_OK;
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
