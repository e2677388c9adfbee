/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/backend.h"
#include "engine/cuda/device_worker.h"
#include "kernels/device.h"

static err_t memory(size_t *free_bytes)
{
  return device_free_bytes(free_bytes);
}

const struct backend backend_cuda = {
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
  .worker_open = device_worker_open,
  .worker_close = device_worker_close,
};
