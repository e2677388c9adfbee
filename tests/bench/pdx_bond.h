/* SPDX-License-Identifier: Apache-2.0 */
/* A peer: the exact scan with pruned dimensions PDX-BOND, written from its paper (Kuffo, Krippner and Boncz, "PDX: A
 * Data Layout for Vector Similarity Search", SIGMOD 2025, sections 3 to 5). It finds the nearest by Euclidean distance,
 * which for vectors of length 1 are the best by inner product.
 *
 * A partition has its vectors one dimension after the other. Partial distances grow with each dimension, so a vector
 * whose partial distance exceeds the K-th best is out. Dimensions in which the query is far from the mean come first.
 */
#ifndef TESTS_BENCH_PDX_BOND_H
#define TESTS_BENCH_PDX_BOND_H

#include "tests/bench/bench_race.h"

struct pdx_dimension {
  size_t number;
  double from_mean; /* distance of the query from the mean */
};

struct pdx_bond {
  size_t n_items, dim;
  float *vectors;              /* [partitions][dim][a partition] */
  double *means;               /* [dim] */
  struct pdx_dimension *order; /* [dim]: of the last search */
  float *partial;              /* [a partition]: partial distances */
  uint32_t *left;              /* [a partition]: positions that are left */
  struct truth best;
};

/* Copy n_items vectors of `dim` numbers and length 1. */
void pdx_bond_open(const float *items, size_t n_items, size_t dim, struct pdx_bond *out);
void pdx_bond_close(struct pdx_bond *p);

/* Find the k nearest; p->best has their inner products. */
void pdx_bond_search(struct pdx_bond *p, const float *query, size_t k);

#endif
