/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of numbers below some limit, as bits of 64-bit words: number i is bit i % 64 of word i / 64. */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of words for the numbers 0..n-1. */
static inline size_t bits_words(size_t n)
{
  return (n + 63) / 64;
}

static inline bool bits_get(const uint64_t *words, size_t i)
{
  return words[i / 64] >> (i % 64) & 1;
}

static inline void bits_set(uint64_t *words, size_t i)
{
  words[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void bits_clear(uint64_t *words, size_t i)
{
  words[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* Number of bits that are set in n words. */
uint64_t bits_count(const uint64_t *words, size_t n);

#endif
