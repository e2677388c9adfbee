/* Code of mol_upper(): lanes are items, the second factor of each tile product is 16 of them, the first is weights. To
 * be included after simd_avx512.h and one of the two headers of tile instructions. Private.
 */
#ifndef KERNELS_VECTOR_MOL_UPPER_H
#define KERNELS_VECTOR_MOL_UPPER_H

#include "kernels/mol_split.h"
#include "kernels/vector_mol.h"

enum { UPPER_VECS = MOL_LANES / VEC_FLOATS, PAIR_BYTES = 4 };

/* What deltas are cut at, where exp is still far from its largest argument; and a square that |l|^2 never comes near:
 * what lies beyond has no bound. */
#define UPPER_DELTA_MAX  40.0f
#define UPPER_SQUARE_MAX 0x1p60f
/* |l|^2 counts as no less, so that squares may underflow. */
#define UPPER_SQUARE_MIN 0x1p-100f

/* The inputs of a layer, for each 16 lanes: pairs of rows, in bf16, high parts and low parts.
 * [UPPER_VECS][n_in / 2][VEC_FLOATS], n_in of the layer in hand */
struct split_pairs {
  uint32_t *high, *low;
};

/* The parts of scratch, each aligned to 64; rows padded to whole tiles are zeros, or never read. */
struct upper_scratch {
  struct mol_scratch mol;
  struct split_pairs pairs;
};

static struct upper_scratch upper_scratch_split(const struct mol_split *split, float *scratch)
{
  size_t n_logits = split->first.n_in, n_hidden = split->first.n_out;
  size_t n_pairs = (n_logits > n_hidden ? n_logits : n_hidden) / 2;
  struct upper_scratch parts;

  parts.mol.logits = scratch;
  parts.mol.hidden = parts.mol.logits + n_logits * MOL_LANES;
  parts.mol.gates = parts.mol.hidden + n_hidden * MOL_LANES;
  parts.pairs.high = (uint32_t *)(void *)(parts.mol.gates + n_logits * MOL_LANES);
  parts.pairs.low = parts.pairs.high + n_pairs * MOL_LANES;
  parts.mol.query = (float *)(void *)(parts.pairs.low + n_pairs * MOL_LANES);
  return parts;
}

/* The part of x that bf16 holds. */
static inline vec vec_high_part(vec x)
{
  __m512i rounded = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));

  return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32((int)0xffff0000u)));
}

/* Pairs of two rows whose low 16 bits are zeros. */
static inline __m512i vec_pair(vec even, vec odd)
{
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16), _mm512_castps_si512(odd));
}

/* Split rows [n][MOL_LANES], n even. */
static void split_rows(const float *rows, size_t n, const struct split_pairs *out)
{
  for (size_t v = 0; v < UPPER_VECS; v++) {
    for (size_t k = 0; k < n; k += 2) {
      vec even = vec_load(rows + k * MOL_LANES + v * VEC_FLOATS);
      vec odd = vec_load(rows + (k + 1) * MOL_LANES + v * VEC_FLOATS);
      vec even_high = vec_high_part(even), odd_high = vec_high_part(odd);
      size_t at = (v * n + k) / 2 * VEC_FLOATS;
      _mm512_storeu_si512(out->high + at, vec_pair(even_high, odd_high));
      _mm512_storeu_si512(out->low + at,
                          vec_pair(vec_high_part(vec_sub(even, even_high)), vec_high_part(vec_sub(odd, odd_high))));
    }
  }
}

static void clear_rows(float *rows, size_t first, size_t end)
{
  for (size_t i = first * MOL_LANES; i < end * MOL_LANES; i += VEC_FLOATS)
    vec_store(rows + i, vec_zero());
}

/* One row of tiles: 16 outputs, all lanes. Tiles 0 and 1 are sums, 2 and 3 weights, 4 to 7 lanes. */
static void split_layer_rows(const struct split_layer *layer, size_t first_output, const struct split_pairs *in,
                             float *out)
{
  const uint16_t *high = layer->high + first_output * layer->n_in, *low = layer->low + first_output * layer->n_in;
  const size_t step = layer->n_in * sizeof *high, lanes_step = layer->n_in / 2 * VEC_FLOATS;
  const uint32_t *in_high = in->high, *in_low = in->low;

  tile_zero(0);
  tile_zero(1);
  for (size_t k = 0; k < layer->n_in; k += 2 * TILE_PAIRS) {
    tile_load(2, high + k, step);
    tile_load(4, in_high, VEC_FLOATS * PAIR_BYTES);
    tile_load(5, in_high + lanes_step, VEC_FLOATS * PAIR_BYTES);
    tile_add_products(0, 2, 4);
    tile_add_products(1, 2, 5);
    tile_load(6, in_low, VEC_FLOATS * PAIR_BYTES);
    tile_load(7, in_low + lanes_step, VEC_FLOATS * PAIR_BYTES);
    tile_add_products(0, 2, 6);
    tile_add_products(1, 2, 7);
    tile_load(3, low + k, step);
    tile_add_products(0, 3, 4);
    tile_add_products(1, 3, 5);
    in_high += TILE_PAIRS * VEC_FLOATS;
    in_low += TILE_PAIRS * VEC_FLOATS;
  }
  tile_store(0, out, MOL_LANES * sizeof *out);
  tile_store(1, out + VEC_FLOATS, MOL_LANES * sizeof *out);
}

