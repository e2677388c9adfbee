/* SPDX-License-Identifier: Apache-2.0 */
/* The network layers, on top of the kernels: linear layers, gated linear units, two-layer gates and averages. */
#include "engine/mol/mol_network.h"

static void apply_linear(const struct mol_linear *l, const struct kernels *kernels, const float *x, size_t n, float *y)
{
  kernels->linear(x, n, l->n_in, l->w, l->b, l->n_out, y);
}

/* Gated linear unit: act(h[:H]) * h[H:] with h = x W + b. */
static err_t apply_glu(const struct mol_projection *p, const struct kernels *kernels, const float *x, size_t n,
                       struct region *scratch, float **out)
{
  size_t n_hidden = p->glu.n_out / 2;
  float *h, *activated;

  TRY(region_array(scratch, n * p->glu.n_out, sizeof *h, &h));
  TRY(region_array(scratch, n * n_hidden, sizeof *activated, &activated));
  apply_linear(&p->glu, kernels, x, n, h);
  for (size_t i = 0; i < n; i++)
    memcpy(activated + i * n_hidden, h + i * 2 * n_hidden, n_hidden * sizeof *h);
  if (p->is_gelu)
    kernels->gelu(activated, n * n_hidden);
  else
    kernels->silu(activated, n * n_hidden);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n_hidden; j++)
      activated[i * n_hidden + j] *= h[i * 2 * n_hidden + n_hidden + j];
  *out = activated;
  return ERR_OK;
}

err_t mol_network_project(const struct mol_projection *p, const struct kernels *kernels, const float *x, size_t n,
                          struct region *scratch, float *out)
{
  float *hidden;

  if (p->glu.w) {
    TRY(apply_glu(p, kernels, x, n, scratch, &hidden));
    x = hidden;
  }
  apply_linear(&p->out, kernels, x, n, out);
  return ERR_OK;
}

err_t mol_network_gate(const struct mol_mlp *mlp, const struct kernels *kernels, const float *x, size_t n,
                       struct region *scratch, float *out)
{
  float *hidden;

  TRY(region_array(scratch, n * mlp->first.n_out, sizeof *hidden, &hidden));
  apply_linear(&mlp->first, kernels, x, n, hidden);
  kernels->silu(hidden, n * mlp->first.n_out);
  apply_linear(&mlp->second, kernels, hidden, n, out);
  return ERR_OK;
}

/* Four numbers at a time: the compiler has instructions for it on every machine. */
typedef float floats4 __attribute__((vector_size(16)));

void mol_network_average(const float *components, size_t n, size_t dim, float *average)
{
  size_t k = 0;

  for (; k + 4 <= dim; k += 4) {
    floats4 sum = { 0 }, x;
    for (size_t i = 0; i < n; i++) {
      memcpy(&x, components + i * dim + k, sizeof x);
      sum += x;
    }
    sum /= (float)n;
    memcpy(average + k, &sum, sizeof sum);
  }
  for (; k < dim; k++) {
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
      sum += components[i * dim + k];
    average[k] = sum / (float)n;
  }
}
