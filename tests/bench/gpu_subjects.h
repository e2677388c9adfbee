/* SPDX-License-Identifier: Apache-2.0 */
/* What ops/bench gpu searches: a catalogue for each of three similarities, and its methods with their goals. */
#ifndef TESTS_BENCH_GPU_SUBJECTS_H
#define TESTS_BENCH_GPU_SUBJECTS_H

#include "tests/bench/bench_engine.h"

/* Measured peaks of the device: bytes, operations and words per nanosecond. */
struct gpu_limits {
  double memory, flops, shared, tanh, exp2;
};

/* The least work that a search must do. */
struct gpu_work {
  double bytes;   /* bytes that must be read from the device's memory, once */
  double flops;   /* on tensor cores */
  double lookups; /* words from shared memory */
  double tanhs, exp2s;
};

struct gpu_case {
  const char *name; /* "mol exact" */
  const char *method;
  size_t batch, k;
  double target_ms; /* goal on an H100; 0: none */
  bool is_exact;
  struct gpu_work (*work)(const struct gpu_case *c, double n_items);
  size_t n_lots, n_filters; /* as in struct engine_racer */
};

enum { GPU_CASES_MAX = 12 };

struct gpu_subject {
  const char *name, *title;
  size_t default_items, dim, n_queries, live_k;
  const char *live_method; /* method of the race with updates; NULL: no such race */
  struct gpu_case cases[GPU_CASES_MAX];
  size_t n_cases;

  /* Draw the catalogue and write the model. To be called before items are requested. */
  void (*open)(struct gpu_subject *s, struct bench_options *options);
  void (*close)(struct gpu_subject *s);
  bench_part_of part_of;
  void *data;
  const char *model;
  const float *queries;
};

/* Return the shortest time for the work, in milliseconds. */
double gpu_work_floor_ms(const struct gpu_work *work, const struct gpu_limits *limits);

/* Return all subjects, *n of them. */
struct gpu_subject *gpu_subjects(size_t *n);

#endif
