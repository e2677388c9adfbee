/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of entries for cells (cells.h), of sizes CELL_UNIT times a power of two, by the buddy method: a block that is
 * freed joins its neighbour of the same size where that is free too. So the room that small cells leave behind when
 * they grow becomes room for large ones.
 *
 * Thread: the writer of the arena. Address space is reserved for all blocks; pages cost memory once they are used.
 */
#ifndef ENGINE_RECJPQ_CELL_POOL_H
#define ENGINE_RECJPQ_CELL_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CELL_UNIT = 8, CELL_CLASSES = 28 }; /* entries of the smallest block; sizes that there are */

struct cell_pool {
  uint32_t n_units;   /* reserved */
  uint32_t n_used;    /* units that were in a block at any time: they come first */
  uint32_t n_taken;   /* units of blocks that were not given back */
  uint8_t *free_size; /* [n_units]: 1 + the class of the free block that begins here, else 0 */
  uint32_t *links;    /* [n_units][2]: next and previous free block of the same class */
  uint32_t first[CELL_CLASSES];
};

err_t cell_pool_init(size_t n_units, struct cell_pool *out);
void cell_pool_fini(struct cell_pool *p);

/* A block of CELL_UNIT << class entries: its first unit, a multiple of its size. Returns false when the pool is full.
 */
bool cell_pool_take(struct cell_pool *p, unsigned class, uint32_t *start);
void cell_pool_give(struct cell_pool *p, unsigned class, uint32_t start);

/* Make a pool whose blocks were all given back like a new one, and give its memory back. */
void cell_pool_clear(struct cell_pool *p);

#endif
