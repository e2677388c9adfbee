/* SPDX-License-Identifier: Apache-2.0 */
/* Vector code of the kernels, once for all instruction sets: to be included after a simd_*.h, which gives `vec`, its
 * operations and the tile sizes. Each lane takes the steps of kernels_ref.c, in that order; lanes are outputs or items,
 * never terms of one sum. Private to the variant files.
 */
#ifndef KERNELS_X86_SIMD_KERNELS_H
#define KERNELS_X86_SIMD_KERNELS_H

#include "kernels/x86/simd_math.h"
#include "kernels/x86/simd_mol.h"

/* linear -------------------- */

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

  UNROLL for (int v = 0; v < n_vecs; v++)
  {
    vec start = l->bias ? linear_load(l->bias + j + v * VEC_FLOATS, n_columns) : vec_zero();
    UNROLL for (int r = 0; r < n_rows; r++) sums[r][v] = start;
  }
  for (size_t k = 0; k < n_in; k++, w += n_out) {
    vec weights[LINEAR_VECS];
    UNROLL for (int v = 0; v < n_vecs; v++) weights[v] = linear_load(w + v * VEC_FLOATS, n_columns);
    UNROLL for (int r = 0; r < n_rows; r++)
    {
      vec input = vec_set1(x[(size_t)r * n_in + k]);
      UNROLL for (int v = 0; v < n_vecs; v++) sums[r][v] = vec_fma(input, weights[v], sums[r][v]);
    }
  }
  UNROLL for (int r = 0; r < n_rows; r++)
  {
    UNROLL for (int v = 0; v < n_vecs; v++) linear_store(y + (size_t)r * n_out + v * VEC_FLOATS, n_columns, sums[r][v]);
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

/* transpose -------------------- */

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

/* dot_blocks -------------------- */

enum { DOT_VECS = DOT_BLOCK_ITEMS / VEC_FLOATS, DOT_SUMS = 8 };

/* n_sums vectors of items, whole blocks. */
TILE void dot_tile(const float *query, size_t dim, const float *blocks, int n_sums, float *scores)
{
  vec sums[DOT_SUMS];

  UNROLL for (int i = 0; i < n_sums; i++) sums[i] = vec_zero();
  for (size_t k = 0; k < dim; k++) {
    vec q = vec_set1(query[k]);
    UNROLL for (int i = 0; i < n_sums; i++)
    {
      size_t row = (size_t)(i / DOT_VECS) * dim + k;
      sums[i] = vec_fma(q, vec_load(blocks + row * DOT_BLOCK_ITEMS + (i % DOT_VECS) * VEC_FLOATS), sums[i]);
    }
  }
  UNROLL for (int i = 0; i < n_sums; i++) vec_store(scores + i * VEC_FLOATS, sums[i]);
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

/* filter_ge -------------------- */

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
  table->filter_ge = VARIANT(filter_ge);
}

#endif
