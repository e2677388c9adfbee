#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

void variant_avx512(struct kernels *table)
{
  fill_table(table);
  mol_lists_avx512(table);
}
