/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the heap of a test program. Also makes the sanitizers' allocator return NULL for absurd sizes, as the normal
 * one does. */
#ifndef TESTS_SUPPORT_HEAP_H
#define TESTS_SUPPORT_HEAP_H

#include <malloc.h>
#include <stddef.h>

/* Part of the sanitizers' allocator; NULL without them. */
__attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes(void);

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
  return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
  return "allocator_may_return_null=1";
}

/* The bytes that are allocated and not freed. */
static inline size_t heap_used(void)
{
  struct mallinfo2 info = mallinfo2();

  if (__sanitizer_get_current_allocated_bytes)
    return __sanitizer_get_current_allocated_bytes();
  return info.uordblks + info.hblkhd;
}

#endif
