/* SPDX-License-Identifier: Apache-2.0 */
/* RecJPQ on the device. The exhaustive scan runs at the speed of the memory, so it serves every method. Exact methods
 * return the same answer as on the processor. Unsafe ones return the exact answer, which is at least as good as the
 * processor's. All receipts say exact. */
#include "engine/cuda/funnel.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_model.h"
#include "kernels/cuda/pq_scan.h"

static struct device_layout layout(const struct model *model)
{
  return (struct device_layout){ .row_bytes = (recjpq_model_of(model)->n_splits + 3) / 4 * 4 };
}

static size_t table_bytes(const struct funnel *f)
{
  return recjpq_model_of(f->columns->model)->n_splits * PQ_SUBITEMS * sizeof(float);
}

static err_t upload(const struct funnel *f, struct funnel_group *group)
{
  const struct recjpq_query *queries = recjpq_queries_of(f->batch->prepared) + group->first;
  size_t bytes = table_bytes(f);
  uint8_t *tables;

  TRY(device_worker_input(funnel_worker(f), group->n, bytes, &tables, &group->queries));
  for (size_t q = 0; q < group->n; q++)
    memcpy(tables + q * bytes, queries[q].subitem_scores, bytes);
  return ERR_OK;
}

static struct pq_scan_input scan_input(const struct funnel *f, const struct funnel_group *group)
{
  return (struct pq_scan_input){ .rows = f->columns->rows,
                                 .n_splits = recjpq_model_of(f->columns->model)->n_splits,
                                 .subitem_scores = group->queries,
                                 .n_queries = group->n,
                                 .n_blocks = funnel_worker(f)->n_processors };
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

static const struct funnel_ops scan_ops = {
  .upload = upload,
  .query_bytes = table_bytes,
  .maxima = maxima,
  .append = append,
};

err_t recjpq_cuda_search(const struct columns *columns, struct search_batch *batch)
{
  const struct device_columns *c = device_columns_of(columns);
  struct funnel f = { .columns = c, .batch = batch, .ops = &scan_ops };

  return funnel_search(&f);
}

static const struct device_columns_ops recjpq_ops = { .layout = layout };

DEVICE_COLUMNS(recjpq_columns_cuda, recjpq_ops);
