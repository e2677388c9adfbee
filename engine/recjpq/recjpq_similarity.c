/* SPDX-License-Identifier: Apache-2.0 */
/* The recjpq similarity: checks parts and queries, and scores the sub-items of queries. */
#include "engine/model/shape_check.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_model.h"
#include "engine/similarity/similarity.h"

static err_t check_part(const struct model *model, const struct part *part)
{
  const struct recjpq_model *m = recjpq_model_of(model);
  const char *where = shape_check_part_name(part);

  if (part->codes.n == 0)
    FAIL(ERR_ITEM, "%s: codes is missing: %zu sub-items are needed", where, m->n_splits);
  TRY(shape_check_absent(ERR_ITEM, where, "vector", part->vector.n));
  TRY(shape_check_absent(ERR_ITEM, where, "components", part->components.n));
  TRY(shape_check_absent(ERR_ITEM, where, "item_gate", part->item_gate.n));
  if (part->codes.n != m->n_splits)
    FAIL(ERR_ITEM, "%s: codes has %zu sub-items where the model needs %zu", where, part->codes.n, m->n_splits);
  for (size_t i = 0; i < m->n_splits; i++) {
    if (part->codes.p[i] >= m->n_subitems)
      FAIL(ERR_ITEM, "%s: code %zu is %u; the model has sub-items 0 to %zu", where, i, part->codes.p[i],
           m->n_subitems - 1);
  }
  return ERR_OK;
}

static err_t check_query(const struct model *model, const struct query *query)
{
  const struct recjpq_model *m = recjpq_model_of(model);

  TRY(shape_check_floats(ERR_QUERY, "query", "vector", query->vector, m->n_splits * m->split_dim));
  TRY(shape_check_absent(ERR_QUERY, "query", "components", query->components.n));
  return shape_check_absent(ERR_QUERY, "query", "query_gate", query->query_gate.n);
}

static struct model_lengths lengths(const struct model *model)
{
  const struct recjpq_model *m = recjpq_model_of(model);

  return (struct model_lengths){ .item_codes = m->n_splits,
                                 .n_subitems = m->n_subitems,
                                 .query_vector = m->n_splits * m->split_dim };
}

/* The codes, padded to a multiple of 4 bytes. */
static size_t prepared_bytes(const struct model *model)
{
  return (recjpq_model_of(model)->n_splits + 3) & ~(size_t)3;
}

static err_t prepare_parts(const struct model *model, const struct kernels *kernels, const struct part *const *parts,
                           size_t n, struct region *scratch, uint8_t *prepared)
{
  (void)kernels;
  (void)scratch;
  for (size_t i = 0; i < n; i++)
    memcpy(prepared + i * prepared_bytes(model), parts[i]->codes.p, parts[i]->codes.n);
  return ERR_OK;
}

/* Score the sub-items of one split for all queries, so that its centroids are read once (section 3.2). */
static void score_split(const struct recjpq_model *m, const struct kernels *kernels, const struct query *const *queries,
                        size_t n, size_t split, float *x, float *y, struct recjpq_query *out)
{
  size_t dim = m->split_dim;

  for (size_t i = 0; i < n; i++)
    memcpy(x + i * dim, queries[i]->vector.v + split * dim, dim * sizeof *x);
  kernels->linear(x, n, dim, m->centroids + split * dim * PQ_SUBITEMS, NULL, PQ_SUBITEMS, y);
  for (size_t i = 0; i < n; i++)
    memcpy(out[i].subitem_scores + split * PQ_SUBITEMS, y + i * PQ_SUBITEMS, PQ_SUBITEMS * sizeof *y);
}

static err_t prepare_queries(const struct model *model, const struct kernels *kernels,
                             const struct query *const *queries, size_t n, struct region *region,
                             struct prepared_queries **prepared)
{
  const struct recjpq_model *m = recjpq_model_of(model);
  struct recjpq_query *out;
  float *x, *y;

  TRY(region_array(region, n, sizeof *out, &out));
  TRY(region_array(region, n * m->split_dim, sizeof *x, &x));
  TRY(region_array(region, n * PQ_SUBITEMS, sizeof *y, &y));
  for (size_t i = 0; i < n; i++) {
    out[i].vector = queries[i]->vector.v;
    TRY(region_array(region, m->n_splits * PQ_SUBITEMS, sizeof *out->subitem_scores, &out[i].subitem_scores));
  }
  for (size_t split = 0; split < m->n_splits; split++)
    score_split(m, kernels, queries, n, split, x, y, out);
  *prepared = (struct prepared_queries *)out;
  return ERR_OK;
}

const struct similarity similarity_recjpq = {
  .kind = SIMILARITY_RECJPQ,
  .name = "recjpq",
  .methods = &recjpq_methods,
  .model_open = recjpq_model_open,
  .model_close = recjpq_model_close,
  .check_part = check_part,
  .check_query = check_query,
  .lengths = lengths,
  .prepared_bytes = prepared_bytes,
  .prepare_parts = prepare_parts,
  .has_alike_queries = true,
  .prepared_query_bytes = sizeof(struct recjpq_query),
  .prepare_queries = prepare_queries,
};
