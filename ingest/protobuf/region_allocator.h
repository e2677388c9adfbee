/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator for protobuf-c that takes memory from a region. Freeing does nothing: the region frees everything.
 * Thread: the one that owns the region. */
#ifndef INGEST_REGION_ALLOCATOR_H
#define INGEST_REGION_ALLOCATOR_H

#include <protobuf-c/protobuf-c.h>

#include "base/region.h"

struct region_allocator {
  struct region *region;
  err_code_t err; /* of the newest allocation: after a failure, whether it was for memory */
};

static inline void *region_allocator_alloc(void *context, size_t size)
{
  struct region_allocator *a = context;
  void *p;

  a->err = region_array(a->region, 1, size, &p);
  return a->err == ERR_OK ? p : NULL;
}

static inline void region_allocator_free(void *context, void *p)
{
  (void)context;
  (void)p;
}

/* Return what protobuf-c takes, which uses `a`. */
static inline ProtobufCAllocator region_allocator_of(struct region_allocator *a)
{
  return (ProtobufCAllocator){ .alloc = region_allocator_alloc, .free = region_allocator_free, .allocator_data = a };
}

#endif
