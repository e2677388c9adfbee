/* SPDX-License-Identifier: Apache-2.0 */
/* A ring is enumerated cell by cell. The heads of cells wait in `visits`, and their pieces in two groups: one is
 * filtered while the other is being prefetched. */
#include "engine/recjpq/recjpq_visits.h"

static void score_item(struct recjpq_visits *v, const struct recjpq_open_ring *ring, size_t cell, size_t i)
{
  struct recjpq_search *s = v->search;
  const struct cells *cells = &s->columns->cells;
  const struct cell_pair *p = ring->pair->cells;

  cell_read(cells, p, cell, i, v->codes);
  float score = recjpq_score(s->subitem_scores, v->codes, cells->n_splits);
  s->result->counts.scored++;
  if (score < recjpq_threshold(s) || recjpq_was_seen(&ring->seen, v->codes))
    return;
  const uint32_t *slot = &cell_slots(p, p->cells[cell])[i];
  __builtin_prefetch(slot); /* in cold memory */
  v->scored[v->n_scored++] = (struct recjpq_unchecked_item){ score, slot };
}

/* Offer the admitted items. */
static void offer_scored(struct recjpq_visits *v)
{
  struct recjpq_search *s = v->search;

  for (size_t i = 0; i < v->n_scored; i++) {
    const struct recjpq_unchecked_item *item = &v->scored[i];
    if (item->score >= recjpq_threshold(s) && recjpq_admit(s, *item->slot))
      recjpq_offer(s, item->score, *item->slot);
  }
  v->n_scored = 0;
}

/* Filter the pieces that have been prefetched, and score the items that pass. Meanwhile, prefetch the pieces of the
 * group that was filled last: waiting for memory and arithmetic overlap. */
static void swap_groups(struct recjpq_visits *v)
{
  struct recjpq_search *s = v->search;
  struct recjpq_ring_group *full = &v->groups[v->current], *due = &v->groups[1 - v->current];
  const struct recjpq_open_ring *ring = &v->open[due->ring];
  const struct recjpq_ring_pair *p = ring->pair;
  size_t n = s->kernels->pq_cells(p->others, p->rows, p->cells->n_others, due->pieces, due->n, full->pieces, full->n,
                                  s->deficits.limit, v->passed);

  s->result->counts.candidates += n;
  for (size_t i = 0; i < n; i++) {
    size_t piece = v->passed[i] / PQ_PIECE_ITEMS;
    score_item(v, ring, due->cells[piece], due->firsts[piece] + v->passed[i] % PQ_PIECE_ITEMS);
  }
  offer_scored(v);
  recjpq_deficits_tighten(&s->deficits, recjpq_threshold(s));
  due->n = 0;
  due->ring = full->ring;
  v->current = 1 - v->current;
}

/* Return the group for a piece of a ring. */
static struct recjpq_ring_group *find_group(struct recjpq_visits *v, uint8_t ring)
{
  struct recjpq_ring_group *group = &v->groups[v->current];

  if (group->n == RECJPQ_GROUP_PIECES || (group->n > 0 && group->ring != ring)) {
    swap_groups(v);
    group = &v->groups[v->current];
  }
  group->ring = ring;
  return group;
}

/* Add the pieces of the oldest cell whose head was prefetched. */
static void visit_oldest(struct recjpq_visits *v)
{
  struct recjpq_visit visit = v->visits[v->n_visited++ % RECJPQ_VISITS_MAX];
  const struct cell_pair *p = v->open[visit.ring].pair->cells;
  struct cell cell = p->cells[visit.cell];

  for (uint32_t first = 0; first < cell.n; first += PQ_PIECE_ITEMS) {
    struct recjpq_ring_group *group = find_group(v, visit.ring);
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

static void add_cell(struct recjpq_visits *v, size_t cell, int level)
{
  __builtin_prefetch(&v->open[v->ring].pair->cells->cells[cell]);
  if (v->n_begun - v->n_visited == RECJPQ_VISITS_MAX)
    visit_oldest(v);
  v->visits[v->n_begun++ % RECJPQ_VISITS_MAX] = (struct recjpq_visit){ (uint32_t)cell, (uint8_t)level, v->ring };
}

void recjpq_visits_finish(struct recjpq_visits *v)
{
  while (v->n_visited < v->n_begun)
    visit_oldest(v);
  swap_groups(v); /* the pieces that were being prefetched; the others are due then */
  swap_groups(v);
}

void recjpq_visits_ring(struct recjpq_visits *v, struct recjpq_ring_pair *p, int end)
{
  size_t n_subitems = v->search->columns->cells.n_subitems, n_rows = recjpq_levels_below(p->a, end);

  if (v->n_begun > v->n_before) /* an empty ring's place is used again */
    v->ring = (uint8_t)((v->ring + 1) % RECJPQ_OPEN_MAX);
  v->n_before = v->n_begun;
  v->open[v->ring].pair = p;
  for (size_t i = 0; i < v->rings->n_pairs; i++)
    v->open[v->ring].seen.nexts[i] = &v->rings->pairs[i] == p ? 0 : v->rings->pairs[i].next;
  for (size_t i = p->b ? 0 : recjpq_levels_below(p->a, p->next); i < n_rows; i++) {
    size_t a = p->a->subitems[i];
    int level = p->table_a[a];
    if (!p->b) {
      add_cell(v, a, level);
      continue;
    }
    size_t last = recjpq_levels_below(p->b, end - level);
    for (size_t j = recjpq_levels_below(p->b, p->next - level); j < last; j++)
      add_cell(v, a * n_subitems + p->b->subitems[j], level + p->table_b[p->b->subitems[j]]);
  }
  recjpq_rings_set_next(p, end);
}

err_t recjpq_visits_init(struct recjpq_search *s, const struct recjpq_rings *rings, struct region *scratch,
                         struct recjpq_visits *out)
{
  const struct cells *cells = &s->columns->cells;
  int *nexts;

  out->search = s;
  out->rings = rings;
  out->n_visited = out->n_begun = out->n_before = out->n_scored = 0;
  out->groups[0].n = out->groups[1].n = 0;
  out->groups[0].ring = out->groups[1].ring = out->ring = 0;
  out->current = 0;
  TRY(region_array(scratch, cells->n_splits, 1, &out->codes));
  TRY(region_array(scratch, RECJPQ_OPEN_MAX * cells->n_pairs, sizeof *nexts, &nexts));
  for (size_t i = 0; i < RECJPQ_OPEN_MAX; i++)
    out->open[i] =
        (struct recjpq_open_ring){ &rings->pairs[0], { cells, s->deficits.tables, nexts + i * cells->n_pairs } };
  return ERR_OK;
}
