/* SPDX-License-Identifier: Apache-2.0 */
/* The one VBMI instruction of pq_filter(), in plain C: it lets a machine with only AVX-512BW test the rest of the VBMI
 * variant. The instruction itself is tested on machines that have it. Include this after <immintrin.h> and before the
 * variant's code. */
#ifndef TESTS_SUPPORT_VBMI_MODEL_H
#define TESTS_SUPPORT_VBMI_MODEL_H

#include <stdint.h>

/* Byte i of the result is byte (index[i] & 127) of the 128 bytes of a and then b. */
static inline __m512i model_permutex2var_epi8(__m512i a, __m512i index, __m512i b)
{
  uint8_t table[128], places[64], out[64];

  _mm512_storeu_si512(table, a);
  _mm512_storeu_si512(table + 64, b);
  _mm512_storeu_si512(places, index);
  for (int i = 0; i < 64; i++)
    out[i] = table[places[i] & 127];
  return _mm512_loadu_si512(out);
}

#define _mm512_permutex2var_epi8 model_permutex2var_epi8

#endif
