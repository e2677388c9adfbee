/* SPDX-License-Identifier: Apache-2.0 */
/* The backend that is always available: host memory, searched by this processor. */
#include "engine/backend/backend.h"

static method_search *search_of(const struct method_row *row)
{
  return row->search.on_cpu;
}

static err_t run(method_search *search, const struct columns *columns, struct search_batch *batch)
{
  return search(columns, batch);
}

const struct backend backend_cpu = {
  .kind = BACKEND_CPU,
  .name = "cpu",
  .search_of = search_of,
  .search = run,
  .columns = {
    [SIMILARITY_MOL] = &mol_columns_cpu,
    [SIMILARITY_RECJPQ] = &recjpq_columns_cpu,
    [SIMILARITY_DOT] = &vector_columns_cpu,
    [SIMILARITY_COSINE] = &vector_columns_cpu,
    [SIMILARITY_WEIGHTED_DOT] = &vector_columns_cpu,
    [SIMILARITY_BILINEAR] = &vector_columns_cpu,
  },
};
