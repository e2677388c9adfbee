/* SPDX-License-Identifier: Apache-2.0 */
/* mol_bounds() with AVX-512 VNNI (Cascade Lake and later). Lanes are items. The gate's two layers are products of
 * 16-bit integers (int16_layer.h). "Step" means a step of the proof in mol_reduced_gate.h.
 */
#include "kernels/x86/simd_avx512.h"

#include "kernels/x86/simd_mol.h"
#include "kernels/x86/simd_rough_math.h"

/* Items with a larger delta, or a larger |l|^2, get no bound. exp(DELTA_MAX) is far from overflow; real |l|^2 are far
 * below SQUARE_MAX. */
#define DELTA_MAX  40.0f
#define SQUARE_MAX 0x1p40f
/* Lower limit of |l|^2. It covers squares that underflow. */
#define SQUARE_MIN 0x1p-100f
/* Limit of kappa sqrt(A) in step 7. */
#define SHARE_MAX 0.75f
/* Lower limit of an item's largest |input|. It keeps the inverse of a unit finite. */
#define LARGEST_MIN 0x1p-60f

enum {
  MOL_REGS = MOL_LANES / FLOATS_N,     /* registers that hold one number of all items */
  ROWS_AT_ONCE = MATH_REGS / MOL_REGS, /* rows of MOL_LANES numbers that exp and SiLU process together */
  PAIRS_PER_LINE = 2,                  /* pairs of inputs between two prefetches */
};

/* The parts of scratch, each aligned to 64. A layer also overwrites the rows of its padding. */
struct bounds_scratch {
  struct mol_scratch mol;
  uint32_t *pairs; /* the inputs of a layer as pairs of integers */
};

static struct bounds_scratch bounds_scratch_split(const struct mol_shape *shape, float *scratch)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;
  size_t n_pairs = ((n_logits > n_hidden ? n_logits : n_hidden) + 1) / 2;
  struct bounds_scratch parts;

  parts.mol.logits = scratch;
  parts.mol.hidden = parts.mol.logits + n_logits * MOL_LANES;
  parts.mol.gates = parts.mol.hidden + int16_layer_pad(n_hidden) * MOL_LANES;
  parts.pairs = (uint32_t *)(void *)(parts.mol.gates + int16_layer_pad(n_logits) * MOL_LANES);
  parts.mol.query = (float *)(void *)(parts.pairs + n_pairs * MOL_LANES);
  return parts;
}

/* Layers -------------------- */

/* Measures of a layer's inputs, for each item: |x|^2, the largest |x_k|, and the unit: the value that the integer 1
 * stands for. */
struct layer_input {
  floats squares[MOL_REGS], largest[MOL_REGS], units[MOL_REGS];
};

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

/* Compute the outputs of one layer, without the bias.
 *
 * rows      [n][MOL_LANES]
 * pairs     [(n + 1) / 2][MOL_LANES], scratch
 * out       [layer->n_out][MOL_LANES]
 * prefetch  cache lines to prefetch; those that were prefetched are removed
 * input     squares and largest of the rows; the function fills in the units
 */
