/* SPDX-License-Identifier: Apache-2.0 */
/* mol_bounds() with AVX-512 VNNI (Cascade Lake and later): layers of 16-bit integers. */
#include "kernels/x86/simd_avx512.h"
#include "kernels/x86/simd_int16_layer.h"

#include "kernels/x86/simd_mol_bounds.h"

void variant_mol_bounds_vnni(struct kernels *table)
{
  table->mol_bounds = mol_bounds_int16;
}
