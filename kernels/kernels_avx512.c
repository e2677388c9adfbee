#include "kernels/simd_avx512.h"
#include "kernels/simd_numbers_avx512.h"
#include "kernels/vector_kernels.h"
#include "kernels/vector_sketch.h"

void variant_avx512(struct kernels *table)
{
  fill_table(table);
  fill_sketch(table);
}
