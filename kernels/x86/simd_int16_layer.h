/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of mol_bounds() from products of 16-bit integers (int16_layer.h), with VNNI. Include it after simd_avx512.h.
 * Private to mol_bounds_vnni.c.
 */
#ifndef KERNELS_X86_SIMD_INT16_LAYER_H
#define KERNELS_X86_SIMD_INT16_LAYER_H

#include "kernels/x86/simd_reduced_layer.h"

#define LAYER_SUFFIX          int16
#define REDUCED_FACTORS(gate) (&(gate)->int16_factors)

/* Lower limit of an item's largest |input|. It keeps the inverse of a unit finite. */
#define LARGEST_MIN 0x1p-60f

enum { PAIRS_PER_LINE = 2 }; /* pairs of inputs between two prefetches */

static void reduced_layers_begin(void)
{
}

static void reduced_layers_end(void)
{
}

/* Convert two rows to integers: `even` in the low halves of the 32-bit lanes, `odd` in the high halves. */
static inline __m512i int16_pair(floats even, floats odd, floats scale)
{
  const __mmask32 high_halves = 0xaaaaaaaa;
  __m512i low = _mm512_cvtps_epi32(floats_mul(even, scale)), high = _mm512_cvtps_epi32(floats_mul(odd, scale));

  return _mm512_mask_blend_epi16(high_halves, low, _mm512_slli_epi32(high, 16));
}

/* Convert n rows to pairs of integers: pairs [(n + 1) / 2][MOL_LANES]. */
static void int16_rows(const float *rows, size_t n, const floats scales[MOL_REGS], uint32_t *pairs)
{
  for (size_t k = 0; k < n; k += 2, pairs += MOL_LANES) {
    UNROLL for (int v = 0; v < MOL_REGS; v++)
    {
      const float *even = rows + k * MOL_LANES + v * FLOATS_N;
      floats odd = k + 1 < n ? floats_load(even + MOL_LANES) : floats_zero();
      _mm512_storeu_si512(pairs + v * FLOATS_N, int16_pair(floats_load(even), odd, scales[v]));
    }
  }
}

/* Add the products of signed 16-bit integers, two to a lane. In assembler, because gcc copies the sums before and after
 * each _mm512_dpwssd_epi32(). */
TILE void add_pair_products(__m512i *sums, __m512i a, __m512i b)
{
  __asm__("vpdpwssd %2, %1, %0" : "+v"(*sums) : "v"(a), "v"(b));
}

TILE void int16_step(const uint32_t *pairs, const int16_t *weights, __m512i sums[INT16_LAYER_OUTPUTS][MOL_REGS])
{
  __m512i in[MOL_REGS];

  UNROLL for (int v = 0; v < MOL_REGS; v++) in[v] = _mm512_loadu_si512(pairs + v * FLOATS_N);
  UNROLL for (int o = 0; o < INT16_LAYER_OUTPUTS; o++)
  {
    int32_t both;
    __builtin_memcpy(&both, weights + 2 * o, sizeof both);
    __m512i weight = _mm512_set1_epi32(both);
    UNROLL for (int v = 0; v < MOL_REGS; v++) add_pair_products(&sums[o][v], in[v], weight);
  }
}

/* Compute INT16_LAYER_OUTPUTS outputs. lines: NULL, or n_pairs / PAIRS_PER_LINE cache lines to prefetch. */
TILE void int16_tile(const uint32_t *pairs, size_t n_pairs, const int16_t *weights, const float *units,
                     const floats input_units[MOL_REGS], const float *const *lines, float *out)
{
  __m512i sums[INT16_LAYER_OUTPUTS][MOL_REGS];
  size_t k = n_pairs;

  UNROLL for (int o = 0; o < INT16_LAYER_OUTPUTS; o++)
  {
    UNROLL for (int v = 0; v < MOL_REGS; v++) sums[o][v] = _mm512_setzero_si512();
  }
  for (; lines && k >= PAIRS_PER_LINE; k -= PAIRS_PER_LINE) {
    __builtin_prefetch(*lines++, 0, 2);
    UNROLL for (int i = 0; i < PAIRS_PER_LINE; i++)
    {
      int16_step(pairs, weights, sums);
      pairs += MOL_LANES;
      weights += 2 * INT16_LAYER_OUTPUTS;
    }
  }
  for (; k > 0; k--) {
    int16_step(pairs, weights, sums);
    pairs += MOL_LANES;
    weights += 2 * INT16_LAYER_OUTPUTS;
  }
  UNROLL for (int o = 0; o < INT16_LAYER_OUTPUTS; o++)
  {
    UNROLL for (int v = 0; v < MOL_REGS; v++)
        floats_store(out + o * MOL_LANES + v * FLOATS_N,
                     floats_mul(_mm512_cvtepi32_ps(sums[o][v]), floats_mul(floats_set1(units[o]), input_units[v])));
  }
}

OWN void int16_outputs(const uint32_t *pairs, size_t n_pairs, const int16_t *weights, const float *units,
                       const floats input_units[MOL_REGS], float *out)
{
  int16_tile(pairs, n_pairs, weights, units, input_units, NULL, out);
}

OWN void int16_outputs_prefetching(const uint32_t *pairs, size_t n_pairs, const int16_t *weights, const float *units,
                                   const floats input_units[MOL_REGS], const float *const *lines, float *out)
{
  int16_tile(pairs, n_pairs, weights, units, input_units, lines, out);
}

static void reduced_layer_run(const struct mol_reduced_gate *gate, int number, const float *rows, size_t n,
                              uint32_t *pairs, float *out, struct mol_prefetch *prefetch, struct layer_input *input)
{
  const struct int16_layer *layer = &gate->int16[number];
  size_t n_lines = layer->n_pairs / PAIRS_PER_LINE;
  floats scales[MOL_REGS];

  UNROLL for (int v = 0; v < MOL_REGS; v++)
  {
    floats largest = floats_max(input->largest[v], floats_set1(LARGEST_MIN));
    scales[v] = floats_div(floats_set1(INT16_LAYER_MAX), largest);
    input->units[v] = floats_mul(largest, floats_set1(1.0f / INT16_LAYER_MAX));
  }
  int16_rows(rows, n, scales, pairs);
  for (size_t o = 0; o < layer->n_out; o += INT16_LAYER_OUTPUTS) {
    const int16_t *weights = layer->weights + o * layer->n_pairs * 2;
    if (prefetch->n == 0 || prefetch->n < n_lines) {
      int16_outputs(pairs, layer->n_pairs, weights, layer->units + o, input->units, out + o * MOL_LANES);
      continue;
    }
    int16_outputs_prefetching(pairs, layer->n_pairs, weights, layer->units + o, input->units, prefetch->lines,
                              out + o * MOL_LANES);
    prefetch->lines += n_lines;
    prefetch->n -= n_lines;
  }
}

#endif
