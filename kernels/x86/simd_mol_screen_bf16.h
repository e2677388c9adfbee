/* SPDX-License-Identifier: Apache-2.0 */
/* mol_screen() with tiles: of bytes for the logits, of bf16 for the gate's layers. Lanes are items. "Step" means a step
 * of the proof in mol_screen_bf16.h. Include it after amx_tiles.h or tests/support/amx_tiles_model.h. Private.
 *
 * In a tile of items, a row has two numbers of bf16, or four bytes, of each of 16 items.
 */
#ifndef KERNELS_X86_SIMD_MOL_SCREEN_BF16_H
#define KERNELS_X86_SIMD_MOL_SCREEN_BF16_H

#include <assert.h>

#include "kernels/mol_reduced_gate.h"
#include "kernels/x86/simd_screen.h"

enum {
  TILE_ITEMS = 16,
  TILE_PAIRS = SCREEN_TILE_INPUTS / 2,       /* rows of a tile */
  TILE_WORDS = SCREEN_TILE_ROWS * MOL_LANES, /* of both tiles of MOL_LANES items */
  WORDS_STEP = MOL_LANES * sizeof(uint32_t), /* bytes between the rows of a tile */
};

static_assert((int)TILE_ITEMS == (int)FLOATS_N, "a register holds one number of a tile's items");

/* The rows of a tile, as 32-bit sums of 16 items. */
struct sum_tile {
  int32_t rows[SCREEN_TILE_ROWS][TILE_ITEMS] __attribute__((aligned(64)));
};

/* Rounded to bf16 in the high halves of the lanes; the low halves are not cleared. */
TILE __m512i bf16_rounded(floats x)
{
  return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
}

/* Two rounded numbers in one lane: `even` in the low half. */
TILE __m512i bf16_pair(__m512i even, __m512i odd)
{
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(even, 16), odd);
}

TILE floats bf16_even(__m512i pair)
{
  return _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
}

TILE floats bf16_odd(__m512i pair)
{
  return _mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32((int)0xffff0000)));
}

/* Logits -------------------- */

/* Multiply a group of query components with item components m and, if n is 2, m + 1. Tiles 0 to 3 hold sums: two for
 * each item component. */
TILE void multiply_components(const int8_t *query, const uint32_t *items, size_t n_chunks, int n)
{
  tile_zero(0);
  tile_zero(1);
  tile_zero(2);
  tile_zero(3);
  for (size_t c = 0; c < n_chunks; c++, items += TILE_WORDS, query += SCREEN_TILE_ROWS * SCREEN_TILE_BYTES) {
    tile_load(4, query, SCREEN_TILE_BYTES);
    tile_load(5, items, WORDS_STEP);
    tile_add_signed(0, 4, 5);
    tile_load(6, items + TILE_ITEMS, WORDS_STEP);
    tile_add_signed(1, 4, 6);
    if (n == 2) {
      tile_load(7, items + n_chunks * TILE_WORDS, WORDS_STEP);
      tile_add_signed(2, 4, 7);
      tile_load(5, items + n_chunks * TILE_WORDS + TILE_ITEMS, WORDS_STEP);
      tile_add_signed(3, 4, 5);
    }
  }
}

/* Step 1: logit row i of a tile. */
TILE __m512i logit_of(const struct sum_tile *sums, size_t i)
{
  __m512i high = _mm512_load_si512(sums->rows[i]), low = _mm512_load_si512(sums->rows[SCREEN_TILE_QUERY + i]);

  return _mm512_add_epi32(_mm512_slli_epi32(high, SCREEN_LOW_BITS), low);
}

/* What is known of the logits of each item: the largest, and the sum of the squares of what rounding has changed. */
struct logit_sizes {
  __m512i largest[REGS];
  floats lost[REGS];
};

