#include "kernels/simd_avx2.h"
#include "kernels/vector_kernels.h"

void variant_avx2(struct kernels *table)
{
  fill_table(table);
  mol_lists_avx2(table);
}
