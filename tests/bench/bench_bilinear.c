/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench bilinear: q^T W d over a million vectors, beside the full product of plain C and of OpenBLAS. */
#include <math.h>
#include <stdio.h>

#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

#include "base/mem.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_machine.h"
#include "tests/bench/bench_peer.h"
#include "tests/bench/bilinear_data.h"

enum { QUERIES = 32, D = BILINEAR_DIM, SPARE = 20 };

struct bench {
  struct bench_options options;
  struct bilinear_data data;
  struct bench_engine engine;
  struct peer *peer;
  size_t k;
  float *scores;     /* [n_items] */
  struct truth full; /* of the last full product */
  size_t truth_round;
  struct truth truth;
  double rotated[D];
};

static double score_of(void *context, size_t round, size_t query, uint32_t item)
{
  const struct bench *b = context;
  const float *d = b->data.items + (size_t)item * D;
  double sum = 0;

  (void)round;
  (void)query;
  for (size_t c = 0; c < D; c++)
    sum += b->rotated[c] * (double)d[c];
  return sum;
}

/* Keep the k best of the scores in order. */
static void select_best(const float *scores, size_t n, size_t k, struct truth *out)
{
  out->n = 0;
  for (size_t i = 0; i < n; i++) {
    double score = (double)scores[i];
    if (out->n == k && score <= out->scores[k - 1])
      continue;
    size_t at = out->n < k ? out->n++ : k - 1;
    for (; at > 0 && out->scores[at - 1] < score; at--) {
      out->scores[at] = out->scores[at - 1];
      out->ids[at] = out->ids[at - 1];
    }
    out->scores[at] = score;
    out->ids[at] = (uint32_t)i;
  }
}

/* Take a few more than k of the best by the full product in f32, and order them in double precision. */
static void sort_truth(struct bench *b)
{
  struct truth *t = &b->truth;

  for (size_t i = 0; i < t->n; i++) {
    uint32_t id = t->ids[i];
    double score = score_of(b, 0, 0, id);
    size_t at = i;
    for (; at > 0 && t->scores[at - 1] < score; at--) {
      t->scores[at] = t->scores[at - 1];
      t->ids[at] = t->ids[at - 1];
    }
    t->scores[at] = score;
    t->ids[at] = id;
  }
  t->n = t->n < b->k + 1 ? t->n : b->k + 1;
}

static void rotate_f32(const struct bench *b, size_t round, float *out)
{
  double rotated[D];

  bilinear_data_rotate(&b->data, round, rotated);
  for (size_t c = 0; c < D; c++)
    out[c] = (float)rotated[c];
}

static const struct truth *truth_of(void *context, size_t round)
{
  struct bench *b = context;
  float rotated[D];
  double square = 0;

  if (b->truth_round == round)
    return &b->truth;
  b->truth_round = round;
  bilinear_data_rotate(&b->data, round, b->rotated);
  rotate_f32(b, round, rotated);
  for (size_t c = 0; c < D; c++)
    square += b->rotated[c] * b->rotated[c];
  bilinear_data_scan(&b->data, rotated, b->scores);
  select_best(b->scores, b->data.n_items, b->k + SPARE, &b->truth);
  /* Scores are normally distributed with this deviation; a million of them span about ten deviations. */
  b->truth.tolerance = 1e-5 * 10 * sqrt(square);
  sort_truth(b);
  return &b->truth;
}

static void scalar_run(void *self, size_t round)
{
  struct bench *b = self;
  float rotated[D];

  rotate_f32(b, round, rotated);
  bilinear_data_scan(&b->data, rotated, b->scores);
  select_best(b->scores, b->data.n_items, b->k, &b->full);
}

static void full_collect(void *self, struct found *found)
{
  struct bench *b = self;

  *found = (struct found){ .n = b->full.n, .has_scores = true, .n_scored = b->data.n_items };
  for (size_t i = 0; i < b->full.n; i++) {
    found->ids[i] = b->full.ids[i];
    found->scores[i] = (float)b->full.scores[i];
  }
}

