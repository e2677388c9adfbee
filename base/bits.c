/* SPDX-License-Identifier: Apache-2.0 */
/* Counting bits. All processors since 2008 have an instruction for it, but compilers do not assume that: without it
 * they call a function for each word. */
#include "base/bits.h"

static inline __attribute__((always_inline)) uint64_t count(const uint64_t *words, size_t n)
{
  uint64_t found = 0;

  for (size_t i = 0; i < n; i++)
    found += (uint64_t)__builtin_popcountll(words[i]);
  return found;
}

#ifdef __x86_64__
static __attribute__((target("popcnt"))) uint64_t count_by_instruction(const uint64_t *words, size_t n)
{
  return count(words, n);
}

uint64_t bits_count(const uint64_t *words, size_t n)
{
  return __builtin_cpu_supports("popcnt") ? count_by_instruction(words, n) : count(words, n);
}
#else
uint64_t bits_count(const uint64_t *words, size_t n)
{
  return count(words, n);
}
#endif