/* Step 2: round a logit to bf16. */
TILE __m512i round_logit(__m512i logit, floats *lost)
{
  floats exact = _mm512_cvtepi32_ps(logit);
  __m512i rounded = bf16_rounded(exact);
  floats rest = floats_sub(exact, bf16_odd(rounded));

  *lost = floats_fma(rest, rest, *lost);
  return rounded;
}

/* Store n logits of one item component, n even, as pairs of bf16. */
TILE void store_logits(const struct sum_tile sums[REGS], size_t n, uint32_t *out, struct logit_sizes *sizes)
{
  UNROLL for (size_t i = 0; i < SCREEN_TILE_QUERY; i += 2)
  {
    if (i < n) {
      UNROLL for (int v = 0; v < REGS; v++)
      {
        __m512i even = logit_of(&sums[v], i), odd = logit_of(&sums[v], i + 1);
        sizes->largest[v] = _mm512_max_epi32(sizes->largest[v], _mm512_max_epi32(even, odd));
        even = round_logit(even, &sizes->lost[v]);
        odd = round_logit(odd, &sizes->lost[v]);
        _mm512_storeu_si512(out + (i / 2) * MOL_LANES + (size_t)v * FLOATS_N, bf16_pair(even, odd));
      }
    }
  }
}

/* The logits of one group of query components with all item components. */
OWN void screen_group(const struct mol_shape *shape, size_t group, const int8_t *query, const uint32_t *items,
                      uint32_t *out, struct logit_sizes *totals)
{
  size_t n_chunks = (shape->component_dim + SCREEN_TILE_INPUTS - 1) / SCREEN_TILE_INPUTS;
  size_t n_even = (shape->n_query_components + 1) / 2 * 2, first = group * SCREEN_TILE_QUERY;
  struct logit_sizes sizes = *totals;
  struct sum_tile sums[2 * REGS];

  for (size_t m = 0; m < shape->n_item_components; m += 2, items += 2 * n_chunks * TILE_WORDS) {
    bool has_second = m + 1 < shape->n_item_components;
    if (has_second)
      multiply_components(query, items, n_chunks, 2);
    else
      multiply_components(query, items, n_chunks, 1);
    tile_store(0, sums[0].rows, sizeof sums[0].rows[0]);
    tile_store(1, sums[1].rows, sizeof sums[1].rows[0]);
    tile_store(2, sums[2].rows, sizeof sums[2].rows[0]);
    tile_store(3, sums[3].rows, sizeof sums[3].rows[0]);
    store_logits(sums, n_even - first, out + (m * n_even + first) / 2 * MOL_LANES, &sizes);
    if (has_second)
      store_logits(sums + REGS, n_even - first, out + ((m + 1) * n_even + first) / 2 * MOL_LANES, &sizes);
  }
  *totals = sizes;
}

/* No integer logit is as large: then nothing is at the threshold. */
#define LOGIT_BEYOND 0x1p24f

/* Return the lanes with a logit of at least the threshold. */
static uint32_t mol_screen_logits_bf16(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                                       const struct mol_screen_query *query, const uint32_t *items, float threshold,
                                       uint32_t *logits)
{
  float least = floorf((threshold - query->bf16.slack) / gate->screen.bf16.logit_unit) - 1;
  size_t n_chunks = (shape->component_dim + SCREEN_TILE_INPUTS - 1) / SCREEN_TILE_INPUTS;
  uint32_t lanes = 0;
  struct logit_sizes sizes;

  UNROLL for (int v = 0; v < REGS; v++)
  {
    sizes.largest[v] = _mm512_set1_epi32(INT32_MIN);
    sizes.lost[v] = floats_zero();
  }
  for (size_t g = 0; g * SCREEN_TILE_QUERY < shape->n_query_components; g++)
    screen_group(shape, g, query->tiles + g * n_chunks * SCREEN_TILE_ROWS * SCREEN_TILE_BYTES, items, logits, &sizes);
  UNROLL for (int v = 0; v < REGS; v++)
      floats_store((float *)(void *)(logits + gate->screen.n_pairs * MOL_LANES + v * FLOATS_N), sizes.lost[v]);
  if (!(least > -LOGIT_BEYOND)) /* NaN too */
    return UINT32_MAX;
  __m512i bound = _mm512_set1_epi32((int32_t)fminf(least, LOGIT_BEYOND));
  for (int v = 0; v < REGS; v++)
    lanes |= (uint32_t)_mm512_cmpge_epi32_mask(sizes.largest[v], bound) << v * FLOATS_N;
  return lanes;
}

