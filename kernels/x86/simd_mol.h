/* SPDX-License-Identifier: Apache-2.0 */
/* mol_score(), written once for all instruction sets. Lanes are items. The three layers (logits, hidden, gates) are
 * matrix products. A tile holds the sums of some outputs for some registers of lanes; weights are broadcast. Include it
 * after simd_avx2.h or simd_avx512.h. Private to the variant files.
 */
#ifndef KERNELS_X86_SIMD_MOL_H
#define KERNELS_X86_SIMD_MOL_H

#include "kernels/x86/simd_math.h"

_Static_assert(MOL_PACK % LAYER_OUTPUTS == 0, "the weights of a tile must be in one pack");

/* Inputs between two prefetches. Many prefetches at once would delay all other loads. */
enum { INPUTS_PER_LINE = 4 };

/* One matrix product for all lanes: out[j][lane] = bias[j] + sum over k, rising, of in[k][lane] * w[k][j]. */
struct layer {
  const float *in; /* [n_in][MOL_LANES] */
  size_t n_in;
  const float *w;    /* packed */
  const float *bias; /* [n_out]; NULL for zeros */
  size_t n_out;
  float *out; /* row j at out + j * out_step */
  size_t out_step;
  struct mol_prefetch *prefetch; /* cache lines that are left to prefetch */
};

/* Add the products of one input to the sums. */
TILE void layer_step(const float *in, const float *w, int n_out, floats sums[LAYER_OUTPUTS][LAYER_REGS])
{
  floats inputs[LAYER_REGS];

  UNROLL for (int v = 0; v < LAYER_REGS; v++) inputs[v] = floats_load(in + v * FLOATS_N);
  UNROLL for (int o = 0; o < n_out; o++)
  {
    floats weight = floats_set1(w[o]);
    UNROLL for (int v = 0; v < LAYER_REGS; v++) sums[o][v] = floats_fma(inputs[v], weight, sums[o][v]);
  }
}

/* Compute n_out outputs, from output j, for LAYER_REGS registers of items, from `lane`. lines: NULL, or
 * n_in / INPUTS_PER_LINE cache lines to prefetch. */
TILE void layer_tile(const struct layer *l, size_t j, int n_out, size_t lane, const float *const *lines)
{
  const size_t out_step = l->out_step;
  size_t w_step;
  const float *in = l->in + lane, *w = l->w + mol_packed_at(l->n_in, l->n_out, j, &w_step);
  floats sums[LAYER_OUTPUTS][LAYER_REGS];
  float *out = l->out + j * out_step + lane;
  size_t k = l->n_in;

  UNROLL for (int o = 0; o < n_out; o++)
  {
    UNROLL for (int v = 0; v < LAYER_REGS; v++) sums[o][v] =
        l->bias ? floats_set1(l->bias[j + (size_t)o]) : floats_zero();
  }
  for (; lines && k >= INPUTS_PER_LINE; k -= INPUTS_PER_LINE) {
    __builtin_prefetch(*lines++, 0, 2);
    UNROLL for (int i = 0; i < INPUTS_PER_LINE; i++)
    {
      layer_step(in, w, n_out, sums);
      in += MOL_LANES;
      w += w_step;
    }
  }
  for (; k > 0; k--) {
    layer_step(in, w, n_out, sums);
    in += MOL_LANES;
    w += w_step;
  }
  UNROLL for (int o = 0; o < n_out; o++)
  {
    UNROLL for (int v = 0; v < LAYER_REGS; v++) floats_store(out + (size_t)o * out_step + v * FLOATS_N, sums[o][v]);
  }
}

OWN void layer_outputs(const struct layer *l, size_t j, size_t lane)
{
  layer_tile(l, j, LAYER_OUTPUTS, lane, NULL);
}

OWN void layer_prefetching(const struct layer *l, size_t j, size_t lane, const float *const *lines)
{
  layer_tile(l, j, LAYER_OUTPUTS, lane, lines);
}

OWN void layer_half(const struct layer *l, size_t j, size_t lane)
{
  layer_tile(l, j, 4, lane, NULL);
}

OWN void layer_single(const struct layer *l, size_t j, size_t lane)
{
  layer_tile(l, j, 1, lane, NULL);
}

static void layer_whole(const struct layer *l, size_t j, size_t lane)
{
  size_t n_lines = l->n_in / INPUTS_PER_LINE;

  if (l->prefetch->n == 0 || l->prefetch->n < n_lines) {
    layer_outputs(l, j, lane);
    return;
  }
  layer_prefetching(l, j, lane, l->prefetch->lines);
  l->prefetch->lines += n_lines;
  l->prefetch->n -= n_lines;
}

static void layer_run(const struct layer *l)
{
  for (size_t lane = 0; lane < MOL_LANES; lane += LAYER_REGS * FLOATS_N) {
    size_t j = 0;
    for (; j + LAYER_OUTPUTS <= l->n_out; j += LAYER_OUTPUTS)
      layer_whole(l, j, lane);
    for (; j + 4 <= l->n_out; j += LAYER_OUTPUTS / 2)
      layer_half(l, j, lane);
    for (; j < l->n_out; j++)
      layer_single(l, j, lane);
  }
}

