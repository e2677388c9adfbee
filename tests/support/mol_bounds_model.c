/* SPDX-License-Identifier: Apache-2.0 */
/* The level amx's mol_bounds(), compiled over tiles in plain C; and its parts that tests call alone. */
#include "tests/support/mol_bounds_model.h"

#include "kernels/x86/simd_avx512.h"
#include "tests/support/amx_tiles_model.h"

#include "kernels/x86/amx_tile_check.h"
#include "kernels/x86/simd_bf16_layer.h"

#include "kernels/x86/simd_mol_bounds.h"

void mol_bounds_model(const struct mol_shape *shape, const struct mol_gate *gate,
                      const struct mol_reduced_gate *reduced_gate, const float *query, const float *query_gate,
                      const float *items, const float *item_gates, float *scratch, const struct mol_prefetch *prefetch,
                      float *lower, float *upper)
{
  mol_bounds_bf16(shape, gate, reduced_gate, query, query_gate, items, item_gates, scratch, prefetch, lower, upper);
}

void mol_bounds_model_silu(float *x)
{
  floats v = floats_load(x);

  silu_roughly(&v, 1);
  floats_store(x, v);
}

void mol_bounds_model_exp(float *x)
{
  floats v = floats_load(x);

  exp_roughly(&v, 1, &v, 1);
  floats_store(x, v);
}

bool mol_bounds_model_works(int fault)
{
  tile_fault = (enum tile_fault)fault;
  bool works = tiles_work();
  tile_fault = FAULT_NONE;
  return works;
}

int mol_bounds_model_n_faults(void)
{
  return N_FAULTS;
}
