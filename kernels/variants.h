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
void variant_ref_sketch(struct kernels *table); /* the part in sketch_ref.c */

/* Call these only on a machine of this level or a higher one: their files are compiled with its instructions. */
void variant_avx2(struct kernels *table);
void variant_avx512(struct kernels *table);
void variant_avx512_vnni(struct kernels *table);
void variant_avx512_vbmi(struct kernels *table);
void variant_amx(struct kernels *table);

/* Do AMX tile instructions compute what mol_bounds()'s proof requires? Call it only if the machine has them and the
 * system has granted them. */
bool variant_amx_works(void);

/* Overwrite mol_lists(), mol_any(), mol_any_tile(), average_lists() and, if the level has its own, partition_ge(). */
void mol_lists_ref(struct kernels *table);
void mol_lists_avx2(struct kernels *table);
void mol_lists_avx512(struct kernels *table);
void mol_lists_vnni(struct kernels *table);

/* Overwrite select_range_i64(), select_range_u8() and, except for AVX2, select_set_u8() and list_bits(). */
void select_ref(struct kernels *table);
void select_avx2(struct kernels *table);
void select_avx512(struct kernels *table);

/* Overwrite mol_bounds(). */
void mol_bounds_vnni(struct kernels *table);

/* Overwrite mol_screen() and the functions that go with it. */
void mol_screen_avx2_fill(struct kernels *table);
void mol_screen_vnni_fill(struct kernels *table);

/* The parts of mol_score()'s scratch, each aligned to 64. */
struct mol_scratch {
  float *query;  /* the query's components, packed: d inputs, P_q outputs */
  float *logits; /* [L][MOL_LANES] */
  float *hidden; /* [gate_hidden][MOL_LANES] */
  float *gates;  /* [L][MOL_LANES]: s */
};

static inline struct mol_scratch mol_scratch_split(const struct mol_shape *shape, float *scratch)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components;
  struct mol_scratch parts;

  parts.logits = scratch;
  parts.hidden = parts.logits + n_logits * MOL_LANES;
  parts.gates = parts.hidden + shape->gate_hidden * MOL_LANES;
  parts.query = parts.gates + n_logits * MOL_LANES;
  return parts;
}

#endif
