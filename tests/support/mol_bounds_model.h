/* SPDX-License-Identifier: Apache-2.0 */
/* mol_bounds() as the level amx has it, with tiles in plain C instead of tile instructions: all else is the code that
 * runs there. The instructions themselves are not exercised by this. Needs AVX-512. */
#ifndef TESTS_SUPPORT_MOL_BOUNDS_MODEL_H
#define TESTS_SUPPORT_MOL_BOUNDS_MODEL_H

#include "kernels/kernels.h"

/* For struct kernels. */
void mol_bounds_model(const struct mol_shape *shape, const struct mol_gate *gate,
                      const struct mol_reduced_gate *reduced_gate, const float *query, const float *query_gate,
                      const float *items, const float *item_gates, float *scratch, const struct mol_prefetch *prefetch,
                      float *lower, float *upper);

/* x[i] = SiLU(x[i]), and exp(x[i]), as mol_bounds() takes them; VEC numbers at once. */
enum { MOL_BOUNDS_MODEL_LANES = 16 };
void mol_bounds_model_silu(float *x);
void mol_bounds_model_exp(float *x);

/* What the check of the machine's tiles says of tiles with such a fault; 0 is none. */
bool mol_bounds_model_works(int fault);
int mol_bounds_model_n_faults(void);

#endif
