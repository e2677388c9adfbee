/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/backend.h"

const struct backend backend_cpu = {
  .name = "cpu",
  .columns = {
    [SIMILARITY_MOL] = &mol_columns_cpu,
    [SIMILARITY_RECJPQ] = &recjpq_columns_cpu,
    [SIMILARITY_DOT] = &vector_columns_cpu,
    [SIMILARITY_COSINE] = &vector_columns_cpu,
    [SIMILARITY_WEIGHTED_DOT] = &vector_columns_cpu,
    [SIMILARITY_BILINEAR] = &vector_columns_cpu,
  },
};
