/* SPDX-License-Identifier: Apache-2.0 */
/* Making a model's cross gate for mol_bounds(): its layers in integers, and the factors of the proof in
 * mol_reduced_gate.h. "Step" means a step of that proof. */
#include "kernels/mol_reduced_gate.h"

#include <math.h>

#include "base/mem.h"
#include "kernels/kernels.h"
#include "kernels/matrix.h"

#define SECOND_ORDER (1 + 0x1p-5)
#define WEIGHT_MAX   0x1p12f

enum { COVERED_MAX = 1024 };

/* One layer with its weights by output, and its norms. */
struct gate_layer {
  size_t n_in, n_out;
  float *weights;       /* [n_out][n_in] */
  double *exact, *rest; /* the same in double, and minus the values of the integers */
  double spectral, frobenius, rest_norm, bias;
};

/* Does the proof cover these sizes and weights? Larger ones need larger terms of second order. */
static bool is_covered(const struct mol_shape *shape, const struct mol_gate *gate)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;

  return n_logits <= COVERED_MAX && n_hidden <= COVERED_MAX && shape->inv_temperature <= WEIGHT_MAX &&
         matrix_is_within(gate->w1, n_logits * n_hidden, WEIGHT_MAX) &&
         matrix_is_within(gate->b1, n_hidden, WEIGHT_MAX) &&
         matrix_is_within(gate->w2, n_hidden * n_logits, WEIGHT_MAX) &&
         matrix_is_within(gate->b2, n_logits, WEIGHT_MAX);
}

static void gate_layer_fini(struct gate_layer *layer)
{
  mem_free(&layer->weights);
  mem_free(&layer->exact);
  mem_free(&layer->rest);
}

static err_t unpack(const float *packed, const float *bias, struct gate_layer *layer)
{
  size_t n_in = layer->n_in, n = n_in * layer->n_out;

  TRY(mem_array(n, sizeof *layer->weights, &layer->weights));
  TRY(mem_array(n, sizeof *layer->exact, &layer->exact));
  TRY(mem_array(n, sizeof *layer->rest, &layer->rest));
  for (size_t o = 0; o < layer->n_out; o++) {
    size_t step, at = mol_packed_at(n_in, layer->n_out, o, &step);
    for (size_t k = 0; k < n_in; k++)
      layer->exact[o * n_in + k] = layer->weights[o * n_in + k] = packed[at + k * step];
  }
  layer->bias = kernels_norm(bias, layer->n_out);
  return ERR_OK;
}

static err_t layer_init(const float *packed, const float *bias, struct gate_layer *layer, struct int16_layer *out)
{
  TRY(unpack(packed, bias, layer));
  TRY(int16_layer_init(layer->weights, layer->n_in, layer->n_out, layer->rest, out));
  layer->frobenius = matrix_frobenius_norm(layer->exact, layer->n_in * layer->n_out);
  TRY(matrix_spectral_norm(layer->exact, layer->n_out, layer->n_in, &layer->spectral));
  return matrix_spectral_norm(layer->rest, layer->n_out, layer->n_in, &layer->rest_norm);
}

/* Compute step 4's bound on |W2 D W1|. */
static err_t find_through(const struct gate_layer *first, const struct gate_layer *second, double *out)
{
  size_t n_logits = first->n_in, n_hidden = first->n_out;
  AUTO(mem_free) double *product = NULL;
  double both;

  TRY(mem_array(n_logits * n_logits, sizeof *product, &product));
  for (size_t p = 0; p < n_logits; p++) {
    for (size_t j = 0; j < n_hidden; j++) {
      double weight = second->exact[p * n_hidden + j];
      for (size_t k = 0; k < n_logits; k++)
        product[p * n_logits + k] += weight * first->exact[j * n_logits + k];
    }
  }
  TRY(matrix_spectral_norm(product, n_logits, n_logits, &both));
  *out = 0.5 * both + 0.6 * first->spectral * second->spectral;
  return ERR_OK;
}

