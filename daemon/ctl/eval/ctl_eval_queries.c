/* SPDX-License-Identifier: Apache-2.0 */
/* The queries' file: check its tensors, and make queries from its rows. */
#include <stdio.h>

#include "base/mem.h"
#include "daemon/ctl/eval/ctl_eval_files.h"

static err_t find_embeddings(struct ctl_eval_queries *queries)
{
  const char *path = safetensors_path(queries->file);

  if (!safetensors_has(queries->file, "query_embeddings"))
    FAIL(ERR_MODEL,
         "%s: there is no tensor \"query_embeddings\": it must have each query's vector, F32 [queries, dimension]",
         path);
  TRY(safetensors_tensor(queries->file, "query_embeddings", TENSOR_FLOATS, &queries->embeddings));
  if (queries->embeddings.shape.n_dims != 2 || queries->embeddings.shape.dim[0] == 0)
    FAIL(ERR_MODEL, "%s: tensor \"query_embeddings\" must have shape [queries, dimension], with at least one query",
         path);
  queries->n = queries->embeddings.shape.dim[0];
  queries->width = queries->embeddings.shape.dim[1];
  return ERR_OK;
}

/* Find a tensor with an I64 for each query. */
static err_t find_ids(const struct ctl_eval_queries *queries, const char *name, struct tensor *out)
{
  char text[TENSOR_SHAPE_TEXT_MAX];

  TRY(safetensors_tensor(queries->file, name, TENSOR_TYPE_BIT(TENSOR_I64), out));
  tensor_shape_print(&out->shape, text);
  if (out->shape.n_dims != 1 || out->shape.dim[0] != queries->n)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has shape %s, but \"query_embeddings\" has %zu queries: [%zu] is needed",
         safetensors_path(queries->file), name, text, queries->n, queries->n);
  return ERR_OK;
}

static err_t find_user_ids(struct ctl_eval_queries *queries)
{
  queries->has_user_ids = safetensors_has(queries->file, "user_ids");
  return queries->has_user_ids ? find_ids(queries, "user_ids", &queries->user_ids) : ERR_OK;
}

static err_t find_targets(struct ctl_eval_queries *queries)
{
  queries->has_targets = true;
  if (!safetensors_has(queries->file, "target_ids"))
    FAIL(ERR_MODEL,
         "%s: there is no tensor \"target_ids\", which --targets needs: the id of each query's held-out item, "
         "I64 [queries]",
         safetensors_path(queries->file));
  return find_ids(queries, "target_ids", &queries->target_ids);
}

err_t ctl_eval_queries_open(const char *path, bool wants_user_ids, bool wants_targets, struct ctl_eval_queries *out)
{
  AUTO(ctl_eval_queries_fini) struct ctl_eval_queries queries = { 0 };

  TRY(safetensors_map(path, &queries.file));
  TRY(find_embeddings(&queries));
  if (wants_user_ids)
    TRY(find_user_ids(&queries));
  if (wants_targets)
    TRY(find_targets(&queries));
  *out = queries;
  queries = (struct ctl_eval_queries){ 0 };
  return ERR_OK;
}

void ctl_eval_queries_fini(struct ctl_eval_queries *queries)
{
  safetensors_close(&queries->file);
}

void ctl_eval_queries_get(const struct ctl_eval_queries *queries, size_t first, size_t n, uint32_t k,
                          const char *method, float *numbers, struct query *out)
{
  tensor_floats(&queries->embeddings, first * queries->width, n * queries->width, numbers);
  for (size_t i = 0; i < n; i++) {
    out[i] = queries->common;
    out[i].space = span_of_str(ctl_eval_space);
    out[i].method = span_of_str(method);
    out[i].k = k;
    out[i].vector = (struct floats){ numbers + i * queries->width, queries->width };
    out[i].has_user_id = queries->has_user_ids;
    out[i].user_id = queries->has_user_ids ? tensor_i64(&queries->user_ids, first + i) : 0;
  }
}

/* Verify the options that all queries have, by one that fits without them. */
static err_t verify_options(const struct engine *e, const struct query *query)
{
  struct method method;
  char reason[256];
  size_t space;
  err_code_t result = engine_check_query(e, query, &space, &method);

  snprintf(reason, sizeof reason, "%s", result == ERR_OK ? "" : err_message());
  if (result != ERR_OK)
    FAIL(result, "--max-per, --mmr, --boost or --boost-if: %s", reason);
  return ERR_OK;
}

err_t ctl_eval_queries_verify(const struct ctl_eval_queries *queries, const struct engine *e, uint32_t k,
                              const char *method, struct method *out)
{
  AUTO(mem_free) float *numbers = NULL;
  struct query query, bare;
  char reason[256];
  size_t space;

  TRY(mem_array(queries->width, sizeof *numbers, &numbers));
  for (size_t i = 0; i < queries->n; i++) {
    ctl_eval_queries_get(queries, i, 1, k, method, numbers, &query);
    bare = query;
    bare.max_per.n = 0;
    bare.mmr.diversity = 0;
    bare.n_boosts = 0;
    err_code_t result = engine_check_query(e, &bare, &space, out);
    if (result == ERR_METHOD)
      return result;
    if (result == ERR_OK && i == 0)
      TRY(verify_options(e, &query));
    if (result == ERR_OK)
      continue;
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(result, "%s: tensor \"query_embeddings\", row %zu: %s", safetensors_path(queries->file), i, reason);
  }
  return ERR_OK;
}
