/* SPDX-License-Identifier: Apache-2.0 */
/* The exhaustive scan of `exact` and `pqtopk`. */
#ifndef ENGINE_RECJPQ_RECJPQ_SCAN_H
#define ENGINE_RECJPQ_RECJPQ_SCAN_H

#include "engine/recjpq/recjpq_search.h"

/* Filter and score the items of the block of slots that begins at `first`, a multiple of RECJPQ_BLOCK_ITEMS. There are
 * n_slots slots in all. Blocks that follow each other are scanned fastest. */
void recjpq_scan_block(struct recjpq_search *s, size_t first, size_t n_slots);

/* After the last block: score the items that are still pending, and complete the heap. */
void recjpq_scan_end(struct recjpq_search *s);

/* Scan all blocks. */
void recjpq_scan(struct recjpq_search *s, size_t n_slots);

#endif
