/* SPDX-License-Identifier: Apache-2.0 */
/* Candidate lists of component pairs (mol_pairs_cuda.h), found in the same steps as every search on the device. A part
 * of the tiles gives floors that enough items are all but certain to reach. A scan appends all items whose upper bounds
 * reach them. Estimates select those that exact dot products decide between. At the end, a list whose N-th best dot
 * product does not reach its floor counts as overflowed. One pass over the items finds the lists of as many queries and
 * item components as fit in scratch.
 */
#include "engine/cuda/mol_pairs_cuda.h"

#include <math.h>

#include "base/size.h"
#include "engine/mol/mol_model.h"
#include "kernels/cuda/mol_pair_lists.h"

enum {
  TILES_USUAL = 1400, /* sampled for floors. Twice as many take as long as the shorter lists save */
  STRIDE_MAX = 32,    /* at least every 32nd tile: this keeps lists short in large catalogues */
  SETS_PER_RANK = 4,  /* sets of tiles that have a maximum, for each rank of a floor in the sample */
  LIST_MORE = 256,
};

/* If more than this share of the sets' maxima reach a floor, the number of items that reach it cannot be estimated. */
static const double SHARE_MAX = 0.75;

/* The sizes of a search for the `rank` best of each list. */
struct plan {
  size_t stride, n_tiles; /* sampled tiles: every stride-th, n_tiles in all */
  size_t n_sets;          /* of sampled tiles */
  uint32_t rank;          /* of the floor among the sets' maxima */
  size_t capacity;        /* items of a list */
  size_t list_bytes;      /* scratch per list, with its floors, maxima and ranks */
};

/* A pass's arrays on the device, for as many lists as fit. */
struct pass {
  struct plan plan;
  size_t max_lists;
  struct device_lists lists;
  struct mol_pair_ranks ranks;
  float *floors, *thresholds; /* [max_lists] */
  float *maxima;              /* [max_lists][plan.n_sets] */
  struct mol_pairs_rows rows; /* the rows of all queries */
  struct mol_pairs_input input;
  struct mol_pair_queries queries;
  struct mol_pair_union result;
};

static size_t most(size_t a, size_t b)
{
  return a > b ? a : b;
}

static const struct mol_shape *shape_of(const struct funnel *f)
{
  return &mol_model_of(f->columns->model)->shape;
}

/* A share rank / n_sets of the sets reach the floor, each of T tiles. Hence a share p of the items reach it with
 * 1 - (1 - p)^(64 T) = rank / n_sets, up to a relative deviation of 1 / sqrt(rank). A list has room for twice that many
 * items and 16 deviations. */
static size_t capacity_of(size_t n_all_tiles, const struct plan *plan)
{
  double share = (double)plan->rank / (double)plan->n_sets, tiles_each = (double)plan->n_tiles / (double)plan->n_sets;
  double n = -log1p(-share) * (double)n_all_tiles / tiles_each;

  if (share > SHARE_MAX)
    return SIZE_MAX;
  return (size_t)(2 * n + 16 * n / sqrt((double)plan->rank)) + LIST_MORE;
}

static size_t sampled_tiles(size_t n_all, size_t stride)
{
  return most(1, (n_all + stride - 1) / stride);
}

/* rank: of the items that a list must have */
static struct plan plan_lists(const struct funnel *f, size_t n_rows, size_t rank)
{
  size_t n_all = funnel_n_tiles(f->batch);
  size_t n_busy = mol_pairs_sets_at_a_time(n_rows, shape_of(f)->component_dim, funnel_worker(f)->n_processors);
  struct plan plan = { .stride = most(1, size_min(n_all / TILES_USUAL, STRIDE_MAX)) };

  while (plan.stride > 1 &&
         SETS_PER_RANK * mol_pair_sampled_rank((uint32_t)rank, plan.stride) > sampled_tiles(n_all, plan.stride))
    plan.stride--;
  plan.rank = mol_pair_sampled_rank((uint32_t)rank, plan.stride);
  plan.n_tiles = sampled_tiles(n_all, plan.stride);
  plan.n_sets = size_min(plan.n_tiles, (SETS_PER_RANK * plan.rank + n_busy - 1) / n_busy * n_busy);
  plan.capacity = size_min(capacity_of(n_all, &plan), f->batch->n_items);
  plan.list_bytes = plan.capacity * (sizeof(uint32_t) + sizeof(float)) + plan.n_sets * sizeof(float) +
                    4 * sizeof(uint32_t) + 2 * sizeof(float);
  return plan;
}

