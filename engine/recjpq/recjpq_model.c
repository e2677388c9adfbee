/* SPDX-License-Identifier: Apache-2.0 */
/* Loads RecJPQ models and refuses what cannot be served. */
#include "engine/recjpq/recjpq_model.h"

#include "base/mem.h"

enum { SPLIT_DIM_MAX = 16384 };

static void close_model(struct recjpq_model **m)
{
  if (*m)
    mem_free(&(*m)->centroids);
  mem_free(m);
}

void recjpq_model_close(struct model **model)
{
  struct recjpq_model *m = (struct recjpq_model *)*model;

  close_model(&m);
  *model = NULL;
}

static err_t load_sizes(const struct safetensors *f, struct recjpq_model *m)
{
  struct tensor_shape shape;

  TRY(safetensors_shape(f, "centroids", &shape));
  if (shape.n_dims != 3 || shape.dim[0] < 1 || shape.dim[1] < 1 || shape.dim[2] < 1)
    FAIL(ERR_MODEL, "%s: tensor \"centroids\" does not have the shape [splits, sub-items, dimension of a split]",
         safetensors_path(f));
  if (shape.dim[0] > RECJPQ_SPLITS_MAX || shape.dim[1] > PQ_SUBITEMS || shape.dim[2] > SPLIT_DIM_MAX)
    FAIL(ERR_MODEL,
         "%s: tensor \"centroids\" has %zu splits of %zu sub-items of dimension %zu; at most %d, %d, %d can be served",
         safetensors_path(f), shape.dim[0], shape.dim[1], shape.dim[2], RECJPQ_SPLITS_MAX, PQ_SUBITEMS, SPLIT_DIM_MAX);
  m->n_splits = shape.dim[0];
  m->n_subitems = shape.dim[1];
  m->split_dim = shape.dim[2];
  return ERR_OK;
}

static err_t load_centroids(const struct safetensors *f, struct recjpq_model *m)
{
  AUTO(mem_free) float *tensor = NULL;

  TRY(safetensors_floats(f, "centroids", &tensor, 3, m->n_splits, m->n_subitems, m->split_dim));
  TRY(mem_array(m->n_splits * m->split_dim * PQ_SUBITEMS, sizeof *m->centroids, &m->centroids));
  for (size_t s = 0; s < m->n_splits; s++)
    for (size_t b = 0; b < m->n_subitems; b++)
      for (size_t k = 0; k < m->split_dim; k++)
        m->centroids[(s * m->split_dim + k) * PQ_SUBITEMS + b] = tensor[(s * m->n_subitems + b) * m->split_dim + k];
  return ERR_OK;
}

err_t recjpq_model_open(const struct safetensors *file, struct model **out)
{
  AUTO(close_model) struct recjpq_model *m = NULL;

  TRY(mem_array(1, sizeof *m, &m));
  m->base.kind = SIMILARITY_RECJPQ;
  const char *cells = safetensors_text(file, "sluice.cells");
  m->has_cells = !cells || strcmp(cells, "off") != 0;
  TRY(load_sizes(file, m));
  TRY(load_centroids(file, m));
  *out = &m->base;
  m = NULL;
  return ERR_OK;
}
