/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench threads: one search that is shared by several threads, against the same search in one, in turns. How much
 * faster it can get on this machine is measured too: as many independent searches at a time as there are threads.
 *
 * In its turn, each way searches for a while without a pause. The first shared search of a turn is reported apart: its
 * helpers sleep when it begins. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"
#include "tests/support/vector_file.h"

enum { QUERIES = 64, K = 10, DIM = 128, ROUNDS_MAX = 400, ROUNDS_MIN = 3, THREADS_MAX = 16 };
#define TURN_MS 10.0 /* starting a thread takes little of that */

enum { ALONE, SHARED, WOKEN, INDEPENDENT, N_WAYS };

/* A searcher in a thread of its own. */
struct runner {
  struct bench_engine engine; /* borrowed, with its own searcher */
  struct engine_racer racer;
  size_t round, n_repeats;
  pthread_t thread;
};

struct bench {
  struct bench_options options;
  size_t n_threads;
  struct bench_engine engine;         /* its searcher shares searches */
  struct runner runners[THREADS_MAX]; /* each searches in one thread */
};

static void *run_runner(void *context)
{
  struct runner *r = context;

  for (size_t i = 0; i < r->n_repeats; i++)
    engine_racer_search(&r->racer, r->round + i);
  return NULL;
}

/* Search n_repeats times in each thread. */
static void run_all(struct bench *b, size_t round, size_t n_repeats)
{
  for (size_t i = 0; i < b->n_threads; i++) {
    b->runners[i].round = round;
    b->runners[i].n_repeats = n_repeats;
    if (pthread_create(&b->runners[i].thread, NULL, run_runner, &b->runners[i]) != 0)
      bench_fail("a thread cannot be started");
  }
  for (size_t i = 0; i < b->n_threads; i++)
    pthread_join(b->runners[i].thread, NULL);
}

static void assert_same(const char *method, const struct engine_racer *a, const struct engine_racer *b)
{
  for (size_t i = 0; i < a->batch; i++) {
    const struct answer *x = &a->answers[i], *y = &b->answers[i];
    bool is_same = x->n_hits == y->n_hits && x->receipt.is_exact == y->receipt.is_exact &&
                   memcmp(&x->receipt.bound, &y->receipt.bound, sizeof x->receipt.bound) == 0;
    for (size_t h = 0; is_same && h < x->n_hits; h++)
      is_same = span_equal(x->hits[h].key, y->hits[h].key) &&
                memcmp(&x->hits[h].score, &y->hits[h].score, sizeof x->hits[h].score) == 0;
    if (!is_same)
      bench_fail("%s: threads that share a search give another answer", method);
  }
}

static void report(struct bench *b, const char *method, size_t items, size_t batch, double times[N_WAYS][ROUNDS_MAX],
                   size_t n)
{
  static const char *const variants[N_WAYS] = { "one thread", "shared", "shared, helpers asleep",
                                                "independent searches" };
  struct bench_row rows[N_WAYS];

  for (int way = 0; way < N_WAYS; way++) {
    rows[way] = (struct bench_row){
      .method = method,
      .variant = variants[way],
      .items = items,
      .k = K,
      .batch = batch,
      .threads = way == ALONE ? 1 : b->n_threads,
      .n_runs = n,
      .median_ms = bench_quantile(times[way], n, 0.5),
      .p95_ms = bench_quantile(times[way], n, 0.95),
    };
    if (way == ALONE)
      continue;
    rows[way].other = variants[ALONE];
    rows[way].ratio_to_other = rows[ALONE].median_ms / rows[way].median_ms;
  }
  rows[INDEPENDENT].ratio_to_other *= (double)b->n_threads; /* it did that many searches */
  report_rows(&b->options, rows, N_WAYS);
}

/* Is a method wanted, or any that begins with this text? */
static bool is_wanted(const struct bench *b, const char *method)
{
  for (size_t i = 0; i < b->options.n_methods; i++) {
    if (strncmp(b->options.methods[i], method, strlen(method)) == 0)
      return true;
  }
  return b->options.n_methods == 0;
}