size_t mol_pairs_cuda_query_bytes(const struct funnel *f, uint32_t n_best)
{
  const struct mol_shape *shape = shape_of(f);
  size_t max_excluded = 0;

  for (size_t q = 0; q < f->batch->n; q++)
    max_excluded = most(max_excluded, f->batch->results[q].admit.n_excluded);
  size_t list_bytes = plan_lists(f, shape->n_query_components, n_best + max_excluded).list_bytes;
  return list_bytes + list_bytes / 8 + funnel_n_words(f->batch) * sizeof(uint32_t) +
         shape->n_query_components * (mol_pairs_half_dim(shape->component_dim) * sizeof(uint16_t) + sizeof(float));
}

/* A query's N, with or without the number of items that it excludes. */
static size_t n_best_of(const struct search_result *result, uint32_t n_best, bool with_excluded)
{
  return (n_best ? n_best : result->topk.k) + (with_excluded ? result->admit.n_excluded : 0);
}

/* The largest N of the group's queries, including excluded items. */
static size_t largest_rank(const struct search_batch *batch, const struct funnel_group *group, uint32_t n_best)
{
  size_t largest = 1;

  for (size_t q = 0; q < group->n; q++)
    largest = most(largest, n_best_of(&batch->results[group->first + q], n_best, true));
  return largest;
}

static err_t prepare_rows(const struct funnel *f, const struct funnel_group *group,
                          const struct mol_pairs_source *source, struct mol_pairs_rows *rows)
{
  struct device_worker *w = funnel_worker(f);
  size_t dim = shape_of(f)->component_dim;

  rows->n = group->n * shape_of(f)->n_query_components;
  rows->vectors = source->query_components;
  rows->admitted = source->rows_admitted;
  TRY(device_worker_array(w, rows->n, mol_pairs_half_dim(dim) * sizeof *rows->halves, &rows->halves));
  TRY(device_worker_array(w, rows->n, sizeof *rows->margins, &rows->margins));
  return mol_pairs_prepare(w->stream, rows, dim);
}

/* Allocate as many lists as fit in scratch. */
static err_t open_lists(struct device_worker *w, size_t n_lists, struct pass *pass)
{
  enum { ALIGNMENT = 4096 }; /* covers the alignment of all arrays */
  size_t n_left = w->scratch_bytes - w->scratch_used;
  size_t n = n_left < ALIGNMENT ? 0 : size_min(n_lists, (n_left - ALIGNMENT) / pass->plan.list_bytes);

  if (n == 0)
    FAIL(ERR_DEVICE, "a list of %zu items does not fit in the %zu free bytes of scratch", pass->plan.capacity, n_left);
  pass->max_lists = n;
  TRY(funnel_lists(w, n, pass->plan.capacity, &pass->lists));
  TRY(device_worker_array(w, n, sizeof *pass->ranks.sampled, &pass->ranks.sampled));
  TRY(device_worker_array(w, n, sizeof *pass->ranks.floors, &pass->ranks.floors));
  TRY(device_worker_array(w, n, sizeof *pass->ranks.best, &pass->ranks.best));
  TRY(device_worker_array(w, n, sizeof *pass->floors, &pass->floors));
  TRY(device_worker_array(w, n, sizeof *pass->thresholds, &pass->thresholds));
  return device_worker_array(w, n, pass->plan.n_sets * sizeof *pass->maxima, &pass->maxima);
}

/* Find the lists of the pass's rows and components, from floors to the union. */
static err_t run_pass(const struct funnel *f, struct pass *pass)
{
  struct device_stream *stream = funnel_worker(f)->stream;
  struct lists_ranks sampled_ranks = { pass->ranks.sampled, 0 }, floor_ranks = { pass->ranks.floors, 0 },
                     best_ranks = { pass->ranks.best, 0 };
  size_t n_slots = f->batch->n_slots;

  pass->lists.n_lists = pass->input.rows.n * pass->input.n_components;
  TRY(mol_pair_lists_begin(stream, &pass->input, &pass->queries, &pass->ranks, &pass->lists));
  TRY(mol_pairs_maxima(stream, &pass->input, n_slots, pass->plan.stride, pass->plan.n_tiles, pass->plan.n_sets,
                       pass->maxima));
  TRY(lists_threshold_of(stream, pass->maxima, pass->lists.n_lists, pass->plan.n_sets, sampled_ranks, pass->floors));
  TRY(mol_pairs_append(stream, &pass->input, n_slots, pass->floors, &pass->lists));
  TRY(lists_threshold(stream, &pass->lists, floor_ranks, pass->thresholds));
  TRY(mol_pair_lists_score(stream, &pass->input, &pass->queries, pass->floors, pass->thresholds, &pass->lists));
  TRY(lists_threshold(stream, &pass->lists, best_ranks, pass->thresholds));
  return mol_pair_union_add(stream, &pass->input, &pass->queries, &pass->lists, pass->floors, pass->thresholds,
                            &pass->result);
}

