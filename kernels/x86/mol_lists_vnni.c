/* SPDX-License-Identifier: Apache-2.0 */
/* mol_lists(), mol_any() and average_lists() with AVX-512 VNNI: four products of bytes to a lane. */
#include <immintrin.h>
#include <string.h>

#include "kernels/variants.h"

typedef __m512i ints;

enum { LANES = 16, TILE_ROWS = 8, TILE_REGS = 2 };

struct item_bytes {
  ints x;
};

struct row_bytes {
  ints x;
};

static inline ints ints_load(const uint8_t *p)
{
  return _mm512_loadu_si512(p);
}

static inline void ints_store(int32_t *p, ints v)
{
  _mm512_storeu_si512(p, v);
}

static inline ints ints_set1(int32_t x)
{
  return _mm512_set1_epi32(x);
}

static inline ints ints_and(ints a, ints b)
{
  return _mm512_and_si512(a, b);
}

/* One bit a lane: it is below 0. */
static inline unsigned ints_negative(ints v)
{
  return _mm512_movepi32_mask(v);
}

static inline struct item_bytes item_bytes_load(const uint8_t *p)
{
  return (struct item_bytes){ ints_load(p) };
}

static inline struct row_bytes row_bytes_load(const int8_t *p)
{
  int32_t bytes;

  memcpy(&bytes, p, sizeof bytes);
  return (struct row_bytes){ _mm512_set1_epi32(bytes) };
}

static inline ints add_dot_words(ints sums, ints x, ints row)
{
  return _mm512_dpwssd_epi32(sums, x, row);
}

static inline ints add_dot_bytes(ints sums, struct item_bytes x, struct row_bytes row)
{
  return _mm512_dpbusd_epi32(sums, x.x, row.x);
}

#include "kernels/x86/simd_lists.h"

void mol_lists_vnni(struct kernels *table)
{
  fill_lists(table);
}
