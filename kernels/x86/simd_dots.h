/* SPDX-License-Identifier: Apache-2.0 */
/* dot_f64() and dots_f64(), written once for all instruction sets. Include it after a simd_numbers_*.h. Private to the
 * variant files. */
#ifndef KERNELS_X86_SIMD_DOTS_H
#define KERNELS_X86_SIMD_DOTS_H

#include <string.h>

#include "kernels/x86/simd_macros.h"

/* dot_f64 -------------------- */

enum { PARTIAL_SUMS = 32, PARTIAL_REGS = PARTIAL_SUMS / DOUBLES_N };

TILE void add_products(const double *query, const float *row, doubles sums[PARTIAL_REGS])
{
  UNROLL for (int i = 0; i < PARTIAL_REGS; i++) sums[i] =
      doubles_fma(doubles_load(query + i * DOUBLES_N), doubles_from_floats(row + i * DOUBLES_N), sums[i]);
}

TILE double sum_by_halves(doubles sums[PARTIAL_REGS])
{
  double last[DOUBLES_N];

  UNROLL for (int half = PARTIAL_REGS / 2; half > 0; half /= 2)
  {
    UNROLL for (int i = 0; i < half; i++) sums[i] = doubles_add(sums[i], sums[i + half]);
  }
  doubles_store(last, sums[0]);
  UNROLL for (int half = DOUBLES_N / 2; half > 0; half /= 2)
  {
    UNROLL for (int i = 0; i < half; i++) last[i] += last[i + half];
  }
  return last[0];
}

static double VARIANT(dot_f64)(const double *query, const float *row, size_t n)
{
  doubles sums[PARTIAL_REGS];
  size_t k = 0;

  UNROLL for (int i = 0; i < PARTIAL_REGS; i++) sums[i] = doubles_zero();
  for (; k + PARTIAL_SUMS <= n; k += PARTIAL_SUMS)
    add_products(query + k, row + k, sums);
  if (k < n) {
    double last_query[PARTIAL_SUMS] = { 0 };
    float last_row[PARTIAL_SUMS] = { 0 };
    memcpy(last_query, query + k, (n - k) * sizeof *query);
    memcpy(last_row, row + k, (n - k) * sizeof *row);
    add_products(last_query, last_row, sums);
  }
  return sum_by_halves(sums);
}

/* dots_f64 --------------------
 *
 * Partial sums do not depend on each other. So a tile makes one pass for each register of partial sums. A pass keeps
 * that register of all dot products of the tile, and each number that it loads and converts serves several of them. */

struct dots {
  const double *rows;
  size_t n_rows;
  const float *const *vectors;
  size_t n_vectors;
  size_t dim;
  double *out;
};

/* Where the numbers of a tile are. After the last row or vector, it comes again. */
struct dots_tile {
  const double *rows[DOTS_ROWS];
  const float *vectors[DOTS_VECTORS];
};

/* The numbers of a tile after the last multiple of PARTIAL_SUMS, zero-padded. */
struct dots_last {
  double rows[DOTS_ROWS][PARTIAL_SUMS];
  float vectors[DOTS_VECTORS][PARTIAL_SUMS];
};

/* One register of partial sums of each dot product. */
typedef doubles dots_sums[DOTS_ROWS][DOTS_VECTORS];

static size_t at_most(size_t i, size_t last)
{
  return i < last ? i : last;
}

static void dots_tile_get(const struct dots *d, size_t first_row, size_t first_vector, struct dots_tile *out)
{
  for (size_t i = 0; i < DOTS_ROWS; i++)
    out->rows[i] = d->rows + at_most(first_row + i, d->n_rows - 1) * d->dim;
  for (size_t i = 0; i < DOTS_VECTORS; i++)
    out->vectors[i] = d->vectors[at_most(first_vector + i, d->n_vectors - 1)];
}

/* Copy the numbers from k on, and point the tile to the copies. */
static void dots_tile_pad(struct dots_tile *tile, size_t k, size_t dim, struct dots_last *last)
{
  memset(last, 0, sizeof *last);
  for (size_t i = 0; i < DOTS_ROWS; i++)
    tile->rows[i] = memcpy(last->rows[i], tile->rows[i] + k, (dim - k) * sizeof(double));
  for (size_t i = 0; i < DOTS_VECTORS; i++)
    tile->vectors[i] = memcpy(last->vectors[i], tile->vectors[i] + k, (dim - k) * sizeof(float));
}

