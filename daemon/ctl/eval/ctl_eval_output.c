/* SPDX-License-Identifier: Apache-2.0 */
/* Arrange the answers as tensors, add metadata, and write the file. */
#include "daemon/ctl/eval/ctl_eval_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "daemon/ctl/eval/safetensors_write.h"

/* Copy the hits of all queries into rows as long as was asked for. */
static err_t pad(const struct ctl_eval_answers *a, int64_t **ids, float **scores)
{
  TRY(mem_array(a->n * a->k, sizeof **ids, ids));
  TRY(mem_array(a->n * a->k, sizeof **scores, scores));
  for (size_t i = 0; i < a->n * a->k; i++) {
    size_t at = i / a->k * a->width + i % a->k;
    bool is_there = i % a->k < a->width;
    (*ids)[i] = is_there ? a->ids[at] : -1;
    (*scores)[i] = is_there ? a->scores[at] : -INFINITY;
  }
  return ERR_OK;
}

err_t ctl_eval_output_write(const char *path, const char *model_path, const char *method, const struct query *common,
                            const struct ctl_eval_answers *answers)
{
  const struct tensor_shape lists = { .n_dims = 2, .dim = { answers->n, answers->k } };
  const struct tensor_shape column = { .n_dims = 1, .dim = { answers->n } };
  AUTO(mem_free) int64_t *ids = NULL;
  AUTO(mem_free) float *scores = NULL;
  size_t n_hits = answers->n * answers->k;

  if (answers->width < answers->k)
    TRY(pad(answers, &ids, &scores));
  const struct tensor tensors[] = {
    { "top_ids", TENSOR_I64, lists, span_of(ids ? ids : answers->ids, n_hits * sizeof *ids) },
    { "top_scores", TENSOR_F32, lists, span_of(scores ? scores : answers->scores, n_hits * sizeof *scores) },
    { "bound", TENSOR_F32, column, span_of(answers->bound, answers->n * sizeof *answers->bound) },
    { "exact", TENSOR_U8, column, span_of(answers->exact, answers->n * sizeof *answers->exact) },
  };
  char k[24], now[24];
  const struct safetensors_entry metadata[] = {
    { "model", model_path },
    { "method", method },
    { "k", k },
    { "now_unix_ms", now },
  };
  size_t n_metadata = sizeof metadata / sizeof metadata[0] - (common->n_boosts == 0);

  snprintf(k, sizeof k, "%zu", answers->k);
  snprintf(now, sizeof now, "%" PRId64, common->now_unix_ms);
  return safetensors_write(path, metadata, n_metadata, tensors, sizeof tensors / sizeof tensors[0]);
}
