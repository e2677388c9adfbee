/* SPDX-License-Identifier: Apache-2.0 */
/* The scan of one query's admitted items alone. */
#ifndef ENGINE_RECJPQ_RECJPQ_ADMITTED_H
#define ENGINE_RECJPQ_RECJPQ_ADMITTED_H

#include "engine/recjpq/recjpq_search.h"
#include "engine/search/search_batch.h"

/* Gathering and scanning an admitted item takes as long as scanning so many slots: 9 where a core reads 35 GB/s from
 * memory, 13 to 16 where it reads 10. */
enum { RECJPQ_SLOTS_PER_ADMITTED = 12 };

/* Does gathering the admitted items take less time than a scan of all slots? */
static inline bool recjpq_admits_few(const struct admit *admit, size_t n_slots)
{
  return admit->n_admitted < n_slots / RECJPQ_SLOTS_PER_ADMITTED;
}

/* Gather, filter and score the admitted items of n_slots slots, but those that the rings have visited. Returns
 * ERR_MEMORY.
 */
err_t recjpq_scan_admitted(struct recjpq_search *s, size_t n_slots, struct region *scratch);

#endif
