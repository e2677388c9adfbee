/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU backend: columns in GPU memory, searched by its kernels. */
#include "engine/backend.h"
#include "engine/cuda/device_worker.h"
#include "engine/cuda/funnel.h"
#include "kernels/device.h"

static err_t memory(size_t *free_bytes)
{
  return device_free_bytes(free_bytes);
}

/* Run a search. After an error, wait for the stream: kernels and copies must not outlive the search, because they use
 * pinned memory and the arena. */
static err_t run(method_search *search, const struct columns *columns, struct search_batch *batch)
{
  err_code_t err = search(columns, batch);

  if (err != ERR_OK && device_wait(batch->worker->stream) != ERR_OK)
    return ERR_DEVICE;
  return err;
}

const struct backend backend_cuda = {
  .kind = BACKEND_CUDA,
  .name = "cuda",
  .columns = {
    [SIMILARITY_MOL] = &mol_columns_cuda,
    [SIMILARITY_RECJPQ] = &recjpq_columns_cuda,
    [SIMILARITY_DOT] = &vector_columns_cuda,
    [SIMILARITY_COSINE] = &vector_columns_cuda,
    [SIMILARITY_WEIGHTED_DOT] = &vector_columns_cuda,
    [SIMILARITY_BILINEAR] = &vector_columns_cuda,
  },
  .memory = memory,
  .worker_bytes = device_worker_bytes,
  .worker_open = device_worker_open,
  .worker_close = device_worker_close,
  .admits_few = funnel_admits_few,
  .search = run,
};
