/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of mol_score(), random or from a golden model. Each array is an allocation of exactly its size, so that the
 * sanitizer sees every read past the end. Include it after cmocka.h. */
#ifndef TESTS_SUPPORT_MOL_CASE_H
#define TESTS_SUPPORT_MOL_CASE_H

#include <math.h>

#include "kernels/kernels.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"

/* One query, one tile of items, and a gate. */
struct mol_case {
  struct mol_shape shape;
  float *w1, *b1, *w2, *b2;
  float *query, *query_gate, *items, *item_gates;
};

static inline size_t n_logits_of(const struct mol_shape *s)
{
  return s->n_query_components * s->n_item_components;
}

static inline void scale_floats(float *x, size_t n, float scale)
{
  for (size_t i = 0; i < n; i++)
    x[i] *= scale;
}

static inline void normalize_items(struct mol_case *c)
{
  size_t n_items = c->shape.n_item_components, dim = c->shape.component_dim;

  for (size_t lane = 0; lane < MOL_LANES; lane++) {
    for (size_t m = 0; m < n_items; m++) {
      float *column = c->items + m * dim * MOL_LANES + lane;
      double sum = 0;
      for (size_t k = 0; k < dim; k++)
        sum += (double)column[k * MOL_LANES] * (double)column[k * MOL_LANES];
      for (size_t k = 0; k < dim; k++)
        column[k * MOL_LANES] /= (float)fmax(sqrt(sum), 1e-6);
    }
  }
}

static inline struct mol_case mol_new(struct dice *dice, struct mol_shape shape, enum fill fill)
{
  size_t n_logits = n_logits_of(&shape), n_weights = n_logits * shape.gate_hidden;
  struct mol_case c = { .shape = shape };

  c.w1 = floats_filled(dice, FILL_RANDOM, n_weights);
  c.b1 = floats_filled(dice, FILL_RANDOM, shape.gate_hidden);
  c.w2 = floats_filled(dice, FILL_RANDOM, n_weights);
  c.b2 = floats_filled(dice, FILL_RANDOM, n_logits);
  scale_floats(c.w1, n_weights, 0.3f);
  scale_floats(c.w2, n_weights, 0.3f);
  c.query = floats_filled(dice, fill, shape.n_query_components * shape.component_dim);
  kernels_normalize(c.query, shape.n_query_components, shape.component_dim, 1e-6f);
  c.items = floats_filled_aligned(dice, fill, shape.n_item_components * shape.component_dim * MOL_LANES);
  normalize_items(&c);
  c.query_gate = floats_filled(dice, fill, n_logits);
  c.item_gates = floats_filled_aligned(dice, fill, n_logits * MOL_LANES);
  return c;
}

static inline float *packed_new(const float *w, size_t n_in, size_t n_out)
{
  float *packed = block_new(n_in * n_out, sizeof *packed);
  size_t n = 0;

  for (size_t first = 0; first < n_out; first += 8) {
    for (size_t k = 0; k < n_in; k++) {
      for (size_t j = first; j < n_out && j < first + 8; j++)
        packed[n++] = w[k * n_out + j];
    }
  }
  return packed;
}

/* The gate of a case, packed as the kernels take it. */
static inline struct mol_gate gate_new(const struct mol_case *c)
{
  size_t n_logits = n_logits_of(&c->shape), n_hidden = c->shape.gate_hidden;

  return (struct mol_gate){ packed_new(c->w1, n_logits, n_hidden), c->b1, packed_new(c->w2, n_hidden, n_logits),
                            c->b2 };
}

static inline void gate_free(struct mol_gate *gate)
{
  free((void *)(uintptr_t)gate->w1);
  free((void *)(uintptr_t)gate->w2);
}

static inline void mol_free(struct mol_case *c)
{
  float *all[] = { c->w1, c->b1, c->w2, c->b2, c->query, c->query_gate, c->items, c->item_gates };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    free(all[i]);
}

static inline float *transposed_new(const float *matrix, size_t n_rows, size_t n_cols)
{
  float *out = block_new(n_rows * n_cols, sizeof *out);

  for (size_t r = 0; r < n_rows; r++) {
    for (size_t c = 0; c < n_cols; c++)
      out[c * n_rows + r] = matrix[r * n_cols + c];
  }
  return out;
}

static inline float *copy_new(const float *values, size_t n)
{
  float *out = block_new(n, sizeof *out);

  memcpy(out, values, n * sizeof *out);
  return out;
}

/* Create a case with the gate of a golden model. The caller fills the query and the items. */
static inline struct mol_case mol_case_of_golden(const struct golden *weights)
{
  struct mol_case c = { .shape = { (size_t)golden_number(weights, "mol.Pq"), (size_t)golden_number(weights, "mol.Px"),
                                   (size_t)golden_number(weights, "mol.dP"),
                                   (size_t)golden_number(weights, "mol.gating_qi_hidden_dim"),
                                   (float)(1 / golden_number(weights, "mol.temperature")) } };
  size_t n_logits = n_logits_of(&c.shape), n_hidden = c.shape.gate_hidden;
  const float *w1 = GOLDEN_F32(weights, "_gating_fn._qi_partial_module.1.weight", n_hidden, n_logits);
  const float *w2 = GOLDEN_F32(weights, "_gating_fn._qi_partial_module.3.weight", n_logits, n_hidden);

  c.w1 = transposed_new(w1, n_hidden, n_logits);
  c.b1 = copy_new(GOLDEN_F32(weights, "_gating_fn._qi_partial_module.1.bias", n_hidden), n_hidden);
  c.w2 = transposed_new(w2, n_logits, n_hidden);
  c.b2 = copy_new(GOLDEN_F32(weights, "_gating_fn._qi_partial_module.3.bias", n_logits), n_logits);
  c.query = block_new(c.shape.n_query_components * c.shape.component_dim, sizeof *c.query);
  c.query_gate = block_new(n_logits, sizeof *c.query_gate);
  c.items = block_new_aligned(c.shape.n_item_components * c.shape.component_dim * MOL_LANES, sizeof *c.items);
  c.item_gates = block_new_aligned(n_logits * MOL_LANES, sizeof *c.item_gates);
  return c;
}

/* Transpose rows first..first+n-1 of an array [][n_cols] into a tile. */
static inline void transpose_tile(const struct kernels *k, const float *array, size_t first, size_t n, size_t n_cols,
                                   float *out)
{
  const float *rows[MOL_LANES];

  for (size_t i = 0; i < n; i++)
    rows[i] = array + (first + i) * n_cols;
  k->transpose(rows, n, n_cols, out);
}

#endif
