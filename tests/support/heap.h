/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the program holds, and an allocator that answers NULL to absurd sizes under the sanitizers too. */
#ifndef TESTS_SUPPORT_HEAP_H
#define TESTS_SUPPORT_HEAP_H

#include <malloc.h>
#include <stddef.h>

/* Of the sanitizers' allocator; absent without them. */
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

/* Bytes allocated and not freed. */
static inline size_t heap_used(void)
{
  struct mallinfo2 info = mallinfo2();

  if (__sanitizer_get_current_allocated_bytes)
    return __sanitizer_get_current_allocated_bytes();
  return info.uordblks + info.hblkhd;
}

#endif
