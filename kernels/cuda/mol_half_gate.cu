/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the GPU's half-precision cross gate on the host: rounds, packs and uploads the weights, and computes the
 * proof's factors. */
#include "kernels/cuda/mol_half_gate.cuh"

#include "kernels/cuda/warpgroup.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/mem.h"
#include "kernels/kernels.h"
#include "kernels/matrix.h"
}

enum { L_MAX = 64, H = BOUND_HIDDEN };

/* The largest weight, bias or inverse temperature with bounds: half of it fits half precision, and the proof's
 * constants of second order assume it. */
#define WEIGHT_MAX 0x1p15f

/* Norms of one layer for the proof: of its weights, of their rounding errors, and of its biases. */
struct layer_norms {
  double spectral, frobenius, rounding, rounding_frobenius, bias;
};

/* Round a double to the nearest half-precision number. x is within half's range. */
static uint16_t half_from(double x)
{
  double size = fabs(x);
  int exponent = size < 0x1p-14 ? -14 : ilogb(size);
  /* 1024 to 2048 units of the last place, or fewer if subnormal. A carry correctly raises the exponent. */
  unsigned fraction = (unsigned)nearbyint(ldexp(size, 10 - exponent));
  unsigned bits = size < 0x1p-14 ? fraction : fraction + ((unsigned)(exponent + 14) << 10);

  return (uint16_t)((signbit(x) ? 0x8000u : 0u) | bits);
}

static double double_from(uint16_t half)
{
  int exponent = half >> 10 & 0x1f;
  double size = exponent ? ldexp((half & 0x3ff) + 1024, exponent - 25) : ldexp(half & 0x3ff, -24);

  return half & 0x8000 ? -size : size;
}

static err_code_t find_norms(const double *w, const double *rounding, size_t n_logits, const float *bias, size_t n_bias,
                             struct layer_norms *out)
{
  TRY(matrix_spectral_norm(w, n_logits, H, &out->spectral));
  TRY(matrix_spectral_norm(rounding, n_logits, H, &out->rounding));
  out->frobenius = matrix_frobenius_norm(w, n_logits * H);
  out->rounding_frobenius = matrix_frobenius_norm(rounding, n_logits * H);
  out->bias = kernels_norm(bias, n_bias);
  return ERR_OK;
}

/* Return the factors of steps 2 to 6 of the proof. `through` is step 4's bound on |W2 D W1|. */
static struct mol_half_factors find_factors(size_t n_logits, const struct layer_norms *first,
                                            const struct layer_norms *second, double through)
{
  const double u = 0x1p-24, slope = 1.1, l = (double)n_logits, h = H, second_order = (double)BOUND_SECOND_ORDER;
  const double tanh_error = 0x1p-12 + 0x1p-22, steps1 = l / BOUND_STEP + 1, steps2 = h / BOUND_STEP + 1;
  double sums1 = steps1 * (double)MMA_ERROR + (l + BOUND_STEP + 4) * u;
  double sums2 = steps2 * (double)MMA_ERROR + (h + BOUND_STEP + 4) * u;
  double norm1 = first->frobenius + first->rounding_frobenius, norm2 = second->frobenius + second->rounding_frobenius;
  /* What subnormal halves lose in a layer, per largest input or weight: twice, because weights are halved. */
  double lost = 2 * (double)MMA_LOST, lost1 = lost * sqrt(h) * steps1, lost2 = lost * sqrt(l) * steps2;
  /* What the biases, as sums of two halves, are off, and what their own step loses beside numbers that are 1. */
  double bias1 = 0x1p-22 * first->bias + sqrt(h) * 0x1p-24 + lost1 * (1 + first->bias);
  double bias2 = 0x1p-22 * second->bias + sqrt(l) * 0x1p-24 + lost2 * (1 + second->bias);
  double logits = second->spectral * (slope * (first->rounding + sums1 * norm1 + lost1) +
                                      tanh_error * (first->spectral + first->rounding));
  double hidden = second->spectral * (0x1p-11 + 0x1p-21) + second->rounding + sums2 * norm2 + lost2;
  double constant = second->spectral * (slope * (sums1 * first->bias + bias1 + lost1 * norm1) +
                                        tanh_error * first->bias + sqrt(h) * 0x1p-25) +
                    sums2 * second->bias + bias2 + lost2 * norm2;
  /* Step 6: SiLU's own error, and |w'| by |h'| and a constant. */
  double silu = 0x1p-12 + 0x1p-18, gates_per_hidden = second->spectral + second->rounding + sums2 * norm2 + lost2;
  double gates_constant = (1 + sums2) * second->bias + bias2 + lost2 * norm2;
  struct mol_half_factors out;

  out.logit_errors = (float)(second_order * slope * through);
  out.logits = (float)(second_order * slope * logits);
  out.hidden = (float)(second_order * (slope * hidden + silu * gates_per_hidden));
  out.gate_errors = (float)(second_order * slope);
  out.gates = (float)(second_order * silu);
  out.constant = (float)(second_order * (slope * constant + silu * gates_constant + 0x1p-14));
  return out;
}

