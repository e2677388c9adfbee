/* SPDX-License-Identifier: Apache-2.0 */
/* Screens the items of one query: most cannot reach its threshold, and end here. Items whose logits may reach it wait
 * until there is a full tile of them for mol_screen(). */
#ifndef ENGINE_MOL_MOL_SCREENING_H
#define ENGINE_MOL_MOL_SCREENING_H

#include "engine/mol/mol_tile.h"
#include "engine/mol/mol_trial.h"

struct mol_screening {
  const struct mol_model *model;
  const struct kernels *kernels;
  const struct admit *admit;
  struct mol_screen_query query;
  uint32_t *logits; /* [mol_screen_logit_rows()][SCREEN_LANES], of the items that wait */
  float *gates;     /* [L][SCREEN_LANES] */
  uint32_t slots[SCREEN_LANES];
  size_t at, n;                 /* the first lane, a multiple of MOL_LANES; how many */
  uint32_t *words, *new_logits; /* scratch: of one tile */
  float *scratch;
  struct mol_trial trial;
};

/* Prepare to screen items for query q of a batch. `*out` is NULL if this machine or this model has no screens.
 *
 * tile  its scratch is used during calls
 *
 * Returns ERR_MEMORY. */
err_t mol_screening_init(const struct mol_columns *c, struct search_batch *batch, size_t q, const struct mol_tile *tile,
                         struct mol_screening **out);

/* Call these before and after the calls of the functions below, on each thread. Claim no steps between the two: a claim
 * may search something else in the same thread (share.h). */
void mol_screening_begin(const struct kernels *kernels);
void mol_screening_end(const struct kernels *kernels);

/* Add n <= MOL_LANES items that the query admits; the others are skipped. If a full tile waits then, screen it.
 *
 * slots   [n]
 * words   from mol_screen_items()
 * gates   [L][MOL_LANES]
 * passed  [MOL_LANES] items that may reach the threshold
 *
 * Returns how many passed. */
size_t mol_screening_add(struct mol_screening *s, const uint32_t *slots, size_t n, const uint32_t *words,
                         const float *gates, float threshold, uint32_t *passed);

/* Screen the items that wait, up to a full tile. Returns how many passed. */
size_t mol_screening_next(struct mol_screening *s, float threshold, uint32_t *passed);

#endif
