/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits on the device: what the methods share. */
#ifndef ENGINE_CUDA_MOL_CUDA_H
#define ENGINE_CUDA_MOL_CUDA_H

#include "engine/cuda/funnel.h"
#include "engine/cuda/mol_pairs_cuda.h"
#include "engine/mol/mol_model.h"
#include "kernels/cuda/candidates.h"
#include "kernels/cuda/mol_bounds.h"
#include "kernels/cuda/mol_halves.h"
#include "kernels/cuda/mol_score.h"

/* The arrays that the device derives from items' rows, struct mol_halves' in this order. */
enum { MOL_DERIVED_COMPONENTS, MOL_DERIVED_GATES, MOL_DERIVED_AVERAGES, MOL_DERIVED_RESIDUALS };

/* What columns bring of the model to the device. */
struct mol_cuda_shared {
  struct mol_gate gate;        /* as mol_score.h takes it */
  struct mol_half_gate *bound; /* NULL: the shape has no bounds but the scores themselves */
};

/* A group's queries: funnel_group.queries. Arrays of the device. */
struct mol_cuda_queries {
  const float *components; /* [n][P_q][d_P] */
  const float *gates;      /* [n][L] */
  const float *averages;   /* [n][d_P] */
  struct candidates_excluded excluded;
  float *work; /* of mol_score.h; NULL: it needs none */
  /* On the host, [n], of outputs; NULL: nobody asked. */
  const float *nth_best;   /* of mol_pairs_cuda_candidates() */
  const uint32_t *n_seeds; /* of two_pass */
  const uint32_t *n_found; /* candidates of approximate methods */
};

static inline const struct mol_model *mol_cuda_model(const struct funnel *f)
{
  return mol_model_of(f->columns->model);
}

struct mol_halves mol_cuda_halves(const struct device_columns *c);

/* funnel_ops.upload, query_bytes; and the part of scratch_bytes that upload needs. */
err_t mol_cuda_upload(const struct funnel *f, struct funnel_group *group);
size_t mol_cuda_query_bytes(const struct funnel *f);
size_t mol_cuda_work_bytes(const struct funnel *f);

/* lists->scores = canonical scores of what is in a group's lists. */
err_t mol_cuda_score(const struct funnel *f, const struct funnel_group *group, const struct device_lists *lists);

/* Whether scores have bounds in half precision, for a fraction of their time; and what those read of a group. */
bool mol_cuda_has_bounds(const struct funnel *f);
struct mol_bounds_input mol_cuda_bound_input(const struct funnel *f, const struct funnel_group *group);

/* funnel_ops.append by those bounds, and funnel_ops.score behind it. */
err_t mol_cuda_append_bounds(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors);
err_t mol_cuda_score_lists(const struct funnel *f, const struct funnel_group *group);

/* funnel_ops.append by canonical scores, which it leaves behind: for every shape. */
err_t mol_cuda_append_scores(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors);

/* Items that group->lists must have room for so that lists of the n best by average are found in them, and the scratch
 * that this takes besides. */
size_t mol_cuda_average_room(const struct search_batch *batch, size_t n);
size_t mol_cuda_average_bytes(const struct search_batch *batch, size_t n);

/* Add to `to` the n_best items of each query by the dot product of averaged vectors, ties at the last place included:
 * TopKAvg. group->lists, which must be empty, is used on the way, and is empty afterwards.
 *
 * admitted   leave out what a query excludes; else it counts as everything does
 * seen       as candidates_add() has it
 * n_offered  [group->n] of the device: what group->lists.n was, which says where its lists were too short
 */
err_t mol_cuda_candidates_of_average(const struct funnel *f, const struct funnel_group *group, size_t n_best,
                                     bool admitted, uint32_t *seen, const struct device_lists *to, uint32_t *n_offered);

/* What mol_pairs_cuda_candidates() reads of a group. */
static inline struct mol_pairs_source mol_cuda_pairs_source(const struct funnel *f, const struct funnel_group *group)
{
  const struct mol_cuda_queries *queries = group->queries;

  return (struct mol_pairs_source){ mol_cuda_halves(f->columns), queries->components, queries->excluded };
}

#endif
