#include "kernels/mol_split.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define SPLIT_WEIGHT_MAX   0x1p20f
#define SPLIT_SECOND_ORDER (1 + 0x1p-5)
#define SILU_SLOPE         1.1

enum { SPLIT_SIZE_MAX = 4096 };

static bool are_moderate(const float *x, size_t n)
{
  bool are = true;

  for (size_t i = 0; i < n; i++)
    are = are && fabsf(x[i]) <= SPLIT_WEIGHT_MAX;
  return are;
}

/* Larger sizes and weights would ask for other terms of second order. */
static bool is_covered(const struct mol_shape *shape, const struct mol_gate *gate)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;

  return n_logits <= SPLIT_SIZE_MAX && n_hidden <= SPLIT_SIZE_MAX && shape->inv_temperature <= SPLIT_WEIGHT_MAX &&
         are_moderate(gate->w1, n_logits * n_hidden) && are_moderate(gate->b1, n_hidden) &&
         are_moderate(gate->w2, n_hidden * n_logits) && are_moderate(gate->b2, n_logits);
}

/* Packed weights to rows of outputs, in two parts. */
static err_t split_layer_init(const float *w, size_t n_in, size_t n_out, struct split_layer *out)
{
  out->n_in = split_pad(n_in);
  out->n_out = split_pad(n_out);
  TRY(mem_array(out->n_in * out->n_out, sizeof *out->high, &out->high));
  TRY(mem_array(out->n_in * out->n_out, sizeof *out->low, &out->low));
  for (size_t o = 0; o < n_out; o++) {
    size_t step, at = mol_packed_at(n_in, n_out, o, &step);
    for (size_t i = 0; i < n_in; i++) {
      float x = w[at + i * step], high, low;
      uint32_t bits;
      memcpy(&bits, &x, sizeof bits);
      bits = split_round(bits);
      memcpy(&high, &bits, sizeof high);
      out->high[o * out->n_in + i] = (uint16_t)(bits >> 16);
      low = x - high; /* exact */
      memcpy(&bits, &low, sizeof bits);
      out->low[o * out->n_in + i] = (uint16_t)(split_round(bits) >> 16);
    }
  }
  return ERR_OK;
}

/* The norm of an output's weights, packed. */
static double weight_norm(const float *w, size_t n_in, size_t n_out, size_t o)
{
  size_t step, at = mol_packed_at(n_in, n_out, o, &step);
  double sum = 0;

  for (size_t i = 0; i < n_in; i++)
    sum += (double)w[at + i * step] * (double)w[at + i * step];
  return sqrt(sum);
}

/* Largest over the outputs p: sum_j |W2_pj| |W1_j|, sum_j |W2_pj b1_j|, |W2_p| and |b2_p|. */
struct gate_norms {
  double through, bias_through, weights, bias;
};

static err_t find_norms(const struct mol_gate *gate, size_t n_logits, size_t n_hidden, struct gate_norms *max)
{
  AUTO(mem_free) double *norms = NULL;

  TRY(mem_array(n_hidden, sizeof *norms, &norms));
  for (size_t j = 0; j < n_hidden; j++)
    norms[j] = weight_norm(gate->w1, n_logits, n_hidden, j);
  for (size_t p = 0; p < n_logits; p++) {
    size_t step, at = mol_packed_at(n_hidden, n_logits, p, &step);
    double through = 0, bias_through = 0;
    for (size_t j = 0; j < n_hidden; j++) {
      through += fabs((double)gate->w2[at + j * step]) * norms[j];
      bias_through += fabs((double)gate->w2[at + j * step] * (double)gate->b1[j]);
    }
    max->through = fmax(max->through, through);
    max->bias_through = fmax(max->bias_through, bias_through);
    max->weights = fmax(max->weights, weight_norm(gate->w2, n_hidden, n_logits, p));
    max->bias = fmax(max->bias, fabs((double)gate->b2[p]));
  }
  return ERR_OK;
}

/* The factors of the proof in mol_split.h. */
static err_t find_factors(const struct mol_gate *gate, size_t n_logits, size_t n_hidden, struct mol_split *out)
{
  const double u = 0x1p-24, slope = SILU_SLOPE, l = (double)n_logits, h = (double)n_hidden;
  double r1 = 3 * 0x1p-16 + (4 * l + 12) * u, r2 = 0x1p-14 + 0x1p-21 + 3 * 0x1p-16 + (4 * h + 12) * u;
  struct gate_norms max = { 0 };

  TRY(find_norms(gate, n_logits, n_hidden, &max));
  out->per_logits = (float)(SPLIT_SECOND_ORDER * slope * slope * r1 * max.through);
  out->per_hidden = (float)(SPLIT_SECOND_ORDER * slope * r2 * max.weights);
  out->per_gate = (float)(SPLIT_SECOND_ORDER * (slope * 2 * u + 0x1p-14 + 0x1p-21 + 0x1p-22));
  out->constant = (float)(SPLIT_SECOND_ORDER *
                          (slope * slope * (l + 4) * u * max.bias_through + slope * (h + 4) * u * max.bias + 0x1p-21));
  return ERR_OK;
}

void mol_split_close(struct mol_split **split)
{
  if (!*split)
    return;
  struct split_layer *layers[] = { &(*split)->first, &(*split)->second };
  for (size_t i = 0; i < 2; i++) {
    mem_free(&layers[i]->high);
    mem_free(&layers[i]->low);
  }
  mem_free(split);
}

err_t mol_split_open(const struct mol_shape *shape, const struct mol_gate *gate, struct mol_split **out)
{
  AUTO(mol_split_close) struct mol_split *split = NULL;
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;

  *out = NULL;
  if (!is_covered(shape, gate))
    return ERR_OK;
  TRY(mem_array(1, sizeof *split, &split));
  TRY(split_layer_init(gate->w1, n_logits, n_hidden, &split->first));
  TRY(split_layer_init(gate->w2, n_hidden, n_logits, &split->second));
  TRY(find_factors(gate, n_logits, n_hidden, split));
  *out = split;
  split = NULL;
  return ERR_OK;
}

size_t mol_upper_scratch_floats(const struct mol_shape *shape)
{
  size_t n_logits = split_pad(shape->n_query_components * shape->n_item_components);
  size_t n_hidden = split_pad(shape->gate_hidden), n_pairs = n_logits > n_hidden ? n_logits : n_hidden;

  return (2 * n_logits + n_hidden + n_pairs) * MOL_LANES + shape->n_query_components * shape->component_dim;
}
