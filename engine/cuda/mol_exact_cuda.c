/* SPDX-License-Identifier: Apache-2.0 */
/* The exact Mixture-of-Logits methods on the device. The scores of some promising items, the seeds, give floors; then
 * every item that may reach a floor is scored. The seeds of `exact` and `brute_force` are the best by averaged vectors.
 * Those of `two_pass` are the best of each pair of components, as in Algorithm 1 of the MoL paper (section 3.1).
 *
 * If the model has bounds, two more floors narrow the choice. `exact` takes the lower bounds of a sample of all items
 * into the first floor: averages say little in some models, such as freshly initialised ones. And once items are
 * listed, the K-th best of their lower bounds is the second floor; only items whose upper bound reaches it are scored.
 *
 * Queries that admit few items need only the second floor: all admitted items are listed.
 */
#include "base/size.h"
#include "engine/cuda/mol_cuda.h"
#include "engine/mol/mol_methods.h"

enum {
  SEEDS = 1024,        /* minimum number of seeds */
  SEEDS_PER_RANK = 4,  /* minimum number of seeds per requested item */
  SEEDS_PAY_AT = 4,    /* seeds are used only if the catalogue has this many times more items */
  SEEDS_TIED = 256,    /* room for ties among the seeds */
  PAIRS_SEEDS = 16384, /* two_pass: maximum number of seeds; more of them do not improve the floor */
};

static size_t n_seeds_of(const struct search_batch *batch)
{
  size_t n = SEEDS_PER_RANK * funnel_max_rank(batch);

  return n > SEEDS ? n : SEEDS;
}

static bool is_worth_seeding(const struct search_batch *batch)
{
  return batch->n_items >= SEEDS_PAY_AT * n_seeds_of(batch);
}

static size_t seeds_room(const struct search_batch *batch)
{
  return size_min(n_seeds_of(batch) + SEEDS_TIED, batch->n_slots);
}

/* Find floors from the scores of seeds. Any seeds give a valid floor, so overflowed lists are good enough. */
static err_t floors_of_seeds(const struct funnel *f, const struct funnel_group *group, const struct device_lists *seeds,
                             struct lists_ranks ranks)
{
  TRY(mol_cuda_score(f, group, seeds));
  return lists_threshold(funnel_worker(f)->stream, seeds, ranks, group->floors);
}

static err_t floor_of_average(const struct funnel *f, struct funnel_group *group)
{
  struct device_worker *w = funnel_worker(f);
  struct lists_ranks ranks = { group->ranks, 0 };
  struct device_lists seeds;
  uint32_t *n_offered;

  if (!is_worth_seeding(f->batch)) /* the empty lists give -inf */
    return lists_threshold(w->stream, &group->lists, ranks, group->floors);
  TRY(funnel_lists(w, group->n, seeds_room(f->batch), &seeds));
  TRY(device_worker_array(w, 2 * group->n, sizeof *n_offered, &n_offered));
  TRY(device_fill(w->stream, n_offered, 0, 2 * group->n * sizeof *n_offered));
  seeds.n = n_offered + group->n;
  TRY(mol_cuda_candidates_of_average(f, group, n_seeds_of(f->batch), false, NULL, &seeds, n_offered));
  return floors_of_seeds(f, group, &seeds, ranks);
}

static err_t floor_of_average_and_bounds(const struct funnel *f, struct funnel_group *group)
{
  TRY(floor_of_average(f, group));
  return is_worth_seeding(f->batch) ? mol_cuda_raise_floors(f, group) : ERR_OK;
}

static size_t average_scratch_bytes(const struct funnel *f)
{
  size_t bytes = mol_cuda_work_bytes(f);

  if (!is_worth_seeding(f->batch))
    return bytes;
  return bytes + seeds_room(f->batch) * 8 + mol_cuda_average_bytes(f->batch, n_seeds_of(f->batch)) +
         mol_cuda_raise_bytes(f->batch);
}

static void collect_counts(const struct funnel *f, const struct funnel_group *group)
{
  const struct mol_cuda_queries *queries = group->queries;

  for (size_t q = 0; q < group->n; q++)
    f->batch->results[group->first + q].counts.candidates = queries->n_seeds[q];
}

