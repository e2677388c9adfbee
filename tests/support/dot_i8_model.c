/* SPDX-License-Identifier: Apache-2.0 */
/* The level amx's dot_i8(), compiled over tiles in plain C. */
#include "tests/support/dot_i8_model.h"

#include "tests/support/amx_tiles_model.h"

#include "kernels/x86/simd_dot_i8_tiles.h"

void dot_i8_model(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                       size_t n_blocks, int32_t *const *sums)
{
  dot_i8_tiles(queries, n_queries, n_groups, blocks, n_blocks, sums);
}
