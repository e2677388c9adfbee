/* SPDX-License-Identifier: Apache-2.0 */
/* mol_bounds() of the level amx, with tiles in plain C. Everything but the tile instructions is the code of that level.
 * Needs AVX-512. */
#ifndef TESTS_SUPPORT_MOL_BOUNDS_MODEL_H
#define TESTS_SUPPORT_MOL_BOUNDS_MODEL_H

#include "kernels/kernels.h"

/* The function for struct kernels. */
void mol_bounds_model(const struct mol_shape *shape, const struct mol_gate *gate,
                      const struct mol_reduced_gate *reduced_gate, const float *query, const float *query_gate,
                      const float *items, const float *item_gates, float *scratch, const struct mol_prefetch *prefetch,
                      float *lower, float *upper);

/* x[i] = SiLU(x[i]), or exp(x[i]), as mol_bounds() computes them, for MOL_BOUNDS_MODEL_LANES numbers. */
enum { MOL_BOUNDS_MODEL_LANES = 16 };
void mol_bounds_model_silu(float *x);
void mol_bounds_model_exp(float *x);

/* Does the check of the machine's tiles accept tiles with this fault? 0: no fault. */
bool mol_bounds_model_works(int fault);
int mol_bounds_model_n_faults(void);

#endif
