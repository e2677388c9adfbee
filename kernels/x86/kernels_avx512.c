/* SPDX-License-Identifier: Apache-2.0 */
/* The level avx512: AVX-512 F, BW, VL and DQ (Skylake and later). */
#include "kernels/pq_filter.h"
#include "kernels/x86/simd_avx512.h"
#include "kernels/x86/simd_numbers_avx512.h"
#include "kernels/x86/simd_dots.h"
#include "kernels/x86/simd_gelu.h"
#include "kernels/x86/simd_kernels.h"
#include "kernels/x86/simd_sketch.h"
#include "kernels/x86/simd_sketch_rows.h"

void variant_avx512(struct kernels *table)
{
  fill_table(table);
  table->pq_filter = pq_filter_avx512;
  table->pq_cells = pq_cells_avx512;
  table->pq_best = pq_best_avx512;
  table->pq_levels = pq_levels_avx512;
  table->pq_scan = pq_scan_avx512;
  table->pq_slots_per_cell = 120;
  fill_dots(table);
  fill_gelu(table);
  fill_sketch(table);
  fill_sketch_rows(table);
  variant_mol_lists_avx512(table);
  variant_select_avx512(table);
}
