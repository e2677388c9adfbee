/* SPDX-License-Identifier: Apache-2.0 */
/* Singular value decomposition of a bilinear model's matrix, with LAPACK: W = U diag(sigma) V^T. */
#ifndef ENGINE_VECTOR_SVD_H
#define ENGINE_VECTOR_SVD_H

#include "base/err.h"

struct svd {
  size_t n;
  size_t rank;   /* 1..n: number of singular values above rounding error; the others count as 0 */
  double *sigma; /* [rank], in falling order */
  double *u;     /* [rank][n]: row k is the left singular vector of sigma[k] */
  double *v;     /* [rank][n]: row k is the right singular vector of sigma[k] */
};

/* Decompose a matrix w [n][n], stored by rows. w is overwritten. Returns ERR_MEMORY; ERR_MODEL if LAPACK does not
 * converge. A zero-initialised svd may be given to svd_fini() too. */
err_t svd_of_matrix(double *w, size_t n, struct svd *out);

/* Decompose P Q^T, p and q [n][r]. If r < n, the product is not formed. Both factors are QR-decomposed. Then the r x r
 * product of their triangular factors is decomposed. Errors as above. */
err_t svd_of_product(const float *p, const float *q, size_t n, size_t r, struct svd *out);

void svd_fini(struct svd *s);

#endif
