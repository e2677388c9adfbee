/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the models of vector spaces and refuses what cannot be served. */
#include "engine/vector/vector_model.h"

#include <math.h>

#include "base/mem.h"
#include "engine/model/tensor_hint.h"
#include "engine/vector/svd.h"

enum { DIM_MAX = 65536, BILINEAR_DIM_MAX = 8192, SKETCH_STEP = 32, CHECK_DIM_MAX = 768 };

/* A score must fit into f32 even for vectors with numbers of up to 1e9. */
static const double score_max = 1e34, number_max2 = 1e18;

/* The largest share of a score's standard deviation that the bound on the numbers without sketch may have. */
static const double tail_share = 0.25;

static void close_model(struct vector_model **m)
{
  if (*m) {
    mem_free(&(*m)->weights);
    mem_free(&(*m)->sigma);
    mem_free(&(*m)->u);
    mem_free(&(*m)->v);
  }
  mem_free(m);
}

void vector_model_close(struct model **model)
{
  struct vector_model *m = (struct vector_model *)*model;

  close_model(&m);
  *model = NULL;
}

static err_t open_plain(const struct safetensors *file, enum similarity_kind kind, struct model **out)
{
  struct vector_model *m;
  int64_t dim;

  if (!safetensors_text(file, "sluice.dim"))
    FAIL(ERR_MODEL,
         "%s: __metadata__ has no \"sluice.dim\", the dimension of a vector: add it, or set the space's "
         "dim in the configuration",
         safetensors_path(file));
  TRY(safetensors_integer(file, "sluice.dim", 1, DIM_MAX, &dim));
  TRY(mem_array(1, sizeof *m, &m));
  m->base.kind = kind;
  m->dim = m->row_dim = m->sketch_dim = (size_t)dim;
  *out = &m->base;
  return ERR_OK;
}

err_t vector_model_open_dot(const struct safetensors *file, struct model **out)
{
  return open_plain(file, SIMILARITY_DOT, out);
}

err_t vector_model_open_cosine(const struct safetensors *file, struct model **out)
{
  return open_plain(file, SIMILARITY_COSINE, out);
}

/* Verify that the dimension of the tensors is the one that the space was given, if it was given one. */
static err_t verify_dim(const struct safetensors *file, size_t dim)
{
  int64_t given;

  if (!safetensors_text(file, "sluice.dim"))
    return ERR_OK;
  TRY(safetensors_integer(file, "sluice.dim", 1, DIM_MAX, &given));
  if ((size_t)given != dim)
    FAIL(ERR_MODEL, "%s: its tensors are for vectors of %zu numbers, but its sluice.dim or the space's dim is %lld",
         safetensors_path(file), dim, (long long)given);
  return ERR_OK;
}

static err_t find_shape(const struct safetensors *file, const char *name, size_t n_dims, size_t max,
                        struct tensor_shape *out)
{
  TRY(safetensors_shape(file, name, out));
  if (out->n_dims != n_dims)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has %zu dimensions, not %zu", safetensors_path(file), name, out->n_dims, n_dims);
  if (out->dim[0] < 1 || (n_dims == 2 && out->dim[1] < 1))
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has no numbers", safetensors_path(file), name);
  if (out->dim[0] > max || (n_dims == 2 && out->dim[1] > max))
    FAIL(ERR_MODEL, "%s: tensor \"%s\" is for vectors of more than %zu numbers, the most that can be served",
         safetensors_path(file), name, max);
  return ERR_OK;
}

err_t vector_model_open_weighted_dot(const struct safetensors *file, struct model **out)
{
  AUTO(close_model) struct vector_model *m = NULL;
  struct tensor_shape shape;

  TRY(find_shape(file, "v", 1, DIM_MAX, &shape));
  TRY(verify_dim(file, shape.dim[0]));
  TRY(mem_array(1, sizeof *m, &m));
  m->base.kind = SIMILARITY_WEIGHTED_DOT;
  m->dim = m->row_dim = m->sketch_dim = shape.dim[0];
  TRY(safetensors_floats(file, "v", &m->weights, 1, m->dim));
  *out = &m->base;
  m = NULL;
  return ERR_OK;
}

