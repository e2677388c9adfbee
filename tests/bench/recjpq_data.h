/* SPDX-License-Identifier: Apache-2.0 */
/* Random RecJPQ catalogues that behave like trained ones, and the scalar scan over them.
 *
 * recjpq_data_open() draws a hard one. Codes: 80 % of the items have independent uniform codes (the long tail). 20 %
 * lie in 2,000 clusters of nearly equal codes.
 *
 * Sub-item scores of a query: a (0.8 smooth curve over the sub-items + 0.6 Student-t noise). The factor a is drawn for
 * each query and split from a lognormal distribution. To get such scores from a product of centroids and query, half of
 * a split's dimensions are smooth curves and half are noise; a query picks one of each.
 *
 * recjpq_data_open_planted() plants embeddings and derives codes and centroids from them (recjpq_planted.c). Its
 * queries have structure: few items score far above the others, as with trained models.
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
  double tolerance; /* tolerance of an item's score: 1e-5 of the possible range */
};

void recjpq_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct recjpq_data *out);
void recjpq_data_open_planted(struct dice *dice, size_t n_items, size_t n_queries, struct recjpq_data *out);
void recjpq_data_close(struct recjpq_data *data);

/* For the two above: allocate the arrays, and draw a smooth curve of unit variance over the sub-items, four sines of
 * low frequency. The curve's values are RECJPQ_SPLIT_DIM numbers apart. */
void recjpq_data_init(size_t n_items, size_t n_queries, struct recjpq_data *out);
void recjpq_data_draw_smooth(struct dice *dice, float *column);

/* Draw the codes of a new item of recjpq_data_open(). */
void recjpq_data_draw_codes(struct dice *dice, uint8_t *codes);

/* Write the model, and codes.npy, centroids.npy and queries.npy for peers. Return the model's path. */
const char *recjpq_data_write(const struct recjpq_data *data, const struct bench_options *options);

/* A callback for bench_engine_fill(); context: the data. */
void recjpq_data_part_of(const void *context, uint32_t item, struct part *part);

/* Compute the sub-item scores of a query. */
void recjpq_data_tables_make(const struct recjpq_data *data, size_t query, struct recjpq_tables *out);

double recjpq_data_score(const struct recjpq_tables *tables, const uint8_t *codes);

/* The usual PQTopK in C: for each item, add its eight table entries and keep the k best. is_absent: a flag for each
 * item, whose absent ones are skipped; NULL: none is absent. */
void recjpq_data_scan(const struct recjpq_tables *tables, const uint8_t *codes, const uint8_t *is_absent,
                      size_t n_items, size_t k, struct truth *out);

#endif