/* SiLU -------------------- */

/* Slopes and offsets of the lines. */
struct silu_lines {
  floats slopes[2], offsets[2];
};

TILE struct silu_lines load_lines(const struct mol_screen_bf16 *s)
{
  return (struct silu_lines){ { floats_load(s->slopes), floats_load(s->slopes + FLOATS_N) },
                              { floats_load(s->offsets), floats_load(s->offsets + FLOATS_N) } };
}

/* The lines of log2(e) SiLU(z) - SCREEN_SHIFT: of weights' exponents. */
TILE struct silu_lines exponent_lines(const struct silu_lines *of)
{
  struct silu_lines lines;

  UNROLL for (int i = 0; i < 2; i++)
  {
    lines.slopes[i] = floats_mul(of->slopes[i], floats_set1(MATH_LOG2_E));
    lines.offsets[i] = floats_fma(of->offsets[i], floats_set1(MATH_LOG2_E), floats_set1(-SCREEN_SHIFT));
  }
  return lines;
}

/* SiLU(y) - max(y, 0). NaN counts as a large y. */
TILE floats below_ramp_of(const struct silu_lines *lines, floats y)
{
  enum { LEAST_SIZE = 0x0a }; /* the smaller of the absolute values */
  const float round_to_step = SCREEN_LINE_STEP * 0x1.8p23f;
  floats a = _mm512_range_ps(y, floats_set1(SCREEN_LINE_STEP * (SCREEN_LINES - 1)), LEAST_SIZE);
  __m512i i = _mm512_castps_si512(floats_add(a, floats_set1(round_to_step)));

  return floats_fma(_mm512_permutex2var_ps(lines->slopes[0], i, lines->slopes[1]), a,
                    _mm512_permutex2var_ps(lines->offsets[0], i, lines->offsets[1]));
}

/* max(x, 0); NaN stays NaN. */
TILE floats ramp(floats x)
{
  return _mm512_max_ps(floats_zero(), x);
}

/* Layers -------------------- */

/* Where the tiles of a layer's inputs are. */
struct tile_inputs {
  const uint32_t *rows; /* [n_whole * TILE_PAIRS], of pairs */
  size_t step;          /* bytes between rows */
  size_t n_whole;       /* whole tiles */
  const uint32_t *last; /* [TILE_PAIRS][MOL_LANES]: one more, filled up with zeros */
};

/* Compute SCREEN_BF16_OUTPUTS sums of products of MOL_LANES items. */
TILE void multiply_layer(const uint16_t *weights, size_t n_tiles, const struct tile_inputs *in,
                         float sums[SCREEN_BF16_OUTPUTS][MOL_LANES])
{
  enum { TILE_NUMBERS = SCREEN_TILE_ROWS * SCREEN_TILE_INPUTS };

  tile_zero(0);
  tile_zero(1);
  tile_zero(2);
  tile_zero(3);
  for (size_t t = 0; t < n_tiles; t++) {
    bool is_whole = t < in->n_whole;
    const uint32_t *rows = is_whole ? in->rows + t * TILE_PAIRS * (in->step / sizeof *rows) : in->last;
    size_t step = is_whole ? in->step : (size_t)WORDS_STEP;
    tile_load(4, weights + t * TILE_NUMBERS, SCREEN_TILE_BYTES);
    tile_load(6, rows, step);
    tile_add_bf16(0, 4, 6);
    tile_load(7, rows + TILE_ITEMS, step);
    tile_add_bf16(1, 4, 7);
    tile_load(5, weights + (n_tiles + t) * TILE_NUMBERS, SCREEN_TILE_BYTES);
    tile_add_bf16(2, 5, 6);
    tile_add_bf16(3, 5, 7);
  }
  tile_store(0, sums[0], sizeof sums[0]);
  tile_store(1, sums[0] + TILE_ITEMS, sizeof sums[0]);
  tile_store(2, sums[SCREEN_TILE_ROWS], sizeof sums[0]);
  tile_store(3, sums[SCREEN_TILE_ROWS] + TILE_ITEMS, sizeof sums[0]);
}

