/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench bilinear: q^T W d over a million vectors, beside the full product of plain C and of OpenBLAS. */
#include <string.h>

#include "base/mem.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_machine.h"
#include "tests/bench/bench_peer.h"
#include "tests/bench/bilinear_data.h"
#include "tests/bench/full_scan.h"

enum { QUERIES = 32, D = BILINEAR_DIM };

struct bench {
  struct bench_options options;
  struct bilinear_data data;
  struct bench_engine engine;
  struct peer *peer;
  float *rotated;        /* [QUERIES][D]: W^T q */
  struct full_scan scan; /* under the rotated queries */
};

static void rotate_queries(struct bench *b)
{
  double rotated[D];

  bench_check(mem_array(QUERIES * D, sizeof *b->rotated, &b->rotated));
  for (size_t q = 0; q < QUERIES; q++) {
    bilinear_data_rotate(&b->data, q, rotated);
    for (size_t c = 0; c < D; c++)
      b->rotated[q * D + c] = (float)rotated[c];
  }
}

static void add_methods(struct bench *b, struct race *race, struct engine_racer *racers)
{
  for (size_t i = 0; i < b->options.n_methods; i++) {
    const char *method = b->options.methods[i];
    if (engine_racer_init(&b->engine, method, b->data.queries, QUERIES, D, (uint32_t)b->scan.k, 1, &racers[i]) !=
        ERR_OK) {
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
  AUTO(race_fini) struct race race = { 0 };

  b->scan.k = k;
  b->scan.truth_round = SIZE_MAX;
  bench_check(race_init(&b->options, b->data.n_items, k, 1, &race));
  race.context = &b->scan;
  race.truth_of = full_scan_truth_of;
  race.score_of = full_scan_score_of;
  race.max_rounds = 100;
  race.memory_rate = machine_read_rate((size_t)1 << 29, 5);
  if (k <= FULL_SCAN_K_MAX)
    full_scan_join(&b->scan, &b->options, &race);
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
  rotate_queries(&b);
  full_scan_open(b.data.items, b.data.n_items, b.rotated, QUERIES, D, &b.scan);
  report_begin(&b.options, "Bilinear: dimension 768, W with the paper's spectrum, one query at a time");
  report_limit(&b.options, "memory_gb_per_s", "reading 512 MiB from memory", machine_read_rate((size_t)1 << 29, 5),
               "GB/s");
  if (open_engine(&b))
    bench_engine_fill(&b.engine, b.data.n_items, bilinear_data_part_of, &b.data);
  peer_open(&b.options, &b.peer);
  race_at(&b, 10);
  race_at(&b, 100);
  race_at(&b, 2000);
  peer_close(&b.peer);
  bench_engine_close(&b.engine);
  full_scan_close(&b.scan);
  mem_free(&b.rotated);
  bilinear_data_close(&b.data);
  return bench_end(&b.options);
}
