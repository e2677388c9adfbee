/* SPDX-License-Identifier: Apache-2.0 */
/* A RecJPQ catalogue that behaves like a trained one, of fresh random numbers, and the scalar scan over it.
 *
 * Codes: 80 % of the items have independent uniform codes (the long tail), 20 % lie in 2,000 clusters of near-equal
 * codes. Sub-item scores of a query: a (0.8 smooth curve over the sub-items + 0.6 Student-t noise), with a drawn for
 * each query and split from a lognormal distribution. So that such scores come out of a product of centroids and query,
 * half of a split's dimensions are smooth curves, half noise; a query picks one of each.
 */
#ifndef TESTS_BENCH_RECJPQ_DATA_H
#define TESTS_BENCH_RECJPQ_DATA_H

#include "tests/bench/bench_race.h"

enum { RECJPQ_SPLITS = 8, RECJPQ_SUBITEMS = 256, RECJPQ_SPLIT_DIM = 64, RECJPQ_DIM = RECJPQ_SPLITS * RECJPQ_SPLIT_DIM };

struct recjpq_data {
  size_t n_items, n_queries;
  uint8_t *codes;   /* [n_items][SPLITS] */
  float *centroids; /* [SPLITS][SUBITEMS][SPLIT_DIM] */
  float *queries;   /* [n_queries][DIM] */
};

struct recjpq_tables {
  float score[RECJPQ_SPLITS][RECJPQ_SUBITEMS];
  double tolerance; /* on an item's score: 1e-5 of the range that scores can have */
};

void recjpq_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct recjpq_data *out);
void recjpq_data_close(struct recjpq_data *data);

/* Codes of a new item. */
void recjpq_data_draw_codes(struct dice *dice, uint8_t *codes);

/* Write the model, and for peers codes.npy, centroids.npy and queries.npy. Returns the model's path. */
const char *recjpq_data_write(const struct recjpq_data *data, const struct bench_options *options);

/* For bench_engine_fill(); context is the data. */
void recjpq_data_part_of(const void *context, uint32_t item, struct part *part);

/* Sub-item scores of a query. */
void recjpq_data_tables_make(const struct recjpq_data *data, size_t query, struct recjpq_tables *out);

double recjpq_data_score(const struct recjpq_tables *tables, const uint8_t *codes);

/* PQTopK as one would write it in C: for each item in turn the sum of its eight table entries, and the k best kept.
 * is_absent: NULL, or a flag for each item; absent ones are passed over. */
void recjpq_data_scan(const struct recjpq_tables *tables, const uint8_t *codes, const uint8_t *is_absent,
                      size_t n_items, size_t k, struct truth *out);

#endif