/* Do the kernel and the proof cover this shape and these weights? */
static bool is_covered(const struct mol_shape *shape, const struct mol_gate *gate)
{
  size_t m = shape->n_item_components, d = shape->component_dim, n_logits = BOUND_QUERY_COMPONENTS * m;

  return shape->n_query_components == BOUND_QUERY_COMPONENTS && (m == 4 || m == 8) &&
         (d == 16 || d == 32 || d == 64 || d == 128) && shape->gate_hidden == H &&
         fabsf(shape->inv_temperature) <= WEIGHT_MAX && matrix_is_within(gate->w1, n_logits * H, WEIGHT_MAX) &&
         matrix_is_within(gate->b1, H, WEIGHT_MAX) && matrix_is_within(gate->w2, H * n_logits, WEIGHT_MAX) &&
         matrix_is_within(gate->b2, n_logits, WEIGHT_MAX);
}

/* The index, in struct mol_shape's order, of the logit at item-major position i. */
static size_t logit_at(const struct mol_shape *shape, size_t i)
{
  return i % BOUND_QUERY_COMPONENTS * shape->n_item_components + i / BOUND_QUERY_COMPONENTS;
}

/* Both layers' weights, [logit][hidden unit] with logits in item-major order, and their rounding errors. */
struct gate_matrices {
  double first[L_MAX * H], second[L_MAX * H], first_rounding[L_MAX * H], second_rounding[L_MAX * H];
  uint16_t first_half[L_MAX * H], second_half[L_MAX * H]; /* w / 2 in half precision */
};

static void round_weight(float w, double *exact, uint16_t *half, double *rounding)
{
  *exact = (double)w;
  *half = half_from((double)w / 2);
  *rounding = (double)w - 2 * double_from(*half);
}

/* The weight from input i to output j. */
static float packed_weight(const float *packed, size_t n_in, size_t n_out, size_t i, size_t j)
{
  size_t step, at = mol_packed_at(n_in, n_out, j, &step);

  return packed[at + i * step];
}

static void fill_matrices(const struct mol_shape *shape, const struct mol_gate *gate, struct gate_matrices *out)
{
  size_t n_logits = BOUND_QUERY_COMPONENTS * shape->n_item_components;

  for (size_t i = 0; i < n_logits; i++) {
    size_t p = logit_at(shape, i);
    for (size_t j = 0; j < H; j++) {
      size_t at = i * H + j;
      round_weight(packed_weight(gate->w1, n_logits, H, p, j), &out->first[at], &out->first_half[at],
                   &out->first_rounding[at]);
      round_weight(packed_weight(gate->w2, H, n_logits, j, p), &out->second[at], &out->second_half[at],
                   &out->second_rounding[at]);
    }
  }
}

/* The norm of hidden unit j's weights. */
static double unit_norm(const double *w, size_t n_logits, size_t j)
{
  double sum = 0;

  for (size_t i = 0; i < n_logits; i++)
    sum += w[i * H + j] * w[i * H + j];
  return sqrt(sum);
}

/* Scale each hidden unit's incoming and outgoing weights to the same norm. This leaves the product of the two layers
 * unchanged, also with a diagonal matrix between them, and may lower the product of their norms. */
static void balance(struct gate_matrices *w, size_t n_logits)
{
  for (size_t j = 0; j < H; j++) {
    double in = unit_norm(w->first, n_logits, j), out = unit_norm(w->second, n_logits, j);
    double by = in > 0 && out > 0 ? sqrt(out / in) : 1;
    for (size_t i = 0; i < n_logits; i++) {
      w->first[i * H + j] *= by;
      w->second[i * H + j] /= by;
    }
  }
}

/* Compute the proof's factors. Leaves the exact weights balanced. */
static err_code_t find_gate_factors(const struct mol_shape *shape, const struct mol_gate *gate, struct gate_matrices *w,
                                    struct mol_half_factors *out)
{
  size_t n_logits = BOUND_QUERY_COMPONENTS * shape->n_item_components;
  AUTO(mem_free) double *product = NULL;
  struct layer_norms first, second;
  double both, balanced_first, balanced_second;

