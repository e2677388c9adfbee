/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a region, and allocating from them. */
#include "base/region.h"

#include "base/mem.h"
#include "base/size.h"

enum { FIRST_BLOCK_BYTES = 4096, LARGEST_USUAL_BLOCK_BYTES = 1 << 20, ALIGN = 16 };

struct region_block {
  struct region_block *next;
  size_t size;
  _Alignas(ALIGN) uint8_t bytes[];
};

void region_fini(struct region *r)
{
  while (r->first) {
    struct region_block *block = r->first;
    r->first = block->next;
    mem_free(&block);
  }
  *r = (struct region){ 0 };
}

void region_reset(struct region *r)
{
  r->current = r->first;
  r->used = 0;
  r->taken_bytes = 0;
}

size_t region_bytes(const struct region *r)
{
  size_t bytes = 0;

  for (const struct region_block *block = r->first; block; block = block->next)
    bytes += block->size;
  return bytes;
}

void region_trim(struct region *r, size_t keep_bytes)
{
  struct region_block **link = &r->first;
  size_t kept = 0;

  while (*link) {
    struct region_block *block = *link;
    if (block->size <= keep_bytes - kept) {
      kept += block->size;
      link = &block->next;
    } else {
      *link = block->next;
      mem_free(&block);
    }
  }
  region_reset(r);
}

struct region_mark region_mark(const struct region *r)
{
  return (struct region_mark){ r->current, r->used, r->taken_bytes };
}

void region_rewind(struct region *r, struct region_mark mark)
{
  r->current = mark.current ? mark.current : r->first;
  r->used = mark.used;
  r->taken_bytes = mark.taken_bytes;
}

/* Free the blocks after the current one that are too small for `bytes`. Otherwise, if each round needs more memory than
 * the last, each leaves one more unused block behind. */
static void drop_outgrown(struct region *r, size_t bytes)
{
  struct region_block **link = r->current ? &r->current->next : &r->first;

  while (*link && (*link)->size < bytes) {
    struct region_block *block = *link;
    *link = block->next;
    mem_free(&block);
  }
}

/* Return the size of a block for small allocations. */
static size_t usual_size(const struct region *r)
{
  return r->current ? size_min(2 * r->current->size, LARGEST_USUAL_BLOCK_BYTES) : FIRST_BLOCK_BYTES;
}

/* Make a block with room for `bytes` the current one: the next block that is large enough, else a new one of at least
 * least_bytes. */
static err_t advance(struct region *r, size_t bytes, size_t least_bytes)
{
  drop_outgrown(r, bytes);
  struct region_block **next = r->current ? &r->current->next : &r->first;

  if (!*next) {
    struct region_block *block;
    size_t size = size_max(bytes, least_bytes);
    TRY(mem_bytes(sizeof *block + size, &block)); /* zeroed by allocate() */
    *block = (struct region_block){ .size = size };
    *next = block;
  }
  r->current = *next;
  r->used = 0;
  return ERR_OK;
}

/* align: a power of two, at least ALIGN */
static err_t allocate(struct region *r, size_t count, size_t size, size_t align, void *out)
{
  size_t bytes;

  if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
    FAIL(ERR_MEMORY, "%zu elements of %zu bytes are more than this machine can address", count, size);
  bytes = ((bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1)) + align - ALIGN;
  if (r->limit_bytes && (r->taken_bytes > r->limit_bytes || bytes > r->limit_bytes - r->taken_bytes))
    FAIL(ERR_TOO_LARGE, "%zu bytes and the %zu in use exceed the limit of %zu", bytes, r->taken_bytes, r->limit_bytes);
  if (!r->current || r->current->size - r->used < bytes)
    TRY(advance(r, bytes, usual_size(r)));
  uint8_t *p = r->current->bytes + r->used;
  r->used += bytes;
  r->taken_bytes += bytes;
  memset(p, 0, bytes);
  mem_pointer_set(out, p + (-(uintptr_t)p & (align - 1)));
  return ERR_OK;
}

err_t region_array(struct region *r, size_t count, size_t size, void *out)
{
  return allocate(r, count, size, ALIGN, out);
}

err_t region_aligned(struct region *r, size_t count, size_t size, void *out)
{
  return allocate(r, count, size, REGION_LINE, out);
}

err_t region_reserve(struct region *r, size_t bytes)
{
  return r->current && r->current->size - r->used >= bytes ? ERR_OK : advance(r, bytes, 0);
}

err_t region_copy(struct region *r, struct span bytes, struct span *out)
{
  uint8_t *copy;

  TRY(region_array(r, bytes.n + 1, 1, &copy));
  if (bytes.n)
    memcpy(copy, bytes.p, bytes.n);
  *out = span_of(copy, bytes.n);
  return ERR_OK;
}
