/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates by pairs of components: TopKDotProduct(f_p(q), X_p) for every pair p = (n, m) (MoL paper, Algorithms 1 and
 * 2). One pass over the sketches fills all lists of all queries of the batch. If the lists would use too much memory,
 * each pass handles only some of the queries, or some of the item components. */
#include <math.h>

#include "base/size.h"
#include "engine/mol/mol_candidates.h"
#include "engine/mol/mol_dots.h"
#include "engine/mol/mol_sketch.h"
#include "engine/search/spread.h"

/* One query scans this many chunks before the next query scans the same ones: their sketches, and the lists of the
 * query, stay in cache. */
enum { TURN_CHUNKS = 4, TURN_SLOTS = TURN_CHUNKS * SHORTLIST_CHUNK };

/* One pass over the sketches, limited to a range of the item components. */
struct pass {
  const struct mol_columns *columns;
  struct search_batch *batch;
  size_t first_component, n_components;
  float *tile;
};

struct query_lists {
  const struct pass *pass;
  const struct mol_query *query;
  struct mol_query_sketch sketch;
  struct shortlist_scale *scales; /* [P_q][n_components of the pass] */
  struct shortlists lists;
};

/* Lists are ordered [P_q][n_components]. */
static void exact_scores(const void *context, size_t list, const struct scan_entry *entries, size_t n, float *scores)
{
  const struct query_lists *l = context;
  const struct mol_columns *c = l->pass->columns;
  size_t dim = c->model->shape.component_dim, m = l->pass->first_component + list % l->pass->n_components;
  struct mol_dots dots = { l->pass->batch->kernels,
                           l->query->components + list / l->pass->n_components * dim,
                           dim,
                           c->components + m * dim,
                           mol_item_layout(c->model).components,
                           l->pass->tile };

  mol_dots(&dots, entries, n, scores);
}

static err_t init_lists(const struct pass *pass, size_t n_components, size_t max_best, struct query_lists *out)
{
  const struct topk *topk = &pass->batch->results[0].topk;
  size_t n_lists = pass->columns->model->shape.n_query_components * n_components;

  out->pass = pass;
  out->lists = (struct shortlists){ .kernels = pass->batch->kernels,
                                    .n_slots = pass->batch->n_slots,
                                    .order = topk->order,
                                    .order_context = topk->context,
                                    .exact = exact_scores,
                                    .exact_context = out };
  TRY(region_array(pass->batch->scratch, n_lists, sizeof *out->scales, &out->scales));
  return shortlist_init(&out->lists, n_lists, max_best, pass->batch->scratch);
}

/* Empty the lists and assign them to query q. */
static err_t begin_lists(const struct pass *pass, size_t q, size_t n_best, struct query_lists *l)
{
  const struct mol_shape *shape = &pass->columns->model->shape;
  const struct mol_query *queries = mol_queries_of(pass->batch->prepared);
  size_t n_lists = shape->n_query_components * pass->n_components;

  l->query = &queries[q];
  TRY(mol_sketch_query(shape, l->query->components, pass->columns->residual, pass->batch->scratch, &l->sketch));
  for (size_t i = 0; i < n_lists; i++) {
    l->scales[i] = l->sketch.scales[i / pass->n_components];
    l->scales[i].admit = &pass->batch->results[q].admit;
  }
  shortlist_reset(&l->lists, l->scales, n_lists, n_best, true);
  return ERR_OK;
}