/* Add the products of numbers k to k + DOUBLES_N - 1. */
TILE void dots_step(const struct dots_tile *tile, size_t k, dots_sums sums)
{
  doubles numbers[DOTS_VECTORS];

  UNROLL for (int v = 0; v < DOTS_VECTORS; v++) numbers[v] = doubles_from_floats(tile->vectors[v] + k);
  UNROLL for (int r = 0; r < DOTS_ROWS; r++)
  {
    doubles row = doubles_load(tile->rows[r] + k);
    UNROLL for (int v = 0; v < DOTS_VECTORS; v++) sums[r][v] = doubles_fma(row, numbers[v], sums[r][v]);
  }
}

/* Compute partial sums first to first + DOUBLES_N - 1. last: the padded numbers; NULL: none. */
TILE void dots_pass(const struct dots_tile *tile, size_t first, size_t n_whole, const struct dots_tile *last,
                    dots_sums out)
{
  dots_sums sums;

  UNROLL for (int r = 0; r < DOTS_ROWS; r++)
  {
    UNROLL for (int v = 0; v < DOTS_VECTORS; v++) sums[r][v] = doubles_zero();
  }
  for (size_t k = first; k < n_whole; k += PARTIAL_SUMS)
    dots_step(tile, k, sums);
  if (last)
    dots_step(last, first, sums);
  UNROLL for (int r = 0; r < DOTS_ROWS; r++)
  {
    UNROLL for (int v = 0; v < DOTS_VECTORS; v++) out[r][v] = sums[r][v];
  }
}

TILE void dots_fold(dots_sums parts[PARTIAL_REGS], double out[DOTS_ROWS][DOTS_VECTORS])
{
  UNROLL for (int r = 0; r < DOTS_ROWS; r++)
  {
    UNROLL for (int v = 0; v < DOTS_VECTORS; v++)
    {
      doubles sums[PARTIAL_REGS];
      UNROLL for (int i = 0; i < PARTIAL_REGS; i++) sums[i] = parts[i][r][v];
      out[r][v] = sum_by_halves(sums);
    }
  }
}

OWN void dots_tile(const struct dots *d, size_t first_row, size_t first_vector)
{
  const size_t n_whole = d->dim / PARTIAL_SUMS * PARTIAL_SUMS;
  dots_sums parts[PARTIAL_REGS];
  struct dots_tile tile, last_tile;
  struct dots_last last;
  double dots[DOTS_ROWS][DOTS_VECTORS];

  dots_tile_get(d, first_row, first_vector, &tile);
  last_tile = tile;
  if (n_whole < d->dim)
    dots_tile_pad(&last_tile, n_whole, d->dim, &last);
  for (size_t i = 0; i < PARTIAL_REGS; i++)
    dots_pass(&tile, i * DOUBLES_N, n_whole, n_whole < d->dim ? &last_tile : NULL, parts[i]);
  dots_fold(parts, dots);
  for (size_t v = 0; v < DOTS_VECTORS && first_vector + v < d->n_vectors; v++)
    for (size_t r = 0; r < DOTS_ROWS && first_row + r < d->n_rows; r++)
      d->out[(first_vector + v) * d->n_rows + first_row + r] = dots[r][v];
}

/* The rows of a tile stay in the L1 cache while all vectors pass. For a single vector, a tile would be a waste. */
static void VARIANT(dots_f64)(const double *rows, size_t n_rows, const float *const *vectors, size_t n_vectors,
                              size_t dim, double *out)
{
  struct dots d = { rows, n_rows, vectors, n_vectors, dim, out };

  for (size_t r = 0; r < n_rows; r += DOTS_ROWS) {
    size_t v = 0;
    for (; v + 1 < n_vectors; v += DOTS_VECTORS)
      dots_tile(&d, r, v);
    for (size_t i = r; v < n_vectors && i < n_rows && i < r + DOTS_ROWS; i++)
      out[v * n_rows + i] = VARIANT(dot_f64)(rows + i * dim, vectors[v], dim);
  }
}

static void fill_dots(struct kernels *table)
{
  table->dot_f64 = VARIANT(dot_f64);
  table->dots_f64 = VARIANT(dots_f64);
}

#endif
