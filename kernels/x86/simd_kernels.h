/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernels_ref.c, written once for all instruction sets. Each lane takes the steps of the reference, in
 * the same order: lanes are outputs or items, never terms of one sum. Include it after simd_avx2.h or simd_avx512.h,
 * which define `floats`, its operations and the tile sizes. Private to the variant files.
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

TILE floats linear_load(const float *p, size_t n_columns)
{
  return n_columns < FLOATS_N ? floats_load_first(p, n_columns) : floats_load(p);
}

TILE void linear_store(float *p, size_t n_columns, floats v)
{
  if (n_columns < FLOATS_N)
    floats_store_first(p, n_columns, v);
  else
    floats_store(p, v);
}

/* Compute a tile: n_rows rows from row i, and n_regs registers of n_columns outputs each from output j. */
TILE void linear_tile(const struct linear *l, size_t i, size_t j, int n_rows, int n_regs, size_t n_columns)
{
  const size_t n_in = l->n_in, n_out = l->n_out;
  const float *x = l->x + i * n_in, *w = l->w + j;
  float *y = l->y + i * n_out + j;
  floats sums[LINEAR_ROWS][LINEAR_REGS];

  UNROLL for (int v = 0; v < n_regs; v++)
  {
    floats start = l->bias ? linear_load(l->bias + j + v * FLOATS_N, n_columns) : floats_zero();
    UNROLL for (int r = 0; r < n_rows; r++) sums[r][v] = start;
  }
  for (size_t k = 0; k < n_in; k++, w += n_out) {
    floats weights[LINEAR_REGS];
    UNROLL for (int v = 0; v < n_regs; v++) weights[v] = linear_load(w + v * FLOATS_N, n_columns);
    UNROLL for (int r = 0; r < n_rows; r++)
    {
      floats input = floats_set1(x[(size_t)r * n_in + k]);
      UNROLL for (int v = 0; v < n_regs; v++) sums[r][v] = floats_fma(input, weights[v], sums[r][v]);
    }
  }
  UNROLL for (int r = 0; r < n_rows; r++)
  {
    UNROLL for (int v = 0; v < n_regs; v++) linear_store(y + (size_t)r * n_out + v * FLOATS_N, n_columns, sums[r][v]);
  }
}

OWN void linear_rows(const struct linear *l, size_t i, size_t j)
{
  linear_tile(l, i, j, LINEAR_ROWS, LINEAR_REGS, FLOATS_N);
}

OWN void linear_row(const struct linear *l, size_t i, size_t j)
{
  linear_tile(l, i, j, 1, LINEAR_REGS, FLOATS_N);
}

/* Compute one register of outputs for LINEAR_ROWS rows. Only its first n_columns outputs are used. */
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

  for (; j + LINEAR_REGS * FLOATS_N <= n_out; j += LINEAR_REGS * FLOATS_N) {
    size_t i = 0;
    for (; i + LINEAR_ROWS <= n; i += LINEAR_ROWS)
      linear_rows(&l, i, j);
    for (; i < n; i++)
      linear_row(&l, i, j);
  }
  for (; j < n_out; j += FLOATS_N) {
    size_t i = 0, n_columns = n_out - j < FLOATS_N ? n_out - j : FLOATS_N;
    for (; i + LINEAR_ROWS <= n; i += LINEAR_ROWS)
      linear_rows_narrow(&l, i, j, n_columns);
    for (; i < n; i++)
      linear_row_narrow(&l, i, j, n_columns);
  }
}

/* transpose -------------------- */

TILE void store_columns(const floats *columns, int n, size_t n_rows, float *out)
{
  UNROLL for (int c = 0; c < n; c++)
      floats_store(out + c * MOL_LANES, n_rows < FLOATS_N ? floats_keep_first(columns[c], n_rows) : columns[c]);
}