/* The parts of scratch. */
struct bf16_scratch {
  uint32_t *last;           /* [SCREEN_TILE_INPUTS / 2][MOL_LANES] logits */
  uint32_t *hidden;         /* [n_hidden / 2][MOL_LANES] */
  float (*sums)[MOL_LANES]; /* [SCREEN_BF16_OUTPUTS] */
};

/* Step 3: SCREEN_BF16_OUTPUTS hidden units as bf16, and their squares. */
OWN void activate_outputs(const struct silu_lines *table, const float (*sums)[MOL_LANES], const float *bias,
                          uint32_t *hidden, floats squares[REGS])
{
  const struct silu_lines lines = *table;
  floats total[REGS];

  UNROLL for (int v = 0; v < REGS; v++) total[v] = squares[v];
  for (size_t o = 0; o < SCREEN_BF16_OUTPUTS; o += 2, hidden += MOL_LANES) {
    UNROLL for (int v = 0; v < REGS; v++)
    {
      floats h[2];
      UNROLL for (int i = 0; i < 2; i++)
      {
        floats y = floats_add(floats_load(sums[o + (size_t)i] + v * FLOATS_N), floats_set1(bias[o + (size_t)i]));
        h[i] = floats_add(ramp(y), below_ramp_of(&lines, y));
        total[v] = floats_fma(h[i], h[i], total[v]);
      }
      _mm512_storeu_si512(hidden + v * FLOATS_N, bf16_pair(bf16_rounded(h[0]), bf16_rounded(h[1])));
    }
  }
  UNROLL for (int v = 0; v < REGS; v++) squares[v] = total[v];
}

struct bf16_weigh {
  const struct mol_screen *screen;
  const struct mol_screen_rows *items;
  const float *query_gate; /* [L] */
  float logit_unit, threshold;
};

/* Steps 5 to 7: the terms of SCREEN_BF16_OUTPUTS outputs, the first of which is o. squares: of l^. */
OWN void weigh_outputs(const struct bf16_weigh *w, const struct silu_lines *table, size_t o,
                       const float (*gates)[MOL_LANES], struct screen_sums *totals, floats squares[REGS])
{
  const struct mol_screen_bf16 *s = &w->screen->bf16;
  const struct silu_lines lines = *table;
  struct screen_sums sums = *totals;
  floats norms[REGS];

#define EACH UNROLL for (int v = 0; v < REGS; v++)
  EACH norms[v] = squares[v];
  for (size_t i = 0; i < SCREEN_BF16_OUTPUTS && o + i < w->screen->n_out; i++) {
    int32_t p = w->screen->logits[o + i];
    floats z[REGS], l[REGS];
    if (p < 0)
      continue;
    const float *item_gates = w->items->gates + (size_t)p * w->items->step;
    const uint32_t *logits = w->items->logits + (o + i) / 2 * w->items->step;
    EACH z[v] = floats_add(floats_load(gates[i] + v * FLOATS_N), floats_set1(s->b2[o + i]));
    EACH z[v] = floats_fma(floats_set1(w->query_gate[p]), floats_load(item_gates + v * FLOATS_N), z[v]);
    EACH z[v] = floats_fma(ramp(z[v]), floats_set1(MATH_LOG2_E), below_ramp_of(&lines, z[v]));
    EACH
    {
      __m512i pair = _mm512_loadu_si512(logits + v * FLOATS_N);
      l[v] = i % 2 ? bf16_odd(pair) : bf16_even(pair);
    }
    EACH norms[v] = floats_fma(l[v], l[v], norms[v]);
    EACH l[v] = floats_fma(l[v], floats_set1(w->logit_unit), floats_set1(-w->threshold));
    screen_sums_add(&sums, z, l);
  }
  EACH squares[v] = norms[v];
#undef EACH
  *totals = sums;
}

