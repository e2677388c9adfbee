/* SPDX-License-Identifier: Apache-2.0 */
/* A look-up table of 256 bytes in four AVX-512 registers. pq_filter_avx512.c and pq_table_vbmi.h look codes up in it,
 * each with its own instructions. Private to the variant files.
 */
#ifndef KERNELS_X86_PQ_TABLE_512_H
#define KERNELS_X86_PQ_TABLE_512_H

#include <immintrin.h>

#include "kernels/variants.h"

struct pq_table {
  __m512i parts[4];
};

static inline struct pq_table pq_table_load(const uint8_t *table)
{
  struct pq_table out;

  UNROLL for (int i = 0; i < 4; i++) out.parts[i] = _mm512_load_si512(table + 64 * i);
  return out;
}

#endif
