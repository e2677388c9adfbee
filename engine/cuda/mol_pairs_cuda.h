/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of Mixture-of-Logits searches on the device, by TopKDotProduct(f_p(q), X_p) for every pair p of components
 * (MoL paper, Algorithms 1 and 2). engine/mol/mol_candidates_pairs.c does the same on the processor. */
#ifndef ENGINE_CUDA_MOL_PAIRS_CUDA_H
#define ENGINE_CUDA_MOL_PAIRS_CUDA_H

#include "engine/cuda/funnel.h"
#include "kernels/cuda/mol_halves.h"

/* Input of the search, in device memory. */
struct mol_pairs_source {
  struct mol_halves halves;            /* components and residuals */
  const float *query_components;       /* [group->n][P_q][d_P] */
  struct candidates_excluded excluded; /* slots that the group's queries exclude */
  struct admitted_words rows_admitted; /* [group->n][P_q]: those of each query, for all of its components */
};

/* Output of the search, in device memory. */
struct mol_pairs_found {
  struct device_lists candidates; /* group->n lists */
  float *nth_best;                /* [group->n] */
  uint32_t *has_overflowed;       /* [group->n] */
};

/* Start a search in the worker's stream: for each query of the group and each pair of components, the n_best admitted
 * items with the largest dot product in f32. The device has no keys, so all items that tie with the last one are
 * candidates too.
 *
 * f       the columns (their model and f32 rows) and the batch
 * group   its ranks, and the arrays of source, have been sent to the device
 * n_best  N; 0: each query's own K
 * found   candidates: the union over the pairs, each slot once; scores are undefined, and earlier entries are lost.
 *         nth_best: the largest N-th best dot product over the pairs. No admitted item outside the candidates has a
 *         larger one. -inf if all admitted items are candidates.
 *         has_overflowed: 1 if a list or the candidates overflowed, for example because very many items are alike.
 *         Also 1 if a list may lack one of its best: too many of them were in the sample that gave its floor. Then
 *         nth_best is invalid for that query. Its candidates are admitted items, but may not be all.
 *
 * If the lists exceed the free scratch they are found in several passes. Scratch is free again afterwards. Returns
 * ERR_DEVICE when less scratch is free than group->n times mol_pairs_cuda_query_bytes() plus 64 KiB; ERR_MEMORY.
 * Blocks: no.
 */
err_t mol_pairs_cuda_candidates(const struct funnel *f, const struct funnel_group *group,
                                const struct mol_pairs_source *source, uint32_t n_best,
                                const struct mol_pairs_found *found);

/* The least scratch that a query of the batch needs for lists of n_best, in bytes. More scratch means fewer passes. */
size_t mol_pairs_cuda_query_bytes(const struct funnel *f, uint32_t n_best);

#endif
