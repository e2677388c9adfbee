/* SPDX-License-Identifier: Apache-2.0 */
/* RecJPQ on the device. The exhaustive scan runs at the speed of the memory, so it serves every method. Exact methods
 * return the same answer as on the processor. Unsafe ones return the exact answer, which is at least as good as the
 * processor's. All receipts say exact. */
#include <assert.h>
#include <math.h>

#include "engine/cuda/funnel.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_model.h"
#include "kernels/cuda/pq_hits.h"
#include "kernels/cuda/pq_packed.h"
#include "kernels/cuda/pq_scan.h"

static struct device_layout layout(const struct model *model)
{
  return (struct device_layout){ .row_bytes = (recjpq_model_of(model)->n_splits + 3) / 4 * 4 };
}

/* A group's queries on the device. */
struct queries {
  const float *subitem_scores;
  struct pq_packed_levels levels; /* only if the scan is packed */
};

static size_t table_bytes(const struct funnel *f)
{
  return recjpq_model_of(f->columns->model)->n_splits * PQ_SUBITEMS * sizeof(float);
}

static size_t packed_bytes(const struct funnel *f)
{
  (void)f;
  return PQ_PACKED_QUERY_BYTES;
}

static err_t upload(const struct funnel *f, struct funnel_group *group)
{
  const struct recjpq_query *from = recjpq_queries_of(f->batch->prepared) + group->first;
  size_t bytes = table_bytes(f);
  struct queries *queries;
  uint8_t *tables;

  TRY(region_array(f->batch->scratch, 1, sizeof *queries, &queries));
  TRY(device_worker_input(funnel_worker(f), group->n, bytes, &tables, &queries->subitem_scores));
  for (size_t q = 0; q < group->n; q++)
    memcpy(tables + q * bytes, from[q].subitem_scores, bytes);
  group->queries = queries;
  return ERR_OK;
}

static struct pq_scan_input scan_input(const struct funnel *f, const struct funnel_group *group)
{
  return (struct pq_scan_input){ .rows = f->columns->rows,
                                 .n_splits = recjpq_model_of(f->columns->model)->n_splits,
                                 .subitem_scores = ((const struct queries *)group->queries)->subitem_scores,
                                 .n_queries = group->n,
                                 .n_blocks = funnel_worker(f)->n_processors,
                                 .admitted = group->admitted };
}

static err_t maxima(const struct funnel *f, const struct funnel_group *group, size_t stride, size_t n_tiles,
                    float *maxima)
{
  struct pq_scan_input input = scan_input(f, group);

  return pq_scan_maxima(funnel_worker(f)->stream, &input, f->batch->n_slots, stride, n_tiles, maxima);
}

static err_t append(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                    const float *floors)
{
  struct pq_scan_input input = scan_input(f, group);

  return pq_scan_append(funnel_worker(f)->stream, &input, range.first, range.n, floors, &group->lists);
}

/* A scan in f32, for any number of splits. */
static const struct funnel_ops scan_ops = {
  .upload = upload,
  .query_bytes = table_bytes,
  .maxima = maxima,
  .append = append,
};

/* Compute the levels, and from them the maxima. Empty the lists. */
static err_t packed_maxima(const struct funnel *f, const struct funnel_group *group, size_t stride, size_t n_tiles,
                           float *maxima)
{
  struct pq_scan_input input = scan_input(f, group);
  struct pq_packed_levels *levels = &((struct queries *)group->queries)->levels;
  struct device_worker *w = funnel_worker(f);

  TRY(device_worker_array(w, pq_packed_table_bytes(group->n), 1, &levels->tables));
  TRY(device_worker_array(w, pq_packed_n_scales(group->n), sizeof *levels->scales, &levels->scales));
  return pq_packed_maxima(w->stream, &input, levels, &group->all, f->batch->n_slots, stride, n_tiles, maxima);
}

static err_t packed_append(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                           const float *floors)
{
  struct pq_scan_input input = scan_input(f, group);
  const struct queries *queries = group->queries;

  (void)floors;
  assert(range.first == 0);
  return pq_packed_append(funnel_worker(f)->stream, &input, &queries->levels, range.n, group->maxima, group->n_maxima,
                          (struct lists_ranks){ group->ranks, 0 }, group->floors, &group->lists);
}

static err_t score(const struct funnel *f, const struct funnel_group *group, const struct device_lists *lists)
{
  struct pq_scan_input input = scan_input(f, group);

  return pq_scan_score_lists(funnel_worker(f)->stream, &input, lists);
}

static err_t hits(const struct funnel *f, const struct funnel_group *group)
{
  struct pq_scan_input input = scan_input(f, group);

  return pq_hits_find(funnel_worker(f)->stream, &input, &group->scored, (struct lists_ranks){ group->ranks, 0 },
                      group->thresholds, &group->hits, group->n_listed);
}

/* A scan of bounds. A second search, range by range, scans in f32, so that lists have only items that reach a floor. */
static const struct funnel_ops packed_ops = {
  .upload = upload,
  .query_bytes = table_bytes,
  .scratch_bytes = packed_bytes,
  .maxima = packed_maxima,
  .empties_lists = true,
  .finds_floors = true,
  .append = packed_append,
  .score = score,
  .hits = hits,
  .exhaust = append,
};

/* No scan: every admitted item is scored. Lists are long, so many blocks score one. */
static const struct funnel_ops few_ops = {
  .upload = upload,
  .query_bytes = table_bytes,
  .floor = funnel_no_floor,
  .append = funnel_append_admitted,
  .score = score,
};

/* The tiles to sample for floors of a packed scan. If a floor is the r-th largest maximum of t tiles out of T, about
 * r T / t items are listed. To append and score one takes about as many instructions as to scan four tiles (estimated).
 * So 2 sqrt(r T) tiles cost least. */
static size_t n_sampled(const struct search_batch *batch)
{
  return 2 * (size_t)sqrt((double)funnel_max_rank(batch) * (double)funnel_n_tiles(batch));
}

err_t recjpq_cuda_search(const struct columns *columns, struct search_batch *batch)
{
  const struct device_columns *c = device_columns_of(columns);
  bool is_packed = recjpq_model_of(c->model)->n_splits == PQ_PACKED_SPLITS;
  struct funnel f = { .columns = c,
                      .batch = batch,
                      .ops = is_packed ? &packed_ops : &scan_ops,
                      .n_sampled = is_packed ? n_sampled(batch) : 0 };

  if (batch->admits_few)
    f.ops = &few_ops;
  return funnel_search(&f);
}

static const struct device_columns_ops recjpq_ops = { .layout = layout };

DEVICE_COLUMNS(recjpq_columns_cuda, recjpq_ops);
