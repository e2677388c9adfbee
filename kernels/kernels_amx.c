/* AVX-512 with tiles of bf16 (Sapphire Rapids and later): upper bounds on Mixture-of-Logits scores. No machine with
 * tiles was at hand: the tests run all of this but the instructions themselves, and tile_check.h tries those at start.
 */
#include "kernels/simd_avx512.h"
#include "kernels/tiles_amx.h"

#include "kernels/tile_check.h"
#include "kernels/vector_mol_upper.h"

bool variant_amx_works(void)
{
  return tiles_work();
}

void variant_amx(struct kernels *table)
{
  table->mol_upper = mol_upper_avx512;
}
