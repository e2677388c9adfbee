#include "kernels/pq_filter.h"
#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

void variant_avx512(struct kernels *table)
{
  fill_table(table);
  table->pq_filter = pq_filter_avx512;
}