static void int16_layer_run(const struct int16_layer *layer, const float *rows, size_t n, uint32_t *pairs, float *out,
                            struct mol_prefetch *prefetch, struct layer_input *input)
{
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

/* Add a row to the measures of a layer's inputs. */
TILE void measure_row(const floats *row, struct layer_input *input)
{
  UNROLL for (int v = 0; v < MOL_REGS; v++)
  {
    input->squares[v] = floats_fma(row[v], row[v], input->squares[v]);
    input->largest[v] = floats_max(input->largest[v], _mm512_abs_ps(row[v]));
  }
}

static void measure_rows(const float *rows, size_t n, struct layer_input *input)
{
  struct layer_input sums = { 0 };

  for (size_t k = 0; k < n; k++) {
    floats row[MOL_REGS];
    UNROLL for (int v = 0; v < MOL_REGS; v++) row[v] = floats_load(rows + k * MOL_LANES + v * FLOATS_N);
    measure_row(row, &sums);
  }
  *input = sums;
}

/* Activations -------------------- */

/* Compute n rows of h = SiLU(y + b), and their measures. */
TILE void activate_hidden(float *rows, const float *bias, int n, struct layer_input *input)
{
  floats x[MATH_REGS];

#define EACH UNROLL for (int i = 0; i < n * MOL_REGS; i++)
  EACH x[i] = floats_add(floats_load(rows + i * FLOATS_N), floats_set1(bias[i / MOL_REGS]));
  silu_roughly(x, n * MOL_REGS);
  EACH floats_store(rows + i * FLOATS_N, x[i]);
#undef EACH
  UNROLL for (int i = 0; i < n; i++) measure_row(x + i * MOL_REGS, input);
}

static void find_rough_hidden(float *rows, const float *bias, size_t n, struct layer_input *input)
{
  struct layer_input sums = { 0 };
  size_t j = 0;

  for (; j + ROWS_AT_ONCE <= n; j += ROWS_AT_ONCE)
    activate_hidden(rows + j * MOL_LANES, bias + j, ROWS_AT_ONCE, &sums);
  for (; j < n; j++)
    activate_hidden(rows + j * MOL_LANES, bias + j, 1, &sums);
  *input = sums;
}

/* Compute n rows of s = SiLU(z) with z = query_gate item_gate + (w + b), and add to |z|^2. */
TILE void activate_gates(float *rows, const float *bias, const float *query_gate, const float *item_gates, int n,
                         floats squares[MOL_REGS])
{
  floats x[MATH_REGS];

#define EACH UNROLL for (int i = 0; i < n * MOL_REGS; i++)
  EACH x[i] = floats_add(floats_load(rows + i * FLOATS_N), floats_set1(bias[i / MOL_REGS]));
  EACH x[i] = floats_fma(floats_set1(query_gate[i / MOL_REGS]), floats_load(item_gates + i * FLOATS_N), x[i]);
  EACH squares[i % MOL_REGS] = floats_fma(x[i], x[i], squares[i % MOL_REGS]);
  silu_roughly(x, n * MOL_REGS);
  EACH floats_store(rows + i * FLOATS_N, x[i]);
#undef EACH
}

static void find_rough_gates(float *rows, const float *bias, const float *query_gate, const float *item_gates, size_t n,
                             floats squares[MOL_REGS])
{
  size_t p = 0;

  UNROLL for (int v = 0; v < MOL_REGS; v++) squares[v] = floats_zero();
  for (; p + ROWS_AT_ONCE <= n; p += ROWS_AT_ONCE)
    activate_gates(rows + p * MOL_LANES, bias + p, query_gate + p, item_gates + p * MOL_LANES, ROWS_AT_ONCE, squares);
  for (; p < n; p++)
    activate_gates(rows + p * MOL_LANES, bias + p, query_gate + p, item_gates + p * MOL_LANES, 1, squares);
}

/* Softmax -------------------- */

/* Sums over p of e, e l, e^2, e^2 l and e^2 l^2, in this order, with e = exp(s - max). */
struct rough_mix {
  floats max[MOL_REGS];
  floats weights[MOL_REGS], logits[MOL_REGS];
  floats squares[MOL_REGS], square_logits[MOL_REGS], square_squares[MOL_REGS];
};

TILE void mix_rough_rows(struct rough_mix *mix, const float *s, const float *l, int n)
{
  floats e[MATH_REGS], logit, weighted;

#define EACH UNROLL for (int i = 0; i < n * MOL_REGS; i++)
  EACH e[i] = floats_sub(floats_load(s + i * FLOATS_N), mix->max[i % MOL_REGS]);
  exp_roughly(e, 1, e, n * MOL_REGS);
  EACH
  {
    int v = i % MOL_REGS;
    logit = floats_load(l + i * FLOATS_N);
    weighted = floats_mul(e[i], logit);
    mix->weights[v] = floats_add(mix->weights[v], e[i]);
    mix->logits[v] = floats_add(mix->logits[v], weighted);
    mix->squares[v] = floats_fma(e[i], e[i], mix->squares[v]);
    mix->square_logits[v] = floats_fma(e[i], weighted, mix->square_logits[v]);
    mix->square_squares[v] = floats_fma(weighted, weighted, mix->square_squares[v]);
  }
#undef EACH
}

static struct rough_mix mix_roughly(const float *s, const float *l, size_t n)
{
  struct rough_mix mix;
  size_t p = 0;

  UNROLL for (int v = 0; v < MOL_REGS; v++)
  {
    mix.max[v] = floats_load(s + v * FLOATS_N);
    mix.weights[v] = mix.logits[v] = mix.squares[v] = mix.square_logits[v] = mix.square_squares[v] = floats_zero();
  }
  for (size_t i = 1; i < n; i++) {
    UNROLL for (int v = 0; v < MOL_REGS; v++) mix.max[v] =
        floats_max(floats_load(s + i * MOL_LANES + v * FLOATS_N), mix.max[v]);
  }
  for (; p + ROWS_AT_ONCE <= n; p += ROWS_AT_ONCE)
    mix_rough_rows(&mix, s + p * MOL_LANES, l + p * MOL_LANES, ROWS_AT_ONCE);
  for (; p < n; p++)
    mix_rough_rows(&mix, s + p * MOL_LANES, l + p * MOL_LANES, 1);
  return mix;
}

/* Bounds -------------------- */

/* The inputs of delta, for FLOATS_N items. */
struct rough_sizes {
  floats logit_unit, logits; /* `logits`, `hidden` and `gates` are squares of norms */
  floats hidden_unit, hidden, gates;
};

static floats find_delta(const struct mol_reduced_factors *f, const struct rough_sizes *sizes)
{
  floats delta = floats_set1(f->constant);

  delta = floats_fma(floats_set1(f->logit_unit), sizes->logit_unit, delta);
  delta = floats_fma(floats_set1(f->logits), _mm512_sqrt_ps(sizes->logits), delta);
  delta = floats_fma(floats_set1(f->hidden_unit), sizes->hidden_unit, delta);
  delta = floats_fma(floats_set1(f->hidden), _mm512_sqrt_ps(sizes->hidden), delta);
  return floats_fma(floats_set1(f->gates), _mm512_sqrt_ps(sizes->gates), delta);
}

/* Compute the bounds of FLOATS_N items: steps 7 and 8. */
static void find_bounds(const struct mol_reduced_factors *factors, size_t n_logits, const struct rough_mix *mix, int v,
                        struct rough_sizes sizes, float *lower, float *upper)
{
  const floats rounding = floats_set1((float)(n_logits + 8) * 0x1p-21f), second_order = floats_set1(1 + 0x1p-8f);
  const floats one = floats_set1(1.0f), infinity = floats_set1(INFINITY);
  floats per_weight = floats_div(one, mix->weights[v]), per_square = floats_mul(per_weight, per_weight);
  floats score = floats_mul(mix->logits[v], per_weight), a = floats_mul(mix->squares[v], per_square), c, kappa, share,
         error;
  floats too_large = sizes.logits;

