/* SPDX-License-Identifier: Apache-2.0 */
/* Whole searches on a GPU, timed by the GPU's clock and by wall time. Each search has other queries and finds cold
 * caches. A sample of the answers must equal the processor's. Thread: main. */
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
  bool is_quick;    /* SLUICE_GPU_QUICK: one search of each method, with few queries */
  bool is_profiled; /* SLUICE_BENCH_PROFILE: one search of each method, for a profiler; no times */
  bool is_turn;     /* nothing else measures now */
  struct gpu_subject *subject;
  struct bench_engine cuda, cpu;
};

/* Time one case. Return false, and say so, if the engine cannot do it; then there is no row. */
bool gpu_race_run(struct gpu_bench *b, const struct gpu_case *c, struct bench_row *row);

/* Measure the p99 of searches while 1,000,000 updates a second are offered, in turns with no updates: a row for live
 * and one for idle. Then check the answers against the catalogue as it is. Return the number of rows. */
size_t gpu_live_race_run(struct gpu_bench *b, struct bench_row *rows);

/* Does the command line select this case of the current subject? --methods names cases or whole subjects. */
bool gpu_bench_wants(const struct gpu_bench *b, const char *name);

/* Try a search. Return false, and say so, if the method is not written yet. Any other error counts as a wrong result.
 */
bool gpu_race_try(struct gpu_bench *b, struct engine_racer *racer, const char *name);

#endif
