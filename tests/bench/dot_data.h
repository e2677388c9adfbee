/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue of vectors of length 1 with the structure of text embeddings: clusters, a mean that is not zero, and
 * dimensions of unequal variance. A query is near an item. */
#ifndef TESTS_BENCH_DOT_DATA_H
#define TESTS_BENCH_DOT_DATA_H

#include "base/item.h"
#include "tests/bench/bench_options.h"

enum { DOT_DIM = 384 };

struct dot_data {
  size_t n_items, n_queries;
  float *items;   /* [n_items][DOT_DIM] */
  float *queries; /* [n_queries][DOT_DIM] */
};

void dot_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct dot_data *out);
void dot_data_close(struct dot_data *data);

/* Write the model, and items.npy and queries.npy for peers. Return the model's path. */
const char *dot_data_write(const struct dot_data *data, const struct bench_options *options);

/* A callback for bench_engine_fill(); context: the data. */
void dot_data_part_of(const void *context, uint32_t item, struct part *part);

#endif
