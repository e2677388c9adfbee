/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of Mixture-of-Logits searches: the items that dot products alone find (MoL paper, Algorithms 1 and 2). */
#ifndef ENGINE_MOL_MOL_CANDIDATES_H
#define ENGINE_MOL_MOL_CANDIDATES_H

#include "engine/mol/mol_scorer.h"

/* For each query and each pair (n, m) of components the N admitted items with the largest <f_n, g_m> in f32, ties by
 * key: TopKDotProduct(f_p(q), X_p).
 *
 * n_best      [batch->n]: N, at least 1
 * candidates  [batch->n]: the union over the pairs is added to each query's set
 * nth_best    [batch->n], the largest N-th best dot product over the pairs: no item outside the set has a larger one;
 *             -inf where all admitted items are in it
 *
 * Returns ERR_MEMORY.
 */
err_t mol_candidates_of_pairs(const struct mol_columns *c, struct search_batch *batch, const size_t *n_best,
                              struct slot_set *candidates, float *nth_best);

/* Empty sets, one a query. */
err_t mol_candidates_init(struct search_batch *batch, struct slot_set **out);

/* For each query the n_best admitted items with the largest dot product of the averaged vectors in f32, ties by key:
 * TopKAvg. They are added to each query's set. Returns ERR_MEMORY. */
err_t mol_candidates_of_average(const struct mol_columns *c, struct search_batch *batch, size_t n_best,
                                struct slot_set *candidates);

/* Every item that a query admits: what lists of so many are. */
void mol_candidates_all(struct search_batch *batch, size_t q, struct slot_set *candidates);

/* Memory that lists may take at once, so that larger batches and lists are found in parts. */
enum { MOL_LISTS_BYTES_MAX = 64 << 20 };

#endif
