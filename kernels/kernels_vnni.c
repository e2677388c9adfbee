/* AVX-512 with VNNI (Cascade Lake and later): products of bytes, summed in 32 bits. */
#include "kernels/variants.h"

void variant_avx512_vnni(struct kernels *table)
{
  mol_lists_vnni(table);
}