/* Search n_repeats times. Returns the mean time. */
static double time_searches(struct engine_racer *racer, size_t round, size_t n_repeats)
{
  double at_ms = bench_wall_ms();

  for (size_t i = 0; i < n_repeats; i++)
    engine_racer_search(racer, round + i);
  return (bench_wall_ms() - at_ms) / (double)n_repeats;
}

/* Each way takes its turn, with searches of the same rounds. */
static void take_turns(struct bench *b, struct engine_racer *shared, size_t round, size_t n_repeats,
                       double times[N_WAYS])
{
  times[ALONE] = time_searches(&b->runners[0].racer, round, n_repeats);
  times[WOKEN] = time_searches(shared, round, 1);
  times[SHARED] = time_searches(shared, round, n_repeats);
  double at_ms = bench_wall_ms();
  run_all(b, round, n_repeats);
  times[INDEPENDENT] = (bench_wall_ms() - at_ms) / (double)n_repeats;
}

/* name  the similarity and the method */
static void time_method(struct bench *b, const char *name, size_t items, const float *queries, size_t dim, size_t batch)
{
  static double times[N_WAYS][ROUNDS_MAX];
  static struct engine_racer shared;
  const char *method = strchr(name, ' ') + 1;
  size_t n = 0;

  if (!is_wanted(b, name))
    return;
  bench_check(engine_racer_init(&b->engine, method, queries, QUERIES, dim, K, batch, &shared));
  for (size_t i = 0; i < b->n_threads; i++)
    bench_check(
        engine_racer_init(&b->runners[i].engine, method, queries, QUERIES, dim, K, batch, &b->runners[i].racer));
  run_all(b, 0, 1); /* memory is touched for the first time */
  engine_racer_search(&shared, 0);
  size_t n_repeats = (size_t)(TURN_MS / time_searches(&b->runners[0].racer, 0, 1)) + 1;
  double begin_ms = bench_wall_ms();
  for (; n < ROUNDS_MAX && (n < ROUNDS_MIN || bench_wall_ms() - begin_ms < b->options.seconds * 1e3); n++) {
    double round_ms[N_WAYS];
    take_turns(b, &shared, n, n_repeats, round_ms);
    for (int way = 0; way < N_WAYS; way++)
      times[way][n] = round_ms[way];
    assert_same(name, &b->runners[0].racer, &shared);
  }
  report(b, name, items, batch, times, n);
}

static err_t open_searchers(struct bench *b)
{
  TRY(bench_engine_share(b->n_threads, &b->engine));
  for (size_t i = 0; i < b->n_threads; i++) {
    b->runners[i].engine.engine = b->engine.engine;
    TRY(searcher_open_aside(b->engine.engine, &b->runners[i].engine.searcher));
  }
  return ERR_OK;
}

static void open_engine(struct bench *b, const char *model, size_t items)
{
  bench_check(bench_engine_open(model, items, K, BENCH_BATCH_MAX, isa_detect(), &b->engine));
  bench_check(open_searchers(b));
}

static void close_engine(struct bench *b)
{
  for (size_t i = 0; i < b->n_threads; i++)
    searcher_close(&b->runners[i].engine.searcher);
  bench_engine_close(&b->engine);
}

static void vector_part_of(const void *context, uint32_t item, struct part *part)
{
  part->vector = (struct floats){ (const float *)context + item * (size_t)DIM, DIM };
}

