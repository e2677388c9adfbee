/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU backend: columns in GPU memory, searched by its kernels. It is the module that programs find at run time. */
#include <string.h>

#include "engine/backend/backend.h"
#include "engine/backend/cuda_module.h"
#include "engine/cuda/device_attributes.h"
#include "engine/cuda/device_worker.h"
#include "engine/cuda/funnel.h"
#include "engine/mol/mol_methods.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/vector/vector_methods.h"
#include "kernels/device.h"

/* The search functions, by the names that the tables of methods have. */
#define SEARCH(function) \
  {                      \
#function, function  \
  }
static const struct {
  const char *name;
  method_search *search;
} searches[] = {
  SEARCH(mol_cuda_search_exact),         SEARCH(mol_cuda_search_two_pass),    SEARCH(mol_cuda_search_average),
  SEARCH(mol_cuda_search_per_embedding), SEARCH(mol_cuda_search_combined),    SEARCH(recjpq_cuda_search),
  SEARCH(vector_cuda_search_exact),      SEARCH(vector_cuda_search_low_rank),
};

static method_search *search_of(const struct method_row *row)
{
  for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++) {
    if (strcmp(searches[i].name, row->search.on_cuda) == 0)
      return searches[i].search;
  }
  return NULL;
}

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
  .attributes = { .open = device_attributes_open,
                  .close = device_attributes_close,
                  .flush = device_attributes_flush,
                  .bytes_per_slot = device_attributes_bytes_per_slot,
                  .fixed_bytes = device_attributes_fixed_bytes },
  .admits_few = funnel_admits_few,
  .search_of = search_of,
  .search = run,
};

const struct cuda_module sluice_cuda_module = {
  .version = SLUICE_VERSION,
  .backend = &backend_cuda,
  .find_device = device_find,
};
