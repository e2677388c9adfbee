/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512 with VBMI (Ice Lake and later): look-ups of bytes in tables of 128. */
#include "kernels/pq_filter.h"
#include "kernels/variants.h"

void variant_avx512_vbmi(struct kernels *table)
{
  table->pq_filter = pq_filter_vbmi;
  table->pq_scan = pq_scan_vbmi;
}
