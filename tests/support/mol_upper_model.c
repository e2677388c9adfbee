#include "tests/support/mol_upper_model.h"

#include "kernels/simd_avx512.h"
#include "tests/support/tiles_model.h"

#include "kernels/tile_check.h"
#include "kernels/vector_mol_upper.h"

void mol_upper_model(const struct mol_shape *shape, const struct mol_gate *gate, const struct mol_split *split,
                     const float *query, const float *query_gate, const float *items, const float *item_gates,
                     float *scratch, const struct mol_ahead *ahead, float *upper)
{
  mol_upper_avx512(shape, gate, split, query, query_gate, items, item_gates, scratch, ahead, upper);
}

bool mol_upper_model_works(int fault)
{
  tile_fault = (enum tile_fault)fault;
  bool works = tiles_work();
  tile_fault = FAULT_NONE;
  return works;
}

int mol_upper_model_n_faults(void)
{
  return N_FAULTS;
}
