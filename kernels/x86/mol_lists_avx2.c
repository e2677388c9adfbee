/* SPDX-License-Identifier: Apache-2.0 */
/* mol_lists(), mol_any(), mol_any_tile() and average_lists() with AVX2. */
#include "kernels/x86/simd_numbers_avx2.h"
#include "kernels/x86/simd_wide_bytes.h"

#include "kernels/x86/simd_lists.h"

void variant_mol_lists_avx2(struct kernels *table)
{
  fill_lists(table);
}
