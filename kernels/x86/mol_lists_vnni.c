/* SPDX-License-Identifier: Apache-2.0 */
/* mol_lists(), mol_any(), mol_any_tile() and average_lists() with AVX-512 VNNI: one instruction adds four products of
 * bytes in a lane. */
#include "kernels/x86/simd_numbers_avx512.h"

struct item_bytes {
  ints x; /* unsigned */
};

struct row_bytes {
  ints x; /* signed */
};

static inline struct item_bytes item_bytes_split(ints x)
{
  return (struct item_bytes){ x };
}

static inline struct row_bytes row_bytes_split(ints x)
{
  return (struct row_bytes){ x };
}

static inline ints add_dot_words(ints sums, ints x, ints row)
{
  return _mm512_dpwssd_epi32(sums, x, row);
}

static inline ints add_dot_bytes(ints sums, struct item_bytes x, struct row_bytes row)
{
  return _mm512_dpbusd_epi32(sums, x.x, row.x);
}

#include "kernels/x86/simd_lists.h"

void variant_mol_lists_vnni(struct kernels *table)
{
  fill_lists(table);
}
