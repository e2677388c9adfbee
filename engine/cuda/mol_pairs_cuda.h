/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of Mixture-of-Logits searches on the device: TopKDotProduct(f_p(q), X_p) for every pair p of components
 * (MoL paper, Algorithms 1 and 2), as engine/mol/mol_candidates_pairs.c finds them on the processor. */
#ifndef ENGINE_CUDA_MOL_PAIRS_CUDA_H
#define ENGINE_CUDA_MOL_PAIRS_CUDA_H

#include "engine/cuda/funnel.h"
#include "kernels/cuda/mol_halves.h"

/* What it reads, of the device. */
struct mol_pairs_source {
  struct mol_halves halves;            /* components and residuals */
  const float *query_components;       /* [group->n][P_q][d_P] */
  struct candidates_excluded excluded; /* what the batch's queries exclude */
};

/* What it writes, of the device. */
struct mol_pairs_found {
  struct device_lists candidates; /* group->n lists */
  float *nth_best;                /* [group->n] */
  uint32_t *has_overflowed;          /* [group->n] */
};

/* Ask the worker's stream to find, for each query of the group and each pair of components, the n_best admitted items
 * with the largest dot product in f32. The device has no keys: all items that tie with the last of them are in too.
 *
 * f       the columns (their model and f32 rows), and the batch, whose admit says what a query excludes
 * group   its ranks, and what source names, were sent
 * n_best  N; 0: of each query its K
 * found   candidates: the union over the pairs, each slot once, scores left open; what was in the lists is forgotten.
 *         nth_best: the largest N-th best dot product over the pairs: no admitted item outside the candidates has a
 *         larger one; -inf where all admitted items are candidates. has_overflowed: 1 where a list could not keep what
 *         reached its floor, as when very many items are alike, or the candidates did not fit: then neither of the
 *         two counts for that query, which has to be answered otherwise
 *
 * Lists that take more scratch than there is are found in passes; scratch is as it was afterwards. Returns ERR_DEVICE
 * where less is left than group->n times mol_pairs_cuda_query_bytes() and 64 KiB, ERR_MEMORY. Blocks: no.
 */
err_t mol_pairs_cuda_candidates(const struct funnel *f, const struct funnel_group *group,
                                const struct mol_pairs_source *source, uint32_t n_best,
                                const struct mol_pairs_found *found);

/* Bytes of scratch that a query of the batch takes at least, for lists of n_best. Fewer passes need more. */
size_t mol_pairs_cuda_query_bytes(const struct funnel *f, uint32_t n_best);

#endif
