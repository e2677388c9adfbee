/* SPDX-License-Identifier: Apache-2.0 */
/* Narrowing: leaves out the sub-items of a split that no admitted item has, if that pays or is known. A filter that the
 * query dislikes admits no item with the best ones. What bounds the scores of its items are the best sub-items that
 * they have, not those of all items. */
#ifndef ENGINE_RECJPQ_RECJPQ_NARROW_H
#define ENGINE_RECJPQ_RECJPQ_NARROW_H

#include "engine/recjpq/recjpq_columns.h"
#include "engine/search/search_batch.h"

/* The sub-items that a search looks at. */
struct recjpq_subitems {
  const float *scores;     /* [M][PQ_SUBITEMS]: -inf for those that are left out */
  const uint32_t *lengths; /* [M][B]: number of items that have a sub-item; 0 for those that are left out */
  uint64_t n_items;        /* at most so many items have none that is left out */
};

/* Leave out sub-items that no admitted item has, where a sample of admitted items lets expect that this is worth a scan
 * of one split. On entry `s` has all sub-items, and some item is not admitted. Returns ERR_MEMORY. */
err_t recjpq_narrow(const struct recjpq_columns *c, const struct search_batch *batch, const struct admit *admit,
                    struct recjpq_subitems *s);

#endif
