/* SPDX-License-Identifier: Apache-2.0 */
/* The report of sluicectl eval: one row per method, compared with exact. If queries have targets, it also has the hit
 * rates of Table 4 of the Mixture-of-Logits paper. */
#ifndef DAEMON_CTL_CTL_EVAL_REPORT_H
#define DAEMON_CTL_CTL_EVAL_REPORT_H

#include <stdio.h>

#include "daemon/ctl/eval/ctl_eval_run.h"

enum { CTL_EVAL_N_RANKS = 5, CTL_EVAL_RECALLS_MAX = 4 };

/* Ranks for the hit rate: 1, 5, 10, 50, 100. Those above k are left out of the report. */
extern const size_t ctl_eval_ranks[CTL_EVAL_N_RANKS];

/* Get the ranks for recall: those of 1, 10 and 100 that are below k, then k. Returns their number. */
size_t ctl_eval_recall_ranks(size_t k, size_t ranks[CTL_EVAL_RECALLS_MAX]);

struct ctl_eval_row {
  const char *method; /* as given */
  const char *ran;    /* the name it ran under */
  size_t n;           /* queries */
  size_t k;
  bool has_targets;
  double hit_rate[CTL_EVAL_N_RANKS];   /* share of queries whose target is among the first ctl_eval_ranks[i] hits */
  double hit_ratio[CTL_EVAL_N_RANKS];  /* hit_rate divided by that of exact; NAN if exact finds none */
  double recall[CTL_EVAL_RECALLS_MAX]; /* mean share of the exact first n among the first n hits */
  double proven;                       /* share of the answers that are proven exact */
  double candidates;                   /* mean per query */
  double scored;                       /* items scored in full, mean per query */
  double median_ms, p95_ms;            /* time of a batch */
  size_t n_timed;                      /* batches */
  size_t n_short;                      /* queries with fewer than k hits */
  size_t min_hits;                     /* fewest hits of a query */
  bool has_admitted;                   /* the next field is known */
  uint64_t admitted;                   /* items that the filter admits; all, if there is none */
};

/* Compare answers with the exact ones.
 *
 * targets  I64 [n] the held-out item of each query; NULL if there are none
 *
 * Returns ERR_MEMORY. */
err_t ctl_eval_compare(const struct ctl_eval_answers *answers, const struct ctl_eval_answers *exact,
                       const struct tensor *targets, struct ctl_eval_row *out);

/* Print the table of methods and how to read it. If there are targets, a table of hit rates comes first. Methods that
 * found fewer than k hits are named below. */
void ctl_eval_report_print(const struct ctl_eval_row *rows, size_t n, size_t n_items, FILE *out);

/* What all rows of a run have in common. */
struct ctl_eval_setting {
  const char *similarity;
  const char *isa;
  size_t n_items, batch, n_threads;
  const struct query *common; /* what all queries have */
};

/* Print a row as a JSON object on one line. */
void ctl_eval_report_print_json(const struct ctl_eval_row *row, const struct ctl_eval_setting *setting, FILE *out);

#endif
