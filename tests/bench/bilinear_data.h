/* SPDX-License-Identifier: Apache-2.0 */
/* A bilinear catalogue: random vectors, and W = U diag(sigma) V^T with random rotations U, V and singular values as
 * in the bilinear paper: 5.467, falling over four orders of magnitude within the first 300, then a small tail. */
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

/* Write the model, and for peers items.npy and queries.npy. Returns the model's path. */
const char *bilinear_data_write(const struct bilinear_data *data, const struct bench_options *options);

/* For bench_engine_fill(); context is the data. */
void bilinear_data_part_of(const void *context, uint32_t item, struct part *part);

/* W^T q, in double precision. */
void bilinear_data_rotate(const struct bilinear_data *data, size_t query, double *out);

/* scores[i] = <rotated, items[i]>: plain C, each sum in 16 parts that a compiler can keep in vectors. */
void bilinear_data_scan(const struct bilinear_data *data, const float *rotated, float *scores);

#endif
