/* SPDX-License-Identifier: Apache-2.0 */
/* A Mixture-of-Logits model: the authors' network, loaded from a safetensors file that uses their tensor names.
 *
 * Symbols: B queries; P_q and P_x components of a query and an item; d_P their dimension; L = P_q P_x; tau the
 * temperature. Thread: any; a model does not change.
 */
#ifndef ENGINE_MOL_MOL_MODEL_H
#define ENGINE_MOL_MOL_MODEL_H

#include <assert.h>

#include "base/query.h"
#include "base/region.h"
#include "engine/similarity/similarity.h"
#include "kernels/kernels.h"

/* y = x W + b with W [n_in][n_out]. PyTorch's (out, in) is transposed at load. */
struct mol_linear {
  size_t n_in;
  size_t n_out;
  float *w;
  float *b; /* NULL: no bias */
};

/* A gated linear unit followed by a linear layer. If glu.w is NULL, the linear layer alone. */
struct mol_projection {
  struct mol_linear glu; /* n_out = 2 * hidden: the activated half, then the multiplier */
  bool is_gelu;          /* GEGLU, else SwiGLU */
  struct mol_linear out;
};

/* Two linear layers with a SiLU between them. */
struct mol_mlp {
  struct mol_linear first;
  struct mol_linear second;
};

struct mol_user_table {
  size_t n_hash; /* rows without the padding row */
  float *rows;   /* [n_hash + 1][d_P]; row 0 is never read */
};

enum { MOL_USER_TABLES_MAX = 8 };

struct mol_model {
  struct model base;
  struct mol_shape shape;
  size_t n_logits;  /* L */
  size_t query_dim; /* D_q */
  size_t item_dim;  /* D_x */
  float eps;
  struct mol_projection query_projection; /* to all components except the user components */
  struct mol_projection item_projection;
  struct mol_mlp query_gate;
  struct mol_mlp item_gate;
  struct mol_mlp cross_gate;             /* weights packed as struct mol_gate describes */
  struct mol_reduced_gate *reduced_gate; /* the layout that mol_bounds() reads; NULL: this model has no bounds */
  size_t n_user_tables;
  struct mol_user_table user_tables[MOL_USER_TABLES_MAX]; /* their components follow the projected ones */
};

/* Sizes of the arrays that the columns keep of an item, in order. mol_sketch.h describes the last three. */
struct mol_item_layout {
  size_t components;    /* floats: P_x d_P, normalised */
  size_t gate;          /* floats: L */
  size_t average;       /* floats: d_P, the mean of the components */
  size_t residual;      /* float: 1 */
  size_t sketch;        /* bytes: P_x times d_P, rounded up to whole groups of 4 */
  size_t short_average; /* numbers of 16 bits: d_P, rounded up to pairs */
};

static inline struct mol_item_layout mol_item_layout(const struct mol_model *m)
{
  return (struct mol_item_layout){
    .components = m->shape.n_item_components * m->shape.component_dim,
    .gate = m->n_logits,
    .average = m->shape.component_dim,
    .residual = 1,
    .sketch = m->shape.n_item_components * ((m->shape.component_dim + 3) / 4 * 4),
    .short_average = (m->shape.component_dim + 1) / 2 * 2,
  };
}

/* Pointers to the arrays of a prepared item. */
struct mol_item {
  float *components;
  float *gate;
  float *average;
  float *residual;
  uint8_t *sketch;
  int16_t *short_average;
};

static inline struct mol_item mol_item_at(const struct mol_item_layout *layout, uint8_t *prepared)
{
  struct mol_item item = { .components = (float *)(void *)prepared };

  item.gate = item.components + layout->components;
  item.average = item.gate + layout->gate;
  item.residual = item.average + layout->average;
  item.sketch = (uint8_t *)(item.residual + layout->residual);
  item.short_average = (int16_t *)(void *)(item.sketch + layout->sketch);
  return item;
}

static inline size_t mol_item_bytes(const struct mol_item_layout *layout)
{
  return (layout->components + layout->gate + layout->average + layout->residual) * sizeof(float) + layout->sketch +
         layout->short_average * sizeof(int16_t);
}

/* A query, prepared for search. */
struct mol_query {
  float *components; /* [P_q][d_P], normalised */
  float *gate;       /* [L] */
  float *average;    /* [d_P], the mean of the components */
  float max_norm;    /* the largest norm of a component: 1, or less if components are zero */
};

static inline struct mol_gate mol_model_gate(const struct mol_model *m)
{
  return (struct mol_gate){ m->cross_gate.first.w, m->cross_gate.first.b, m->cross_gate.second.w,
                            m->cross_gate.second.b };
}

static inline const struct mol_model *mol_model_of(const struct model *model)
{
  assert(model->kind == SIMILARITY_MOL);
  return (const struct mol_model *)model;
}

/* Queries that this similarity has prepared. */
static inline const struct mol_query *mol_queries_of(const struct prepared_queries *prepared)
{
  return (const struct mol_query *)prepared;
}

err_t mol_model_open(const struct safetensors *file, struct model **out);
void mol_model_close(struct model **model);

#endif
