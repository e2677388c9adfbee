/* Vector code of every kernel, once for all instruction sets: to be included after a simd_*.h, which gives `vec`, its
 * operations and the tile sizes. Each lane takes the steps of kernels_ref.c, in that order; lanes are outputs or items,
 * never terms of one sum. Private to the variant files.
 */
#ifndef KERNELS_VECTOR_KERNELS_H
#define KERNELS_VECTOR_KERNELS_H

#include "kernels/math_ref.h"
#include "kernels/variants.h"

#define VECTOR_JOIN_(stem, suffix) stem##_##suffix
#define VECTOR_JOIN(stem, suffix)  VECTOR_JOIN_(stem, suffix)
#define VARIANT(stem)              VECTOR_JOIN(stem, SIMD_SUFFIX)

/* Tiles are functions of constant sizes: inlined and unrolled (UNROLL), their arrays of vectors become registers. */
#define TILE static inline __attribute__((always_inline))
/* Functions of their own: there the compiler keeps the pointers of the inner loop in registers. */
#define OWN static __attribute__((noinline))

/* x[i] = math_exp(x[i]) for x[i] <= MATH_EXP_MAX. One vector's steps wait for each other, those of n vectors do not: so
 * each step is written for all of them before the next. */
TILE void exp_vecs(vec *x, int n)
{
  vec shifted[MATH_VECS], n_float[MATH_VECS], r[MATH_VECS], p[MATH_VECS];
  const vec round = vec_set1(MATH_ROUND), one = vec_set1(1.0f);

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = vec_max(x[i], vec_set1(MATH_EXP_MIN));
  EACH shifted[i] = vec_fma(x[i], vec_set1(MATH_LOG2_E), round);
  EACH n_float[i] = vec_sub(shifted[i], round);
  EACH r[i] = vec_fma(n_float[i], vec_set1(-MATH_LN2_HI), x[i]);
  EACH r[i] = vec_fma(n_float[i], vec_set1(-MATH_LN2_LO), r[i]);
  EACH p[i] = vec_fma(vec_set1(MATH_EXP_C6), r[i], vec_set1(MATH_EXP_C5));
  EACH p[i] = vec_fma(p[i], r[i], vec_set1(MATH_EXP_C4));
  EACH p[i] = vec_fma(p[i], r[i], vec_set1(MATH_EXP_C3));
  EACH p[i] = vec_fma(p[i], r[i], vec_set1(MATH_EXP_C2));
  EACH p[i] = vec_fma(p[i], r[i], one);
  EACH p[i] = vec_fma(p[i], r[i], one);
  EACH x[i] = vec_scale(p[i], n_float[i], shifted[i]);
#undef EACH
}

/* x[i] = math_silu(x[i]) */
TILE void silu_vecs(vec *x, int n)
{
  vec e[MATH_VECS];

#define EACH UNROLL for (int i = 0; i < n; i++)
  EACH x[i] = vec_max(vec_set1(-MATH_EXP_MAX), x[i]);
  EACH e[i] = vec_negate(x[i]);
  exp_vecs(e, n);
  EACH e[i] = vec_add(e[i], vec_set1(1.0f));
  EACH x[i] = vec_div(x[i], e[i]);
#undef EACH
}

TILE void silu_tile(float *x, int n)
{
  vec v[MATH_VECS];

  UNROLL for (int i = 0; i < n; i++)
    v[i] = vec_load(x + i * VEC_FLOATS);
  silu_vecs(v, n);
  UNROLL for (int i = 0; i < n; i++)
    vec_store(x + i * VEC_FLOATS, v[i]);
}

static void VARIANT(silu)(float *x, size_t n)
{
  size_t i = 0;

  for (; i + MATH_VECS * VEC_FLOATS <= n; i += MATH_VECS * VEC_FLOATS)
    silu_tile(x + i, MATH_VECS);
  for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)
    silu_tile(x + i, 1);
  if (i < n) {
    vec last = vec_load_first(x + i, n - i);
    silu_vecs(&last, 1);
    vec_store_first(x + i, n - i, last);
  }
}

/* linear ---------------------------------------------------------------------------------------------------------- */

struct linear {
  const float *x;
  const float *w;
  const float *bias;
  float *y;
  size_t n;
  size_t n_in;
  size_t n_out;
};

TILE vec linear_load(const float *p, size_t n_columns)
{
  return n_columns < VEC_FLOATS ? vec_load_first(p, n_columns) : vec_load(p);
}

