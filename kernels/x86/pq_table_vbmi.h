/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups with AVX-512 VBMI: one in each half of the table; bit 7 of the code selects the result. In
 * a file of its own, so that a test can compile it on machines without VBMI, with the instruction in plain C.
 */
#ifndef KERNELS_X86_PQ_TABLE_VBMI_H
#define KERNELS_X86_PQ_TABLE_VBMI_H

#include "kernels/x86/pq_table_512.h"

static inline __m512i pq_look_up(const struct pq_table *t, __m512i codes)
{
  __m512i lower = _mm512_permutex2var_epi8(t->parts[0], codes, t->parts[1]);
  __m512i upper = _mm512_permutex2var_epi8(t->parts[2], codes, t->parts[3]);

  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), lower, upper);
}

/* Entries of 32 codes, one in each word. */
static inline __m512i pq_look_up_few(const struct pq_table *t, __m512i codes)
{
  return _mm512_and_si512(pq_look_up(t, codes), _mm512_set1_epi16(0xff));
}

#endif