/* bilinear -------------------- */

/* The tensors of a bilinear model: W [n][n], or P and Q [n][r]. */
struct bilinear_tensors {
  size_t n, r;
  float *w, *p, *q;
};

static void free_tensors(struct bilinear_tensors *t)
{
  mem_free(&t->w);
  mem_free(&t->p);
  mem_free(&t->q);
}

static err_t read_matrix(const struct safetensors *file, struct bilinear_tensors *t)
{
  struct tensor_shape shape;

  TRY(find_shape(file, "W", 2, BILINEAR_DIM_MAX, &shape));
  t->n = shape.dim[0];
  if (shape.dim[1] != t->n)
    FAIL(ERR_MODEL, "%s: tensor \"W\" is %zu x %zu, but must be square", safetensors_path(file), t->n, shape.dim[1]);
  TRY(verify_dim(file, t->n));
  return safetensors_floats(file, "W", &t->w, 2, t->n, t->n);
}

static err_t read_factors(const struct safetensors *file, struct bilinear_tensors *t)
{
  struct tensor_shape shape, other;

  TRY(find_shape(file, "P", 2, BILINEAR_DIM_MAX, &shape));
  TRY(find_shape(file, "Q", 2, BILINEAR_DIM_MAX, &other));
  t->n = shape.dim[0];
  t->r = shape.dim[1];
  if (other.dim[0] != t->n || other.dim[1] != t->r)
    FAIL(ERR_MODEL, "%s: tensors \"P\" and \"Q\" must have one shape, [n, r]: they are %zu x %zu and %zu x %zu",
         safetensors_path(file), t->n, t->r, other.dim[0], other.dim[1]);
  TRY(verify_dim(file, t->n));
  TRY(safetensors_floats(file, "P", &t->p, 2, t->n, t->r));
  return safetensors_floats(file, "Q", &t->q, 2, t->n, t->r);
}

static err_t read_bilinear(const struct safetensors *file, struct bilinear_tensors *t)
{
  bool has_matrix = safetensors_has(file, "W"), has_factors = safetensors_has(file, "P") || safetensors_has(file, "Q");
  char hint[TENSOR_HINT_MAX] = "";

  if (has_matrix == has_factors) {
    if (!has_matrix)
      tensor_hint_print(file, "W", hint);
    FAIL(ERR_MODEL, "%s: a bilinear model has either a tensor \"W\" or tensors \"P\" and \"Q\"%s",
         safetensors_path(file), hint);
  }
  TRY(has_matrix ? read_matrix(file, t) : read_factors(file, t));
  /* Frobenius norms: no singular value is larger. */
  double sigma_max =
      has_matrix ? kernels_norm(t->w, t->n * t->n) : kernels_norm(t->p, t->n * t->r) * kernels_norm(t->q, t->n * t->r);
  if (!(sigma_max * number_max2 * (double)t->n <= score_max))
    FAIL(ERR_MODEL, "%s: its tensors have a norm of %g: scores would not fit into f32", safetensors_path(file),
         sigma_max);
  return ERR_OK;
}

static err_t decompose(const struct bilinear_tensors *t, struct svd *svd)
{
  AUTO(mem_free) double *w = NULL;

  if (!t->w)
    return svd_of_product(t->p, t->q, t->n, t->r, svd);
  TRY(mem_array(t->n * t->n, sizeof *w, &w));
  for (size_t i = 0; i < t->n * t->n; i++)
    w[i] = (double)t->w[i];
  return svd_of_matrix(w, t->n, svd);
}

/* Return how many numbers are sketched. For isotropic vectors, the standard deviation of a score is proportional to
 * sqrt(sum sigma_k^2). The bound on the rest, tail times tail, is proportional to the sum of its sigma_k. More sketched
 * numbers mean more bytes to scan. A looser bound means more items scored in full. At a quarter of a deviation, about
 * two or three times K items are scored. That is too few to matter, and allowing twice as many would save few numbers.
 */