/* The last tile of logits, if it is not whole: fill it up. */
static void fill_last_tile(const struct mol_screen_rows *items, size_t n_pairs, uint32_t *last)
{
  size_t n_whole = n_pairs / TILE_PAIRS, n_rows = n_pairs % TILE_PAIRS;
  const uint32_t *from = items->logits + n_whole * TILE_PAIRS * items->step;

  for (size_t r = 0; r < TILE_PAIRS; r++) {
    UNROLL for (int v = 0; v < REGS; v++)
    {
      __m512i row = r < n_rows ? _mm512_loadu_si512(from + r * items->step + v * FLOATS_N) : _mm512_setzero_si512();
      _mm512_storeu_si512(last + r * MOL_LANES + v * FLOATS_N, row);
    }
  }
}

/* What is known of an item, for delta: sums of squares. */
struct bf16_sizes {
  floats logits[REGS], hidden[REGS]; /* |l^|^2, |h~|^2 */
};

/* Step 6: delta of FLOATS_N items. lost: |l~ - l^|^2, [MOL_LANES]. */
static floats find_delta(const struct mol_screen_bf16 *s, float query_delta, int v, const float *lost,
                         const struct bf16_sizes *sizes, const struct screen_sums *sums)
{
  floats delta = floats_set1(query_delta);

  delta = floats_fma(floats_set1(s->per_lost), _mm512_sqrt_ps(floats_load(lost + v * FLOATS_N)), delta);
  delta = floats_fma(floats_set1(s->per_logits), _mm512_sqrt_ps(sizes->logits[v]), delta);
  delta = floats_fma(floats_set1(s->per_hidden), _mm512_sqrt_ps(sizes->hidden[v]), delta);
  return floats_fma(floats_set1(s->per_gate), screen_sums_largest(sums, v), delta);
}

static uint32_t mol_screen_bf16(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                                const struct mol_screen_query *query, const struct mol_screen_rows *items,
                                float threshold, float *scratch)
{
  const struct mol_screen_bf16 *s = &gate->screen.bf16;
  struct bf16_scratch part = { .last = (uint32_t *)(void *)scratch };
  const struct silu_lines lines = load_lines(s), exponents = exponent_lines(&lines);
  const float *lost = (const float *)(const void *)(items->logits + gate->screen.n_pairs * items->step);
  struct bf16_sizes sizes = { 0 };
  struct screen_sums sums;
  uint32_t passing = 0;

  part.hidden = part.last + TILE_PAIRS * MOL_LANES;
  part.sums = (float(*)[MOL_LANES])(void *)(part.hidden + s->n_hidden / 2 * MOL_LANES);
  struct tile_inputs logits = { items->logits, items->step * sizeof *items->logits, gate->screen.n_pairs / TILE_PAIRS,
                                part.last };
  struct tile_inputs hidden = { part.hidden, WORDS_STEP, s->in_tiles[1], NULL };
  struct bf16_weigh weigh = { .screen = &gate->screen,
                              .items = items,
                              .query_gate = query->gate,
                              .logit_unit = s->logit_unit,
                              .threshold = threshold - query->bf16.slack };

  if (logits.n_whole < s->in_tiles[0])
    fill_last_tile(items, gate->screen.n_pairs, part.last);
  for (size_t j = 0; j < s->n_hidden; j += SCREEN_BF16_OUTPUTS) {
    multiply_layer(s->w1 + j * s->in_tiles[0] * SCREEN_TILE_INPUTS, s->in_tiles[0], &logits, part.sums);
    activate_outputs(&lines, part.sums, s->b1 + j, part.hidden + j / 2 * MOL_LANES, sizes.hidden);
  }
  screen_sums_begin(&sums);
  for (size_t o = 0; o < s->n_out; o += SCREEN_BF16_OUTPUTS) {
    multiply_layer(s->w2 + o * s->in_tiles[1] * SCREEN_TILE_INPUTS, s->in_tiles[1], &hidden, part.sums);
    weigh_outputs(&weigh, &exponents, o, part.sums, &sums, sizes.logits);
  }
  for (int v = 0; v < REGS; v++) {
    floats delta = find_delta(s, query->bf16.delta, v, lost, &sizes, &sums);
    passing |= (uint32_t)screen_sums_pass(&sums, v, delta, shape->n_query_components * shape->n_item_components)
               << v * FLOATS_N;
  }
  return passing;
}