/* Transpose whole registers, then groups of four columns. Returns how many columns that are. */
TILE size_t transpose_columns(const float *const *rows, size_t n_rows, size_t n_cols, float *out)
{
  floats columns[FLOATS_N];
  size_t k = 0;

  for (; k + FLOATS_N <= n_cols; k += FLOATS_N) {
    floats_transpose_square(rows, k, columns);
    store_columns(columns, FLOATS_N, n_rows, out + k * MOL_LANES);
  }
  for (; k + 4 <= n_cols; k += 4) {
    floats_transpose4(rows, k, columns);
    store_columns(columns, 4, n_rows, out + k * MOL_LANES);
  }
  return k;
}

/* Transpose FLOATS_N rows. The rows from n_rows on count as zeros, but their pointers must be readable. */
static void transpose_rows(const float *const *rows, size_t n_rows, size_t n_cols, float *out)
{
  size_t k = n_rows == FLOATS_N ? transpose_columns(rows, FLOATS_N, n_cols, out)
                                : transpose_columns(rows, n_rows, n_cols, out);

  for (; k < n_cols; k++) {
    for (size_t i = 0; i < FLOATS_N; i++)
      out[k * MOL_LANES + i] = i < n_rows ? rows[i][k] : 0.0f;
  }
}

static void transpose_none(size_t n_cols, float *out)
{
  for (size_t c = 0; c < n_cols; c++)
    floats_store(out + c * MOL_LANES, floats_zero());
}

static void VARIANT(transpose)(const float *const *rows, size_t n_rows, size_t n_cols, float *out)
{
  for (size_t first = 0; first < MOL_LANES; first += FLOATS_N) {
    const float *group[FLOATS_N];
    size_t n = n_rows > first ? n_rows - first : 0;

    n = n < FLOATS_N ? n : FLOATS_N;
    if (n == 0) {
      transpose_none(n_cols, out + first);
      continue;
    }
    for (size_t i = 0; i < FLOATS_N; i++)
      group[i] = rows[first + (i < n ? i : 0)];
    transpose_rows(group, n, n_cols, out + first);
  }
}

/* dot_blocks -------------------- */

enum { DOT_REGS = DOT_BLOCK_ITEMS / FLOATS_N, DOT_SUMS = 8 };

/* Score n_sums registers of items, which are whole blocks. */
TILE void dot_tile(const float *query, size_t dim, const float *blocks, int n_sums, float *scores)
{
  floats sums[DOT_SUMS];

  UNROLL for (int i = 0; i < n_sums; i++) sums[i] = floats_zero();
  for (size_t k = 0; k < dim; k++) {
    floats q = floats_set1(query[k]);
    UNROLL for (int i = 0; i < n_sums; i++)
    {
      size_t row = (size_t)(i / DOT_REGS) * dim + k;
      sums[i] = floats_fma(q, floats_load(blocks + row * DOT_BLOCK_ITEMS + (i % DOT_REGS) * FLOATS_N), sums[i]);
    }
  }
  UNROLL for (int i = 0; i < n_sums; i++) floats_store(scores + i * FLOATS_N, sums[i]);
}

static void VARIANT(dot_blocks)(const float *query, size_t dim, const float *blocks, size_t n_blocks, float *scores)
{
  enum { TILE_BLOCKS = DOT_SUMS / DOT_REGS };
  size_t b = 0;

  for (; b + TILE_BLOCKS <= n_blocks; b += TILE_BLOCKS)
    dot_tile(query, dim, blocks + b * dim * DOT_BLOCK_ITEMS, DOT_SUMS, scores + b * DOT_BLOCK_ITEMS);
  for (; b < n_blocks; b++)
    dot_tile(query, dim, blocks + b * dim * DOT_BLOCK_ITEMS, DOT_REGS, scores + b * DOT_BLOCK_ITEMS);
}

/* filter_ge -------------------- */

static size_t VARIANT(filter_ge)(const float *scores, size_t n, float threshold, uint32_t *indices)
{
  floats bound = floats_set1(threshold);
  size_t found = 0, i = 0;

  /* found <= i, so indices[found] has room for FLOATS_N indices. */
  for (; i + FLOATS_N <= n; i += FLOATS_N)
    found += floats_append_ge(scores + i, bound, (uint32_t)i, indices + found);
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