static size_t choose_sketch_dim(const double *sigma, size_t n)
{
  double sum2 = 0, left = 0;
  size_t s = n;

  for (size_t k = 0; k < n; k++)
    sum2 += sigma[k] * sigma[k];
  while (s > 0 && left + sigma[s - 1] <= tail_share * sqrt(sum2))
    left += sigma[--s];
  s = (s + SKETCH_STEP - 1) / SKETCH_STEP * SKETCH_STEP;
  s = s < SKETCH_STEP ? SKETCH_STEP : s;
  return s < n ? s : n;
}

/* A number of the matrix that projects items. Of a model of zeros nothing is left, though any direction would do. */
static float projection_at(const struct svd *svd, size_t k, size_t i)
{
  return svd->sigma[k] > 0 ? (float)svd->v[k * svd->n + i] : 0.0f;
}

static err_t take_svd(struct svd *svd, struct vector_model *m)
{
  m->base.kind = SIMILARITY_BILINEAR;
  m->dim = svd->n;
  m->row_dim = svd->rank;
  m->sketch_dim = choose_sketch_dim(svd->sigma, svd->rank);
  TRY(mem_array(m->dim * m->row_dim, sizeof *m->v, &m->v));
  for (size_t k = 0; k < m->row_dim; k++)
    for (size_t i = 0; i < m->dim; i++)
      m->v[i * m->row_dim + k] = projection_at(svd, k, i);
  m->sigma = svd->sigma;
  m->u = svd->u;
  svd->sigma = NULL;
  svd->u = NULL;
  return ERR_OK;
}

static err_t open_bilinear(const struct bilinear_tensors *tensors, struct model **out)
{
  AUTO(svd_fini) struct svd svd = { 0 };
  AUTO(close_model) struct vector_model *m = NULL;

  TRY(decompose(tensors, &svd));
  TRY(mem_array(1, sizeof *m, &m));
  TRY(take_svd(&svd, m));
  *out = &m->base;
  m = NULL;
  return ERR_OK;
}

err_t vector_model_open_bilinear(const struct safetensors *file, struct model **out)
{
  AUTO(free_tensors) struct bilinear_tensors tensors = { 0 };

  TRY(read_bilinear(file, &tensors));
  return open_bilinear(&tensors, out);
}

/* Is the model decomposed within a second or two, even with the reference BLAS? */
static bool is_small(const struct bilinear_tensors *t)
{
  double rank = (double)(t->w || t->r > t->n ? t->n : t->r);

  return (double)t->n * rank * rank <= (double)CHECK_DIM_MAX * CHECK_DIM_MAX * CHECK_DIM_MAX;
}

err_t vector_model_check_bilinear(const struct safetensors *file, struct model **out)
{
  AUTO(free_tensors) struct bilinear_tensors tensors = { 0 };

  TRY(read_bilinear(file, &tensors));
  return is_small(&tensors) ? open_bilinear(&tensors, out) : ERR_OK;
}

static void divide_by_norm(double *q, size_t n)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += q[k] * q[k];
  for (size_t k = 0; k < n && sum > 0; k++)
    q[k] /= sqrt(sum);
}

void vector_query_weigh(const struct vector_model *m, const float *vector, double *q)
{
  for (size_t k = 0; k < m->dim; k++)
    q[k] = (double)vector[k] * (m->weights ? (double)m->weights[k] : 1.0);
  if (m->base.kind == SIMILARITY_COSINE)
    divide_by_norm(q, m->dim);
}

double vector_query_tail(const struct vector_model *m, const double *q, size_t from, size_t to)
{
  double sum = 0;

  for (size_t k = from; m->sigma && k < to; k++)
    sum += m->sigma[k] > 0 ? q[k] * (q[k] / m->sigma[k]) : 0;
  return sqrt(sum) * (1 + 0x1p-40);
}

err_t vector_query_sketch(const struct vector_model *m, const double *q, size_t n, struct region *region,
                          struct vector_sketch_query *out)
{
  size_t n_sketched = n < m->sketch_dim ? n : m->sketch_dim;
  float *rounded;

  TRY(region_array(region, m->sketch_dim, sizeof *rounded, &rounded));
  for (size_t k = 0; k < n_sketched; k++)
    rounded[k] = (float)q[k];
  return vector_sketch_query_init(m->sketch_dim, rounded, vector_query_tail(m, q, n_sketched, n), region, out);
}