  TRY(mem_array(L_MAX * L_MAX, sizeof *product, &product));
  TRY(find_norms(w->first, w->first_rounding, n_logits, gate->b1, H, &first));
  TRY(find_norms(w->second, w->second_rounding, n_logits, gate->b2, n_logits, &second));
  matrix_multiply_transposed(w->second, w->first, n_logits, H, product);
  TRY(matrix_spectral_norm(product, n_logits, n_logits, &both));
  balance(w, n_logits);
  TRY(matrix_spectral_norm(w->first, n_logits, H, &balanced_first));
  TRY(matrix_spectral_norm(w->second, n_logits, H, &balanced_second));
  double separate = fmin(first.spectral * second.spectral, balanced_first * balanced_second);
  *out = find_factors(n_logits, &first, &second, 0.5 * both + 0.6 * separate);
  return ERR_OK;
}

/* Write half of an output's bias as the weights of inputs k and k + 1, whose sum it is. */
static void pack_bias(float bias, size_t n_columns, size_t k, size_t column, half_bits *out)
{
  double half = (double)bias / 2;
  half_bits high = half_from(half);

  out[warpgroup_place(n_columns, k, column)] = high;
  out[warpgroup_place(n_columns, k + 1, column)] = half_from(half - double_from(high));
}

/* Write the weights and biases in the order that struct mol_half_gate documents. */
static void pack(const struct mol_shape *shape, const struct mol_gate *gate, const struct gate_matrices *w, uint4 *out)
{
  size_t n_logits = BOUND_QUERY_COMPONENTS * shape->n_item_components;
  half_bits *ones = reinterpret_cast<half_bits *>(out), *first = ones + BOUND_ONES;
  half_bits *second = first + bound_first_halves(n_logits);

  memset(out, 0, bound_weight_bytes(n_logits));
  for (size_t item = 0; item < BOUND_ONES / BOUND_STEP; item++)
    ones[warpgroup_place(BOUND_ONES / BOUND_STEP, 0, item)] = ones[warpgroup_place(BOUND_ONES / BOUND_STEP, 1, item)] =
        half_from(1);
  for (size_t i = 0; i < n_logits; i++) {
    for (size_t j = 0; j < H; j++) {
      first[warpgroup_place(H, i, j)] = w->first_half[i * H + j];
      second[warpgroup_place(n_logits, j, i)] = w->second_half[i * H + j];
    }
  }
  for (size_t j = 0; j < H; j++)
    pack_bias(gate->b1[j], H, n_logits, j, first);
  for (size_t i = 0; i < n_logits; i++)
    pack_bias(gate->b2[logit_at(shape, i)], n_logits, H, i, second);
}

static err_code_t upload(const struct mol_half_gate *gate, const struct mol_gate *weights,
                         const struct gate_matrices *matrices, struct device_stream *stream)
{
  size_t bytes = bound_weight_bytes(BOUND_QUERY_COMPONENTS * gate->shape.n_item_components);
  AUTO(device_free_host) uint4 *staging = NULL;

  TRY(device_alloc_host(bytes, 1, &staging));
  pack(&gate->shape, weights, matrices, staging);
  TRY(device_copy_in(stream, gate->weights, staging, bytes));
  return device_wait(stream);
}

err_code_t mol_half_gate_open(const struct mol_shape *shape, const struct mol_gate *gate, struct device_stream *stream,
                              struct mol_half_gate **out)
{
  AUTO(mol_half_gate_close) struct mol_half_gate *opened = NULL;
  AUTO(mem_free) struct gate_matrices *matrices = NULL;

  *out = NULL;
  TRY(device_find_together());
  if (!is_covered(shape, gate) || bound_least_bytes(shape) > device_shared_bytes(SIZE_MAX))
    return ERR_OK;
  TRY(mem_array(1, sizeof *opened, &opened));
  TRY(mem_array(1, sizeof *matrices, &matrices));
  opened->shape = *shape;
  fill_matrices(shape, gate, matrices);
  TRY(find_gate_factors(shape, gate, matrices, &opened->factors));
  TRY(device_alloc(bound_weight_bytes(BOUND_QUERY_COMPONENTS * shape->n_item_components), 1, &opened->weights));
  TRY(upload(opened, gate, matrices, stream));
  *out = opened;
  opened = NULL;
  return ERR_OK;
}

void mol_half_gate_close(struct mol_half_gate **gate)
{
  if (!*gate)
    return;
  device_free(&(*gate)->weights);
  mem_free(gate);
}
