/* SPDX-License-Identifier: Apache-2.0 */
/* Full products over all items, in plain C and by OpenBLAS. */
#include "tests/bench/full_scan.h"

#include <math.h>
#include <stdio.h>

#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

#include "base/mem.h"

enum { SPARE = 20 }; /* items kept beyond K until they are ordered in double precision */

void full_scan_open(const float *items, size_t n_items, const float *queries, size_t n_queries, size_t dim,
                    struct full_scan *out)
{
  *out = (struct full_scan){
    .items = items, .queries = queries, .n_items = n_items, .n_queries = n_queries, .dim = dim, .truth_round = SIZE_MAX
  };
  bench_check(mem_array(n_items, sizeof *out->scores, &out->scores));
}

void full_scan_close(struct full_scan *scan)
{
  mem_free(&scan->scores);
}

static const float *query_of(const struct full_scan *scan, size_t round)
{
  return scan->queries + round % scan->n_queries * scan->dim;
}

/* Insert an item into a list that is in falling order of scores and has room for `max` items. */
static void insert(struct truth *t, size_t max, uint32_t id, double score)
{
  if (t->n == max && score <= t->scores[max - 1])
    return;
  size_t at = t->n < max ? t->n++ : max - 1;
  for (; at > 0 && t->scores[at - 1] < score; at--) {
    t->scores[at] = t->scores[at - 1];
    t->ids[at] = t->ids[at - 1];
  }
  t->scores[at] = score;
  t->ids[at] = id;
}

static void select_best(const struct full_scan *scan, size_t k, struct truth *out)
{
  out->n = 0;
  for (size_t i = 0; i < scan->n_items; i++)
    insert(out, k, (uint32_t)i, (double)scan->scores[i]);
}

/* Each sum has 16 parts, so that the compiler can use SIMD registers. */
static void multiply(const struct full_scan *scan, const float *query)
{
  for (size_t i = 0; i < scan->n_items; i++) {
    const float *item = scan->items + i * scan->dim;
    float parts[16] = { 0 }, sum = 0;
    for (size_t c = 0; c < scan->dim; c += 16)
      for (size_t lane = 0; lane < 16; lane++)
        parts[lane] += query[c + lane] * item[c + lane];
    for (size_t lane = 0; lane < 16; lane++)
      sum += parts[lane];
    scan->scores[i] = sum;
  }
}

static void scalar_run(void *self, size_t round)
{
  struct full_scan *scan = self;

  multiply(scan, query_of(scan, round));
  select_best(scan, scan->k, &scan->best);
}

#ifdef HAVE_CBLAS
static void sgemv_run(void *self, size_t round)
{
  struct full_scan *scan = self;

  cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)scan->n_items, (int)scan->dim, 1.0f, scan->items, (int)scan->dim,
              query_of(scan, round), 1, 0.0f, scan->scores, 1);
  select_best(scan, scan->k, &scan->best);
}

static void add_sgemv(struct full_scan *scan, const struct bench_options *options, struct race *race)
{
  struct racer *racer = race_add(race, "OpenBLAS sgemv", scan, sgemv_run, full_scan_collect);

  (void)options;
  racer->must_be_exact = true;
  racer->is_peer = true;
  racer->scored_bytes = (double)(scan->n_items * scan->dim * sizeof(float));
  snprintf(racer->rival, sizeof racer->rival, "exact");
}
#else
static void add_sgemv(struct full_scan *scan, const struct bench_options *options, struct race *race)
{
  (void)scan;
  (void)race;
  report_skipped(options, "OpenBLAS sgemv", "built without OpenBLAS; ops/setup --peers installs it");
}
#endif

void full_scan_join(struct full_scan *scan, const struct bench_options *options, struct race *race)
{
  struct racer *scalar = race_add(race, "scalar", scan, scalar_run, full_scan_collect);

  scalar->must_be_exact = true;
  scalar->bytes_per_item = (double)(scan->dim * sizeof(float));
  scalar->scored_bytes = (double)(scan->n_items * scan->dim * sizeof(float));
  add_sgemv(scan, options, race);
}

void full_scan_collect(void *self, struct found *found)
{
  const struct full_scan *scan = self;

  *found = (struct found){ .n = scan->best.n, .has_scores = true, .n_scored = scan->n_items };
  for (size_t i = 0; i < scan->best.n; i++) {
    found->ids[i] = scan->best.ids[i];
    found->scores[i] = (float)scan->best.scores[i];
  }
}

double full_scan_score_of(void *context, size_t round, size_t query, uint32_t item)
{
  const struct full_scan *scan = context;
  const float *q = query_of(scan, round), *d = scan->items + (size_t)item * scan->dim;
  double sum = 0;

  (void)query;
  for (size_t c = 0; c < scan->dim; c++)
    sum += (double)q[c] * (double)d[c];
  return sum;
}

/* Take a few more than K of the best by the product in f32, and order them in double precision. */
const struct truth *full_scan_truth_of(void *context, size_t round)
{
  struct full_scan *scan = context;
  const float *query = query_of(scan, round);
  struct truth rough = { 0 };
  double square = 0;

  if (scan->truth_round == round)
    return &scan->truth;
  scan->truth_round = round;
  multiply(scan, query);
  select_best(scan, scan->k + SPARE, &rough);
  scan->truth.n = 0;
  for (size_t i = 0; i < rough.n; i++)
    insert(&scan->truth, scan->k + 1, rough.ids[i], full_scan_score_of(scan, round, 0, rough.ids[i]));
  for (size_t c = 0; c < scan->dim; c++)
    square += (double)query[c] * (double)query[c];
  /* Scores of random items have this deviation or less; a million of them span about ten deviations. */
  scan->truth.tolerance = 1e-5 * 10 * sqrt(square);
  return &scan->truth;
}