TILE void linear_store(float *p, size_t n_columns, vec v)
{
  if (n_columns < VEC_FLOATS)
    vec_store_first(p, n_columns, v);
  else
    vec_store(p, v);
}

/* Outputs j and on of rows i and on: n_rows x n_vecs vectors, of n_columns floats each. */
TILE void linear_tile(const struct linear *l, size_t i, size_t j, int n_rows, int n_vecs, size_t n_columns)
{
  const size_t n_in = l->n_in, n_out = l->n_out;
  const float *x = l->x + i * n_in, *w = l->w + j;
  float *y = l->y + i * n_out + j;
  vec sums[LINEAR_ROWS][LINEAR_VECS];

  UNROLL for (int v = 0; v < n_vecs; v++) {
    vec start = l->bias ? linear_load(l->bias + j + v * VEC_FLOATS, n_columns) : vec_zero();
    UNROLL for (int r = 0; r < n_rows; r++)
      sums[r][v] = start;
  }
  for (size_t k = 0; k < n_in; k++, w += n_out) {
    vec weights[LINEAR_VECS];
    UNROLL for (int v = 0; v < n_vecs; v++)
      weights[v] = linear_load(w + v * VEC_FLOATS, n_columns);
    UNROLL for (int r = 0; r < n_rows; r++) {
      vec input = vec_set1(x[(size_t)r * n_in + k]);
      UNROLL for (int v = 0; v < n_vecs; v++)
        sums[r][v] = vec_fma(input, weights[v], sums[r][v]);
    }
  }
  UNROLL for (int r = 0; r < n_rows; r++) {
    UNROLL for (int v = 0; v < n_vecs; v++)
      linear_store(y + (size_t)r * n_out + v * VEC_FLOATS, n_columns, sums[r][v]);
  }
}

OWN void linear_rows(const struct linear *l, size_t i, size_t j)
{
  linear_tile(l, i, j, LINEAR_ROWS, LINEAR_VECS, VEC_FLOATS);
}

OWN void linear_row(const struct linear *l, size_t i, size_t j)
{
  linear_tile(l, i, j, 1, LINEAR_VECS, VEC_FLOATS);
}

/* One vector of outputs, or less of one. */
OWN void linear_rows_narrow(const struct linear *l, size_t i, size_t j, size_t n_columns)
{
  linear_tile(l, i, j, LINEAR_ROWS, 1, n_columns);
}

OWN void linear_row_narrow(const struct linear *l, size_t i, size_t j, size_t n_columns)
{
  linear_tile(l, i, j, 1, 1, n_columns);
}

static void VARIANT(linear)(const float *x, size_t n, size_t n_in, const float *w, const float *bias, size_t n_out,
                            float *y)
{
  struct linear l = { x, w, bias, y, n, n_in, n_out };
  size_t j = 0;

  for (; j + LINEAR_VECS * VEC_FLOATS <= n_out; j += LINEAR_VECS * VEC_FLOATS) {
    size_t i = 0;
    for (; i + LINEAR_ROWS <= n; i += LINEAR_ROWS)
      linear_rows(&l, i, j);
    for (; i < n; i++)
      linear_row(&l, i, j);
  }
  for (; j < n_out; j += VEC_FLOATS) {
    size_t i = 0, n_columns = n_out - j < VEC_FLOATS ? n_out - j : VEC_FLOATS;
    for (; i + LINEAR_ROWS <= n; i += LINEAR_ROWS)
      linear_rows_narrow(&l, i, j, n_columns);
    for (; i < n; i++)
      linear_row_narrow(&l, i, j, n_columns);
  }
}

/* transpose ------------------------------------------------------------------------------------------------------- */

/* Four columns of VEC_FLOATS rows, of which n_rows count. */
TILE void transpose_quad(const float *const *rows, size_t n_rows, size_t column, float *out)
{
  vec columns[4];

  vec_transpose4(rows, column, columns);
  UNROLL for (int c = 0; c < 4; c++)
    vec_store(out + c * MOL_LANES, n_rows < VEC_FLOATS ? vec_keep_first(columns[c], n_rows) : columns[c]);
}

TILE void transpose_quads(const float *const *rows, size_t n_rows, size_t n_quads, float *out)
{
  for (size_t q = 0; q < n_quads; q++)
    transpose_quad(rows, n_rows, 4 * q, out + 4 * q * MOL_LANES);
}

