/* Mixture-of-Logits in double precision, written from the formulas: what the engine's scores are judged by. */
#ifndef TESTS_BENCH_MOL_ORACLE_H
#define TESTS_BENCH_MOL_ORACLE_H

#include "tests/bench/mol_data.h"

/* phi(query, item) of raw vectors [MOL_DIM]. */
double mol_oracle_score(const struct mol_data *data, const float *query, const float *item);

#endif
