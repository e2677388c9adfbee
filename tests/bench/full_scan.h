/* SPDX-License-Identifier: Apache-2.0 */
/* Racers that compute every score: the product of all items with a query, in plain C and by OpenBLAS, then the K best.
 * Benchmarks of vectors share them, and take the truth from the same product. */
#ifndef TESTS_BENCH_FULL_SCAN_H
#define TESTS_BENCH_FULL_SCAN_H

#include "tests/bench/bench_race.h"

/* The racers keep their best in a sorted array: for larger K that takes most of their time. */
enum { FULL_SCAN_K_MAX = 100 };

struct full_scan {
  const float *items;   /* [n_items][dim]; dim a multiple of 16 */
  const float *queries; /* [n_queries][dim] */
  size_t n_items, n_queries, dim;
  size_t k;
  float *scores;     /* [n_items] */
  struct truth best; /* of the last run */

  struct truth truth; /* the K + 1 best of truth_round, in double precision */
  size_t truth_round;
};

/* The items and queries are borrowed. */
void full_scan_open(const float *items, size_t n_items, const float *queries, size_t n_queries, size_t dim,
                    struct full_scan *out);
void full_scan_close(struct full_scan *scan);

/* Add the plain C scan as "scalar", and "OpenBLAS sgemv" as a peer of `exact`, or report that it is missing. They keep
 * scan->k items. */
void full_scan_join(struct full_scan *scan, const struct bench_options *options, struct race *race);

/* <query, item>, in double precision. For struct race; context: the scan. */
double full_scan_score_of(void *context, size_t round, size_t query, uint32_t item);

/* The K + 1 best of a round. For struct race; context: the scan. Set truth_round to SIZE_MAX after changing k. */
const struct truth *full_scan_truth_of(void *context, size_t round);

/* Store the K best in `found`; self: the scan. */
void full_scan_collect(void *self, struct found *found);

#endif