/* n_rows of VEC_FLOATS rows count; the others may be any that can be read. */
static void transpose_rows(const float *const *rows, size_t n_rows, size_t n_cols, float *out)
{
  if (n_rows == VEC_FLOATS)
    transpose_quads(rows, VEC_FLOATS, n_cols / 4, out);
  else
    transpose_quads(rows, n_rows, n_cols / 4, out);
  for (size_t c = n_cols / 4 * 4; c < n_cols; c++) {
    for (size_t i = 0; i < VEC_FLOATS; i++)
      out[c * MOL_LANES + i] = i < n_rows ? rows[i][c] : 0.0f;
  }
}

static void transpose_none(size_t n_cols, float *out)
{
  for (size_t c = 0; c < n_cols; c++)
    vec_store(out + c * MOL_LANES, vec_zero());
}

static void VARIANT(transpose)(const float *const *rows, size_t n_rows, size_t n_cols, float *out)
{
  for (size_t first = 0; first < MOL_LANES; first += VEC_FLOATS) {
    const float *group[VEC_FLOATS];
    size_t n = n_rows > first ? n_rows - first : 0;

    n = n < VEC_FLOATS ? n : VEC_FLOATS;
    if (n == 0) {
      transpose_none(n_cols, out + first);
      continue;
    }
    for (size_t i = 0; i < VEC_FLOATS; i++)
      group[i] = rows[first + (i < n ? i : 0)];
    transpose_rows(group, n, n_cols, out + first);
  }
}

/* mol_score ------------------------------------------------------------------------------------------------------- */

/* One matrix product for all lanes: out[j][lane] = bias[j] + sum over k, rising, of in[k][lane] * w[k][j]. */
struct layer {
  const float *in; /* [n_in][MOL_LANES] */
  size_t n_in;
  const float *w;    /* [n_in][n_out] */
  const float *bias; /* [n_out]; NULL for zeros */
  size_t n_out;
  float *out; /* row j at out + j * out_step */
  size_t out_step;
};

/* n_out outputs from j on, LAYER_VECS vectors of lanes from `lane` on. */
TILE void layer_tile(const struct layer *l, size_t j, int n_out, size_t lane)
{
  const float *in = l->in + lane, *w = l->w + j;
  const size_t w_step = l->n_out, out_step = l->out_step;
  vec sums[LAYER_OUTPUTS][LAYER_VECS];
  float *out = l->out + j * out_step + lane;

  UNROLL for (int o = 0; o < n_out; o++) {
    UNROLL for (int v = 0; v < LAYER_VECS; v++)
      sums[o][v] = l->bias ? vec_set1(l->bias[j + (size_t)o]) : vec_zero();
  }
  for (size_t k = l->n_in; k > 0; k--) {
    vec inputs[LAYER_VECS];
    UNROLL for (int v = 0; v < LAYER_VECS; v++)
      inputs[v] = vec_load(in + v * VEC_FLOATS);
    UNROLL for (int o = 0; o < n_out; o++) {
      vec weight = vec_set1(w[o]);
      UNROLL for (int v = 0; v < LAYER_VECS; v++)
        sums[o][v] = vec_fma(inputs[v], weight, sums[o][v]);
    }
    in += MOL_LANES;
    w += w_step;
  }
  UNROLL for (int o = 0; o < n_out; o++) {
    UNROLL for (int v = 0; v < LAYER_VECS; v++)
      vec_store(out + (size_t)o * out_step + v * VEC_FLOATS, sums[o][v]);
  }
}

OWN void layer_outputs(const struct layer *l, size_t j, size_t lane)
{
  layer_tile(l, j, LAYER_OUTPUTS, lane);
}

OWN void layer_half(const struct layer *l, size_t j, size_t lane)
{
  layer_tile(l, j, 4, lane);
}

OWN void layer_single(const struct layer *l, size_t j, size_t lane)
{
  layer_tile(l, j, 1, lane);
}

static void layer_run(const struct layer *l)
{
  for (size_t lane = 0; lane < MOL_LANES; lane += LAYER_VECS * VEC_FLOATS) {
    size_t j = 0;
    for (; j + LAYER_OUTPUTS <= l->n_out; j += LAYER_OUTPUTS)
      layer_outputs(l, j, lane);
    for (; j + 4 <= l->n_out; j += LAYER_OUTPUTS / 2)
      layer_half(l, j, lane);
    for (; j < l->n_out; j++)
      layer_single(l, j, lane);
  }
}