#ifdef HAVE_CBLAS
/* The usual implementation: q' = W^T q, one matrix-vector product over all items, then the k best. */
static void sgemv_run(void *self, size_t round)
{
  struct bench *b = self;
  const float *q = b->data.queries + round % QUERIES * D;
  float rotated[D];

  cblas_sgemv(CblasRowMajor, CblasTrans, D, D, 1.0f, b->data.w, D, q, 1, 0.0f, rotated, 1);
  cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)b->data.n_items, D, 1.0f, b->data.items, D, rotated, 1, 0.0f, b->scores,
              1);
  select_best(b->scores, b->data.n_items, b->k, &b->full);
}

static void add_sgemv(struct bench *b, struct race *race)
{
  struct racer *racer = race_add(race, "OpenBLAS sgemv", b, sgemv_run, full_collect);

  racer->must_be_exact = true;
  racer->is_peer = true;
  racer->scored_bytes = (double)b->data.n_items * D * 4;
  snprintf(racer->rival, sizeof racer->rival, "exact");
}
#else
static void add_sgemv(struct bench *b, struct race *race)
{
  (void)race;
  report_skipped(&b->options, "OpenBLAS sgemv", "built without OpenBLAS; ops/setup --peers installs it");
}
#endif

static void add_methods(struct bench *b, struct race *race, struct engine_racer *racers)
{
  for (size_t i = 0; i < b->options.n_methods; i++) {
    const char *method = b->options.methods[i];
    if (engine_racer_init(&b->engine, method, b->data.queries, QUERIES, D, (uint32_t)b->k, 1, &racers[i]) != ERR_OK) {
      report_skipped(&b->options, method, err_message());
      continue;
    }
    struct racer *racer = race_add(race, method, &racers[i], engine_racer_run, engine_racer_collect);
    racer->must_be_exact = strncmp(method, "low_rank", 8) != 0;
    racer->bytes_per_item = (double)bench_engine_bytes(&b->engine);
    if (strcmp(method, "brute_force") == 0)
      racer->scored_bytes = (double)b->data.n_items * D * 4;
  }
}

static void race_at(struct bench *b, size_t k)
{
  static struct engine_racer racers[BENCH_METHODS_MAX];
  AUTO(race_fini) struct race race;

  b->k = k;
  b->truth_round = SIZE_MAX;
  bench_check(race_init(&b->options, b->data.n_items, k, 1, &race));
  race.context = b;
  race.truth_of = truth_of;
  race.score_of = score_of;
  race.max_rounds = 100;
  race.memory_rate = machine_read_rate((size_t)1 << 29, 5);
  struct racer *scalar = race_add(&race, "scalar", b, scalar_run, full_collect);
  scalar->must_be_exact = true;
  scalar->bytes_per_item = D * 4;
  scalar->scored_bytes = (double)b->data.n_items * D * 4;
  add_sgemv(b, &race);
  add_methods(b, &race, racers);
  peer_join(b->peer, &race);
  race_run(&race);
  race_report(&race);
}

/* If the engine lacks the similarity, still time the full products. */
static bool open_engine(struct bench *b)
{
  const char *model = bilinear_data_write(&b->data, &b->options);

  if (bench_engine_open(model, b->data.n_items, BENCH_K_MAX, 1, isa_detect(), &b->engine) == ERR_OK)
    return true;
  report_skipped(&b->options, "every method", err_message());
  b->options.n_methods = 0;
  return false;
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = {
    .workload = "bilinear",
    .items = 1000000,
    .seconds = 15,
    .methods = { "exact", "brute_force", "low_rank(64)", "low_rank(128)" },
    .n_methods = 4,
  };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  bilinear_data_open(&b.options.dice, b.options.items, QUERIES, &b.data);
  bench_check(mem_array(b.data.n_items, sizeof *b.scores, &b.scores));
  report_begin(&b.options, "Bilinear: dimension 768, W with the paper's spectrum, one query at a time");
  report_limit(&b.options, "memory_gb_per_s", "reading 512 MiB from memory", machine_read_rate((size_t)1 << 29, 5),
               "GB/s");
  if (open_engine(&b))
    bench_engine_fill(&b.engine, b.data.n_items, bilinear_data_part_of, &b.data);
  peer_open(&b.options, &b.peer);
  race_at(&b, 10);
  race_at(&b, 100);
  peer_close(&b.peer);
  bench_engine_close(&b.engine);
  bilinear_data_close(&b.data);
  mem_free(&b.scores);
  return bench_end(&b.options);
}
