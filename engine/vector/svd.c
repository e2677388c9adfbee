/* SPDX-License-Identifier: Apache-2.0 */
/* The decompositions, by calls of LAPACK. Matrices are stored by columns here, as LAPACK expects them. */
#include "engine/vector/svd.h"

#include <lapacke.h>

#include "base/mem.h"

static err_t verify_info(lapack_int info, const char *routine)
{
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
    FAIL(ERR_MEMORY, "no memory for the singular value decomposition of the model");
  if (info != 0)
    FAIL(ERR_MODEL, "the singular value decomposition of the model failed: LAPACK's %s gave %d", routine, (int)info);
  return ERR_OK;
}

/* Decompose a [m][m] = left diag(sigma) right^T. right_t receives right^T. a is overwritten. */
static err_t decompose(double *a, size_t m, double *sigma, double *left, double *right_t)
{
  lapack_int size = (lapack_int)m;

  return verify_info(LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'S', size, size, a, size, sigma, left, size, right_t, size),
                     "dgesdd");
}

/* The number of singular values above the rounding error of the decomposition. */
static size_t rank_of(const double *sigma, size_t m)
{
  size_t rank = 1;

  while (rank < m && sigma[rank] > (double)m * 0x1p-52 * sigma[0])
    rank++;
  return rank;
}

static err_t make(size_t n, size_t rank, const double *sigma, struct svd *out)
{
  *out = (struct svd){ .n = n, .rank = rank };
  TRY(mem_array(rank, sizeof *out->sigma, &out->sigma));
  TRY(mem_array(rank * n, sizeof *out->u, &out->u));
  TRY(mem_array(rank * n, sizeof *out->v, &out->v));
  memcpy(out->sigma, sigma, rank * sizeof *sigma);
  return ERR_OK;
}

void svd_fini(struct svd *s)
{
  mem_free(&s->sigma);
  mem_free(&s->u);
  mem_free(&s->v);
}

/* Read by columns, w is W^T = V diag(sigma) U^T. */
err_t svd_of_matrix(double *w, size_t n, struct svd *out)
{
  AUTO(mem_free) double *sigma = NULL;
  AUTO(mem_free) double *v = NULL;
  AUTO(mem_free) double *u_t = NULL;

  TRY(mem_array(n, sizeof *sigma, &sigma));
  TRY(mem_array(n * n, sizeof *v, &v));
  TRY(mem_array(n * n, sizeof *u_t, &u_t));
  TRY(decompose(w, n, sigma, v, u_t));
  TRY(make(n, rank_of(sigma, n), sigma, out));
  memcpy(out->v, v, out->rank * n * sizeof *v);
  for (size_t k = 0; k < out->rank; k++)
    for (size_t i = 0; i < n; i++)
      out->u[k * n + i] = u_t[i * n + k];
  return ERR_OK;
}

/* Decompose factor [n][r], stored by rows, into orthonormal [n][r] times triangle [r][r]. */
static err_t factorise(const float *factor, size_t n, size_t r, double *orthonormal, double *triangle)
{
  AUTO(mem_free) double *tau = NULL;
  lapack_int rows = (lapack_int)n, columns = (lapack_int)r;

  TRY(mem_array(r, sizeof *tau, &tau));
  for (size_t j = 0; j < r; j++)
    for (size_t i = 0; i < n; i++)
      orthonormal[j * n + i] = (double)factor[i * r + j];
  TRY(verify_info(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, rows, columns, orthonormal, rows, tau), "dgeqrf"));
  for (size_t j = 0; j < r; j++)
    for (size_t i = 0; i <= j; i++)
      triangle[j * r + i] = orthonormal[j * n + i];
  return verify_info(LAPACKE_dorgqr(LAPACK_COL_MAJOR, rows, columns, columns, orthonormal, rows, tau), "dorgqr");
}

/* core = a b^T, for triangles a and b. */
static void multiply_triangles(const double *a, const double *b, size_t r, double *core)
{
  for (size_t k = 0; k < r; k++)
    for (size_t j = 0; j <= k; j++)
      for (size_t i = 0; i <= k; i++)
        core[j * r + i] += a[k * r + i] * b[k * r + j];
}

/* rows[k] = orthonormal [n][r] times column k of `turn`, whose elements are `step` apart. */
static void turn_vectors(const double *orthonormal, size_t n, size_t r, const double *turn, size_t column, size_t step,
                         size_t rank, double *rows)
{
  for (size_t k = 0; k < rank; k++)
    for (size_t j = 0; j < r; j++)
      for (size_t i = 0; i < n; i++)
        rows[k * n + i] += orthonormal[j * n + i] * turn[k * column + j * step];
}

/* The factors have at least as many columns as rows, so the product is no larger than they are: form it. */
static err_t svd_of_wide(const float *p, const float *q, size_t n, size_t r, struct svd *out)
{
  AUTO(mem_free) double *w = NULL;

  TRY(mem_array(n * n, sizeof *w, &w));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k < r; k++)
        w[i * n + j] += (double)p[i * r + k] * (double)q[j * r + k];
  return svd_of_matrix(w, n, out);
}

struct factors {
  double *p, *q;     /* orthonormal [n][r] */
  double *r_p, *r_q; /* triangles */
  double *core, *sigma, *left, *right_t;
};

static void free_factors(struct factors *f)
{
  mem_free(&f->p);
  mem_free(&f->q);
  mem_free(&f->r_p);
  mem_free(&f->r_q);
  mem_free(&f->core);
  mem_free(&f->sigma);
  mem_free(&f->left);
  mem_free(&f->right_t);
}

static err_t make_factors(size_t n, size_t r, struct factors *f)
{
  TRY(mem_array(n * r, sizeof(double), &f->p));
  TRY(mem_array(n * r, sizeof(double), &f->q));
  TRY(mem_array(r * r, sizeof(double), &f->r_p));
  TRY(mem_array(r * r, sizeof(double), &f->r_q));
  TRY(mem_array(r * r, sizeof(double), &f->core));
  TRY(mem_array(r, sizeof(double), &f->sigma));
  TRY(mem_array(r * r, sizeof(double), &f->left));
  return mem_array(r * r, sizeof(double), &f->right_t);
}

err_t svd_of_product(const float *p, const float *q, size_t n, size_t r, struct svd *out)
{
  AUTO(free_factors) struct factors f = { 0 };

  if (r >= n)
    return svd_of_wide(p, q, n, r, out);
  TRY(make_factors(n, r, &f));
  TRY(factorise(p, n, r, f.p, f.r_p));
  TRY(factorise(q, n, r, f.q, f.r_q));
  multiply_triangles(f.r_p, f.r_q, r, f.core);
  TRY(decompose(f.core, r, f.sigma, f.left, f.right_t));
  TRY(make(n, rank_of(f.sigma, r), f.sigma, out));
  turn_vectors(f.p, n, r, f.left, r, 1, out->rank, out->u);
  turn_vectors(f.q, n, r, f.right_t, 1, r, out->rank, out->v);
  return ERR_OK;
}
