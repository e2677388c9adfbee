/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors on the device. Half-precision bounds select the items to score (kernels/cuda/vector_scan.h). Scoring all
 * items is never faster, so brute_force runs the exact search, which gives the same answer.
 */
#include "engine/cuda/vector_cuda.h"

#include "base/size.h"
#include "engine/vector/vector_methods.h"
#include "kernels/cuda/vector_scan.h"
#include "kernels/cuda/vector_score.h"

/* Where the halves leave out a tail of the numbers, bounds are wide, and several thousand items may reach the first
 * floor. A second floor costs less than the rows of so many. */
enum {
  SEEDS = 64,         /* items scored for the second floor, at least */
  SEEDS_PER_RANK = 2, /* ... and per requested item */
  SEEDS_TIED = 64,    /* room for ties among them */
};
static const size_t SEED_BYTES = 8; /* slot and score */

static struct device_layout layout(const struct model *model)
{
  const struct vector_model *m = vector_model_of(model);

  return (struct device_layout){
    .row_bytes = (m->row_dim + N_VECTOR_SIZES) * sizeof(float),
    .derived = { [VECTOR_DERIVED_NUMBERS] = vector_halves_stride(m->sketch_dim) * sizeof(uint16_t),
                 [VECTOR_DERIVED_SIZES] = sizeof(struct vector_sizes) },
  };
}

static struct vector_halves halves_of_items(const struct device_columns *c)
{
  return (struct vector_halves){ .stride = vector_halves_stride(vector_cuda_model(c)->sketch_dim),
                                 .numbers = c->derived[VECTOR_DERIVED_NUMBERS],
                                 .sizes = c->derived[VECTOR_DERIVED_SIZES] };
}

static err_t derive(struct device_columns *c, const uint32_t *slots, size_t n, struct device_stream *stream)
{
  const struct vector_model *m = vector_cuda_model(c);
  struct vector_halves items = halves_of_items(c);

  return vector_derive_items(stream, &c->rows, m->sketch_dim, m->row_dim + VECTOR_TAIL, slots, n, &items);
}

/* The part of the queries' numbers that a search uses. */
struct search_of {
  size_t n;          /* numbers that the score is computed from */
  size_t n_sketched; /* the first of them, which have halves */
};

/* A group's queries on the device. */
struct uploaded {
  double *q; /* [group][n] */
  struct vector_halves halves;
};

static size_t query_bytes(const struct funnel *f)
{
  return vector_cuda_query_bytes(f->columns, ((const struct search_of *)f->context)->n).input;
}

/* The items that refine() scores: those with the largest upper bounds. */
static size_t n_seeds_of(const struct search_batch *batch)
{
  size_t n = SEEDS_PER_RANK * funnel_max_rank(batch);

  return n > SEEDS ? n : SEEDS;
}

static size_t seeds_room(const struct search_batch *batch)
{
  return size_min(n_seeds_of(batch) + SEEDS_TIED, batch->n_slots);
}

static size_t scratch_bytes(const struct funnel *f)
{
  const struct search_of *of = f->context;

  size_t seeds = f->ops->refine ? seeds_room(f->batch) * SEED_BYTES + sizeof(uint32_t) : 0;

  return vector_cuda_query_bytes(f->columns, of->n).scratch + vector_halves_stride(of->n_sketched) * sizeof(uint16_t) +
         sizeof(struct vector_sizes) + seeds;
}

static err_t upload(const struct funnel *f, struct funnel_group *group)
{
  const struct vector_query *queries = vector_queries_of(f->batch->prepared) + group->first;
  const struct search_of *of = f->context;
  struct device_worker *w = funnel_worker(f);
  struct uploaded *u;

  TRY(region_array(f->batch->scratch, 1, sizeof *u, &u));
  TRY(vector_cuda_send_queries(f->columns, w, queries, group->n, of->n, &u->q));
  u->halves.stride = vector_halves_stride(of->n_sketched);
  TRY(device_worker_array(w, group->n, u->halves.stride * sizeof *u->halves.numbers, &u->halves.numbers));
  TRY(device_worker_array(w, group->n, sizeof *u->halves.sizes, &u->halves.sizes));
  group->queries = u;
  return vector_derive_queries(w->stream, u->q, vector_cuda_sigma(f->columns), group->n, of->n, of->n_sketched,
                               &u->halves);
}

