/* SPDX-License-Identifier: Apache-2.0 */
/* mol_lists(), mol_any(), mol_any_tile(), average_lists() and partition_ge() with AVX-512. */
#include "kernels/x86/simd_numbers_avx512.h"
#include "kernels/x86/simd_wide_bytes.h"

#include "kernels/x86/simd_lists.h"

/* Eight entries at a time. An entry is 64 bits, with its score in the lower 32. Whole registers are stored: what they
 * overwrite in `entries` has been read before. */
static size_t partition_ge_avx512(struct scan_entry *entries, size_t n, int32_t threshold, struct scan_entry *spare)
{
  enum { AT_ONCE = 8 };
  const __m512i floor = _mm512_set1_epi64((int64_t)((uint64_t)(uint32_t)threshold << 32));
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
    if (entries[i].score >= threshold)
      entries[n_front++] = entries[i];
    else
      spare[n_behind++] = entries[i];
  }
  memcpy(entries + n_front, spare, n_behind * sizeof *spare);
  return n_front;
}

void variant_mol_lists_avx512(struct kernels *table)
{
  fill_lists(table);
  table->partition_ge = partition_ge_avx512;
}
