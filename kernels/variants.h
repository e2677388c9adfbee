/* SPDX-License-Identifier: Apache-2.0 */
/* The variants: each lays what it does over a table that already holds the level below. Private to kernels/. */
#ifndef KERNELS_VARIANTS_H
#define KERNELS_VARIANTS_H

#include "kernels/kernels.h"

/* Before a loop of a constant length of at most 16: it is written out whole. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Fills every function: where all tables start. */
void variant_ref(struct kernels *table);
void variant_ref_sketch(struct kernels *table); /* the part of it that is in sketch_ref.c */

/* Only to be called on a machine that isa_detect() gives this level or a higher one. */
void variant_avx2(struct kernels *table);
void variant_avx512(struct kernels *table);
void variant_avx512_vnni(struct kernels *table);
void variant_avx512_vbmi(struct kernels *table);
void variant_amx(struct kernels *table);

/* Whether tile instructions do here what mol_bounds()'s proof supposes. To be called where the machine has them and the
 * system has granted them. */
bool variant_amx_works(void);

/* What the files mol_lists_*.c lay over a table: mol_lists(), mol_any(), average_lists() and partition_ge(). */
void mol_lists_ref(struct kernels *table);
void mol_lists_avx2(struct kernels *table);
void mol_lists_avx512(struct kernels *table);
void mol_lists_vnni(struct kernels *table);

/* What mol_bounds_vnni.c lays over a table: mol_bounds(). */
void mol_bounds_vnni(struct kernels *table);

/* mol_score()'s parts of scratch, each aligned to 64. */
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
