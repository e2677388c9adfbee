/* SPDX-License-Identifier: Apache-2.0 */
/* The query's side of vector models on the device. Queries of bilinear go there as they are, and the device rotates
 * them: the processor would take longer for that than the device for the whole search. For the other similarities q' is
 * a product for each number, which the processor writes straight into the inputs. */
#include <assert.h>

#include "base/mem.h"
#include "base/size.h"
#include "engine/cuda/vector_cuda.h"

enum { PIECE = 1 << 13 }; /* doubles that are uploaded at a time */

static const struct vector_rotation *rotation_of(const struct device_columns *c)
{
  return c->shared;
}

static void free_host(double **memory)
{
  device_free_host(memory);
}

static err_t upload_doubles(struct device_stream *stream, const double *from, size_t n, double **out)
{
  AUTO(free_host) double *pinned = NULL;

  TRY(device_alloc(n, sizeof **out, out));
  TRY(device_alloc_host(size_min(n, PIECE), sizeof *pinned, &pinned));
  for (size_t at = 0; at < n; at += PIECE) {
    size_t bytes = size_min(n - at, PIECE) * sizeof *pinned;
    memcpy(pinned, from + at, bytes);
    TRY(device_copy_in(stream, *out + at, pinned, bytes));
    TRY(device_wait(stream));
  }
  return ERR_OK;
}

void vector_cuda_close_rotation(void **shared)
{
  struct vector_rotation *rotation = *shared;

  if (!rotation)
    return;
  device_free(&rotation->u);
  device_free(&rotation->sigma);
  mem_free(shared);
}

err_t vector_cuda_open_rotation(const struct model *model, struct device_stream *stream, void **shared)
{
  const struct vector_model *m = vector_model_of(model);
  AUTO(vector_cuda_close_rotation) void *opened = NULL;
  struct vector_rotation *rotation;

  if (!m->u)
    return ERR_OK;
  TRY(mem_array(1, sizeof *rotation, &rotation));
  opened = rotation;
  rotation->dim = m->dim;
  TRY(upload_doubles(stream, m->u, m->row_dim * m->dim, &rotation->u));
  TRY(upload_doubles(stream, m->sigma, m->row_dim, &rotation->sigma));
  *shared = opened;
  opened = NULL;
  return ERR_OK;
}

size_t vector_cuda_rotation_bytes(const struct model *model)
{
  const struct vector_model *m = vector_model_of(model);

  return m->u ? m->row_dim * (m->dim + 1) * sizeof *m->u : 0;
}

err_t vector_cuda_prepare_queries(const struct model *model, const struct kernels *kernels,
                                  const struct query *const *queries, size_t n, struct region *region,
                                  struct prepared_queries **prepared)
{
  struct vector_query *out;

  (void)model;
  (void)kernels;
  TRY(region_array(region, n, sizeof *out, &out));
  for (size_t i = 0; i < n; i++)
    out[i].vector = queries[i]->vector.v;
  *prepared = (struct prepared_queries *)out;
  return ERR_OK;
}

struct vector_cuda_bytes vector_cuda_query_bytes(const struct device_columns *c, size_t n)
{
  return rotation_of(c) ? (struct vector_cuda_bytes){ rotation_of(c)->dim * sizeof(float), n * sizeof(double) }
                        : (struct vector_cuda_bytes){ n * sizeof(double), 0 };
}

static err_t send_to_rotate(const struct device_columns *c, struct device_worker *w, const struct vector_query *queries,
                            size_t n_queries, size_t n, double **q)
{
  const struct vector_rotation *rotation = rotation_of(c);
  float *vectors, *device_vectors;

  TRY(device_worker_input(w, n_queries, rotation->dim * sizeof *vectors, &vectors, &device_vectors));
  TRY(device_worker_array(w, n_queries, n * sizeof **q, q));
  for (size_t i = 0; i < n_queries; i++)
    memcpy(vectors + i * rotation->dim, queries[i].vector, rotation->dim * sizeof *vectors);
  TRY(device_worker_send(w));
  return vector_rotate(w->stream, rotation, device_vectors, n_queries, n, *q);
}

err_t vector_cuda_send_queries(const struct device_columns *c, struct device_worker *w,
                               const struct vector_query *queries, size_t n_queries, size_t n, double **q)
{
  const struct vector_model *m = vector_cuda_model(c);
  double *host_q;

  if (rotation_of(c))
    return send_to_rotate(c, w, queries, n_queries, n, q);
  assert(n == m->dim);
  TRY(device_worker_input(w, n_queries, n * sizeof *host_q, &host_q, q));
  for (size_t i = 0; i < n_queries; i++)
    vector_query_weigh(m, queries[i].vector, host_q + i * n);
  return device_worker_send(w);
}

const double *vector_cuda_sigma(const struct device_columns *c)
{
  return rotation_of(c) ? rotation_of(c)->sigma : NULL;
}