/* out [layer->n_out][MOL_LANES], without the bias. */
static void split_layer_run(const struct split_layer *layer, const struct split_pairs *in, float *out)
{
  for (size_t o = 0; o < layer->n_out; o += TILE_ROWS)
    split_layer_rows(layer, o, in, out + o * MOL_LANES);
}

/* SiLU, but for 2^-14 of it. */
TILE void silu_roughly(vec *x, int n)
{
  vec e[MATH_VECS];

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = vec_max(vec_set1(-MATH_EXP_MAX), x[i]);
  EACH e[i] = vec_negate(x[i]);
  exp_vecs(e, n);
  EACH e[i] = _mm512_rcp14_ps(vec_add(e[i], vec_set1(1.0f)));
  EACH x[i] = vec_mul(x[i], e[i]);
#undef EACH
}

/* |x|^2 of every lane. */
static void square_rows(const float *rows, size_t n, vec squares[UPPER_VECS])
{
  UNROLL for (int v = 0; v < UPPER_VECS; v++) squares[v] = vec_zero();
  for (size_t k = 0; k < n; k++) {
    UNROLL for (int v = 0; v < UPPER_VECS; v++)
    {
      vec x = vec_load(rows + k * MOL_LANES + v * VEC_FLOATS);
      squares[v] = vec_fma(x, x, squares[v]);
    }
  }
}

enum { ROWS_AT_ONCE = MATH_VECS / UPPER_VECS };

/* n rows of h = SiLU(y + b). */
TILE void activate_hidden(float *rows, const float *bias, int n)
{
  vec x[MATH_VECS];

#define EACH UNROLL for (int i = 0; i < n * UPPER_VECS; i++)
  EACH x[i] = vec_add(vec_load(rows + i * VEC_FLOATS), vec_set1(bias[i / UPPER_VECS]));
  silu_roughly(x, n * UPPER_VECS);
  EACH vec_store(rows + i * VEC_FLOATS, x[i]);
#undef EACH
}

static void find_upper_hidden(float *rows, const float *bias, size_t n, size_t n_padded)
{
  size_t j = 0;

  for (; j + ROWS_AT_ONCE <= n; j += ROWS_AT_ONCE)
    activate_hidden(rows + j * MOL_LANES, bias + j, ROWS_AT_ONCE);
  for (; j < n; j++)
    activate_hidden(rows + j * MOL_LANES, bias + j, 1);
  clear_rows(rows, n, n_padded);
}

/* n rows of s = SiLU(u v + (w + b)), and the largest |z|. */
TILE void activate_gates(float *rows, const float *bias, const float *query_gate, const float *item_gates, int n,
                         vec largest[UPPER_VECS])
{
  vec x[MATH_VECS];

#define EACH UNROLL for (int i = 0; i < n * UPPER_VECS; i++)
  EACH x[i] = vec_add(vec_load(rows + i * VEC_FLOATS), vec_set1(bias[i / UPPER_VECS]));
  EACH x[i] = vec_fma(vec_set1(query_gate[i / UPPER_VECS]), vec_load(item_gates + i * VEC_FLOATS), x[i]);
  EACH largest[i % UPPER_VECS] = vec_max(largest[i % UPPER_VECS], _mm512_abs_ps(x[i]));
  silu_roughly(x, n * UPPER_VECS);
  EACH vec_store(rows + i * VEC_FLOATS, x[i]);
#undef EACH
}

static void find_upper_gates(float *rows, const float *bias, const float *query_gate, const float *item_gates, size_t n,
                             vec largest[UPPER_VECS])
{
  size_t p = 0;

  UNROLL for (int v = 0; v < UPPER_VECS; v++) largest[v] = vec_zero();
  for (; p + ROWS_AT_ONCE <= n; p += ROWS_AT_ONCE)
    activate_gates(rows + p * MOL_LANES, bias + p, query_gate + p, item_gates + p * MOL_LANES, ROWS_AT_ONCE, largest);
  for (; p < n; p++)
    activate_gates(rows + p * MOL_LANES, bias + p, query_gate + p, item_gates + p * MOL_LANES, 1, largest);
}

