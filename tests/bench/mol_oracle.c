/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of the MoL paper, one after the other, in double precision. */
#include "tests/bench/mol_oracle.h"

#include <math.h>
#include <stdbool.h>

static const double TEMPERATURE = 0.05, EPS = 1e-6;

static double silu(double x)
{
  return x / (1 + exp(-x));
}

static double gelu(double x)
{
  return x * 0.5 * (1 + erf(x / sqrt(2)));
}

/* y = w x + b; w [n_out][n_in], b may be NULL. */
static void linear(const float *w, const float *b, const double *x, size_t n_in, size_t n_out, double *y)
{
  for (size_t o = 0; o < n_out; o++) {
    y[o] = b ? (double)b[o] : 0;
    for (size_t i = 0; i < n_in; i++)
      y[o] += (double)w[o * n_in + i] * x[i];
  }
}

/* Two layers with a SiLU between them. */
static void mlp(const float *w1, const float *b1, const float *w2, const float *b2, const double *x, size_t n_in,
                double *y)
{
  double hidden[MOL_HIDDEN];

  linear(w1, b1, x, n_in, MOL_HIDDEN, hidden);
  for (size_t i = 0; i < MOL_HIDDEN; i++)
    hidden[i] = silu(hidden[i]);
  linear(w2, b2, hidden, MOL_HIDDEN, MOL_LOGITS, y);
}

static void normalize(double *components)
{
  for (size_t c = 0; c < MOL_COMPONENTS; c++) {
    double *v = components + c * MOL_COMPONENT_DIM, square = 0;
    for (size_t i = 0; i < MOL_COMPONENT_DIM; i++)
      square += v[i] * v[i];
    for (size_t i = 0; i < MOL_COMPONENT_DIM; i++)
      v[i] /= fmax(sqrt(square), EPS);
  }
}

static void project_query(const struct mol_data *d, const double *x, double *components)
{
  const float *w = mol_data_weight(d, MOL_QUERY_NET "1._w"), *b = mol_data_weight(d, MOL_QUERY_NET "1._b");
  double glu[2 * MOL_GLU];

  for (size_t o = 0; o < 2 * MOL_GLU; o++) {
    glu[o] = (double)b[o];
    for (size_t i = 0; i < MOL_DIM; i++)
      glu[o] += x[i] * (double)w[i * 2 * MOL_GLU + o]; /* not transposed, unlike the other weights */
  }
  for (size_t i = 0; i < MOL_GLU; i++)
    glu[i] = gelu(glu[i]) * glu[MOL_GLU + i];
  linear(mol_data_weight(d, MOL_QUERY_NET "2.weight"), mol_data_weight(d, MOL_QUERY_NET "2.bias"), glu, MOL_GLU,
         MOL_COMPONENTS * MOL_COMPONENT_DIM, components);
  normalize(components);
}

static void make_logits(const double *query, const double *item, double *logits)
{
  for (size_t p = 0; p < MOL_LOGITS; p++) {
    const double *f = query + p / MOL_COMPONENTS * MOL_COMPONENT_DIM;
    const double *g = item + p % MOL_COMPONENTS * MOL_COMPONENT_DIM;
    logits[p] = 0;
    for (size_t i = 0; i < MOL_COMPONENT_DIM; i++)
      logits[p] += f[i] * g[i] / TEMPERATURE;
  }
}

/* sum of softmax(SiLU(u v + w)) l */
static double mix(const double *u, const double *v, const double *w, const double *logits)
{
  double sum = 0, weights = 0;

  for (size_t p = 0; p < MOL_LOGITS; p++) {
    double weight = exp(silu(u[p] * v[p] + w[p]));
    sum += weight * logits[p];
    weights += weight;
  }
  return sum / weights;
}

void mol_oracle_prepare(const struct mol_data *d, const float *query, struct mol_oracle_query *out)
{
  double q[MOL_DIM];

  for (size_t i = 0; i < MOL_DIM; i++)
    q[i] = (double)query[i];
  project_query(d, q, out->components);
  mlp(mol_data_weight(d, MOL_GATE("query_only", "0.weight")), mol_data_weight(d, MOL_GATE("query_only", "0.bias")),
      mol_data_weight(d, MOL_GATE("query_only", "2.weight")), NULL, q, MOL_DIM, out->gate);
}

double mol_oracle_score(const struct mol_data *d, const struct mol_oracle_query *query, const float *item)
{
  double x[MOL_DIM], g[MOL_COMPONENTS * MOL_COMPONENT_DIM], logits[MOL_LOGITS], v[MOL_LOGITS], w[MOL_LOGITS];

  for (size_t i = 0; i < MOL_DIM; i++)
    x[i] = (double)item[i];
  linear(mol_data_weight(d, MOL_ITEM_NET "1.weight"), mol_data_weight(d, MOL_ITEM_NET "1.bias"), x, MOL_DIM,
         MOL_COMPONENTS * MOL_COMPONENT_DIM, g);
  normalize(g);
  make_logits(query->components, g, logits);
  mlp(mol_data_weight(d, MOL_GATE("item_only", "1.weight")), mol_data_weight(d, MOL_GATE("item_only", "1.bias")),
      mol_data_weight(d, MOL_GATE("item_only", "3.weight")), NULL, x, MOL_DIM, v);
  mlp(mol_data_weight(d, MOL_GATE("qi", "1.weight")), mol_data_weight(d, MOL_GATE("qi", "1.bias")),
      mol_data_weight(d, MOL_GATE("qi", "3.weight")), mol_data_weight(d, MOL_GATE("qi", "3.bias")), logits, MOL_LOGITS,
      w);
  return mix(query->gate, v, w, logits);
}
