/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of small matrices in double: what the bounds on Mixture-of-Logits scores need of a model's weights, once when
 * it is loaded.
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

double matrix_frobenius_norm(const double *w, size_t n);

/* An upper bound on the spectral norm of w [n][m], at most 1.1% above it; but Frobenius's norm, which is one too, where
 * both sizes are beyond MATRIX_SPECTRAL_MAX. Returns ERR_MEMORY. */
err_t matrix_spectral_norm(const double *w, size_t n, size_t m, double *out);

enum { MATRIX_SPECTRAL_MAX = 256 };

#endif
