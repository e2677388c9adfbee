/* SPDX-License-Identifier: Apache-2.0 */
/* What ops/bench gpu searches: catalogues of three similarities, and the methods of each with what was aimed at. */
#ifndef TESTS_BENCH_GPU_SUBJECTS_H
#define TESTS_BENCH_GPU_SUBJECTS_H

#include "tests/bench/bench_engine.h"

/* Measured limits of the device: bytes, operations and words a nanosecond. */
struct gpu_limits {
  double copy, flops, shared;
};

/* What a search has to do at the least. */
struct gpu_work {
  double bytes;   /* of the device's memory: what must be read once */
  double flops;   /* on tensor cores */
  double lookups; /* words from shared memory */
};

struct gpu_case {
  const char *name; /* "mol exact" */
  const char *method;
  size_t batch, k;
  double target_ms; /* on an H100; 0: none was set */
  bool is_exact;
  struct gpu_work (*work)(const struct gpu_case *c, double n_items);
};

enum { GPU_CASES_MAX = 10 };

struct gpu_subject {
  const char *name, *title;
  size_t default_items, dim, n_queries, live_k;
  const char *live_method; /* searched while updates come; NULL: no such race */
  struct gpu_case cases[GPU_CASES_MAX];
  size_t n_cases;

  /* Draw the catalogue and write the model: afterwards items can be asked for. */
  void (*open)(struct gpu_subject *s, struct bench_options *options);
  void (*close)(struct gpu_subject *s);
  bench_part_of part_of;
  void *data;
  const char *model;
  const float *queries;
};

/* The least time for the work, in milliseconds. */
double gpu_work_floor_ms(const struct gpu_work *work, const struct gpu_limits *limits);

/* All of them; *n of them. */
struct gpu_subject *gpu_subjects(size_t *n);

#endif
