/* SPDX-License-Identifier: Apache-2.0 */
/* TopKAvg on the device (MoL paper, section 3.2). A half-precision scan finds all items that may be among the N best by
 * averaged vectors; their dot products in f32 decide. */
#include "engine/cuda/mol_cuda.h"
#include "kernels/cuda/average_scan.h"
#include "kernels/cuda/average_score.h"

enum {
  LIST_LEAST = 16384,
  LIST_RANKS = 8,      /* room for items that reach a floor, per requested item */
  MAXIMA_PER_RANK = 4, /* maxima sampled for a floor, per requested item */
};

size_t mol_cuda_average_room(const struct search_batch *batch, size_t n)
{
  size_t room = n < batch->n_slots ? LIST_RANKS * n : batch->n_slots;

  room = room > LIST_LEAST ? room : LIST_LEAST;
  return room < batch->n_slots ? room : batch->n_slots;
}

/* The stride of the tiles sampled for a floor. A large stride finds the floor quickly. But the more tiles are skipped,
 * the more items reach the floor; the stride is small enough that they are expected to fill at most a quarter of the
 * room. */
static size_t stride_of(const struct search_batch *batch, size_t n)
{
  size_t by_maxima = funnel_n_tiles(batch) * AVERAGE_SCAN_MAXIMA / (MAXIMA_PER_RANK * n);
  size_t by_room = mol_cuda_average_room(batch, n) / (4 * n), stride = by_maxima < by_room ? by_maxima : by_room;

  return stride > 0 ? stride : 1;
}

static size_t n_sampled(const struct search_batch *batch, size_t stride)
{
  return (funnel_n_tiles(batch) + stride - 1) / stride;
}

size_t mol_cuda_average_bytes(const struct search_batch *batch, size_t n)
{
  return n_sampled(batch, stride_of(batch, n)) * AVERAGE_SCAN_MAXIMA * sizeof(float);
}

static struct average_scan_input scan_input(const struct funnel *f, const struct funnel_group *group)
{
  return (struct average_scan_input){ .present = f->columns->rows.present,
                                      .items = mol_cuda_halves(f->columns),
                                      .dim = mol_cuda_model(f)->shape.component_dim,
                                      .queries = ((const struct mol_cuda_queries *)group->queries)->averages,
                                      .n_queries = group->n,
                                      .n_blocks = funnel_worker(f)->n_processors,
                                      .admitted = group->admitted };
}

/* Find floors that each query's n_best items reach. If admitted, count excluded items on top of n_best. */
static err_t find_floors(const struct funnel *f, const struct funnel_group *group, size_t n_best, bool admitted,
                         float *floors)
{
  struct device_worker *w = funnel_worker(f);
  struct average_scan_input input = scan_input(f, group);
  size_t stride = stride_of(f->batch, n_best), n_tiles = n_sampled(f->batch, stride);
  struct lists_ranks ranks = { admitted ? group->n_excluded : NULL, (uint32_t)n_best };
  float *maxima;

  TRY(device_worker_array(w, group->n * n_tiles * AVERAGE_SCAN_MAXIMA, sizeof *maxima, &maxima));
  TRY(average_scan_maxima(w->stream, &input, f->batch->n_slots, stride, n_tiles, maxima));
  return lists_threshold_of(w->stream, maxima, group->n, n_tiles * AVERAGE_SCAN_MAXIMA, ranks, floors);
}

/* Compute the dot products of all entries of the lists. */
static err_t score_lists(const struct funnel *f, const struct funnel_group *group, bool admitted,
                         const struct device_lists *lists)
{
  const struct mol_cuda_queries *queries = group->queries;
  struct mol_item_layout item = mol_item_layout(mol_cuda_model(f));
  struct average_score_input input = { .rows = f->columns->rows,
                                       .offset = (item.components + item.gate) * sizeof(float),
                                       .dim = item.average,
                                       .queries = queries->averages };

  if (admitted)
    input.excluded = queries->excluded;
  return average_score_lists(funnel_worker(f)->stream, &input, lists);
}

err_t mol_cuda_candidates_of_average(const struct funnel *f, const struct funnel_group *group, size_t n_best,
                                     bool admitted, uint32_t *seen, const struct device_lists *to, uint32_t *n_offered)
{
  struct device_worker *w = funnel_worker(f);
  struct average_scan_input input = scan_input(f, group);
  struct lists_ranks ranks = { NULL, (uint32_t)n_best };
  struct device_lists offered = group->lists;

  offered.n = n_offered;
  TRY(find_floors(f, group, n_best, admitted, group->floors));
  TRY(average_scan_append(w->stream, &input, 0, f->batch->n_slots, group->floors, &offered));
  TRY(score_lists(f, group, admitted, &offered));
  TRY(lists_threshold(w->stream, &offered, ranks, group->thresholds));
  return candidates_add(w->stream, &offered, group->thresholds, seen, funnel_n_words(f->batch), NULL, to);
}
