/* SPDX-License-Identifier: Apache-2.0 */
/* The level amx: AMX tiles (Sapphire Rapids and later). They multiply bytes and add the products in 32 bits, so these
 * sums are exact, or bf16 and add in f32, of which only bounds are made. amx_tile_check.h tests the instructions at
 * each start. On machines without tiles the tests use tiles in plain C (tests/support/amx_tiles_model.h).
 */
#include "kernels/variants.h"
#include "kernels/x86/amx_tiles.h"

#include "kernels/x86/amx_tile_check.h"

bool variant_amx_works(void)
{
  return tiles_work();
}

void variant_amx(struct kernels *table)
{
  variant_dot_i8_amx(table);
  variant_mol_screen_amx(table);
}
