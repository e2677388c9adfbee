/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench mol: Mixture-of-Logits in the shape of the paper's Books, in batches of 32 and of 1, with random and with
 * planted weights (mol_data.h).
 *
 * The engine's brute force finds the K best, untimed. Double precision checks it: the scores of all hits, and of a
 * sample of the other items. Every timed answer is then compared with these K best.
 */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_machine.h"
#include "tests/bench/bench_peer.h"
#include "tests/bench/mol_oracle.h"

enum { POOL_ROUNDS = 3, QUERIES = POOL_ROUNDS * BENCH_BATCH_MAX, REF_ITEMS = 160, SAMPLE = 3000 };

/* The score range is 40: logits lie within +- 1 / temperature. */
static const double TOLERANCE = 1e-5 * 40;

struct bench {
  struct bench_options options;
  const char *variant;
  struct mol_data data;
  struct mol_oracle_query prepared; /* number prepared_query of the pool */
  size_t prepared_query;
  struct bench_engine engine, ref_engine;
  struct peer *peer;
  size_t batch;
  struct truth truth[QUERIES];
};

static double oracle(struct bench *b, size_t query, uint32_t item)
{
  if (b->prepared_query != query) {
    mol_oracle_prepare(&b->data, b->data.queries + query * MOL_DIM, &b->prepared);
    b->prepared_query = query;
  }
  return mol_oracle_score(&b->data, &b->prepared, b->data.items + (size_t)item * MOL_DIM);
}

/* Check one query's brute force: no item of a random sample may beat the last hit. */
static void judge_truth(struct bench *b, size_t query)
{
  const struct truth *truth = &b->truth[query];

  for (size_t i = 0; i < truth->n; i++) {
    if (fabs(oracle(b, query, truth->ids[i]) - truth->scores[i]) > TOLERANCE)
      bench_fail("brute force, query %zu: a score is not the double-precision one", query);
  }
  for (size_t i = 0; i < SAMPLE; i++) {
    uint32_t item = (uint32_t)dice_below(&b->options.dice, b->data.n_items);
    bool is_among = false;
    for (size_t t = 0; t < truth->n; t++)
      is_among |= truth->ids[t] == item;
    if (!is_among && oracle(b, query, item) > truth->scores[truth->n - 1] + TOLERANCE)
      bench_fail("brute force, query %zu: item %u is missing", query, item);
  }
}

/* Find the k + 1 best of every query of the pool, by brute force. */
static void find_truth(struct bench *b)
{
  static struct engine_racer racer;
  static struct found found[BENCH_BATCH_MAX];

  bench_check(
      engine_racer_init(&b->engine, "brute_force", b->data.queries, QUERIES, MOL_DIM, b->options.k + 1, BENCH_BATCH_MAX, &racer));
  for (size_t r = 0; r < POOL_ROUNDS; r++) {
    engine_racer_search(&racer, r);
    engine_racer_collect(&racer, found);
    for (size_t q = 0; q < BENCH_BATCH_MAX; q++) {
      struct truth *truth = &b->truth[r * BENCH_BATCH_MAX + q];
      truth->n = found[q].n;
      truth->tolerance = TOLERANCE;
      for (size_t i = 0; i < found[q].n; i++) {
        truth->ids[i] = found[q].ids[i];
        truth->scores[i] = (double)found[q].scores[i];
      }
    }
    judge_truth(b, r * BENCH_BATCH_MAX);
    bench_progress("batches searched by brute force, to judge by", r + 1, POOL_ROUNDS);
  }
}

static const struct truth *truth_of(void *context, size_t round)
{
  struct bench *b = context;

  return &b->truth[round * b->batch % QUERIES];
}

/* Look up the score of an item among the best; compute it for others. */
static double score_of(void *context, size_t round, size_t query, uint32_t item)
{
  struct bench *b = context;
  size_t index = (round * b->batch + query) % QUERIES;
  const struct truth *truth = &b->truth[index];

  for (size_t i = 0; i < truth->n; i++) {
    if (truth->ids[i] == item)
      return truth->scores[i];
  }
  return oracle(b, index, item);
}

/* The scalar level is far too slow for the whole catalogue: time a few items and scale the result up. */
static void add_scalar(struct bench *b, struct race *race, struct engine_racer *engine_racer)
{
  bench_check(engine_racer_init(&b->ref_engine, "brute_force", b->data.queries, QUERIES, MOL_DIM, b->options.k, race->batch,
                                engine_racer));
  struct racer *racer = race_add(race, "scalar", engine_racer, engine_racer_run, NULL);
  racer->scale = (double)b->data.n_items / REF_ITEMS;
}