/* Scan one chunk of slots for one query. */
static void scan_chunk(const struct pass *pass, struct query_lists *l, size_t first, size_t n)
{
  const struct mol_columns *c = pass->columns;
  size_t block_bytes = mol_sketch_block_bytes(c), component_bytes = block_bytes / c->model->shape.n_item_components;
  const uint8_t *blocks = mol_sketch_block_at(c, first);

  shortlist_make_room(&l->lists, n,
                      pass->batch->kernels->mol_lists(&l->sketch.rows, pass->n_components,
                                                      blocks + pass->first_component * component_bytes, block_bytes,
                                                      (n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS,
                                                      (uint32_t)first, l->lists.lists));
}

/* Read the sketches once. Queries take turns on TURN_SLOTS slots at a time. */
static void scan(const struct pass *pass, struct query_lists *lists, size_t n_queries)
{
  size_t n_slots = pass->batch->n_slots;
  struct spread turns = spread_over((n_slots + TURN_SLOTS - 1) / TURN_SLOTS);

  for (size_t i = 0; i < turns.n; i++) {
    size_t begin = spread_next(&turns) * TURN_SLOTS, end = begin + size_min(n_slots - begin, TURN_SLOTS);
    for (size_t q = 0; q < n_queries; q++) {
      for (size_t first = begin; first < end; first += SHORTLIST_CHUNK)
        scan_chunk(pass, &lists[q], first, size_min(end - first, SHORTLIST_CHUNK));
    }
  }
}

static bool are_complete(struct query_lists *l)
{
  for (size_t i = 0; i < l->lists.n_lists; i++) {
    if (!shortlist_is_complete(&l->lists, i))
      return false;
  }
  return true;
}

/* A guessed threshold was wrong: scan again without guesses. */
static void scan_again(const struct pass *pass, struct query_lists *l)
{
  shortlist_reset(&l->lists, l->scales, l->lists.n_lists, l->lists.n_best, false);
  scan(pass, l, 1);
}

static void add_candidates(struct query_lists *l, uint64_t *candidates, float *nth_best)
{
  for (size_t i = 0; i < l->lists.n_lists; i++) {
    const struct scan_list *list = &l->lists.lists[i];
    *nth_best = fmaxf(*nth_best, shortlist_finish(&l->lists, i));
    for (uint32_t e = 0; e < list->n; e++)
      bits_set(candidates, list->entries[e].slot);
  }
}

/* Run one pass for n queries and add their candidates. */
static err_t run_pass(const struct pass *pass, const size_t *n_best, size_t first_query, size_t n,
                      struct query_lists *lists, uint64_t *const *candidates, float *nth_best)
{
  for (size_t q = 0; q < n; q++)
    TRY(begin_lists(pass, first_query + q, n_best[first_query + q], &lists[q]));
  scan(pass, lists, n);
  for (size_t q = 0; q < n; q++) {
    if (!are_complete(&lists[q]))
      scan_again(pass, &lists[q]);
    add_candidates(&lists[q], candidates[first_query + q], &nth_best[first_query + q]);
  }
  return ERR_OK;
}

static size_t clamp(size_t n, size_t most)
{
  return n < 1 ? 1 : n > most ? most : n;
}

static size_t largest(const size_t *x, size_t n)
{
  size_t found = 0;

  for (size_t i = 0; i < n; i++)
    found = x[i] > found ? x[i] : found;
  return found;
}

err_t mol_candidates_of_pairs(const struct mol_columns *c, struct search_batch *batch, const size_t *n_best,
                              uint64_t *const *candidates, float *nth_best)
{
  const struct mol_shape *shape = &c->model->shape;
  size_t max_best = largest(n_best, batch->n);
  size_t component_bytes = shortlist_bytes(shape->n_query_components, max_best, batch->n_slots);
  size_t n_components = clamp(MOL_LISTS_BYTES_MAX / component_bytes, shape->n_item_components);
  size_t n_queries = clamp(MOL_LISTS_BYTES_MAX / (n_components * component_bytes), batch->n);
  struct pass pass = { .columns = c, .batch = batch };
  struct query_lists *lists;

  TRY(region_aligned(batch->scratch, shape->component_dim * MOL_LANES, sizeof *pass.tile, &pass.tile));
  TRY(region_array(batch->scratch, n_queries, sizeof *lists, &lists));
  for (size_t q = 0; q < n_queries; q++)
    TRY(init_lists(&pass, n_components, max_best, &lists[q]));
  for (size_t q = 0; q < batch->n; q++)
    nth_best[q] = -INFINITY;
  for (size_t q = 0; q < batch->n; q += n_queries) {
    for (size_t m = 0; m < shape->n_item_components; m += n_components) {
      pass.first_component = m;
      pass.n_components = clamp(n_components, shape->n_item_components - m);
      TRY(run_pass(&pass, n_best, q, clamp(n_queries, batch->n - q), lists, candidates, nth_best));
    }
  }
  return ERR_OK;
}
