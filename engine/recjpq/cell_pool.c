/* SPDX-License-Identifier: Apache-2.0 */
/* The buddy allocator of cell_pool.h: a list of free blocks for each size. */
#include "engine/recjpq/cell_pool.h"

#include <assert.h>

#include "base/mem.h"

enum { NONE = UINT32_MAX, NEXT = 0, PREVIOUS = 1 };

err_t cell_pool_init(size_t n_units, struct cell_pool *out)
{
  *out = (struct cell_pool){ .n_units = n_units < NONE ? (uint32_t)n_units : NONE };
  memset(out->first, 0xff, sizeof out->first);
  TRY(mem_reserve(out->n_units, 1, &out->free_size));
  return mem_reserve(out->n_units, 2 * sizeof *out->links, &out->links);
}

void cell_pool_fini(struct cell_pool *p)
{
  mem_release(&p->free_size, p->n_units, 1);
  mem_release(&p->links, p->n_units, 2 * sizeof *p->links);
}

static uint32_t *link_of(struct cell_pool *p, uint32_t start, int which)
{
  return &p->links[2 * (size_t)start + (size_t)which];
}

static void add_free(struct cell_pool *p, unsigned class, uint32_t start)
{
  uint32_t next = p->first[class];

  *link_of(p, start, NEXT) = next;
  *link_of(p, start, PREVIOUS) = NONE;
  if (next != NONE)
    *link_of(p, next, PREVIOUS) = start;
  p->first[class] = start;
  p->free_size[start] = (uint8_t)(class + 1);
}

static void remove_free(struct cell_pool *p, unsigned class, uint32_t start)
{
  uint32_t next = *link_of(p, start, NEXT), previous = *link_of(p, start, PREVIOUS);

  if (next != NONE)
    *link_of(p, next, PREVIOUS) = previous;
  if (previous != NONE)
    *link_of(p, previous, NEXT) = next;
  else
    p->first[class] = next;
  p->free_size[start] = 0;
}

/* Join a block with its free neighbours, and add the result to the free blocks. */
static void put_free(struct cell_pool *p, unsigned class, uint32_t start)
{
  while (class + 1 < CELL_CLASSES) {
    uint32_t buddy = start ^ (1u << class);
    if (buddy >= p->n_used || p->free_size[buddy] != class + 1)
      break;
    remove_free(p, class, buddy);
    start &= ~(1u << class);
    class ++;
  }
  add_free(p, class, start);
}

/* Take units that were never used, from the next multiple of the size on. The units that are skipped become free
 * blocks. */
static bool extend(struct cell_pool *p, unsigned class, uint32_t *start)
{
  uint64_t size = UINT64_C(1) << class, from = (p->n_used + size - 1) & ~(size - 1);

  if (from + size > p->n_units)
    return false;
  while (p->n_used < from) {
    unsigned gap = (unsigned)__builtin_ctz(p->n_used); /* the largest block that may begin here */
    uint32_t at = p->n_used;
    p->n_used += 1u << gap;
    put_free(p, gap, at);
  }
  p->n_used = (uint32_t)(from + size);
  *start = (uint32_t)from;
  return true;
}

bool cell_pool_take(struct cell_pool *p, unsigned class, uint32_t *start)
{
  unsigned found = class;

  while (found < CELL_CLASSES && p->first[found] == NONE)
    found++;
  if (found >= CELL_CLASSES) {
    bool is_taken = class < CELL_CLASSES && extend(p, class, start);
    p->n_taken += is_taken ? 1u << class : 0;
    return is_taken;
  }
  p->n_taken += 1u << class;
  *start = p->first[found];
  remove_free(p, found, *start);
  while (found > class) { /* the upper halves stay free */
    found--;
    add_free(p, found, *start + (1u << found));
  }
  return true;
}

void cell_pool_give(struct cell_pool *p, unsigned class, uint32_t start)
{
  p->n_taken -= 1u << class;
  put_free(p, class, start);
}

void cell_pool_clear(struct cell_pool *p)
{
  assert(p->n_taken == 0);
  memset(p->first, 0xff, sizeof p->first);
  memset(p->free_size, 0, p->n_used); /* mem_give_back() may keep pages, so clear them too */
  mem_give_back(p->free_size, 0, p->n_used, 1);
  mem_give_back(p->links, 0, p->n_used, 2 * sizeof *p->links);
  p->n_used = 0;
}