static void mol_screen_begin_bf16(void)
{
  tiles_begin();
}

static void mol_screen_end_bf16(void)
{
  tiles_end();
}

/* Items -------------------- */

/* Round four numbers to integers, and split them into high and low bytes: four to a lane. */
TILE void split_numbers(const floats numbers[4], __m512i *high, __m512i *low)
{
  const __m512i byte = _mm512_set1_epi32(0xff);
  __m512i h[4], l[4];

  UNROLL for (int i = 0; i < 4; i++)
  {
    __m512i x = _mm512_cvtps_epi32(floats_mul(numbers[i], floats_set1(SCREEN_BYTES_SCALE)));
    h[i] = _mm512_srai_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(1 << (SCREEN_LOW_BITS - 1))), SCREEN_LOW_BITS);
    l[i] = _mm512_and_si512(_mm512_sub_epi32(x, _mm512_slli_epi32(h[i], SCREEN_LOW_BITS)), byte);
    h[i] = _mm512_and_si512(h[i], byte);
  }
  *high = _mm512_or_si512(_mm512_or_si512(h[0], _mm512_slli_epi32(h[1], 8)),
                          _mm512_or_si512(_mm512_slli_epi32(h[2], 16), _mm512_slli_epi32(h[3], 24)));
  *low = _mm512_or_si512(_mm512_or_si512(l[0], _mm512_slli_epi32(l[1], 8)),
                         _mm512_or_si512(_mm512_slli_epi32(l[2], 16), _mm512_slli_epi32(l[3], 24)));
}

static void mol_screen_items_bf16(const struct mol_shape *shape, const float *items, uint32_t *words)
{
  enum { ROWS = SCREEN_TILE_INPUTS / 4 };
  size_t dim = shape->component_dim;

  for (size_t m = 0; m < shape->n_item_components; m++) {
    for (size_t k = 0; k < dim; k += SCREEN_TILE_INPUTS, words += TILE_WORDS) {
      for (size_t r = 0; r < ROWS; r++) {
        UNROLL for (int v = 0; v < REGS; v++)
        {
          floats numbers[4];
          __m512i high, low;
          UNROLL for (size_t i = 0; i < 4; i++)
          {
            size_t at = k + 4 * r + i;
            numbers[i] = at < dim ? floats_load(items + (m * dim + at) * MOL_LANES + v * FLOATS_N) : floats_zero();
          }
          split_numbers(numbers, &high, &low);
          _mm512_storeu_si512(words + r * MOL_LANES + v * FLOATS_N, high);
          _mm512_storeu_si512(words + (ROWS + r) * MOL_LANES + v * FLOATS_N, low);
        }
      }
    }
  }
}

static void mol_screen_use_bf16(struct kernels *table)
{
  table->mol_screen = mol_screen_bf16;
  table->mol_screen_begin = mol_screen_begin_bf16;
  table->mol_screen_end = mol_screen_end_bf16;
  table->mol_screen_items = mol_screen_items_bf16;
  table->mol_screen_logits = mol_screen_logits_bf16;
}

#endif
