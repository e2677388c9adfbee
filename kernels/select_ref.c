/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar reference of select_range_i64(), select_range_u8(), select_set_u8() and list_bits(). */
#include <string.h>

#include "kernels/variants.h"

static void select_range_i64_ref(const int64_t *values, size_t n_words, int64_t low, int64_t high, uint64_t *words)
{
  for (size_t w = 0; w < n_words; w++) {
    uint64_t word = 0;
    for (size_t bit = 0; bit < 64; bit++)
      word |= (uint64_t)(low <= values[w * 64 + bit] && values[w * 64 + bit] <= high) << bit;
    words[w] = word;
  }
}

static void select_range_u8_ref(const uint8_t *values, size_t n_words, uint8_t low, uint8_t high, uint64_t *words)
{
  for (size_t w = 0; w < n_words; w++) {
    uint64_t word = 0;
    for (size_t bit = 0; bit < 64; bit++)
      word |= (uint64_t)(low <= values[w * 64 + bit] && values[w * 64 + bit] <= high) << bit;
    words[w] = word;
  }
}

enum { LIST_WORDS = 8 };

static void select_set_u8_ref(const uint8_t *values, size_t n_words, const uint8_t set[32], uint64_t *words)
{
  for (size_t w = 0; w < n_words; w++) {
    uint64_t word = 0;
    for (size_t bit = 0; bit < 64; bit++) {
      uint8_t value = values[w * 64 + bit];
      word |= (uint64_t)(set[value / 8] >> value % 8 & 1) << bit;
    }
    words[w] = word;
  }
}

static size_t list_group(const uint64_t *words, size_t n_words, uint32_t first, uint32_t *numbers)
{
  uint64_t left[LIST_WORDS], any = 1;
  size_t n = 0;

  memcpy(left, words, n_words * sizeof *left);
  while (any) {
    any = 0;
    for (size_t w = 0; w < n_words; w++) {
      if (left[w])
        numbers[n++] = first + (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(left[w]);
      left[w] &= left[w] - 1;
      any |= left[w];
    }
  }
  return n;
}

static size_t list_bits_ref(const uint64_t *words, size_t n_words, uint32_t first, uint32_t *numbers)
{
  size_t n = 0;

  for (size_t w = 0; w < n_words; w += LIST_WORDS)
    n += list_group(words + w, n_words - w < LIST_WORDS ? n_words - w : LIST_WORDS, first + (uint32_t)(w * 64),
                    numbers + n);
  return n;
}

void variant_select_ref(struct kernels *table)
{
  table->select_range_i64 = select_range_i64_ref;
  table->select_range_u8 = select_range_u8_ref;
  table->select_set_u8 = select_set_u8_ref;
  table->list_bits = list_bits_ref;
}