static void run_vectors(struct bench *b, size_t items)
{
  AUTO(mem_free) float *vectors = NULL;

  bench_check(mem_array((items + QUERIES) * DIM, sizeof *vectors, &vectors));
  const float *queries = vectors + items * DIM;
  dice_fill(&b->options.dice, vectors, (items + QUERIES) * DIM, 1.0f);
  vector_file_write_plain(bench_path(&b->options, "dot.safetensors"), "dot", DIM);
  open_engine(b, bench_path(&b->options, "dot.safetensors"), items);
  bench_engine_fill(&b->engine, items, vector_part_of, vectors);
  time_method(b, "dot exact", items, queries, DIM, 1);
  time_method(b, "dot exact", items, queries, DIM, BENCH_BATCH_MAX);
  time_method(b, "dot brute_force", items, queries, DIM, 1);
  close_engine(b);
}

/* A matrix of independent numbers. */
static void run_bilinear(struct bench *b, size_t items)
{
  AUTO(mem_free) float *vectors = NULL, *w = NULL;

  bench_check(mem_array((items + QUERIES) * DIM, sizeof *vectors, &vectors));
  bench_check(mem_array((size_t)DIM * DIM, sizeof *w, &w));
  dice_fill(&b->options.dice, vectors, (items + QUERIES) * DIM, 1.0f);
  dice_fill(&b->options.dice, w, (size_t)DIM * DIM, 1.0f);
  vector_file_write_matrix(bench_path(&b->options, "bilinear.safetensors"), w, DIM, DIM);
  open_engine(b, bench_path(&b->options, "bilinear.safetensors"), items);
  bench_engine_fill(&b->engine, items, vector_part_of, vectors);
  time_method(b, "bilinear low_rank(32)", items, vectors + items * DIM, DIM, BENCH_BATCH_MAX);
  close_engine(b);
}

static void run_recjpq(struct bench *b, size_t items)
{
  struct recjpq_data data;

  recjpq_data_open(&b->options.dice, items, QUERIES, &data);
  open_engine(b, recjpq_data_write(&data, &b->options), items);
  bench_engine_fill(&b->engine, items, recjpq_data_part_of, &data);
  time_method(b, "recjpq pqtopk", items, data.queries, RECJPQ_DIM, 1);
  time_method(b, "recjpq pqtopk", items, data.queries, RECJPQ_DIM, BENCH_BATCH_MAX);
  time_method(b, "recjpq exact", items, data.queries, RECJPQ_DIM, BENCH_BATCH_MAX);
  close_engine(b);
  recjpq_data_close(&data);
}

static void run_mol(struct bench *b, size_t items)
{
  struct mol_data data;

  mol_data_open(&b->options.dice, items, QUERIES, &data);
  open_engine(b, mol_data_write(&data, &b->options), items);
  bench_engine_fill(&b->engine, items, mol_data_part_of, &data);
  time_method(b, "mol exact", items, data.queries, MOL_DIM, 1);
  time_method(b, "mol exact", items, data.queries, MOL_DIM, BENCH_BATCH_MAX);
  time_method(b, "mol brute_force", items, data.queries, MOL_DIM, 1);
  time_method(b, "mol average(500)", items, data.queries, MOL_DIM, 1);
  time_method(b, "mol average(500)", items, data.queries, MOL_DIM, BENCH_BATCH_MAX);
  time_method(b, "mol per_embedding(50)", items, data.queries, MOL_DIM, BENCH_BATCH_MAX);
  close_engine(b);
  mol_data_close(&data);
}

int main(int argc, char **argv)
{
  const struct bench_options defaults = { .workload = "threads", .items = 2200000, .threads = 2, .seconds = 3 };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  b.n_threads = b.options.threads;
  if (b.n_threads < 2 || b.n_threads > THREADS_MAX)
    bench_fail("--threads must be from 2 to %d", THREADS_MAX);
  else {
    report_begin(&b.options, "Searches that threads share");
    if (is_wanted(&b, "recjpq"))
      run_recjpq(&b, b.options.items);
    if (is_wanted(&b, "dot"))
      run_vectors(&b, b.options.items / 8);
    if (is_wanted(&b, "bilinear"))
      run_bilinear(&b, b.options.items / 8);
    if (is_wanted(&b, "mol"))
      run_mol(&b, b.options.items / 64);
  }
  return bench_end(&b.options);
}
