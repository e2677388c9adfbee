/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of the kernels. Each overwrites functions in a table that the level below has filled. Private to
 * kernels/. */
#ifndef KERNELS_VARIANTS_H
#define KERNELS_VARIANTS_H

#include "kernels/kernels.h"

/* Unroll the loop that follows. Its length is a constant, at most 16. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Fill every function: all tables start with the scalar reference. */
void variant_ref(struct kernels *table);

/* Call these only on a machine of this level or a higher one: their files are compiled with its instructions. */
void variant_avx2(struct kernels *table);
void variant_avx512(struct kernels *table);
void variant_avx512_vnni(struct kernels *table);
void variant_avx512_vbmi(struct kernels *table);
void variant_amx(struct kernels *table);

/* Do AMX tile instructions compute exact products of bytes? Call it only if the machine has them and the system has
 * granted them. */
bool variant_amx_works(void);

/* Groups of functions: a level calls those that it has of its own.
 *
 * dot_i8(), sketch_bounds() and their kind, dot_f64() and dots_f64(). */
void variant_sketch_ref(struct kernels *table);

/* mol_lists(), mol_any(), mol_any_tile(), average_lists() and, if the level has its own, partition_ge(). */
void variant_mol_lists_ref(struct kernels *table);
void variant_mol_lists_avx2(struct kernels *table);
void variant_mol_lists_avx512(struct kernels *table);
void variant_mol_lists_vnni(struct kernels *table);

/* select_range_i64(), select_range_u8() and, except for AVX2, select_set_u8() and list_bits(). */
void variant_select_ref(struct kernels *table);
void variant_select_avx2(struct kernels *table);
void variant_select_avx512(struct kernels *table);

/* dot_i8(). */
void variant_dot_i8_amx(struct kernels *table);

/* mol_bounds(). */
void variant_mol_bounds_vnni(struct kernels *table);

/* mol_screen() and the functions that go with it. */
void variant_mol_screen_avx2(struct kernels *table);
void variant_mol_screen_vnni(struct kernels *table);
void variant_mol_screen_amx(struct kernels *table);

/* The sections of mol_score()'s scratch, each aligned to 64. */
struct mol_scratch {
  float *query;  /* the query's components, packed: d inputs, P_q outputs */
  float *logits; /* [L][MOL_LANES] */
  float *hidden; /* [gate_hidden][MOL_LANES] */
  float *gates;  /* [L][MOL_LANES]: s */
};

static inline struct mol_scratch mol_scratch_split(const struct mol_shape *shape, float *scratch)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components;
  struct mol_scratch s;

  s.logits = scratch;
  s.hidden = s.logits + n_logits * MOL_LANES;
  s.gates = s.hidden + shape->gate_hidden * MOL_LANES;
  s.query = s.gates + n_logits * MOL_LANES;
  return s;
}

#endif
