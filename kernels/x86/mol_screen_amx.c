/* SPDX-License-Identifier: Apache-2.0 */
/* The level amx's mol_screen(). */
#include "kernels/x86/amx_tiles.h"

#include "kernels/x86/simd_mol_screen_bf16.h"

void variant_mol_screen_amx(struct kernels *table)
{
  mol_screen_use_bf16(table);
}