/* Return the factors of delta: steps 1 to 6. */
static struct mol_reduced_factors find_factors(const struct gate_layer layers[GATE_LAYERS], double through)
{
  const struct gate_layer *first = &layers[0], *second = &layers[1];
  const double u = 0x1p-24, slope = 1.1, l = (double)first->n_in, h = (double)first->n_out;
  const double first_sums = (l + 8) * u, second_sums = (h + 8) * u;
  double logits = second->spectral * slope * (first->rest_norm + first_sums * first->frobenius) + 4 * u * through;
  double hidden = second->spectral * (ROUGH_SILU_ERROR + 4 * u) + second->rest_norm + second_sums * second->frobenius;
  double constant = second->spectral * slope * first_sums * first->bias + second_sums * second->bias;

  return (struct mol_reduced_factors){
    .logit_unit = (float)(SECOND_ORDER * slope * through * sqrt(l) / 2),
    .logits = (float)(SECOND_ORDER * slope * logits),
    .hidden_unit = (float)(SECOND_ORDER * slope * second->spectral * sqrt(h) / 2),
    .hidden = (float)(SECOND_ORDER * slope * hidden),
    .gates = (float)(SECOND_ORDER * (slope * 2 * u + ROUGH_SILU_ERROR + (2 * sqrt(l) + 6) * u)),
    .constant = (float)(SECOND_ORDER * (slope * constant + ROUGH_EXP_ERROR * 2 * sqrt(l))),
  };
}

static err_t gate_init(const struct mol_shape *shape, const struct mol_gate *gate,
                       struct gate_layer layers[GATE_LAYERS], struct mol_reduced_gate *out)
{
  double through;

  TRY(layer_init(gate->w1, gate->b1, &layers[0], &out->layers[0]));
  TRY(layer_init(gate->w2, gate->b2, &layers[1], &out->layers[1]));
  TRY(find_through(&layers[0], &layers[1], &through));
  out->factors = find_factors(layers, through);
  const struct mol_screen_layer screened[GATE_LAYERS] = {
    { layers[0].exact, gate->b1, layers[0].spectral, layers[0].frobenius },
    { layers[1].exact, gate->b2, layers[1].spectral, layers[1].frobenius },
  };
  return mol_screen_init(shape, screened, through, &out->screen);
}

void mol_reduced_gate_close(struct mol_reduced_gate **gate)
{
  if (!*gate)
    return;
  for (size_t i = 0; i < GATE_LAYERS; i++)
    int16_layer_fini(&(*gate)->layers[i]);
  mol_screen_fini(&(*gate)->screen);
  mem_free(gate);
}

err_t mol_reduced_gate_open(const struct mol_shape *shape, const struct mol_gate *gate, struct mol_reduced_gate **out)
{
  AUTO(mol_reduced_gate_close) struct mol_reduced_gate *g = NULL;
  size_t n_logits = shape->n_query_components * shape->n_item_components;
  struct gate_layer layers[GATE_LAYERS] = { { .n_in = n_logits, .n_out = shape->gate_hidden },
                                            { .n_in = shape->gate_hidden, .n_out = n_logits } };

  *out = NULL;
  if (!is_covered(shape, gate))
    return ERR_OK;
  TRY(mem_array(1, sizeof *g, &g));
  err_code_t err = gate_init(shape, gate, layers, g);
  for (size_t i = 0; i < GATE_LAYERS; i++)
    gate_layer_fini(&layers[i]);
  if (err == ERR_OK) {
    *out = g;
    g = NULL;
  }
  return err;
}

/* mol_screen() with integers needs less than the room of the hidden units. */
_Static_assert((int)INT16_LAYER_OUTPUTS >= (int)SCREEN_OUTPUTS, "hidden units of mol_screen() have no more padding");

/* Room for the parts of mol_bounds_vnni.c's bounds_scratch_split(), or of simd_mol_screen_bf16.h's struct bf16_scratch.
 */
size_t mol_bounds_scratch_floats(const struct mol_shape *shape)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;
  size_t n_pairs = ((n_logits > n_hidden ? n_logits : n_hidden) + 1) / 2;
  size_t n = (n_logits + int16_layer_pad(n_hidden) + int16_layer_pad(n_logits) + n_pairs) * MOL_LANES +
             shape->n_query_components * shape->component_dim;
  size_t n_bf16 = mol_screen_bf16_scratch_floats(shape);

  return n > n_bf16 ? n : n_bf16;
}
