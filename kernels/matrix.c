/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and products of small matrices. The spectral norm comes from repeated squaring of a Gram matrix. */
#include "kernels/matrix.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { SQUARINGS = 7 };

void matrix_multiply_transposed(const double *a, const double *b, size_t n, size_t m, double *out)
{
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t k = 0; k < m; k++)
        sum += a[i * m + k] * b[j * m + k];
      out[i * n + j] = sum;
    }
  }
}

bool matrix_is_within(const float *w, size_t n, float limit)
{
  bool is_within = true;

  for (size_t i = 0; i < n; i++)
    is_within = is_within && fabsf(w[i]) <= limit;
  return is_within;
}

double matrix_frobenius_norm(const double *w, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += w[i] * w[i];
  return sqrt(sum);
}

/* Return a bound on the spectral norm of w, given power = G = w w^T [n][n]. |G| = |w|^2, and
 * |w| <= |G^(2^k)|_F^(2^-(k+1)). `square` is scratch of the same size; both are overwritten. */
static double norm_of_gram(double *power, double *square, size_t n)
{
  double log_norm = 0, share = 0.5;

  for (int k = 0;; k++) {
    double size = matrix_frobenius_norm(power, n * n);
    if (size == 0)
      return 0;
    log_norm += share * log(size);
    if (k == SQUARINGS)
      return exp(log_norm) * (1 + 1e-6);
    for (size_t i = 0; i < n * n; i++)
      power[i] /= size;
    matrix_multiply_transposed(power, power, n, n, square); /* it is symmetric */
    memcpy(power, square, n * n * sizeof *power);
    share /= 2;
  }
}

static void transpose(const double *w, size_t n, size_t m, double *out)
{
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < m; j++)
      out[j * n + i] = w[i * m + j];
  }
}

err_t matrix_spectral_norm(const double *w, size_t n, size_t m, double *out)
{
  size_t smaller = n < m ? n : m, larger = n < m ? m : n;
  AUTO(mem_free) double *rows = NULL;
  AUTO(mem_free) double *power = NULL;
  AUTO(mem_free) double *square = NULL;

  *out = matrix_frobenius_norm(w, n * m);
  if (smaller > MATRIX_SPECTRAL_MAX)
    return ERR_OK;
  TRY(mem_array(n * m, sizeof *rows, &rows));
  TRY(mem_array(smaller * smaller, sizeof *power, &power));
  TRY(mem_array(smaller * smaller, sizeof *square, &square));
  if (n == smaller)
    memcpy(rows, w, n * m * sizeof *rows);
  else
    transpose(w, n, m, rows);
  matrix_multiply_transposed(rows, rows, smaller, larger, power);
  *out = fmin(*out, norm_of_gram(power, square, smaller));
  return ERR_OK;
}
