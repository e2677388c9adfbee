/* SPDX-License-Identifier: Apache-2.0 */
/* The level avx2: AVX2 with FMA. */
#include "kernels/pq_filter.h"
#include "kernels/x86/simd_avx2.h"
#include "kernels/x86/simd_numbers_avx2.h"
#include "kernels/x86/simd_dots.h"
#include "kernels/x86/simd_gelu.h"
#include "kernels/x86/simd_kernels.h"
#include "kernels/x86/simd_sketch.h"
#include "kernels/x86/simd_sketch_rows.h"

void variant_avx2(struct kernels *table)
{
  fill_table(table);
  table->pq_filter = pq_filter_avx2;
  table->pq_cells = pq_cells_avx2;
  table->pq_scan = pq_scan_avx2;
  table->pq_slots_per_cell = 20;
  table->pq_gather = pq_gather_avx2;
  fill_dots(table);
  fill_gelu(table);
  fill_sketch(table);
  fill_sketch_rows(table);
  variant_mol_lists_avx2(table);
  variant_select_avx2(table);
  variant_mol_screen_avx2(table);
}
