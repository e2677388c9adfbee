/* SPDX-License-Identifier: Apache-2.0 */
/* The level avx512vbmi: AVX-512 VBMI (Ice Lake and later), which has an instruction that looks bytes up in a table of
 * 128 bytes. */
#include "kernels/pq_filter.h"
#include "kernels/variants.h"

void variant_avx512_vbmi(struct kernels *table)
{
  table->pq_filter = pq_filter_vbmi;
  table->pq_cells = pq_cells_vbmi;
  table->pq_scan = pq_scan_vbmi;
  table->pq_slots_per_cell = 165;
}
