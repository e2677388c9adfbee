/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of Mixture-of-Logits searches: the items that are selected by dot products alone (MoL paper, Algorithms 1
 * and 2). The searches that score them are in mol_two_pass.c, mol_approximate.c and mol_exact.c. */
#ifndef ENGINE_MOL_MOL_CANDIDATES_H
#define ENGINE_MOL_MOL_CANDIDATES_H

#include "engine/mol/mol_scorer.h"
#include "engine/search/search_batch.h"

/* For each query and each pair (n, m) of components, find the N admitted items with the largest <f_n, g_m>: the paper's
 * TopKDotProduct(f_p(q), X_p). Dot products are in f32, and ties are broken by key.
 *
 * n_best      [batch->n]: N, at least 1
 * candidates  [batch->n]: the items of all pairs are added to each query's set
 * nth_best    [batch->n]: the largest N-th best dot product over the pairs. No item outside the set has a larger dot
 *             product. -inf if the set holds all admitted items
 *
 * Returns ERR_MEMORY.
 */
err_t mol_candidates_of_pairs(const struct mol_columns *c, struct search_batch *batch, const size_t *n_best,
                              uint64_t *const *candidates, float *nth_best);

/* Create one empty set (base/bits.h) for each query. Returns ERR_MEMORY. */
err_t mol_candidates_init(struct search_batch *batch, uint64_t ***out);

/* For each query, add the n_best admitted items with the largest dot product of the averaged vectors: the paper's
 * TopKAvg. Dot products are in f32, and ties are broken by key. Returns ERR_MEMORY. */
err_t mol_candidates_of_average(const struct mol_columns *c, struct search_batch *batch, size_t n_best,
                                uint64_t *const *candidates);

/* Add every item that query q admits. This is what a list with room for all items would hold. */
void mol_candidates_all(struct search_batch *batch, size_t q, uint64_t *candidates);

/* Maximum memory that lists may use at once. Larger batches and longer lists are processed in parts. */
enum { MOL_LISTS_BYTES_MAX = 64 << 20 };

#endif
