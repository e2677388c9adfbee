/* SPDX-License-Identifier: Apache-2.0 */
/* Compare the answers of one method with the exact ones: recall, hit rates, proofs, effort and times. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"
#include "daemon/ctl/eval/ctl_eval_report.h"

const size_t ctl_eval_ranks[CTL_EVAL_N_RANKS] = { 1, 5, 10, 50, 100 };

size_t ctl_eval_recall_ranks(size_t k, size_t ranks[CTL_EVAL_RECALLS_MAX])
{
  size_t n = 0;

  for (size_t rank = 1; rank < k && rank <= 100; rank *= 10)
    ranks[n++] = rank;
  ranks[n++] = k;
  return n;
}

static int by_id(const void *a, const void *b)
{
  const int64_t *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

/* Count the ids that are in `sorted`. */
static size_t count_common(const int64_t *ids, size_t n, const int64_t *sorted, size_t n_sorted)
{
  size_t n_common = 0;

  for (size_t i = 0; i < n; i++)
    n_common += bsearch(&ids[i], sorted, n_sorted, sizeof *sorted, by_id) != NULL;
  return n_common;
}

/* Return the position of an id; n if it is missing. */
static size_t find_id(const int64_t *ids, size_t n, int64_t id)
{
  size_t i = 0;

  while (i < n && ids[i] != id)
    i++;
  return i;
}

/* Return which share of the exact first n are among the first n hits.
 *
 * sorted  room for a row of ids
 */
static double recall_of(const struct ctl_eval_answers *answers, const struct ctl_eval_answers *exact, size_t q,
                        size_t n, int64_t *sorted)
{
  size_t n_hits = size_min(n, answers->n_hits[q]), n_exact = size_min(n, exact->n_hits[q]);

  if (n_exact == 0)
    return 1.0;
  memcpy(sorted, exact->ids + q * exact->width, n_exact * sizeof *sorted);
  qsort(sorted, n_exact, sizeof *sorted, by_id);
  return (double)count_common(answers->ids + q * answers->width, n_hits, sorted, n_exact) / (double)n_exact;
}

/* For each rank, count the queries whose target is among that many first hits. */
static void count_hits(const struct ctl_eval_answers *answers, const struct tensor *targets,
                       size_t counts[CTL_EVAL_N_RANKS])
{
  for (size_t q = 0; q < answers->n; q++) {
    size_t n = answers->n_hits[q], place = find_id(answers->ids + q * answers->width, n, tensor_i64(targets, q));
    for (size_t r = 0; r < CTL_EVAL_N_RANKS; r++)
      counts[r] += place < n && place < ctl_eval_ranks[r];
  }
}

static void rate_hits(const struct ctl_eval_answers *answers, const struct ctl_eval_answers *exact,
                      const struct tensor *targets, struct ctl_eval_row *row)
{
  size_t hits[CTL_EVAL_N_RANKS] = { 0 }, exact_hits[CTL_EVAL_N_RANKS] = { 0 };

  count_hits(answers, targets, hits);
  count_hits(exact, targets, exact_hits);
  row->has_targets = true;
  for (size_t r = 0; r < CTL_EVAL_N_RANKS; r++) {
    row->hit_rate[r] = (double)hits[r] / (double)answers->n;
    row->hit_ratio[r] = exact_hits[r] ? (double)hits[r] / (double)exact_hits[r] : (double)NAN;
  }
}

/* Add one query to the sums of the row.
 *
 * sorted  room for a row of ids
 */
static void add_query(const struct ctl_eval_answers *answers, const struct ctl_eval_answers *exact, size_t q,
                      int64_t *sorted, struct ctl_eval_row *row)
{
  size_t ranks[CTL_EVAL_RECALLS_MAX], n_ranks = ctl_eval_recall_ranks(answers->k, ranks), n = answers->n_hits[q];

  for (size_t r = 0; r < n_ranks; r++)
    row->recall[r] += recall_of(answers, exact, q, ranks[r], sorted);
  row->proven += answers->exact[q];
  row->candidates += (double)answers->candidates[q];
  row->scored += (double)answers->scored[q];
  row->n_short += n < answers->k;
  row->min_hits = n < row->min_hits ? n : row->min_hits;
}

static int rising(const void *a, const void *b)
{
  const double *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

/* Choose the batches whose times count: those that are warm and whole; if there are none, whole ones; else all. Returns
 * their number. */
static size_t choose_timings(const struct ctl_eval_answers *a, double *ms)
{
  for (int level = 0; level < 3; level++) {
    size_t n = 0;
    for (size_t i = 0; i < a->n_timings; i++) {
      const struct ctl_eval_timing *t = &a->timings[i];
      if (t->ns > 0 && (level > 0 || t->is_warm) && (level > 1 || t->is_whole))
        ms[n++] = (double)t->ns / (double)CLOCK_NS_PER_MS;
    }
    if (n > 0)
      return n;
  }
  return 0;
}

static err_t summarize_timings(const struct ctl_eval_answers *a, struct ctl_eval_row *row)
{
  AUTO(mem_free) double *ms = NULL;

  TRY(mem_array(a->n_timings, sizeof *ms, &ms));
  size_t n = choose_timings(a, ms);
  row->n_timed = n;
  if (n == 0)
    return ERR_OK;
  qsort(ms, n, sizeof *ms, rising);
  row->median_ms = (ms[(n - 1) / 2] + ms[n / 2]) / 2;
  row->p95_ms = ms[(size_t)ceil(0.95 * (double)n) - 1];
  return ERR_OK;
}

err_t ctl_eval_compare(const struct ctl_eval_answers *answers, const struct ctl_eval_answers *exact,
                       const struct tensor *targets, struct ctl_eval_row *out)
{
  AUTO(mem_free) int64_t *sorted = NULL;
  struct ctl_eval_row row = {
    .n = answers->n,
    .k = answers->k,
    .min_hits = answers->k,
    .has_admitted = answers->has_admitted,
    .admitted = answers->admitted,
  };
  double n = (double)answers->n;

  TRY(mem_array(answers->width, sizeof *sorted, &sorted));
  for (size_t q = 0; q < answers->n; q++)
    add_query(answers, exact, q, sorted, &row);
  for (size_t r = 0; r < CTL_EVAL_RECALLS_MAX; r++)
    row.recall[r] /= n;
  if (targets)
    rate_hits(answers, exact, targets, &row);
  row.proven /= n;
  row.candidates /= n;
  row.scored /= n;
  TRY(summarize_timings(answers, &row));
  *out = row;
  return ERR_OK;
}
