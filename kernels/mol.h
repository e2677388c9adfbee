/* SPDX-License-Identifier: Apache-2.0 */
/* What a Mixture-of-Logits model and its queries give to the kernels, and what they make of it once: packed weights, a
 * gate in reduced precision, queries that are prepared for a screen. Thread: any. */
#ifndef KERNELS_MOL_H
#define KERNELS_MOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
  MOL_LANES = 32,               /* items that mol_score() scores in one call */
  MOL_PACK = 8,                 /* outputs of a layer in a group of packed weights */
  SCREEN_LANES = 2 * MOL_LANES, /* items that wait for mol_screen() */
};

/* Sizes of a Mixture-of-Logits model. In the paper's symbols: P_q, P_x, d_P; L = P_q P_x. */
struct mol_shape {
  size_t n_query_components;
  size_t n_item_components;
  size_t component_dim;
  size_t gate_hidden;    /* hidden width of the cross gate */
  float inv_temperature; /* 1 / tau, rounded to f32 */
};

/* Cache lines that the caller will read next. mol_score() and mol_bounds() prefetch them while they compute. */
struct mol_prefetch {
  const float *const *lines;
  size_t n;
};

/* Rows of numbers of MOL_LANES items, for mol_screen(): `step` lanes apart. */
struct mol_screen_rows {
  const uint32_t *logits; /* [mol_screen_logit_rows()][step], from mol_screen_logits() */
  const float *gates;     /* [L][step]: the items' */
  size_t step;            /* at least MOL_LANES */
};

/* Weights of the cross gate ("qi" network): hidden = SiLU(w1^T l + b1), and w = w2^T hidden + b2.
 *
 * A layer's weights are packed in groups of MOL_PACK outputs, one group after another, each [n_in][MOL_PACK]. The last
 * group may have fewer outputs. */
struct mol_gate {
  const float *w1; /* L inputs, gate_hidden outputs */
  const float *b1; /* [gate_hidden] */
  const float *w2; /* gate_hidden inputs, L outputs */
  const float *b2; /* [L] */
};

/* The cross gate in reduced precision, for mol_bounds() (mol_reduced_gate.h). */
struct mol_reduced_gate;

/* What all items of a query share of a screen's error. */
struct mol_screen_errors {
  float delta; /* the part that does not depend on the item */
  float slack; /* threshold - T */
};

/* A query, prepared for mol_screen() (mol_screen.h, mol_screen_bf16.h). */
struct mol_screen_query {
  const int16_t *components; /* [P_q / SCREEN_OUTPUTS][pairs of d][SCREEN_OUTPUTS][2], both rounded up */
  const int8_t *tiles;       /* the same numbers: [P_q / SCREEN_TILE_QUERY][tiles of d][16][64], both rounded up */
  const float *gate;         /* [L] */
  struct mol_screen_errors integers, bf16;
};

/* Return the place of output j's weight for input 0 in packed weights. *step is the distance to the next input's. */
static inline size_t mol_packed_at(size_t n_in, size_t n_out, size_t j, size_t *step)
{
  size_t first = j / MOL_PACK * MOL_PACK;

  *step = n_out - first < MOL_PACK ? n_out - first : (size_t)MOL_PACK;
  return first * n_in + (j - first);
}

/* Pack a layer's weights w [n_in][n_out] for struct mol_gate. Called at load only. */
void mol_pack(const float *w, size_t n_in, size_t n_out, float *packed);

/* Return the floats of scratch that mol_score() needs. */
size_t mol_scratch_floats(const struct mol_shape *shape);

/* Convert a model's gate for mol_bounds(), once at load, with the same code on every machine. `*out` is NULL when the
 * proof does not cover the model's sizes or weights. Returns ERR_MEMORY. Close it with mol_reduced_gate_close(). */
err_t mol_reduced_gate_open(const struct mol_shape *shape, const struct mol_gate *gate, struct mol_reduced_gate **out);
void mol_reduced_gate_close(struct mol_reduced_gate **gate);

/* Return the floats of scratch that mol_bounds() needs. mol_score() and mol_screen() need less. */
size_t mol_bounds_scratch_floats(const struct mol_shape *shape);

/* Do mol_screen()'s integers fit this gate? */
bool mol_can_screen(const struct mol_reduced_gate *gate);

/* Return the rows of logits of mol_screen(): two logits each, and a last one for what is known of their errors. */
size_t mol_screen_logit_rows(const struct mol_shape *shape);

/* Return the rows of words of mol_screen_items(): MOL_LANES words each. */
size_t mol_screen_words(const struct mol_shape *shape);

/* Return how many numbers mol_screen_prepare() needs. */
size_t mol_screen_query_numbers(const struct mol_shape *shape);

/* Prepare a query for mol_screen(). Only if mol_can_screen().
 *
 * components  [P_q][d], L2-normalised
 * query_gate  [L], kept
 * numbers     [mol_screen_query_numbers()], aligned to 64, kept
 */
void mol_screen_prepare(const struct mol_shape *shape, const struct mol_reduced_gate *gate, const float *components,
                        const float *query_gate, int16_t *numbers, struct mol_screen_query *out);

#endif
