/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of vectors, and rows divided by theirs: one code for every machine, because speed matters less here. */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

#include "kernels/variants.h"

/* The norms of ROWS rows. Several independent sums hide the latency of the additions. The square of a float is exact in
 * double and cannot overflow, so a multiply and an add give the bits of a fused multiply-add. */
enum { ROWS = 4 };

static void find_norms(const float *rows, size_t dim, double norms[ROWS])
{
  double sums[ROWS] = { 0 };

  for (size_t i = 0; i < dim; i++) {
    UNROLL for (size_t r = 0; r < ROWS; r++) sums[r] += (double)rows[r * dim + i] * (double)rows[r * dim + i];
  }
  for (size_t r = 0; r < ROWS; r++)
    norms[r] = sqrt(sums[r]);
}

double kernels_norm(const float *x, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)x[i] * (double)x[i];
  return sqrt(sum);
}

typedef float floats2 __attribute__((vector_size(8)));
typedef double doubles2 __attribute__((vector_size(16)));

/* The processor divides two doubles in the time of one. */
static void divide(float *row, size_t dim, double divisor)
{
  size_t i = 0;

  for (; i + 2 <= dim; i += 2) {
    floats2 x;
    memcpy(&x, row + i, sizeof x);
    x = __builtin_convertvector(__builtin_convertvector(x, doubles2) / divisor, floats2);
    memcpy(row + i, &x, sizeof x);
  }
  if (i < dim)
    row[i] = (float)((double)row[i] / divisor);
}

void kernels_normalize(float *rows, size_t n, size_t dim, float eps)
{
  size_t r = 0;

  for (; r + ROWS <= n; r += ROWS) {
    double norms[ROWS];
    find_norms(rows + r * dim, dim, norms);
    for (size_t i = 0; i < ROWS; i++)
      divide(rows + (r + i) * dim, dim, norms[i] > (double)eps ? norms[i] : (double)eps);
  }
  for (; r < n; r++) {
    double norm = kernels_norm(rows + r * dim, dim);
    divide(rows + r * dim, dim, norm > (double)eps ? norm : (double)eps);
  }
}
