/* SPDX-License-Identifier: Apache-2.0 */
/* mol_lists(), mol_any() and average_lists() with AVX-512: bytes are widened to 16 bits, even and odd ones apart. And
 * bring_forward(), eight entries at a time. */
#include <immintrin.h>
#include <string.h>

#include "kernels/variants.h"

typedef __m512i ints;

enum { LANES = 16, TILE_ROWS = 8, TILE_REGS = 2 };

struct item_bytes {
  ints even, odd; /* of each lane's four bytes, as unsigned 16 bits */
};

struct row_bytes {
  ints even, odd; /* signed */
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
  ints x = ints_load(p);

  return (struct item_bytes){ _mm512_and_si512(x, _mm512_set1_epi16(255)), _mm512_srli_epi16(x, 8) };
}

static inline struct row_bytes row_bytes_load(const int8_t *p)
{
  int32_t bytes;

  memcpy(&bytes, p, sizeof bytes);
  ints x = _mm512_set1_epi32(bytes);
  return (struct row_bytes){ _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8), _mm512_srai_epi16(x, 8) };
}

static inline ints add_dot_words(ints sums, ints x, ints row)
{
  return _mm512_add_epi32(sums, _mm512_madd_epi16(x, row));
}

static inline ints add_dot_bytes(ints sums, struct item_bytes x, struct row_bytes row)
{
  return add_dot_words(add_dot_words(sums, x.even, row.even), x.odd, row.odd);
}

#include "kernels/x86/simd_lists.h"

/* An entry is 64 bits, its score the lower 32. Whole vectors are stored, over places whose own entries have been read.
 */
static size_t bring_forward_avx512(struct scan_entry *entries, size_t n, int32_t least, struct scan_entry *spare)
{
  enum { AT_ONCE = 8 };
  const __m512i floor = _mm512_set1_epi64((int64_t)((uint64_t)(uint32_t)least << 32));
  size_t n_front = 0, n_behind = 0, i = 0;

  for (; i + AT_ONCE <= n; i += AT_ONCE) {
    __m512i x = _mm512_loadu_si512(entries + i);
    __mmask8 is_front = _mm512_cmpge_epi64_mask(_mm512_slli_epi64(x, 32), floor);
    size_t n_now = (size_t)__builtin_popcount(is_front);
    _mm512_storeu_si512(entries + n_front, _mm512_maskz_compress_epi64(is_front, x));
    _mm512_storeu_si512(spare + n_behind, _mm512_maskz_compress_epi64((__mmask8)~is_front, x));
    n_front += n_now;
    n_behind += AT_ONCE - n_now;
  }
  for (; i < n; i++) {
    if (entries[i].score >= least)
      entries[n_front++] = entries[i];
    else
      spare[n_behind++] = entries[i];
  }
  memcpy(entries + n_front, spare, n_behind * sizeof *spare);
  return n_front;
}

void mol_lists_avx512(struct kernels *table)
{
  fill_lists(table);
  table->bring_forward = bring_forward_avx512;
}
