/* SPDX-License-Identifier: Apache-2.0 */
/* dot_i8() of the level amx, with tiles in plain C. Everything but the tile instructions is the code of that level.
 * Needs AVX-512. */
#ifndef TESTS_SUPPORT_DOT_I8_MODEL_H
#define TESTS_SUPPORT_DOT_I8_MODEL_H

#include "kernels/kernels.h"

/* The function for struct kernels. */
void dot_i8_model(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                       size_t n_blocks, int32_t *const *sums);

#endif
