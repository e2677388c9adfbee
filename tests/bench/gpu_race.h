/* SPDX-License-Identifier: Apache-2.0 */
/* Whole searches on a GPU, timed by its clock and by the wall's, each over other queries and with cold caches; a sample
 * of the answers must be the processor's. Thread: main. */
#ifndef TESTS_BENCH_GPU_RACE_H
#define TESTS_BENCH_GPU_RACE_H

#include "kernels/cuda/device_timer.h"
#include "tests/bench/gpu_ceilings.h"
#include "tests/bench/gpu_subjects.h"

struct gpu_bench {
  struct bench_options options;
  struct device device;
  struct gpu_limits limits;
  struct gpu_ceilings *ceilings;
  struct device_timer *timer;
  bool is_quick; /* SLUICE_GPU_QUICK: one search of each, of few queries */
  struct gpu_subject *subject;
  struct bench_engine cuda, cpu;
};

/* Time one case. Returns whether there is a row: not where the engine cannot do it, which is said. */
bool gpu_race_run(struct gpu_bench *b, const struct gpu_case *c, struct bench_row *row);

/* p99 of searches while 1,000,000 updates a second are asked for, in turns with none: two rows, idle and live.
 * Afterwards the answers must be those of the catalogue as it is then. Returns the number of rows. */
size_t gpu_live_race_run(struct gpu_bench *b, struct bench_row *rows);

/* Whether the command line asks for a case of this name. */
bool gpu_bench_wants(const struct gpu_bench *b, const char *name);

/* Try a search. Returns false where the method is not written yet, which is said; any other error is a wrong result. */
bool gpu_race_try(struct gpu_bench *b, struct engine_racer *racer, const char *name);

#endif
