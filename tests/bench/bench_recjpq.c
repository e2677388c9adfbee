/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench recjpq: one query at a time over codes of a large catalogue, random and planted (recjpq_data.h). */
#include <stdio.h>

#include "base/mem.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_machine.h"
#include "tests/bench/bench_peer.h"
#include "tests/bench/recjpq_data.h"

enum {
  QUERIES = 512,
  SCALAR_K_MAX = 100, /* the scalar scan keeps its best in a sorted array: for large K that takes most of its time */
};

struct bench {
  struct bench_options options;
  const char *variant;
  struct recjpq_data data;
  struct bench_engine engine;
  struct peer *peer;
  size_t k;
  size_t tables_round; /* the query that the tables and the K best are of; SIZE_MAX: none yet */
  struct recjpq_tables tables, scan_tables;
  struct truth truth, scanned;
  uint64_t checksum;
};

static void make_tables(struct bench *b, size_t round)
{
  if (b->tables_round != round) {
    recjpq_data_tables_make(&b->data, round, &b->tables);
    b->tables_round = round;
    recjpq_data_scan(&b->tables, b->data.codes, NULL, b->data.n_items, b->k + 1, &b->truth);
  }
}

static const struct truth *truth_of(void *context, size_t round)
{
  struct bench *b = context;

  make_tables(b, round);
  return &b->truth;
}

static double score_of(void *context, size_t round, size_t query, uint32_t item)
{
  struct bench *b = context;

  (void)query;
  make_tables(b, round);
  return recjpq_data_score(&b->tables, b->data.codes + (size_t)item * RECJPQ_SPLITS);
}

/* Building the tables is not timed, which favours the scalar scan. */
static void scalar_prepare(void *self, size_t round)
{
  struct bench *b = self;

  recjpq_data_tables_make(&b->data, round, &b->scan_tables);
}

static void scalar_run(void *self, size_t round)
{
  struct bench *b = self;

  (void)round;
  recjpq_data_scan(&b->scan_tables, b->data.codes, NULL, b->data.n_items, b->k, &b->scanned);
}

static void scalar_collect(void *self, struct found *found)
{
  struct bench *b = self;

  *found = (struct found){ .n = b->scanned.n, .has_scores = true, .n_scored = b->data.n_items };
  for (size_t i = 0; i < b->scanned.n; i++) {
    found->ids[i] = b->scanned.ids[i];
    found->scores[i] = (float)b->scanned.scores[i];
  }
}

/* The read rate of the memory, or of the cache that the codes fit into. No method that reads all codes can be faster.
 */
static void read_run(void *self, size_t round)
{
  struct bench *b = self;

  (void)round;
  b->checksum += machine_read(b->data.codes, b->data.n_items * RECJPQ_SPLITS / 256 * 256);
}

static void add_methods(struct bench *b, struct race *race, struct engine_racer *racers)
{
  for (size_t i = 0; i < b->options.n_methods; i++) {
    const char *method = b->options.methods[i];
    if (engine_racer_init(&b->engine, method, b->data.queries, b->data.n_queries, RECJPQ_DIM, (uint32_t)b->k, 1,
                          &racers[i]) != ERR_OK) {
      report_skipped(&b->options, method, err_message());
      continue;
    }
    struct racer *racer = race_add(race, method, &racers[i], engine_racer_run, engine_racer_collect);
    racer->must_be_exact = true;
    racer->bytes_per_item = (double)bench_engine_bytes(&b->engine);
    if (strcmp(method, "pqtopk") == 0)
      racer->scored_bytes = (double)(b->data.n_items * RECJPQ_SPLITS);
  }
}

static void add_scalar(struct bench *b, struct race *race)
{
  struct racer *scalar = race_add(race, "scalar", b, scalar_run, scalar_collect);

  scalar->prepare = scalar_prepare;
  scalar->must_be_exact = true;
  scalar->bytes_per_item = RECJPQ_SPLITS;
}

static void race_at(struct bench *b, size_t k)
{
  static struct engine_racer racers[BENCH_METHODS_MAX];
  AUTO(race_fini) struct race race = { 0 };

  b->k = k;
  b->tables_round = SIZE_MAX;
  bench_check(race_init(&b->options, b->data.n_items, k, 1, &race));
  race.variant = b->variant;
  race.context = b;
  race.truth_of = truth_of;
  race.score_of = score_of;
  race_add(&race, "read the codes", b, read_run, NULL);
  if (k <= SCALAR_K_MAX)
    add_scalar(b, &race);
  add_methods(b, &race, racers);
  peer_join(b->peer, &race);
  race.memory_rate = machine_read_rate(b->data.n_items * RECJPQ_SPLITS, 32);
  race_run(&race);
  race_report(&race);
}

/* Race over the catalogue in b->data, and close it. */
static void race_catalogue(struct bench *b, const char *variant)
{
  b->variant = variant;
  bench_check(bench_engine_open(recjpq_data_write(&b->data, &b->options), b->data.n_items, BENCH_K_MAX, 1, isa_detect(),
                                &b->engine));
  bench_engine_fill(&b->engine, b->data.n_items, recjpq_data_part_of, &b->data);
  peer_open(&b->options, &b->peer);
  race_at(b, 10);
  race_at(b, 100);
  race_at(b, 2000);
  peer_close(&b->peer);
  bench_engine_close(&b->engine);
  recjpq_data_close(&b->data);
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = {
    .workload = "recjpq",
    .items = 2194464,
    .seconds = 10,
    .methods = { "exact", "pqtopk", "prune(8)", "default" },
    .n_methods = 4,
  };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  recjpq_data_open(&b.options.dice, b.options.items, QUERIES, &b.data);
  report_begin(&b.options, "RecJPQ: 8 splits of 256 sub-items, dimension 512, one query at a time");
  report_limit(&b.options, "memory_gb_per_s", "reading 512 MiB from memory", machine_read_rate((size_t)1 << 29, 5),
               "GB/s");
  report_limit(&b.options, "codes_gb_per_s", "reading as many bytes as the codes, again and again",
               machine_read_rate(b.data.n_items * RECJPQ_SPLITS, 32), "GB/s");
  race_catalogue(&b, NULL);
  recjpq_data_open_planted(&b.options.dice, b.options.items, QUERIES, &b.data);
  race_catalogue(&b, "planted");
  return bench_end(&b.options);
}
