/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench dot: inner products with a million vectors of length 1, beside OpenBLAS and PDX-BOND. */
#include <stdio.h>

#include "base/mem.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_machine.h"
#include "tests/bench/bench_peer.h"
#include "tests/bench/dot_data.h"
#include "tests/bench/full_scan.h"
#include "tests/bench/pdx_bond.h"

enum { QUERIES = 256, D = DOT_DIM };

struct bench {
  struct bench_options options;
  struct dot_data data;
  struct bench_engine engine;
  struct full_scan scan;
  struct pdx_bond pdx;
  struct peer *peer;
};

static void pdx_run(void *self, size_t round)
{
  struct bench *b = self;

  pdx_bond_search(&b->pdx, b->data.queries + round % QUERIES * D, b->scan.k);
}

static void pdx_collect(void *self, struct found *found)
{
  const struct truth *best = &((struct bench *)self)->pdx.best;

  *found = (struct found){ .n = best->n };
  memcpy(found->ids, best->ids, best->n * sizeof *best->ids);
}

static void add_pdx(struct bench *b, struct race *race)
{
  struct racer *racer = race_add(race, "PDX-BOND", b, pdx_run, pdx_collect);

  racer->must_be_exact = true;
  racer->is_peer = true;
  racer->bytes_per_item = D * 4;
  snprintf(racer->rival, sizeof racer->rival, "exact");
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
    racer->must_be_exact = true;
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
  race.max_rounds = QUERIES;
  race.memory_rate = machine_read_rate((size_t)1 << 29, 5);
  if (k <= FULL_SCAN_K_MAX) {
    full_scan_join(&b->scan, &b->options, &race);
    add_pdx(b, &race);
  }
  add_methods(b, &race, racers);
  peer_join(b->peer, &race);
  race_run(&race);
  race_report(&race);
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = {
    .workload = "dot", .items = 1000000, .seconds = 10, .methods = { "exact", "brute_force" }, .n_methods = 2
  };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  dot_data_open(&b.options.dice, b.options.items, QUERIES, &b.data);
  report_begin(&b.options, "dot: dimension 384, vectors of length 1 in clusters, one query at a time");
  report_limit(&b.options, "memory_gb_per_s", "reading 512 MiB from memory", machine_read_rate((size_t)1 << 29, 5),
               "GB/s");
  full_scan_open(b.data.items, b.data.n_items, b.data.queries, QUERIES, D, &b.scan);
  pdx_bond_open(b.data.items, b.data.n_items, D, &b.pdx);
  bench_check(
      bench_engine_open(dot_data_write(&b.data, &b.options), b.data.n_items, BENCH_K_MAX, 1, isa_detect(), &b.engine));
  bench_engine_fill(&b.engine, b.data.n_items, dot_data_part_of, &b.data);
  peer_open(&b.options, &b.peer);
  race_at(&b, 10);
  race_at(&b, 100);
  race_at(&b, 2000);
  peer_close(&b.peer);
  bench_engine_close(&b.engine);
  pdx_bond_close(&b.pdx);
  full_scan_close(&b.scan);
  dot_data_close(&b.data);
  return bench_end(&b.options);
}
