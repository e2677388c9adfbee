/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits in double precision, written from the formulas. The engine's scores are compared with these. */
#ifndef TESTS_BENCH_MOL_ORACLE_H
#define TESTS_BENCH_MOL_ORACLE_H

#include "tests/bench/mol_data.h"

/* The query's side of the model, computed once. */
struct mol_oracle_query {
  double components[MOL_COMPONENTS * MOL_COMPONENT_DIM];
  double gate[MOL_LOGITS];
};

/* query: raw vector [MOL_DIM]. */
void mol_oracle_prepare(const struct mol_data *data, const float *query, struct mol_oracle_query *out);

/* phi(query, item); item: raw vector [MOL_DIM]. */
double mol_oracle_score(const struct mol_data *data, const struct mol_oracle_query *query, const float *item);

#endif