/* Give the pass n rows, from row `first` of all queries on. */
static void take_rows(struct pass *pass, size_t dim, size_t first, size_t n)
{
  pass->queries.first_row = first;
  pass->input.rows = (struct mol_pairs_rows){ n,
                                              pass->rows.vectors + first * dim,
                                              pass->rows.halves + first * mol_pairs_half_dim(dim),
                                              pass->rows.margins + first,
                                              { pass->rows.admitted.of ? pass->rows.admitted.of + first : NULL } };
}

/* Run all passes. A pass reads only its own item components, so components are split between passes before rows are. */
static err_t run_passes(const struct funnel *f, struct pass *pass)
{
  size_t dim = shape_of(f)->component_dim, n_item_components = shape_of(f)->n_item_components;
  size_t n_components = most(1, size_min(n_item_components, pass->max_lists / pass->rows.n));
  size_t n_rows = size_min(pass->rows.n, pass->max_lists / n_components);

  for (size_t row = 0; row < pass->rows.n; row += n_rows) {
    take_rows(pass, dim, row, size_min(n_rows, pass->rows.n - row));
    for (size_t m = 0; m < n_item_components; m += n_components) {
      pass->input.first_component = m;
      pass->input.n_components = size_min(n_components, n_item_components - m);
      TRY(run_pass(f, pass));
    }
  }
  return ERR_OK;
}

static err_t find(const struct funnel *f, const struct funnel_group *group, const struct mol_pairs_source *source,
                  uint32_t n_best, struct pass *pass)
{
  struct device_worker *w = funnel_worker(f);

  pass->input = (struct mol_pairs_input){ .items = f->columns->rows,
                                          .halves = source->halves,
                                          .n_item_components = shape_of(f)->n_item_components,
                                          .component_dim = shape_of(f)->component_dim,
                                          .n_blocks = w->n_processors };
  pass->ranks.query_floors =
      n_best ? (struct lists_ranks){ group->n_excluded, n_best } : (struct lists_ranks){ group->ranks, 0 };
  pass->ranks.query_best = n_best ? (struct lists_ranks){ NULL, n_best } : (struct lists_ranks){ group->ks, 0 };
  TRY(prepare_rows(f, group, source, &pass->rows));
  pass->plan = plan_lists(f, pass->rows.n, largest_rank(f->batch, group, n_best));
  pass->ranks.stride = pass->plan.stride;
  TRY(open_lists(w, pass->rows.n * pass->input.n_item_components, pass));
  return run_passes(f, pass);
}

/* Does every query ask for at least all items? */
static bool is_all(const struct search_batch *batch, const struct funnel_group *group, uint32_t n_best)
{
  for (size_t q = 0; q < group->n; q++) {
    if (n_best_of(&batch->results[group->first + q], n_best, false) < batch->n_items)
      return false;
  }
  return true;
}

err_t mol_pairs_cuda_candidates(const struct funnel *f, const struct funnel_group *group,
                                const struct mol_pairs_source *source, uint32_t n_best,
                                const struct mol_pairs_found *found)
{
  struct device_worker *w = funnel_worker(f);
  size_t scratch_used = w->scratch_used;
  struct pass pass = { .queries = { .n = group->n,
                                    .n_components = shape_of(f)->n_query_components,
                                    .excluded = source->excluded,
                                    .admitted = group->admitted },
                       .result = { .n_words = funnel_n_words(f->batch),
                                   .candidates = found->candidates,
                                   .nth_best = found->nth_best,
                                   .has_overflowed = found->has_overflowed } };

  TRY(device_worker_array(w, group->n * pass.result.n_words, sizeof *pass.result.seen, &pass.result.seen));
  TRY(mol_pair_union_begin(w->stream, &pass.result));
  if (is_all(f->batch, group, n_best))
    TRY(mol_pair_union_all(w->stream, f->columns->rows.present, f->batch->n_slots, &pass.queries, &pass.result));
  else
    TRY(find(f, group, source, n_best, &pass));
  w->scratch_used = scratch_used; /* can be reused at once: the stream works in order */
  return ERR_OK;
}