static void find_logits(const struct mol_shape *shape, const struct mol_scratch *part, const float *query,
                        const float *items)
{
  size_t n_query = shape->n_query_components, n_items = shape->n_item_components, dim = shape->component_dim;
  vec inv_temperature = vec_set1(shape->inv_temperature);

  for (size_t n = 0; n < n_query; n++) {
    for (size_t k = 0; k < dim; k++)
      part->query[k * n_query + n] = query[n * dim + k];
  }
  for (size_t m = 0; m < n_items; m++) {
    struct layer l = { .in = items + m * dim * MOL_LANES, .n_in = dim, .w = part->query, .n_out = n_query,
                       .out = part->logits + m * MOL_LANES, .out_step = n_items * MOL_LANES };
    layer_run(&l);
  }
  for (size_t i = 0; i < n_query * n_items * MOL_LANES; i += VEC_FLOATS)
    vec_store(part->logits + i, vec_mul(vec_load(part->logits + i), inv_temperature));
}

static void find_hidden(const struct mol_scratch *part, const struct mol_gate *gate, size_t n_logits, size_t n_hidden)
{
  struct layer l = { .in = part->logits, .n_in = n_logits, .w = gate->w1, .bias = gate->b1, .n_out = n_hidden,
                     .out = part->hidden, .out_step = MOL_LANES };

  layer_run(&l);
  VARIANT(silu)(part->hidden, n_hidden * MOL_LANES);
}

static void find_gates(const struct mol_scratch *part, const struct mol_gate *gate, size_t n_logits, size_t n_hidden,
                       const float *query_gate, const float *item_gates)
{
  struct layer l = { .in = part->hidden, .n_in = n_hidden, .w = gate->w2, .bias = gate->b2, .n_out = n_logits,
                     .out = part->gates, .out_step = MOL_LANES };

  layer_run(&l);
  for (size_t p = 0; p < n_logits; p++) {
    float *z = part->gates + p * MOL_LANES;
    for (size_t i = 0; i < MOL_LANES; i += VEC_FLOATS)
      vec_store(z + i, vec_fma(vec_set1(query_gate[p]), vec_load(item_gates + p * MOL_LANES + i), vec_load(z + i)));
  }
  VARIANT(silu)(part->gates, n_logits * MOL_LANES);
}

/* The softmax of MIX_VECS vectors of lanes. */
enum { MIX_VECS = LAYER_VECS, MIX_ROWS = MATH_VECS / MIX_VECS };

struct mix {
  vec max[MIX_VECS];
  vec den[MIX_VECS];
  vec num[MIX_VECS];
};

/* Add n_rows values of p to the sums, in their order. */
TILE void mix_rows(struct mix *mix, const float *s, const float *l, int n_rows)
{
  vec e[MIX_ROWS * MIX_VECS];

  UNROLL for (int i = 0; i < n_rows * MIX_VECS; i++) {
    const float *at = s + i / MIX_VECS * MOL_LANES + i % MIX_VECS * VEC_FLOATS;
    e[i] = vec_sub(vec_load(at), mix->max[i % MIX_VECS]);
  }
  exp_vecs(e, n_rows * MIX_VECS);
  UNROLL for (int i = 0; i < n_rows * MIX_VECS; i++) {
    const float *at = l + i / MIX_VECS * MOL_LANES + i % MIX_VECS * VEC_FLOATS;
    mix->den[i % MIX_VECS] = vec_add(mix->den[i % MIX_VECS], e[i]);
    mix->num[i % MIX_VECS] = vec_fma(e[i], vec_load(at), mix->num[i % MIX_VECS]);
  }
}

TILE void mix_logits(const float *s, const float *l, size_t n, float *phi)
{
  struct mix mix;
  size_t p = 0;

  UNROLL for (int v = 0; v < MIX_VECS; v++) {
    mix.max[v] = vec_load(s + v * VEC_FLOATS);
    mix.den[v] = mix.num[v] = vec_zero();
  }
  for (size_t i = 1; i < n; i++) {
    UNROLL for (int v = 0; v < MIX_VECS; v++)
      mix.max[v] = vec_max(vec_load(s + i * MOL_LANES + v * VEC_FLOATS), mix.max[v]);
  }
  for (; p + MIX_ROWS <= n; p += MIX_ROWS)
    mix_rows(&mix, s + p * MOL_LANES, l + p * MOL_LANES, MIX_ROWS);
  for (; p < n; p++)
    mix_rows(&mix, s + p * MOL_LANES, l + p * MOL_LANES, 1);
  UNROLL for (int v = 0; v < MIX_VECS; v++)
    vec_store(phi + v * VEC_FLOATS, vec_div(mix.num[v], mix.den[v]));
}

