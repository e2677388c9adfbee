/* SPDX-License-Identifier: Apache-2.0 */
/* A bilinear catalogue: random vectors, and W = U diag(sigma) V^T with random rotations U and V. The singular values
 * are like those in the bilinear paper: they begin at 5.467, fall over four orders of magnitude within the first 300,
 * and end in a small tail. */
#ifndef TESTS_BENCH_BILINEAR_DATA_H
#define TESTS_BENCH_BILINEAR_DATA_H

#include "base/item.h"
#include "tests/bench/bench_options.h"

enum { BILINEAR_DIM = 768 };

struct bilinear_data {
  size_t n_items, n_queries;
  float *w;       /* [DIM][DIM]: the score is q^T W d */
  float *items;   /* [n_items][DIM] */
  float *queries; /* [n_queries][DIM] */
};

void bilinear_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct bilinear_data *out);
void bilinear_data_close(struct bilinear_data *data);

/* Write the model, and items.npy and queries.npy for peers. Return the model's path. */
const char *bilinear_data_write(const struct bilinear_data *data, const struct bench_options *options);

/* A callback for bench_engine_fill(); context: the data. */
void bilinear_data_part_of(const void *context, uint32_t item, struct part *part);

/* W^T q, in double precision. */
void bilinear_data_rotate(const struct bilinear_data *data, size_t query, double *out);

#endif