static void find_logits(const struct mol_shape *shape, const struct mol_scratch *part, const float *query,
                        const float *items, struct mol_prefetch *prefetch)
{
  size_t n_query = shape->n_query_components, n_items = shape->n_item_components, dim = shape->component_dim;
  floats inv_temperature = floats_set1(shape->inv_temperature);

  for (size_t n = 0; n < n_query; n++) {
    size_t step, at = mol_packed_at(dim, n_query, n, &step);
    for (size_t k = 0; k < dim; k++)
      part->query[at + k * step] = query[n * dim + k];
  }
  for (size_t m = 0; m < n_items; m++) {
    struct layer l = { .in = items + m * dim * MOL_LANES,
                       .n_in = dim,
                       .w = part->query,
                       .n_out = n_query,
                       .out = part->logits + m * MOL_LANES,
                       .out_step = n_items * MOL_LANES,
                       .prefetch = prefetch };
    layer_run(&l);
  }
  for (size_t i = 0; i < n_query * n_items * MOL_LANES; i += FLOATS_N)
    floats_store(part->logits + i, floats_mul(floats_load(part->logits + i), inv_temperature));
}

SHARED void find_hidden(const struct mol_scratch *part, const struct mol_gate *gate, size_t n_logits, size_t n_hidden,
                        struct mol_prefetch *prefetch)
{
  struct layer l = { .in = part->logits,
                     .n_in = n_logits,
                     .w = gate->w1,
                     .bias = gate->b1,
                     .n_out = n_hidden,
                     .out = part->hidden,
                     .out_step = MOL_LANES,
                     .prefetch = prefetch };

  layer_run(&l);
  VARIANT(silu)(part->hidden, n_hidden * MOL_LANES);
}

SHARED void find_gates(const struct mol_scratch *part, const struct mol_gate *gate, size_t n_logits, size_t n_hidden,
                       const float *query_gate, const float *item_gates, struct mol_prefetch *prefetch)
{
  struct layer l = { .in = part->hidden,
                     .n_in = n_hidden,
                     .w = gate->w2,
                     .bias = gate->b2,
                     .n_out = n_logits,
                     .out = part->gates,
                     .out_step = MOL_LANES,
                     .prefetch = prefetch };

  layer_run(&l);
  for (size_t p = 0; p < n_logits; p++) {
    float *z = part->gates + p * MOL_LANES;
    for (size_t i = 0; i < MOL_LANES; i += FLOATS_N)
      floats_store(z + i, floats_fma(floats_set1(query_gate[p]), floats_load(item_gates + p * MOL_LANES + i),
                                     floats_load(z + i)));
  }
  VARIANT(silu)(part->gates, n_logits * MOL_LANES);
}

/* The softmax of MIX_REGS registers of lanes. */
enum { MIX_REGS = LAYER_REGS, MIX_ROWS = MATH_REGS / MIX_REGS };

struct mix {
  floats max[MIX_REGS];
  floats den[MIX_REGS];
  floats num[MIX_REGS];
};

/* Add n_rows terms p to the sums, in rising order. */
TILE void mix_rows(struct mix *mix, const float *s, const float *l, int n_rows)
{
  floats e[MIX_ROWS * MIX_REGS];

  UNROLL for (int i = 0; i < n_rows * MIX_REGS; i++)
  {
    const float *at = s + i / MIX_REGS * MOL_LANES + i % MIX_REGS * FLOATS_N;
    e[i] = floats_sub(floats_load(at), mix->max[i % MIX_REGS]);
  }
  exp_floats(e, n_rows * MIX_REGS);
  UNROLL for (int i = 0; i < n_rows * MIX_REGS; i++)
  {
    const float *at = l + i / MIX_REGS * MOL_LANES + i % MIX_REGS * FLOATS_N;
    mix->den[i % MIX_REGS] = floats_add(mix->den[i % MIX_REGS], e[i]);
    mix->num[i % MIX_REGS] = floats_fma(e[i], floats_load(at), mix->num[i % MIX_REGS]);
  }
}

TILE void mix_logits(const float *s, const float *l, size_t n, float *phi)
{
  struct mix mix;
  size_t p = 0;

  UNROLL for (int v = 0; v < MIX_REGS; v++)
  {
    mix.max[v] = floats_load(s + v * FLOATS_N);
    mix.den[v] = mix.num[v] = floats_zero();
  }
  for (size_t i = 1; i < n; i++) {
    UNROLL for (int v = 0; v < MIX_REGS; v++) mix.max[v] =
        floats_max(floats_load(s + i * MOL_LANES + v * FLOATS_N), mix.max[v]);
  }
  for (; p + MIX_ROWS <= n; p += MIX_ROWS)
    mix_rows(&mix, s + p * MOL_LANES, l + p * MOL_LANES, MIX_ROWS);
  for (; p < n; p++)
    mix_rows(&mix, s + p * MOL_LANES, l + p * MOL_LANES, 1);
  UNROLL for (int v = 0; v < MIX_REGS; v++) floats_store(phi + v * FLOATS_N, floats_div(mix.num[v], mix.den[v]));
}

SHARED void VARIANT(mol_score)(const struct mol_shape *shape, const struct mol_gate *gate, const float *query,
                               const float *query_gate, const float *items, const float *item_gates, float *scratch,
                               const struct mol_prefetch *prefetch, float *phi)
{
  struct mol_prefetch rest = prefetch ? *prefetch : (struct mol_prefetch){ 0 };
  struct mol_scratch part = mol_scratch_split(shape, scratch);
  size_t n_logits = shape->n_query_components * shape->n_item_components;

  find_logits(shape, &part, query, items, &rest);
  find_hidden(&part, gate, n_logits, shape->gate_hidden, &rest);
  find_gates(&part, gate, n_logits, shape->gate_hidden, query_gate, item_gates, &rest);
  for (size_t lane = 0; lane < MOL_LANES; lane += MIX_REGS * FLOATS_N)
    mix_logits(part.gates + lane, part.logits + lane, n_logits, phi + lane);
}

#endif
