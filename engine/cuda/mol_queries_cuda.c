/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits queries on the device: their upload, and canonical scores of items for them. */
#include "engine/cuda/mol_cuda.h"

enum { ARRAYS_EACH = 6 /* small arrays per query, such as ranks */ };

static const struct mol_query *query_of(const struct funnel *f, size_t q)
{
  return mol_queries_of(f->batch->prepared) + q;
}

size_t mol_cuda_query_bytes(const struct funnel *f)
{
  const struct mol_model *m = mol_cuda_model(f);
  size_t n_arrays = 2 * m->n_logits; /* gates, and ranks of pairs */
  size_t n_floats = (m->shape.n_query_components + 1) * m->shape.component_dim + n_arrays, n_excluded = 0;

  for (size_t q = 0; q < f->batch->n; q++) {
    size_t n = f->batch->results[q].admit.n_excluded;
    n_excluded = n > n_excluded ? n : n_excluded;
  }
  return (n_floats + n_excluded + 2 * ARRAYS_EACH) * sizeof(uint32_t) +
         m->shape.n_query_components * sizeof(uint64_t *); /* words */
}

size_t mol_cuda_work_bytes(const struct funnel *f)
{
  return mol_score_work_bytes(&mol_cuda_model(f)->shape, 1);
}

/* Upload one array of all queries of a group: n floats per query, at `offset` in struct mol_query. */
static err_t upload_floats(const struct funnel *f, const struct funnel_group *group, size_t n, size_t offset,
                           const float **out)
{
  float *to;

  TRY(device_worker_input(funnel_worker(f), group->n * n, sizeof *to, &to, out));
  for (size_t q = 0; q < group->n; q++) {
    const float *from;
    memcpy(&from, (const uint8_t *)query_of(f, group->first + q) + offset, sizeof from);
    memcpy(to + q * n, from, n * sizeof *to);
  }
  return ERR_OK;
}

/* Upload the words of each row, which are those of its query. */
static err_t upload_rows_admitted(const struct funnel *f, const struct funnel_group *group, struct admitted_words *out)
{
  size_t n_each = mol_cuda_model(f)->shape.n_query_components;
  const uint64_t **of;

  *out = (struct admitted_words){ NULL };
  if (!group->admitted.of)
    return ERR_OK;
  TRY(device_worker_input(funnel_worker(f), group->n * n_each, sizeof *of, &of, &out->of));
  for (size_t row = 0; row < group->n * n_each; row++)
    of[row] = group->words[row / n_each];
  return ERR_OK;
}

err_t mol_cuda_upload(const struct funnel *f, struct funnel_group *group)
{
  const struct mol_model *m = mol_cuda_model(f);
  size_t dim = m->shape.component_dim, work_bytes = mol_cuda_work_bytes(f);
  struct mol_cuda_queries *queries;

  TRY(region_array(f->batch->scratch, 1, sizeof *queries, &queries));
  TRY(upload_floats(f, group, m->shape.n_query_components * dim, offsetof(struct mol_query, components),
                    &queries->components));
  TRY(upload_floats(f, group, m->n_logits, offsetof(struct mol_query, gate), &queries->gates));
  TRY(upload_floats(f, group, dim, offsetof(struct mol_query, average), &queries->averages));
  TRY(funnel_upload_excluded(f, group, &queries->excluded));
  TRY(upload_rows_admitted(f, group, &queries->rows_admitted));
  if (work_bytes > 0)
    TRY(device_worker_array(funnel_worker(f), group->n, work_bytes, &queries->work));
  group->queries = queries;
  return ERR_OK;
}

static struct mol_score_input score_input(const struct funnel *f, const struct funnel_group *group)
{
  const struct mol_cuda_queries *queries = group->queries;

  return (struct mol_score_input){ .shape = mol_cuda_model(f)->shape,
                                   .gate = ((const struct mol_cuda_shared *)f->columns->shared)->gate,
                                   .rows = f->columns->rows,
                                   .components = queries->components,
                                   .gates = queries->gates,
                                   .n_queries = group->n,
                                   .n_blocks = queries->work ? (unsigned)group->n : funnel_worker(f)->n_processors,
                                   .work = queries->work,
                                   .admitted = group->admitted };
}

err_t mol_cuda_score(const struct funnel *f, const struct funnel_group *group, const struct device_lists *lists)
{
  struct mol_score_input input = score_input(f, group);

  return mol_score_lists(funnel_worker(f)->stream, &input, lists);
}

err_t mol_cuda_append_scores(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors)
{
  struct mol_score_input input = score_input(f, group);

  return mol_score_append(funnel_worker(f)->stream, &input, range.first, range.n, floors, &group->lists);
}