/* Lines 1 to 8 of Algorithm 1. G is the union of the K best of each pair, and the floor S is the K-th best score in G.
 */
static err_t floor_of_pairs(const struct funnel *f, struct funnel_group *group)
{
  struct device_worker *w = funnel_worker(f);
  struct mol_pairs_source source = mol_cuda_pairs_source(f, group);
  struct mol_cuda_queries *queries = group->queries;
  struct mol_pairs_found found;

  TRY(funnel_lists(w, group->n, size_min(PAIRS_SEEDS, f->batch->n_slots), &found.candidates));
  TRY(device_worker_output(w, group->n, sizeof *found.candidates.n, &found.candidates.n, &queries->n_seeds));
  TRY(device_worker_array(w, group->n, sizeof *found.nth_best, &found.nth_best));
  TRY(device_worker_array(w, group->n, sizeof *found.has_overflowed, &found.has_overflowed));
  TRY(mol_pairs_cuda_candidates(f, group, &source, 0, &found));
  return floors_of_seeds(f, group, &found.candidates, (struct lists_ranks){ group->ks, 0 });
}

static size_t pairs_scratch_bytes(const struct funnel *f)
{
  return mol_cuda_work_bytes(f) + size_min(PAIRS_SEEDS, f->batch->n_slots) * 8 +
         mol_pairs_cuda_query_bytes(f, (uint32_t)funnel_max_rank(f->batch));
}

/* Search the batch. If the model has bounds, append uses them, and only items that pass are scored. with_bounds: the
 * funnel_ops.floor to use in that case. */
static err_t search(const struct device_columns *c, struct search_batch *batch, struct funnel_ops ops,
                    err_t (*with_bounds)(const struct funnel *f, struct funnel_group *group))
{
  struct funnel f = { .columns = c, .batch = batch, .ops = &ops };

  if (mol_cuda_has_bounds(&f)) {
    ops.floor = with_bounds;
    ops.append = mol_cuda_append_bounds;
    ops.refine = mol_cuda_refine_by_lowers;
    ops.score = mol_cuda_score;
    f.n_candidates = mol_cuda_bounds_room(batch);
  }
  if (is_worth_seeding(batch))
    f.n_candidates = size_max(f.n_candidates, mol_cuda_average_room(batch, n_seeds_of(batch)));
  return funnel_search(&f);
}

static err_t search_few(const struct device_columns *c, struct search_batch *batch)
{
  struct funnel_ops ops = { .upload = mol_cuda_upload,
                            .query_bytes = mol_cuda_query_bytes,
                            .scratch_bytes = mol_cuda_work_bytes,
                            .floor = funnel_no_floor,
                            .append = funnel_append_admitted,
                            .score = mol_cuda_score };
  struct funnel f = { .columns = c, .batch = batch, .ops = &ops };

  if (mol_cuda_has_bounds(&f))
    ops.refine = mol_cuda_refine_by_lowers;
  return funnel_search(&f);
}

err_t mol_cuda_search_exact(const struct columns *columns, struct search_batch *batch)
{
  const struct device_columns *c = device_columns_of(columns);
  static const struct funnel_ops ops = { .upload = mol_cuda_upload,
                                         .query_bytes = mol_cuda_query_bytes,
                                         .scratch_bytes = average_scratch_bytes,
                                         .floor = floor_of_average,
                                         .append = mol_cuda_append_scores };

  return batch->admits_few ? search_few(c, batch) : search(c, batch, ops, floor_of_average_and_bounds);
}

err_t mol_cuda_search_two_pass(const struct columns *columns, struct search_batch *batch)
{
  const struct device_columns *c = device_columns_of(columns);
  static const struct funnel_ops ops = { .upload = mol_cuda_upload,
                                         .query_bytes = mol_cuda_query_bytes,
                                         .scratch_bytes = pairs_scratch_bytes,
                                         .floor = floor_of_pairs,
                                         .append = mol_cuda_append_scores,
                                         .collect = collect_counts };

  return batch->admits_few ? search_few(c, batch) : search(c, batch, ops, floor_of_pairs);
}