  sizes.logits = floats_max(sizes.logits, floats_set1(SQUARE_MIN));
  floats delta = find_delta(factors, &sizes);
  c = floats_fma(floats_mul(floats_set1(-2.0f), score), mix->square_logits[v], mix->square_squares[v]);
  c = floats_fma(floats_mul(score, score), a, floats_mul(c, per_square));
  c = floats_fma(floats_mul(rounding, a), sizes.logits, floats_max(c, floats_zero()));
  kappa = floats_min(delta, floats_set1(DELTA_MAX));
  exp_floats(&kappa, 1);
  kappa = floats_add(kappa, floats_set1(0x1p-20f - 1)); /* plus the rounding of the subtraction */
  share = floats_mul(floats_mul(kappa, second_order), _mm512_sqrt_ps(a));
  error = floats_div(floats_mul(floats_mul(kappa, second_order), _mm512_sqrt_ps(c)), floats_sub(one, share));
  error = floats_fma(rounding, _mm512_sqrt_ps(sizes.logits), error);
  /* Comparisons with NaN are false. */
  __mmask16 is_bound = _mm512_cmp_ps_mask(delta, floats_set1(DELTA_MAX), _CMP_LT_OQ) &
                       _mm512_cmp_ps_mask(share, floats_set1(SHARE_MAX), _CMP_LT_OQ) &
                       _mm512_cmp_ps_mask(too_large, floats_set1(SQUARE_MAX), _CMP_LT_OQ) &
                       _mm512_cmp_ps_mask(floats_add(_mm512_abs_ps(score), error), infinity, _CMP_LT_OQ);
  floats_store(lower, _mm512_mask_mov_ps(floats_negate(infinity), is_bound, floats_sub(score, error)));
  floats_store(upper, _mm512_mask_mov_ps(infinity, is_bound, floats_add(score, error)));
}

static void mol_bounds_vnni(const struct mol_shape *shape, const struct mol_gate *gate,
                            const struct mol_reduced_gate *reduced_gate, const float *query, const float *query_gate,
                            const float *items, const float *item_gates, float *scratch,
                            const struct mol_prefetch *prefetch, float *lower, float *upper)
{
  const struct int16_layer *layers = reduced_gate->layers;
  struct mol_prefetch rest = prefetch ? *prefetch : (struct mol_prefetch){ 0 };
  struct bounds_scratch part = bounds_scratch_split(shape, scratch);
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;
  struct layer_input logits, hidden;
  floats gates[MOL_REGS];

  find_logits(shape, &part.mol, query, items, &rest);
  measure_rows(part.mol.logits, n_logits, &logits);
  int16_layer_run(&layers[0], part.mol.logits, n_logits, part.pairs, part.mol.hidden, &rest, &logits);
  find_rough_hidden(part.mol.hidden, gate->b1, n_hidden, &hidden);
  int16_layer_run(&layers[1], part.mol.hidden, n_hidden, part.pairs, part.mol.gates, &rest, &hidden);
  find_rough_gates(part.mol.gates, gate->b2, query_gate, item_gates, n_logits, gates);
  struct rough_mix mix = mix_roughly(part.mol.gates, part.mol.logits, n_logits);
  for (int v = 0; v < MOL_REGS; v++)
    find_bounds(&reduced_gate->factors, n_logits, &mix, v,
                (struct rough_sizes){ .logit_unit = logits.units[v],
                                      .logits = logits.squares[v],
                                      .hidden_unit = hidden.units[v],
                                      .hidden = hidden.squares[v],
                                      .gates = gates[v] },
                lower + v * FLOATS_N, upper + v * FLOATS_N);
}

void variant_mol_bounds_vnni(struct kernels *table)
{
  table->mol_bounds = mol_bounds_vnni;
}
