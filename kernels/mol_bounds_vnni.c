/* Bounds on Mixture-of-Logits scores with AVX-512 VNNI (Cascade Lake and later). */
#include "kernels/simd_avx512.h"
#include "kernels/vector_fixed_layer.h"

#include "kernels/vector_mol_bounds.h"

void mol_bounds_vnni(struct kernels *table)
{
  table->mol_bounds = mol_bounds_avx512;
}
