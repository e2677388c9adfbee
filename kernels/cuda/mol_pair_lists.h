/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of pairs of components (mol_pairs.h): exact dot products of their entries, and the union of each query's best
 * entries. */
#ifndef KERNELS_CUDA_MOL_PAIR_LISTS_H
#define KERNELS_CUDA_MOL_PAIR_LISTS_H

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/mol_pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The queries of a pass. A pass may have only some of their rows. All pointers are device pointers. */
struct mol_pair_queries {
  size_t n;
  size_t n_components; /* P_q: rows per query */
  size_t first_row;    /* index of the pass's row 0 among the rows of all queries */
  struct candidates_excluded excluded;
  struct admitted_words admitted;
};

/* The union of each query's lists. */
struct mol_pair_union {
  uint32_t *seen; /* [n][n_words]: bit s of a query is set if slot s is one of its candidates */
  size_t n_words;
  struct device_lists candidates; /* n lists; each slot at most once */
  float *nth_best;                /* [n]: the largest threshold of the query's lists */
  uint32_t *has_overflowed;       /* [n]: 1 if one of the query's lists, or its candidates, overflowed, or a list
                                     may lack one of its best */
};

/* Empty the union: no candidates, nth_best -inf. All functions return ERR_DEVICE on failure. */
err_t mol_pair_union_begin(struct device_stream *stream, const struct mol_pair_union *out);

/* The rank, in a sample of one of `stride` items, of a score that surely some `rank` items of all reach. The sample has
 * m = rank / stride of the `rank` best items on average. That as many of them as this returns are in a random sample
 * has a probability below 10^-6 for a list (Poisson). With a stride of 1 this is the rank. */
uint32_t mol_pair_sampled_rank(uint32_t rank, size_t stride);

/* The ranks of queries, and those of their lists. */
struct mol_pair_ranks {
  struct lists_ranks query_floors, query_best; /* N + E, N */
  size_t stride;                               /* of the sample of items that gives the floors */
  uint32_t *sampled, *floors, *best;           /* [n_lists]: of the floor in the sample; N + E; N */
};

/* Empty the lists, and set their ranks to those of the queries that their rows belong to. */
err_t mol_pair_lists_begin(struct device_stream *stream, const struct mol_pairs_input *input,
                           const struct mol_pair_queries *queries, const struct mol_pair_ranks *ranks,
                           const struct device_lists *lists);

/* Score the list entries that mol_pairs_append() has written for `floors`: with the exact dot product, or -inf for
 * excluded items and for those that certainly have less than others.
 *
 * estimates  [n_lists] on the device: the score of rank N + E in each list, before this. An entry whose upper bound is
 *            below the lower bound of that one is not among the N best admitted items.
 */
err_t mol_pair_lists_score(struct device_stream *stream, const struct mol_pairs_input *input,
                           const struct mol_pair_queries *queries, const float *floors, const float *estimates,
                           const struct device_lists *lists);

/* Add to each query's candidates the entries that score at least thresholds[list] in one of its lists and are not
 * excluded. Raise nth_best to the largest of its thresholds. Set has_overflowed where a list overflowed, and where a
 * threshold is below its list's floor: then fewer than N items reach the floor, and others may be among the N best. */
err_t mol_pair_union_add(struct device_stream *stream, const struct mol_pairs_input *input,
                         const struct mol_pair_queries *queries, const struct device_lists *lists, const float *floors,
                         const float *thresholds, const struct mol_pair_union *out);

/* Add to each query's candidates all items below n_slots that it admits and does not exclude. */
err_t mol_pair_union_all(struct device_stream *stream, const uint8_t *present, size_t n_slots,
                         const struct mol_pair_queries *queries, const struct mol_pair_union *out);

#ifdef __cplusplus
}
#endif

#endif