static struct vector_scan_input scan_input(const struct funnel *f, const struct funnel_group *group)
{
  return (struct vector_scan_input){ .present = f->columns->rows.present,
                                     .items = halves_of_items(f->columns),
                                     .queries = ((const struct uploaded *)group->queries)->halves,
                                     .n_queries = group->n,
                                     .n_blocks = funnel_worker(f)->n_processors,
                                     .admitted = group->admitted };
}

static err_t maxima(const struct funnel *f, const struct funnel_group *group, size_t stride, size_t n_tiles,
                    float *maxima)
{
  struct vector_scan_input input = scan_input(f, group);

  return vector_scan_maxima(funnel_worker(f)->stream, &input, f->batch->n_slots, stride, n_tiles, maxima);
}

static err_t append(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                    const float *floors)
{
  struct vector_scan_input input = scan_input(f, group);

  return vector_scan_append(funnel_worker(f)->stream, &input, range.first, range.n, floors, &group->lists);
}

static err_t score(const struct funnel *f, const struct funnel_group *group, const struct device_lists *lists)
{
  const struct search_of *of = f->context;
  const struct uploaded *u = group->queries;

  return vector_score(funnel_worker(f)->stream, &f->columns->rows, u->q, of->n, lists);
}

/* Score the best of each list by upper bound: the K-th best of these scores is the second floor. Any seeds give a valid
 * floor, so it does not matter if ties exceed their room. */
static err_t refine(const struct funnel *f, const struct funnel_group *group)
{
  struct device_worker *w = funnel_worker(f);
  struct device_lists seeds;

  TRY(funnel_lists(w, group->n, seeds_room(f->batch), &seeds));
  TRY(lists_clear(w->stream, &seeds));
  TRY(lists_threshold(w->stream, &group->lists, (struct lists_ranks){ NULL, (uint32_t)n_seeds_of(f->batch) },
                      group->floors));
  TRY(lists_keep(w->stream, &group->lists, group->floors, &seeds));
  TRY(score(f, group, &seeds));
  return lists_threshold(w->stream, &seeds, (struct lists_ranks){ group->ranks, 0 }, group->floors);
}

static const struct funnel_ops vector_funnel = {
  .upload = upload,
  .query_bytes = query_bytes,
  .scratch_bytes = scratch_bytes,
  .maxima = maxima,
  .append = append,
  .score = score,
};

/* No scan: every admitted item is scored. */
static const struct funnel_ops vector_few = {
  .upload = upload,
  .query_bytes = query_bytes,
  .scratch_bytes = scratch_bytes,
  .floor = funnel_no_floor,
  .append = funnel_append_admitted,
  .score = score,
};

err_t vector_cuda_search(const struct device_columns *c, struct search_batch *batch, size_t n)
{
  size_t sketch_dim = vector_cuda_model(c)->sketch_dim;
  struct search_of of = { .n = n, .n_sketched = n < sketch_dim ? n : sketch_dim };
  struct funnel_ops ops = batch->admits_few ? vector_few : vector_funnel;
  struct funnel f = { .columns = c, .batch = batch, .ops = &ops, .context = &of };

  if (of.n > of.n_sketched && !batch->admits_few)
    ops.refine = refine;
  TRY(funnel_search(&f));
  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].counts.candidates = batch->results[q].counts.scored;
  return ERR_OK;
}

err_t vector_cuda_search_exact(const struct columns *columns, struct search_batch *batch)
{
  const struct device_columns *c = device_columns_of(columns);

  return vector_cuda_search(c, batch, vector_cuda_model(c)->row_dim);
}

static const struct device_columns_ops vector_ops = {
  .layout = layout,
  .open = vector_cuda_open_rotation,
  .close = vector_cuda_close_rotation,
  .shared_bytes = vector_cuda_rotation_bytes,
  .derive = derive,
};

DEVICE_COLUMNS(vector_columns_cuda, vector_ops, .prepare_queries = vector_cuda_prepare_queries);
