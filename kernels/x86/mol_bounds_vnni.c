/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on Mixture-of-Logits scores with AVX-512 VNNI (Cascade Lake and later). */
#include "kernels/x86/simd_avx512.h"
#include "kernels/x86/simd_int16_layer.h"

#include "kernels/x86/simd_mol_bounds.h"

void mol_bounds_vnni(struct kernels *table)
{
  table->mol_bounds = mol_bounds_int16;
}
