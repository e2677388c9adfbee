/* SPDX-License-Identifier: Apache-2.0 */
/* columns_ops.score_tables of recjpq: its scores are sums already. */
#ifndef ENGINE_RECJPQ_RECJPQ_TABLES_H
#define ENGINE_RECJPQ_RECJPQ_TABLES_H

#include "engine/recjpq/recjpq_columns.h"
#include "engine/similarity/score_tables.h"

err_t recjpq_tables_make(const struct columns *columns, const struct prepared_queries *query, uint64_t n_items,
                         const struct kernels *kernels, struct region *region, struct score_tables **out);

#endif
