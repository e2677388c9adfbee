/* SPDX-License-Identifier: Apache-2.0 */
/* Singular value decomposition of a bilinear model's matrix, by LAPACK: W = U diag(sigma) V^T. */
#ifndef ENGINE_VECTOR_SVD_H
#define ENGINE_VECTOR_SVD_H

#include "base/err.h"

struct svd {
  size_t n;
  size_t rank;   /* 1..n: singular values that are more than rounding; the others count as 0 */
  double *sigma; /* [rank], falling */
  double *u;     /* [rank][n]: row k is the left singular vector of sigma[k] */
  double *v;     /* [rank][n]: right singular vectors */
};

/* Decompose a matrix given by rows, w [n][n]; it is overwritten. Returns ERR_MEMORY, ERR_MODEL when it does not
 * converge. An svd of all zeros can be finished too. */
err_t svd_of_matrix(double *w, size_t n, struct svd *out);

/* Decompose P Q^T without forming it where r < n: p, q [n][r]. QR of both, then the SVD of the r x r product of their
 * triangles. Errors as above. */
err_t svd_of_product(const float *p, const float *q, size_t n, size_t r, struct svd *out);

void svd_fini(struct svd *s);

#endif
