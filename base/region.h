/* SPDX-License-Identifier: Apache-2.0 */
/* A region: many small allocations that live and die together, one batch or one message long.
 *
 * Memory comes from blocks that are kept over region_reset(), so that a region in steady use allocates nothing. What a
 * rare large use left behind is given back with region_trim().
 * Thread: the one that owns the region.
 */
#ifndef BASE_REGION_H
#define BASE_REGION_H

#include "base/err.h"
#include "base/span.h"

struct region_block;

struct region {
  struct region_block *first;
  struct region_block *current;
  size_t used;        /* bytes of the current block */
  size_t taken_bytes; /* handed out since the reset, rounded up */
  size_t limit_bytes; /* most bytes that may be handed out, set by the owner; 0: no limit */
};

/* A region of all zeros is a valid empty one. */
void region_fini(struct region *r);

/* Forget all allocations; the blocks stay. */
void region_reset(struct region *r);

/* Bytes of all blocks, used or not. */
size_t region_bytes(const struct region *r);

/* Forget all allocations, keep the first blocks up to `keep_bytes` in all, and free the others. */
void region_trim(struct region *r, size_t keep_bytes);

/* A place to come back to: what was allocated since is forgotten. */
struct region_mark {
  struct region_block *current;
  size_t used;
  size_t taken_bytes;
};

struct region_mark region_mark(const struct region *r);
void region_rewind(struct region *r, struct region_mark mark);

/* count x size zeroed bytes, aligned to 16. Valid until region_reset(), region_trim() or region_fini().
 *
 * Returns ERR_OK; ERR_TOO_LARGE beyond limit_bytes; ERR_MEMORY. */
err_t region_array(struct region *r, size_t count, size_t size, void *out);

/* Copy bytes into the region; the copy is followed by a zero byte that does not count. */
err_t region_copy(struct region *r, struct span bytes, struct span *out);

#endif
