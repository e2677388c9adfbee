/* SPDX-License-Identifier: Apache-2.0 */
/* Half-precision bounds of Mixture-of-Logits scores on the device, for models that have them. A search scores only the
 * items whose bounds pass. */
#include "engine/cuda/mol_cuda.h"

enum {
  SAMPLE_STRIDE = 16, /* a floor comes from the bounds of every 16th tile, */
  LIST_SLACK = 4,     /* ... or of more, so that a list has room for this many times the items that reach it */
  LIST_LEAST = 16384, /* entries of a list */
  LIST_PER_RANK = 16, /* ... and per requested item */
};

static const struct mol_cuda_shared *shared_of(const struct funnel *f)
{
  return f->columns->shared;
}

bool mol_cuda_has_bounds(const struct funnel *f)
{
  return shared_of(f)->bound != NULL;
}

struct mol_bounds_input mol_cuda_bound_input(const struct funnel *f, const struct funnel_group *group)
{
  const struct mol_cuda_queries *queries = group->queries;

  return (struct mol_bounds_input){ .gate = shared_of(f)->bound,
                                    .present = f->columns->rows.present,
                                    .items = mol_cuda_halves(f->columns),
                                    .query_components = queries->components,
                                    .query_gates = queries->gates,
                                    .n_queries = group->n,
                                    .n_blocks = funnel_worker(f)->n_processors,
                                    .admitted = group->admitted };
}

/* The stride of the sampled tiles. Let the floor be the r-th largest lower bound of every s-th tile. Then about r s
 * items have a lower bound that reaches it, and some three times as many have such an upper bound. */
static size_t stride_of(const struct search_batch *batch)
{
  size_t stride = mol_cuda_bounds_room(batch) / (LIST_SLACK * funnel_max_rank(batch));

  return stride < 1 ? 1 : stride < SAMPLE_STRIDE ? stride : SAMPLE_STRIDE;
}

static size_t n_sampled(const struct search_batch *batch)
{
  return (funnel_n_tiles(batch) + stride_of(batch) - 1) / stride_of(batch);
}

size_t mol_cuda_raise_bytes(const struct search_batch *batch)
{
  return (n_sampled(batch) * MOL_BOUNDS_MAXIMA + 1) * sizeof(float);
}

size_t mol_cuda_bounds_room(const struct search_batch *batch)
{
  size_t n = LIST_PER_RANK * funnel_max_rank(batch);

  return n > LIST_LEAST ? n : LIST_LEAST;
}

err_t mol_cuda_raise_floors(const struct funnel *f, const struct funnel_group *group)
{
  struct device_worker *w = funnel_worker(f);
  struct mol_bounds_input input = mol_cuda_bound_input(f, group);
  size_t n_tiles = n_sampled(f->batch);
  float *maxima, *others;

  TRY(device_worker_array(w, group->n * n_tiles * MOL_BOUNDS_MAXIMA, sizeof *maxima, &maxima));
  TRY(device_worker_array(w, group->n, sizeof *others, &others));
  TRY(mol_bounds_maxima(w->stream, &input, f->batch->n_slots, stride_of(f->batch), n_tiles, maxima));
  TRY(lists_threshold_of(w->stream, maxima, group->n, n_tiles * MOL_BOUNDS_MAXIMA,
                         (struct lists_ranks){ group->ranks, 0 }, others));
  return lists_raise(w->stream, group->floors, others, group->n);
}

err_t mol_cuda_append_bounds(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors)
{
  struct mol_bounds_input input = mol_cuda_bound_input(f, group);

  return mol_bounds_append(funnel_worker(f)->stream, &input, range.first, range.n, floors, &group->lists);
}

err_t mol_cuda_refine_by_lowers(const struct funnel *f, const struct funnel_group *group)
{
  struct device_worker *w = funnel_worker(f);
  struct mol_bounds_input input = mol_cuda_bound_input(f, group);
  struct device_lists by_lowers = group->lists;

  TRY(device_worker_array(w, group->n * group->lists.capacity, sizeof *by_lowers.scores, &by_lowers.scores));
  TRY(mol_bounds_lists(w->stream, &input, &group->lists, by_lowers.scores));
  return lists_threshold(w->stream, &by_lowers, (struct lists_ranks){ group->ranks, 0 }, group->floors);
}