static void VARIANT(mol_score)(const struct mol_shape *shape, const struct mol_gate *gate, const float *query,
                               const float *query_gate, const float *items, const float *item_gates, float *scratch,
                               float *phi)
{
  struct mol_scratch part = mol_scratch_split(shape, scratch);
  size_t n_logits = shape->n_query_components * shape->n_item_components;

  find_logits(shape, &part, query, items);
  find_hidden(&part, gate, n_logits, shape->gate_hidden);
  find_gates(&part, gate, n_logits, shape->gate_hidden, query_gate, item_gates);
  for (size_t lane = 0; lane < MOL_LANES; lane += MIX_VECS * VEC_FLOATS)
    mix_logits(part.gates + lane, part.logits + lane, n_logits, phi + lane);
}

/* dot_blocks ------------------------------------------------------------------------------------------------------ */

enum { DOT_VECS = DOT_BLOCK_ITEMS / VEC_FLOATS, DOT_SUMS = 8 };

/* n_sums vectors of items, whole blocks. */
TILE void dot_tile(const float *query, size_t dim, const float *blocks, int n_sums, float *scores)
{
  vec sums[DOT_SUMS];

  UNROLL for (int i = 0; i < n_sums; i++)
    sums[i] = vec_zero();
  for (size_t k = 0; k < dim; k++) {
    vec q = vec_set1(query[k]);
    UNROLL for (int i = 0; i < n_sums; i++) {
      size_t row = (size_t)(i / DOT_VECS) * dim + k;
      sums[i] = vec_fma(q, vec_load(blocks + row * DOT_BLOCK_ITEMS + (i % DOT_VECS) * VEC_FLOATS), sums[i]);
    }
  }
  UNROLL for (int i = 0; i < n_sums; i++)
    vec_store(scores + i * VEC_FLOATS, sums[i]);
}

static void VARIANT(dot_blocks)(const float *query, size_t dim, const float *blocks, size_t n_blocks, float *scores)
{
  enum { TILE_BLOCKS = DOT_SUMS / DOT_VECS };
  size_t b = 0;

  for (; b + TILE_BLOCKS <= n_blocks; b += TILE_BLOCKS)
    dot_tile(query, dim, blocks + b * dim * DOT_BLOCK_ITEMS, DOT_SUMS, scores + b * DOT_BLOCK_ITEMS);
  for (; b < n_blocks; b++)
    dot_tile(query, dim, blocks + b * dim * DOT_BLOCK_ITEMS, DOT_VECS, scores + b * DOT_BLOCK_ITEMS);
}

/* pq_scan --------------------------------------------------------------------------------------------------------- */

static void VARIANT(pq_scan)(const float *subitem_scores, size_t n_splits, const uint8_t *codes, size_t n_blocks,
                             float *scores)
{
  enum { VECS = PQ_BLOCK_ITEMS / VEC_FLOATS };

  for (size_t b = 0; b < n_blocks; b++, codes += n_splits * PQ_BLOCK_ITEMS, scores += PQ_BLOCK_ITEMS) {
    vec sums[VECS], terms[VECS];
    vec_look_up64(subitem_scores, codes, sums);
    for (size_t m = 1; m < n_splits; m++) {
      vec_look_up64(subitem_scores + m * PQ_SUBITEMS, codes + m * PQ_BLOCK_ITEMS, terms);
      UNROLL for (int v = 0; v < VECS; v++)
        sums[v] = vec_add(sums[v], terms[v]);
    }
    UNROLL for (int v = 0; v < VECS; v++)
      vec_store(scores + v * VEC_FLOATS, sums[v]);
  }
}

/* filter_ge ------------------------------------------------------------------------------------------------------- */

static size_t VARIANT(filter_ge)(const float *scores, size_t n, float threshold, uint32_t *indices)
{
  vec bound = vec_set1(threshold);
  size_t found = 0, i = 0;

  /* What is found never outruns what is read, so that VEC_FLOATS places are free at indices[found]. */
  for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)
    found += vec_append_ge(scores + i, bound, (uint32_t)i, indices + found);
  for (; i < n; i++) {
    if (scores[i] >= threshold)
      indices[found++] = (uint32_t)i;
  }
  return found;
}

static void fill_table(struct kernels *table)
{
  table->linear = VARIANT(linear);
  table->silu = VARIANT(silu);
  table->transpose = VARIANT(transpose);
  table->mol_score = VARIANT(mol_score);
  table->dot_blocks = VARIANT(dot_blocks);
  table->pq_scan = VARIANT(pq_scan);
  table->filter_ge = VARIANT(filter_ge);
}

#endif
