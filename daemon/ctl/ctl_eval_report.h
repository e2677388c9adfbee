/* SPDX-License-Identifier: Apache-2.0 */
/* What sluicectl eval tells: one row a method, compared with exact. Where queries have targets, as in Table 4 of the
 * Mixture-of-Logits paper too. */
#ifndef DAEMON_CTL_CTL_EVAL_REPORT_H
#define DAEMON_CTL_CTL_EVAL_REPORT_H

#include <stdio.h>

#include "daemon/ctl/ctl_eval_run.h"

enum { EVAL_N_RANKS = 5, EVAL_RECALLS_MAX = 4 };

/* 1, 5, 10, 50, 100: where the hit rate is told, up to k. */
extern const size_t eval_ranks[EVAL_N_RANKS];

/* Where recall is told: 1, 10 and 100 below k, then k. Returns how many there are. */
size_t eval_recall_ranks(size_t k, size_t ranks[EVAL_RECALLS_MAX]);

struct eval_row {
  const char *method; /* as it was asked for */
  const char *ran;    /* the name by which it ran */
  size_t n;           /* queries */
  size_t k;
  bool has_targets;
  double hit_rate[EVAL_N_RANKS];   /* share of queries whose target is among the first eval_ranks[i] hits */
  double hit_ratio[EVAL_N_RANKS];  /* that, divided by the share for exact; NAN where exact finds none */
  double recall[EVAL_RECALLS_MAX]; /* mean share of the exact first n that are among the first n hits */
  double proven;                 /* share of the answers that are proven exact */
  double candidates;             /* mean */
  double scored;                 /* mean */
  double median_ms, p95_ms;      /* of a batch */
  size_t n_timed;
  size_t n_short;  /* queries with fewer than k hits */
  size_t min_hits; /* the fewest */
};

/* Compare answers with the exact ones.
 *
 * targets  I64 [n], the held-out item of each query; NULL: there are none
 *
 * Returns ERR_MEMORY. */
err_t eval_compare(const struct eval_answers *answers, const struct eval_answers *exact, const struct tensor *targets,
                   struct eval_row *out);

/* The table, where there are targets one of hit rates before it, and below what is to be said of single methods and how
 * to read it. */
void eval_print_table(const struct eval_row *rows, size_t n, size_t n_items, FILE *out);

/* One JSON object, on a line. */
struct eval_setting {
  const char *similarity;
  const char *isa;
  size_t n_items, batch, n_threads;
};
void eval_print_json(const struct eval_row *row, const struct eval_setting *setting, FILE *out);

#endif
