/* SPDX-License-Identifier: Apache-2.0 */
/* The level amx's dot_i8(). */
#include "kernels/x86/amx_tiles.h"

#include "kernels/x86/simd_dot_i8_tiles.h"

void variant_dot_i8_amx(struct kernels *table)
{
  table->dot_i8 = dot_i8_tiles;
}
