/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and products of small matrices, in double. The bounds on Mixture-of-Logits scores need them when a model is
 * loaded.
 *
 * Thread: any.
 */
#ifndef KERNELS_MATRIX_H
#define KERNELS_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* out [n][n] = a [n][m] times the transpose of b [n][m]. */
void matrix_multiply_transposed(const double *a, const double *b, size_t n, size_t m, double *out);

/* True if no |w[i]| is above the limit; false for NaN. */
bool matrix_is_within(const float *w, size_t n, float limit);

/* Return the Frobenius norm of n numbers. */
double matrix_frobenius_norm(const double *w, size_t n);

/* Compute an upper bound on the spectral norm of w [n][m], at most 1.1% above it. If n and m are both above
 * MATRIX_SPECTRAL_MAX, the bound is the Frobenius norm. Returns ERR_MEMORY. */
err_t matrix_spectral_norm(const double *w, size_t n, size_t m, double *out);

enum { MATRIX_SPECTRAL_MAX = 256 };

#endif