/* The score of VEC_FLOATS lanes, and the mean of l^2 under the same weights. */
static void mix_upper(const float *s, const float *l, size_t n, vec *score, vec *mean_square)
{
  vec max = vec_load(s), den = vec_zero(), num = vec_zero(), squares = vec_zero();
  size_t p = 0;

  for (size_t i = 1; i < n; i++)
    max = vec_max(vec_load(s + i * MOL_LANES), max);
  while (p < n) {
    int rows = n - p >= MATH_VECS ? MATH_VECS : 1;
    vec e[MATH_VECS];
    for (int i = 0; i < rows; i++)
      e[i] = vec_sub(vec_load(s + (p + (size_t)i) * MOL_LANES), max);
    if (rows == MATH_VECS)
      exp_vecs(e, MATH_VECS);
    else
      exp_vecs(e, 1);
    for (int i = 0; i < rows; i++, p++) {
      vec logit = vec_load(l + p * MOL_LANES), weighted = vec_mul(e[i], logit);
      den = vec_add(den, e[i]);
      num = vec_add(num, weighted);
      squares = vec_fma(weighted, logit, squares);
    }
  }
  *score = vec_div(num, den);
  *mean_square = vec_div(squares, den);
}

/* Steps 5 to 7 of the proof. */
static vec find_upper(const struct mol_split *split, size_t n_logits, vec score, vec mean_square, vec logit_squares,
                      vec hidden_squares, vec largest_gate)
{
  const vec rounding = vec_set1((float)(n_logits + 8) * 0x1p-21f), second_order = vec_set1(1 + 0x1p-10f);
  vec squares = vec_max(logit_squares, vec_set1(UPPER_SQUARE_MIN)), norm = _mm512_sqrt_ps(squares);
  vec delta = vec_set1(split->constant), error, upper;

  delta = vec_fma(vec_set1(split->per_logits), norm, delta);
  delta = vec_fma(vec_set1(split->per_hidden), _mm512_sqrt_ps(hidden_squares), delta);
  delta = vec_fma(vec_set1(split->per_gate), largest_gate, delta);
  /* Rounding of the mean square and of the score's square: (6 L + 20) 2^-24 |l|^2. */
  vec variance = vec_sub(mean_square, vec_mul(score, score));
  variance = vec_fma(rounding, squares, vec_max(variance, vec_zero()));
  /* (exp(2 delta) - 1) / 2, and what the difference loses */
  error = vec_mul(vec_min(delta, vec_set1(UPPER_DELTA_MAX)), vec_set1(2.0f));
  exp_vecs(&error, 1);
  error = vec_fma(error, vec_set1(0.5f), vec_set1(0x1p-20f - 0.5f));
  error = vec_fma(vec_mul(error, second_order), _mm512_sqrt_ps(variance), vec_mul(rounding, norm));
  upper = vec_fma(error, second_order, score);
  /* False where anything is NaN. */
  __mmask16 is_bound = _mm512_cmp_ps_mask(delta, vec_set1(UPPER_DELTA_MAX), _CMP_LT_OQ) &
                       _mm512_cmp_ps_mask(logit_squares, vec_set1(UPPER_SQUARE_MAX), _CMP_LT_OQ) &
                       _mm512_cmp_ps_mask(upper, vec_set1(INFINITY), _CMP_LT_OQ);
  return _mm512_mask_mov_ps(vec_set1(INFINITY), is_bound, upper);
}

static void VARIANT(mol_upper)(const struct mol_shape *shape, const struct mol_gate *gate,
                               const struct mol_split *split, const float *query, const float *query_gate,
                               const float *items, const float *item_gates, float *scratch,
                               const struct mol_ahead *ahead, float *upper)
{
  struct mol_ahead rest = ahead ? *ahead : (struct mol_ahead){ 0 };
  struct upper_scratch part = upper_scratch_split(split, scratch);
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;
  vec logit_squares[UPPER_VECS], hidden_squares[UPPER_VECS], largest_gate[UPPER_VECS];

  find_logits(shape, &part.mol, query, items, &rest);
  clear_rows(part.mol.logits, n_logits, split->first.n_in);
  square_rows(part.mol.logits, n_logits, logit_squares);
  tiles_begin();
  split_rows(part.mol.logits, split->first.n_in, &part.pairs);
  split_layer_run(&split->first, &part.pairs, part.mol.hidden);
  find_upper_hidden(part.mol.hidden, gate->b1, n_hidden, split->second.n_in);
  square_rows(part.mol.hidden, n_hidden, hidden_squares);
  split_rows(part.mol.hidden, split->second.n_in, &part.pairs);
  split_layer_run(&split->second, &part.pairs, part.mol.gates);
  tiles_end();
  find_upper_gates(part.mol.gates, gate->b2, query_gate, item_gates, n_logits, largest_gate);
  for (int v = 0; v < UPPER_VECS; v++) {
    vec score, mean_square;
    mix_upper(part.mol.gates + v * VEC_FLOATS, part.mol.logits + v * VEC_FLOATS, n_logits, &score, &mean_square);
    vec_store(upper + v * VEC_FLOATS,
              find_upper(split, n_logits, score, mean_square, logit_squares[v], hidden_squares[v], largest_gate[v]));
  }
}

#endif
