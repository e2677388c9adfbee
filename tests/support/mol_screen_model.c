/* SPDX-License-Identifier: Apache-2.0 */
/* The header of mol_screen() with tiles, over tiles in plain C. */
#include "tests/support/mol_screen_model.h"

#include "tests/support/amx_tiles_model.h"

#include "kernels/x86/simd_mol_screen_bf16.h"

void mol_screen_model(struct kernels *table)
{
  mol_screen_use_bf16(table);
}
