/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates of one query of `exact` over vectors, and the threshold that an item has to reach to be one.
 *
 * While the sketches are scanned, the K best lower bounds are kept. At least K items score the K-th best lower bound or
 * more. So that bound is a threshold: an item with an upper bound below it is not among the K best. An item with an
 * upper bound that reaches it is a candidate. When the scan is over, candidates are scored from the best upper bound
 * down, until the next upper bound is below the K-th best score. So hardly more rows are read than any method with
 * these bounds has to read. If there are more candidates than can be kept, as with items that are all alike, some are
 * scored during the scan. An upper bound equal to the threshold does not exclude an item, because ties are broken by
 * key.
 */
#ifndef ENGINE_VECTOR_VECTOR_CANDIDATES_H
#define ENGINE_VECTOR_VECTOR_CANDIDATES_H

#include "engine/search/kth_best.h"
#include "engine/search/search_batch.h"
#include "engine/vector/vector_chunks.h"

struct vector_candidates {
  const struct vector_columns *columns;
  const struct kernels *kernels;
  const struct vector_query *query;
  struct search_result *result;
  struct kth_best lower;    /* of the lower bounds */
  struct topk_entry *items; /* [capacity]: slots with their upper bounds */
  struct topk_entry *spare; /* [capacity] */
  size_t n;
  size_t capacity;
};

/* Initialise the candidates of query q of a batch. Returns ERR_MEMORY. */
err_t vector_candidates_init(const struct vector_columns *columns, const struct search_batch *batch, size_t q,
                             struct vector_candidates *out);

/* An item that scores below this is not among the K best. */
float vector_candidates_threshold(const struct vector_candidates *c);

/* Take those items of a set that may be among the K best. bounds: on their scores, from vector_sketch_bounds() or
 * vector_sketch_bounds_at() */
void vector_candidates_take(struct vector_candidates *c, const struct vector_sketch_set *set, const float *bounds);

/* Score the candidates, best upper bound first, while they may enter the top K. No candidate remains. */
void vector_candidates_score(struct vector_candidates *c);

#endif
