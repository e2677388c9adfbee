/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of memory blocks for the entries of cells (cells.h). A pool block is an allocation of CELL_UNIT times a power
 * of two entries. It has nothing to do with blocks of slots, which are a memory layout. The pool uses the buddy method:
 * a freed block is joined with its neighbour of the same size if that is free too. So the small blocks that growing
 * cells leave behind become large ones.
 *
 * Thread: the writer of the arena. Address space is reserved for all blocks; a page uses memory once it is written.
 */
#ifndef ENGINE_RECJPQ_CELL_POOL_H
#define ENGINE_RECJPQ_CELL_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CELL_UNIT = 8, CELL_CLASSES = 28 }; /* entries of the smallest block; number of sizes */

struct cell_pool {
  uint32_t n_units;   /* units reserved */
  uint32_t n_used;    /* units that have ever been in a block: they come first */
  uint32_t n_taken;   /* units of the blocks in use */
  uint8_t *free_size; /* [n_units]: 1 + the class of the free block that begins here, or 0 */
  uint32_t *links;    /* [n_units][2]: next and previous free block of the same class */
  uint32_t first[CELL_CLASSES];
};

err_t cell_pool_init(size_t n_units, struct cell_pool *out);
void cell_pool_fini(struct cell_pool *p);

/* Take a block of CELL_UNIT << class entries, and give one back. *start is its first unit, a multiple of its size.
 * cell_pool_take() returns false if the pool is full. */
bool cell_pool_take(struct cell_pool *p, unsigned class, uint32_t *start);
void cell_pool_give(struct cell_pool *p, unsigned class, uint32_t start);

/* Reset a pool whose blocks were all given back, and give its memory back. */
void cell_pool_clear(struct cell_pool *p);

#endif