static bool is_exact_method(const char *method)
{
  return strcmp(method, "exact") == 0 || strcmp(method, "brute_force") == 0 || strcmp(method, "two_pass") == 0;
}

static void add_methods(struct bench *b, struct race *race, struct engine_racer *racers)
{
  for (size_t i = 0; i < b->options.n_methods; i++) {
    const char *method = b->options.methods[i];
    if (engine_racer_init(&b->engine, method, b->data.queries, QUERIES, MOL_DIM, b->options.k, race->batch, &racers[i]) !=
        ERR_OK) {
      report_skipped(&b->options, method, err_message());
      continue;
    }
    struct racer *racer = race_add(race, method, &racers[i], engine_racer_run, engine_racer_collect);
    racer->must_be_exact = is_exact_method(method);
    racer->bytes_per_item = (double)bench_engine_bytes(&b->engine);
    if (strcmp(method, "brute_force") == 0)
      racer->fmas = mol_data_pair_fmas() * (double)(b->data.n_items * race->batch);
  }
}

static void race_at(struct bench *b, size_t batch)
{
  static struct engine_racer racers[BENCH_METHODS_MAX], scalar;
  AUTO(race_fini) struct race race = { 0 };

  b->batch = batch;
  bench_check(race_init(&b->options, b->data.n_items, b->options.k, batch, &race));
  race.variant = b->variant;
  race.context = b;
  race.truth_of = truth_of;
  race.score_of = score_of;
  race.max_rounds = 200;
  race.fma_rate = machine_fma_peak(isa_detect());
  add_scalar(b, &race, &scalar);
  add_methods(b, &race, racers);
  peer_join(b->peer, &race);
  race_run(&race);
  race_report(&race);
}

static void report_machine(const struct bench *b)
{
  report_begin(&b->options, "Mixture-of-Logits: 8 x 8 components of dimension 32, gates of 128 (Books)");
  if (b->options.format != BENCH_JSON)
    printf("\nscalar: brute force of the scalar level over %d items, scaled by the number of items\n", REF_ITEMS);
  report_limit(&b->options, "memory_gb_per_s", "reading 512 MiB from memory", machine_read_rate((size_t)1 << 29, 5),
               "GB/s");
  report_limit(&b->options, "fma_g_per_s", "fused multiply-adds of f32", machine_fma_peak(isa_detect()), "G/s");
  if (machine_has_amx())
    report_limit(&b->options, "amx_i8_g_per_s", "AMX multiply-adds of bytes", machine_amx_peak(), "G/s");
  else if (b->options.format != BENCH_JSON)
    printf("%sAMX: this processor has none\n", b->options.format == BENCH_MARKDOWN ? "\n" : "");
}

/* Race over the catalogue in b->data, and close it. */
static void race_catalogue(struct bench *b, const char *variant)
{
  const char *model = mol_data_write(&b->data, &b->options);

  b->variant = variant;
  b->prepared_query = SIZE_MAX;
  bench_check(bench_engine_open(model, b->data.n_items, BENCH_K_MAX, BENCH_BATCH_MAX, isa_detect(), &b->engine));
  bench_check(bench_engine_open(model, REF_ITEMS, BENCH_K_MAX, BENCH_BATCH_MAX, ISA_REF, &b->ref_engine));
  bench_engine_fill(&b->ref_engine, REF_ITEMS, mol_data_part_of, &b->data);
  bench_engine_fill(&b->engine, b->data.n_items, mol_data_part_of, &b->data);
  find_truth(b);
  peer_open(&b->options, &b->peer);
  race_at(b, 32);
  race_at(b, 1);
  peer_close(&b->peer);
  bench_engine_close(&b->engine);
  bench_engine_close(&b->ref_engine);
  mol_data_close(&b->data);
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = {
    .workload = "mol",
    .items = 674044,
    .k = 100,
    .seconds = 15,
    .methods = { "average(4000)", "combined(100,1000)", "per_embedding(100)", "two_pass", "exact", "brute_force" },
    .n_methods = 6,
  };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  report_machine(&b);
  mol_data_open(&b.options.dice, b.options.items, QUERIES, &b.data);
  race_catalogue(&b, NULL);
  mol_data_open_planted(&b.options.dice, b.options.items, QUERIES, &b.data);
  race_catalogue(&b, "planted");
  return bench_end(&b.options);
}
