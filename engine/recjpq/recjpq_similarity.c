/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/method.h"
#include "engine/recjpq/recjpq_model.h"
#include "engine/model/shape_check.h"
#include "engine/similarity.h"

static err_t check_part(const void *model, const struct part *part)
{
  const struct recjpq_model *m = model;
  const char *where = shape_check_part_name(part);

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

static err_t check_query(const void *model, const struct query *query)
{
  const struct recjpq_model *m = model;

  TRY(shape_check_absent(ERR_QUERY, "query", "components", query->components.n));
  TRY(shape_check_absent(ERR_QUERY, "query", "query_gate", query->query_gate.n));
  return shape_check_floats(ERR_QUERY, "query", "vector", query->vector, m->n_splits * m->split_dim);
}

static bool is_prune(const struct method *method)
{
  if (method->n_args < 1 || method->args[0] > PQ_SUBITEMS)
    return false;
  if (method_is(method, "prune_inflated", 2))
    return method->args[1] >= 100;
  return method_is(method, "prune", 1) || method_is(method, "prune_limited", 2);
}

static err_t check_method(const void *model, struct method *method)
{
  char text[METHOD_TEXT_MAX];

  (void)model;
  if (method_is(method, "exact", 0) || method_is(method, "pqtopk", 0) || method_is(method, "default", 0) ||
      is_prune(method))
    return ERR_OK;
  method_print(method, text);
  FAIL(ERR_METHOD, "a recjpq space has no method \"%s\": use %s, with BS from 1 to %d and PERCENT from 100", text,
       similarity_recjpq.methods, PQ_SUBITEMS);
}

/* Codes, padded to a multiple of 4. */
static size_t prepared_bytes(const void *model)
{
  return (((const struct recjpq_model *)model)->n_splits + 3) & ~(size_t)3;
}

static err_t prepare_parts(const void *model, const struct kernels *kernels, const struct part *const *parts, size_t n,
                           struct region *scratch, uint8_t *prepared)
{
  (void)kernels;
  (void)scratch;
  for (size_t i = 0; i < n; i++)
    memcpy(prepared + i * prepared_bytes(model), parts[i]->codes.p, parts[i]->codes.n);
  return ERR_OK;
}

static err_t prepare_queries(const void *model, const struct kernels *kernels, const struct query *const *queries,
                             size_t n, struct region *region, void **prepared)
{
  const struct recjpq_model *m = model;
  struct recjpq_query *out;

  TRY(region_array(region, n, sizeof *out, &out));
  for (size_t i = 0; i < n; i++) {
    float *scores;
    TRY(region_array(region, m->n_splits * PQ_SUBITEMS, sizeof *scores, &scores));
    for (size_t s = 0; s < m->n_splits; s++) /* section 3.2: one small matrix product a split */
      kernels->linear(queries[i]->vector.v + s * m->split_dim, 1, m->split_dim,
                      m->centroids + s * m->split_dim * PQ_SUBITEMS, NULL, PQ_SUBITEMS, scores + s * PQ_SUBITEMS);
    out[i] = (struct recjpq_query){ queries[i]->vector.v, scores };
  }
  *prepared = out;
  return ERR_OK;
}

const struct similarity similarity_recjpq = {
  .kind = SIMILARITY_RECJPQ,
  .name = "recjpq",
  .methods = "exact, pqtopk, default, prune(BS), prune_inflated(BS,PERCENT) or prune_limited(BS,ITERATIONS)",
  .model_open = recjpq_model_open,
  .model_close = recjpq_model_close,
  .check_part = check_part,
  .check_query = check_query,
  .check_method = check_method,
  .prepared_bytes = prepared_bytes,
  .prepare_parts = prepare_parts,
  .prepare_queries = prepare_queries,
};
