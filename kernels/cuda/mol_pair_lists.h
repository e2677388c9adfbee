/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of pairs of components (mol_pairs.h): their exact dot products, and the union of what is best in each. */
#ifndef KERNELS_CUDA_MOL_PAIR_LISTS_H
#define KERNELS_CUDA_MOL_PAIR_LISTS_H

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/mol_pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The queries whose rows a pass has some of; all pointers are of the device. */
struct mol_pair_queries {
  size_t n;
  size_t n_components; /* P_q: rows of a query */
  size_t first_row;    /* row 0 of the pass, among those of all queries */
  struct candidates_excluded excluded;
};

/* What is found for each query. */
struct mol_pair_union {
  uint32_t *seen; /* [n][n_words]: bit s of a query is set where slot s is among its candidates */
  size_t n_words;
  struct device_lists candidates; /* n of them: each slot once */
  float *nth_best;                /* [n] */
  uint32_t *is_overfull;          /* [n]: 1 where a list, or the candidates, could not keep all of theirs */
};

/* Empty it: nth_best is -inf. */
err_t mol_pair_union_begin(struct device_stream *stream, const struct mol_pair_union *out);

/* of_lists[list] = the rank of the query of the list's row. All return ERR_DEVICE. */
err_t mol_pair_lists_spread(struct device_stream *stream, const struct mol_pairs_input *input,
                            const struct mol_pair_queries *queries, struct lists_ranks of_queries,
                            uint32_t *of_lists);

/* Scores of all that is in the lists: the exact dot product (mol_pairs.h), or -inf for items that are excluded. */
err_t mol_pair_lists_score(struct device_stream *stream, const struct mol_pairs_input *input,
                           const struct mol_pair_queries *queries, const struct device_lists *lists);

/* Add to each query's candidates what scores thresholds[list] or more in one of its lists and is not excluded; raise
 * nth_best to the largest of its thresholds, and tell which lists were too short. */
err_t mol_pair_union_add(struct device_stream *stream, const struct mol_pairs_input *input,
                         const struct mol_pair_queries *queries, const struct device_lists *lists,
                         const float *thresholds, const struct mol_pair_union *out);

/* Add all present items below n_slots that are not excluded to each query's candidates. */
err_t mol_pair_union_all(struct device_stream *stream, const uint8_t *present, size_t n_slots,
                         const struct mol_pair_queries *queries, const struct mol_pair_union *out);

#ifdef __cplusplus
}
#endif

#endif
