/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits on the device: the parts that its methods share. */
#ifndef ENGINE_CUDA_MOL_CUDA_H
#define ENGINE_CUDA_MOL_CUDA_H

#include "engine/cuda/funnel.h"
#include "engine/cuda/mol_pairs_cuda.h"
#include "engine/mol/mol_model.h"
#include "engine/search/search_batch.h"
#include "kernels/cuda/candidates.h"
#include "kernels/cuda/mol_bounds.h"
#include "kernels/cuda/mol_halves.h"
#include "kernels/cuda/mol_score.h"

/* Indices of the derived arrays, in the order of struct mol_halves. */
enum { MOL_DERIVED_COMPONENTS, MOL_DERIVED_GATES, MOL_DERIVED_AVERAGES, MOL_DERIVED_RESIDUALS };

/* The model's weights on the device. */
struct mol_cuda_shared {
  struct mol_gate gate;        /* in mol_score.h's layout */
  struct mol_half_gate *bound; /* NULL: the model has no half-precision bounds */
};

/* A group's queries (funnel_group.queries), in device memory. */
struct mol_cuda_queries {
  const float *components; /* [n][P_q][d_P] */
  const float *gates;      /* [n][L] */
  const float *averages;   /* [n][d_P] */
  struct candidates_excluded excluded;
  struct admitted_words rows_admitted; /* [n][P_q] */
  float *work;                         /* work space for mol_score.h; NULL: it needs none */
  /* Outputs on the host, [n]; NULL where the method has none. */
  const float *nth_best;   /* from mol_pairs_cuda_candidates() */
  const uint32_t *n_seeds; /* two_pass: candidates that gave the floor */
  const uint32_t *n_found; /* approximate methods: candidates */
};

static inline const struct mol_model *mol_cuda_model(const struct funnel *f)
{
  return mol_model_of(f->columns->model);
}

struct mol_halves mol_cuda_halves(const struct device_columns *c);

/* funnel_ops.upload and query_bytes, and upload's part of scratch_bytes. */
err_t mol_cuda_upload(const struct funnel *f, struct funnel_group *group);
size_t mol_cuda_query_bytes(const struct funnel *f);
size_t mol_cuda_work_bytes(const struct funnel *f);

/* Compute the canonical scores of all entries of a group's lists. */
err_t mol_cuda_score(const struct funnel *f, const struct funnel_group *group, const struct device_lists *lists);

/* Does the model have half-precision bounds? They take a fraction of the time of scores. */
bool mol_cuda_has_bounds(const struct funnel *f);

/* The bounds' input for a group's queries. */
struct mol_bounds_input mol_cuda_bound_input(const struct funnel *f, const struct funnel_group *group);

/* Raise the group's floors by lower bounds of a sample of the items. */
err_t mol_cuda_raise_floors(const struct funnel *f, const struct funnel_group *group);

/* Scratch bytes per query for that. */
size_t mol_cuda_raise_bytes(const struct search_batch *batch);

/* The capacity of group->lists with which they do not overflow, for models whose bounds are as wide as those of freshly
 * initialised ones. */
size_t mol_cuda_bounds_room(const struct search_batch *batch);

/* funnel_ops.append by screening, and funnel_ops.refine by the bounds of what it lists. */
err_t mol_cuda_append_bounds(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors);
err_t mol_cuda_refine_by_lowers(const struct funnel *f, const struct funnel_group *group);

/* funnel_ops.append by canonical scores, which it also stores. Works for every shape. */
err_t mol_cuda_append_scores(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors);

/* The capacity that group->lists needs for finding the n best by average, and the additional scratch bytes per query.
 */
size_t mol_cuda_average_room(const struct search_batch *batch, size_t n);
size_t mol_cuda_average_bytes(const struct search_batch *batch, size_t n);

/* TopKAvg: add to `to` each query's n_best items by the dot product of averaged vectors, and all that tie with the last
 * one. The entries of group->lists are used for the search, but not its lengths: it must be empty, and stays so.
 *
 * admitted   true: skip items that the query excludes; false: treat them like those that it admits
 * seen       see candidates_add()
 * n_offered  [group->n] zeros on the device: gets the lengths of the lists of the search, which have the capacity of
 *            group->lists; longer ones have overflowed
 */
err_t mol_cuda_candidates_of_average(const struct funnel *f, const struct funnel_group *group, size_t n_best,
                                     bool admitted, uint32_t *seen, const struct device_lists *to, uint32_t *n_offered);

/* The input of mol_pairs_cuda_candidates() for a group. */
static inline struct mol_pairs_source mol_cuda_pairs_source(const struct funnel *f, const struct funnel_group *group)
{
  const struct mol_cuda_queries *queries = group->queries;

  return (struct mol_pairs_source){ mol_cuda_halves(f->columns), queries->components, queries->excluded,
                                    queries->rows_admitted };
}

#endif
