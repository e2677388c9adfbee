/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench scale: does the search time per item stay the same from 10^5 to 10^7 items? */
#include <stdio.h>

#include "tests/bench/bench_engine.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"

enum { QUERIES = 64, K = 10, SIZES = 3, ROWS = 2 * SIZES };

struct bench {
  struct bench_options options;
  struct bench_row rows[ROWS];
  char names[ROWS][48];
  size_t n_rows;
};

/* Time one method at one size. */
static void time_method(struct bench *b, struct bench_engine *e, const char *method, size_t items, const float *queries,
                        size_t dim, size_t batch)
{
  static struct engine_racer racer;
  AUTO(race_fini) struct race race = { 0 };

  if (engine_racer_init(e, method, queries, QUERIES, dim, K, batch, &racer) != ERR_OK) {
    report_skipped(&b->options, method, err_message());
    return;
  }
  bench_check(race_init(&b->options, items, K, batch, &race));
  race.max_rounds = 200;
  struct racer *timed = race_add(&race, method, &racer, engine_racer_run, engine_racer_collect);
  timed->bytes_per_item = (double)bench_engine_bytes(e);
  timed->is_per_item = true;
  race_run(&race);
  race_rows(&race, &b->rows[b->n_rows]);
  snprintf(b->names[b->n_rows], sizeof b->names[0], "%s", method);
  b->rows[b->n_rows].method = b->names[b->n_rows];
  b->n_rows++;
}

static void run_recjpq(struct bench *b, size_t items)
{
  struct bench_engine e = { 0 };
  struct recjpq_data data;

  recjpq_data_open(&b->options.dice, items, QUERIES, &data);
  if (bench_engine_open(recjpq_data_write(&data, &b->options), items, K, 1, isa_detect(), &e) != ERR_OK) {
    report_skipped(&b->options, "recjpq", err_message());
  } else {
    bench_engine_fill(&e, items, recjpq_data_part_of, &data);
    time_method(b, &e, "exact", items, data.queries, RECJPQ_DIM, 1);
    time_method(b, &e, "pqtopk", items, data.queries, RECJPQ_DIM, 1);
  }
  bench_engine_close(&e);
  recjpq_data_close(&data);
}

/* One item of a thousand is a candidate, so the cost of re-scoring grows with the catalogue too. */
static void run_mol(struct bench *b, size_t items)
{
  struct bench_engine e = { 0 };
  struct mol_data data;
  char method[48];

  mol_data_open(&b->options.dice, items, QUERIES, &data);
  snprintf(method, sizeof method, "average(%zu)", items / 1000);
  if (bench_engine_open(mol_data_write(&data, &b->options), items, K, BENCH_BATCH_MAX, isa_detect(), &e) != ERR_OK) {
    report_skipped(&b->options, "mol", err_message());
    mol_data_close(&data);
    bench_engine_close(&e);
    run_mol(b, items / 2);
    return;
  }
  bench_engine_fill(&e, items, mol_data_part_of, &data);
  time_method(b, &e, method, items, data.queries, MOL_DIM, 1);
  time_method(b, &e, method, items, data.queries, MOL_DIM, BENCH_BATCH_MAX);
  bench_engine_close(&e);
  mol_data_close(&data);
}

static void run_sizes(struct bench *b, void (*run)(struct bench *b, size_t items))
{
  b->n_rows = 0;
  for (size_t i = 0, items = b->options.items / 100; i < SIZES; i++, items *= 10)
    run(b, items);
  report_rows(&b->options, b->rows, b->n_rows);
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = { .workload = "scale", .items = 10000000, .seconds = 5 };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  report_begin(&b.options, "Cost per item, from a hundredth of the largest catalogue to the largest");
  run_sizes(&b, run_recjpq);
  run_sizes(&b, run_mol);
  return bench_end(&b.options);
}
