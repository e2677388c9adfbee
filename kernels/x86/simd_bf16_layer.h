/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of mol_bounds() from bf16 tile products (bf16_layer.h). The first factor of a tile product is weights, the
 * second is the inputs of 16 items. Include it after simd_avx512.h and amx_tiles.h or tests/support/amx_tiles_model.h.
 * Private.
 */
#ifndef KERNELS_X86_SIMD_BF16_LAYER_H
#define KERNELS_X86_SIMD_BF16_LAYER_H

#include "kernels/x86/simd_reduced_layer.h"

#define LAYER_SUFFIX          bf16
#define REDUCED_FACTORS(gate) (&(gate)->bf16_factors)

enum { PAIR_BYTES = 4 };

/* A layer's inputs as pairs of bf16 numbers, two rows to a pair: high parts and low parts, each
 * [MOL_REGS][n_in / 2][FLOATS_N]. */
struct bf16_pairs {
  uint32_t *high, *low;
};

static void reduced_layers_begin(void)
{
  tiles_begin();
}

static void reduced_layers_end(void)
{
  tiles_end();
}

/* Round x to bf16. */
static inline floats floats_high_part(floats x)
{
  __m512i rounded = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));

  return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32((int)0xffff0000u)));
}

/* Combine two registers of bf16 numbers into pairs. The low 16 bits of their lanes are zeros. */
static inline __m512i floats_pair(floats even, floats odd)
{
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16), _mm512_castps_si512(odd));
}

/* Split rows [n][MOL_LANES] into high and low parts. n is even. */
static void bf16_rows(const float *rows, size_t n, const struct bf16_pairs *out)
{
  for (size_t v = 0; v < MOL_REGS; v++) {
    for (size_t k = 0; k < n; k += 2) {
      floats even = floats_load(rows + k * MOL_LANES + v * FLOATS_N);
      floats odd = floats_load(rows + (k + 1) * MOL_LANES + v * FLOATS_N);
      floats even_high = floats_high_part(even), odd_high = floats_high_part(odd);
      size_t at = (v * n + k) / 2 * FLOATS_N;
      _mm512_storeu_si512(out->high + at, floats_pair(even_high, odd_high));
      _mm512_storeu_si512(out->low + at, floats_pair(floats_high_part(floats_sub(even, even_high)),
                                                     floats_high_part(floats_sub(odd, odd_high))));
    }
  }
}

static void clear_rows(float *rows, size_t first, size_t end)
{
  for (size_t i = first * MOL_LANES; i < end * MOL_LANES; i += FLOATS_N)
    floats_store(rows + i, floats_zero());
}

/* Compute 16 outputs of all lanes. Tiles 0 and 1 hold sums, 2 and 3 weights, 4 to 7 inputs. */
static void bf16_layer_rows(const struct bf16_layer *layer, size_t first_output, const struct bf16_pairs *in,
                            float *out)
{
  const uint16_t *high = layer->high + first_output * layer->n_in, *low = layer->low + first_output * layer->n_in;
  const size_t step = layer->n_in * sizeof *high, lanes_step = layer->n_in / 2 * FLOATS_N;
  const uint32_t *in_high = in->high, *in_low = in->low;

  tile_zero(0);
  tile_zero(1);
  for (size_t k = 0; k < layer->n_in; k += 2 * BF16_TILE_PAIRS) {
    tile_load(2, high + k, step);
    tile_load(4, in_high, FLOATS_N * PAIR_BYTES);
    tile_load(5, in_high + lanes_step, FLOATS_N * PAIR_BYTES);
    tile_add_products(0, 2, 4);
    tile_add_products(1, 2, 5);
    tile_load(6, in_low, FLOATS_N * PAIR_BYTES);
    tile_load(7, in_low + lanes_step, FLOATS_N * PAIR_BYTES);
    tile_add_products(0, 2, 6);
    tile_add_products(1, 2, 7);
    tile_load(3, low + k, step);
    tile_add_products(0, 3, 4);
    tile_add_products(1, 3, 5);
    in_high += BF16_TILE_PAIRS * FLOATS_N;
    in_low += BF16_TILE_PAIRS * FLOATS_N;
  }
  tile_store(0, out, MOL_LANES * sizeof *out);
  tile_store(1, out + FLOATS_N, MOL_LANES * sizeof *out);
}

static void reduced_layer_run(const struct mol_reduced_gate *gate, int number, float *rows, size_t n, uint32_t *pairs,
                              float *out, struct mol_prefetch *prefetch, struct layer_input *input)
{
  const struct bf16_layer *layer = &gate->bf16[number];
  struct bf16_pairs in = { pairs, pairs + layer->n_in / 2 * MOL_LANES };

  (void)prefetch;
  UNROLL for (int v = 0; v < MOL_REGS; v++) input->units[v] = floats_zero();
  clear_rows(rows, n, layer->n_in);
  bf16_rows(rows, layer->n_in, &in);
  for (size_t o = 0; o < layer->n_out; o += BF16_TILE_ROWS)
    bf16_layer_rows(layer, o, &in, out + o * MOL_LANES);
}

#endif
