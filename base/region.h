/* SPDX-License-Identifier: Apache-2.0 */
/* A region: many small allocations that are freed together, for the lifetime of a batch or a message.
 *
 * Memory comes from blocks. region_reset() keeps the blocks, so a region in steady use allocates nothing. region_trim()
 * frees the blocks that a rare large use left behind.
 *
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
  size_t used;        /* used bytes of the current block */
  size_t taken_bytes; /* bytes allocated since the reset, rounded up */
  size_t limit_bytes; /* limit on taken_bytes, set by the owner; 0: no limit */
};

/* Free all blocks. A region of all zeros is valid and empty. */
void region_fini(struct region *r);

/* Forget all allocations, and keep the blocks. */
void region_reset(struct region *r);

/* Return the size of all blocks, used or not. */
size_t region_bytes(const struct region *r);

/* Forget all allocations. Keep each block that fits into `keep_bytes` with those kept before it, and free the others.
 */
void region_trim(struct region *r, size_t keep_bytes);

/* A point in a region. Rewinding to it forgets all later allocations. */
struct region_mark {
  struct region_block *current;
  size_t used;
  size_t taken_bytes;
};

struct region_mark region_mark(const struct region *r);
void region_rewind(struct region *r, struct region_mark mark);

/* Allocate an array of zeros, aligned to 16 bytes. Valid until region_reset(), region_trim() or region_fini().
 *
 * Returns ERR_OK; ERR_TOO_LARGE beyond limit_bytes; ERR_MEMORY. */
err_t region_array(struct region *r, size_t count, size_t size, void *out);

/* The same, aligned to REGION_LINE bytes: a cache line, and the widest SIMD register. */
enum { REGION_LINE = 64 };
err_t region_aligned(struct region *r, size_t count, size_t size, void *out);

/* Have room for arrays of `bytes` bytes together in one block; a new block is exactly that large. Each array takes a
 * multiple of 16 bytes. Returns ERR_MEMORY. */
err_t region_reserve(struct region *r, size_t bytes);

/* Copy bytes into the region. A zero byte follows the copy; out->n does not count it. */
err_t region_copy(struct region *r, struct span bytes, struct span *out);

#endif
