/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench fairness: how long short queries take while workers are busy with long batches: RecJPQ `exact` every few
 * milliseconds, beside as many MoL `brute_force` queries as the workers can take. The queue and the searchers are those
 * of the daemon, without Kafka. Windows with and without short batches in between take turns. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/method.h"
#include "daemon/queries/query_queue.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"

enum { SHORT, LONG, N_KINDS };
enum { WITHOUT, WITH, N_WAYS };
enum { QUERIES = 64, K = 10, TIMES_MAX = 20000, LONG_WAITING = 2 * BENCH_BATCH_MAX, WINDOWS = 2, THREADS_MAX = 16 };

#define SHORT_EVERY_NS (5 * CLOCK_NS_PER_MS)
#define BATCH_TIME_NS  (2 * CLOCK_NS_PER_S) /* full batches */

struct lane {
  struct searcher *searcher;
  struct query_batch batch;
  struct pending_query *pending[BENCH_BATCH_MAX];
  struct answer answers[BENCH_BATCH_MAX];
};

struct bench;

struct worker {
  struct bench *bench;
  struct lane usual, between;
  int64_t between_ns;
  pthread_t thread;
};

struct times {
  double ms[TIMES_MAX];
  _Atomic size_t n;
};

struct bench {
  struct bench_options options;
  struct engine *engine;
  struct recjpq_data codes;
  struct mol_data vectors;
  struct method methods[N_KINDS];
  struct query_queue *queue;
  size_t n_workers;
  struct worker workers[THREADS_MAX];
  _Atomic bool is_over;
  _Atomic int way;
  _Atomic size_t n_there[N_KINDS]; /* that wait or are searched */
  struct times times[N_WAYS][N_KINDS];
  double seconds[N_WAYS];
};

/* Searches -------------------- */

static int64_t serve(struct worker *w, struct lane *lane)
{
  struct bench *b = w->bench;
  const struct query *queries[BENCH_BATCH_MAX];
  const struct pending_query *first = lane->batch.queries[0];
  int64_t began_ns = clock_now_ns();

  w->between_ns = 0;
  for (size_t i = 0; i < lane->batch.n; i++)
    queries[i] = &lane->batch.queries[i]->query;
  bench_check(searcher_search(lane->searcher, first->space, &first->method, queries, lane->batch.n, lane->answers));
  int64_t end_ns = clock_now_ns();
  struct times *times = &b->times[atomic_load(&b->way)][first->space];
  for (size_t i = 0; i < lane->batch.n; i++) {
    size_t at = atomic_fetch_add(&times->n, 1);
    if (at < TIMES_MAX)
      times->ms[at] = (double)(end_ns - lane->batch.queries[i]->received_ns) / CLOCK_NS_PER_MS;
  }
  atomic_fetch_sub(&b->n_there[first->space], lane->batch.n);
  query_queue_finish(b->queue, &lane->batch, lane->batch.n, end_ns - began_ns - w->between_ns);
  return end_ns - began_ns;
}

static void serve_between(void *context)
{
  struct worker *w = context;
  int64_t sum_ns = w->between_ns;

  if (atomic_load(&w->bench->way) == WITHOUT)
    return;
  while (query_queue_pop_between(w->bench->queue, &w->usual.batch, &w->between.batch))
    sum_ns += serve(w, &w->between);
  w->between_ns = sum_ns;
}

static void *work(void *context)
{
  struct worker *w = context;

  while (query_queue_pop(w->bench->queue, &w->usual.batch))
    serve(w, &w->usual);
  return NULL;
}

/* Queries -------------------- */

static void push(struct bench *b, size_t kind, size_t index)
{
  struct pending_query *query = query_queue_take_query(b->queue);
  const float *vector =
      kind == SHORT ? b->codes.queries + index % QUERIES * RECJPQ_DIM : b->vectors.queries + index % QUERIES * MOL_DIM;

  if (!query)
    return;
  atomic_fetch_add(&b->n_there[kind], 1);
  query->space = query->number = kind;
  query->method = b->methods[kind];
  query->query = (struct query){ .k = K, .vector = { vector, kind == SHORT ? RECJPQ_DIM : MOL_DIM } };
  query->received_ns = clock_now_ns();
  query->deadline_ns = PENDING_NO_DEADLINE;
  query_queue_push(b->queue, query);
}

static void run_window(struct bench *b, int way, double seconds)
{
  int64_t begin_ns = clock_now_ns(), end_ns = begin_ns + (int64_t)(seconds * (double)CLOCK_NS_PER_S);
  size_t n = 0;

  atomic_store(&b->way, way);
  for (int64_t now_ns = begin_ns; now_ns < end_ns; now_ns = clock_now_ns()) {
    while (atomic_load(&b->n_there[LONG]) < LONG_WAITING)
      push(b, LONG, n++);
    push(b, SHORT, n++);
    clock_sleep_ns(SHORT_EVERY_NS);
  }
  while (atomic_load(&b->n_there[SHORT]) + atomic_load(&b->n_there[LONG]) > 0) /* none is left to the next window */
    clock_sleep_ns(SHORT_EVERY_NS);
  b->seconds[way] += (double)(clock_now_ns() - begin_ns) / CLOCK_NS_PER_S;
}

/* Set-up -------------------- */

static void fill(struct bench *b, size_t items)
{
  for (size_t i = 0; i < items; i++) {
    uint8_t key[BENCH_KEY_BYTES];
    struct part parts[N_KINDS] = { { .space = span_of_str("short") }, { .space = span_of_str("long") } };
    struct item_change change = { .key = bench_key((uint32_t)i, key), .parts = parts, .n_parts = N_KINDS };
    recjpq_data_part_of(&b->codes, (uint32_t)i, &parts[SHORT]);
    mol_data_part_of(&b->vectors, (uint32_t)i, &parts[LONG]);
    bench_check(engine_check_item(b->engine, &change));
    bench_check(engine_apply(b->engine, &change, 1, NULL, 0));
  }
}

static void open_engine(struct bench *b)
{
  char paths[N_KINDS][320];
  size_t items = b->options.items;

  recjpq_data_open(&b->options.dice, items, QUERIES, &b->codes);
  mol_data_open(&b->options.dice, items, QUERIES, &b->vectors);
  snprintf(paths[SHORT], sizeof paths[0], "%s/short.safetensors", b->options.dir);
  if (rename(recjpq_data_write(&b->codes, &b->options), paths[SHORT]) != 0) /* the other one has the same name */
    bench_fail("the model cannot be renamed");
  snprintf(paths[LONG], sizeof paths[0], "%s", mol_data_write(&b->vectors, &b->options));
  struct engine_space spaces[N_KINDS] = { { .name = "short", .model_path = paths[SHORT] },
                                          { .name = "long", .model_path = paths[LONG] } };
  struct engine_config config = {
    .spaces = spaces,
    .n_spaces = N_KINDS,
    .max_items = items,
    .max_k = K,
    .max_batch = BENCH_BATCH_MAX,
    .isa = isa_detect(),
  };
  struct engine_threads threads = { b->n_workers, b->n_workers, false };
  bench_check(engine_open(&config, &b->engine));
  bench_check(engine_share_searches(b->engine, &threads));
  fill(b, items);
  bench_check(method_parse(span_of_str("exact"), &b->methods[SHORT]));
  bench_check(method_parse(span_of_str("brute_force"), &b->methods[LONG]));
}

static void open_workers(struct bench *b)
{
  static const uint32_t weights[N_KINDS] = { 1, 1 };
  struct fair_queue_config config = {
    .weights = weights,
    .n_spaces = N_KINDS,
    .n_workers = b->n_workers,
    .n_queries = 4096,
    .max_batch = BENCH_BATCH_MAX,
    .batch_time_ns = BATCH_TIME_NS,
  };

  bench_check(query_queue_open(&config, (size_t)64 << 20, &b->queue));
  for (size_t i = 0; i < b->n_workers; i++) {
    struct worker *w = &b->workers[i];
    w->bench = b;
    bench_check(searcher_open(b->engine, &w->usual.searcher));
    bench_check(searcher_open(b->engine, &w->between.searcher));
    searcher_set_pause(w->usual.searcher, w->between.searcher, serve_between, w);
    w->usual.batch.queries = w->usual.pending;
    w->between.batch.queries = w->between.pending;
    if (pthread_create(&w->thread, NULL, work, w) != 0)
      bench_fail("a worker cannot be started");
  }
}

static void close_all(struct bench *b)
{
  query_queue_end(b->queue, 0);
  for (size_t i = 0; i < b->n_workers; i++) {
    pthread_join(b->workers[i].thread, NULL);
    searcher_close(&b->workers[i].usual.searcher);
    searcher_close(&b->workers[i].between.searcher);
  }
  query_queue_close(&b->queue);
  engine_close(&b->engine);
  recjpq_data_close(&b->codes);
  mol_data_close(&b->vectors);
}

static void report(struct bench *b)
{
  static const char *const names[N_KINDS] = { "recjpq exact", "mol brute_force" };
  static const char *const variants[N_WAYS] = { "waits for batches", "in between" };
  struct bench_row rows[N_WAYS * N_KINDS];
  size_t n = 0;

  for (int kind = 0; kind < N_KINDS; kind++) {
    for (int way = 0; way < N_WAYS; way++) {
      const struct times *times = &b->times[way][kind];
      size_t n_times = atomic_load(&times->n) < TIMES_MAX ? atomic_load(&times->n) : TIMES_MAX;
      if (n_times == 0)
        continue;
      rows[n++] = (struct bench_row){
        .method = names[kind],
        .variant = variants[way],
        .items = b->options.items,
        .k = K,
        .batch = kind == SHORT ? 1 : BENCH_BATCH_MAX,
        .threads = b->n_workers,
        .n_runs = n_times,
        .median_ms = bench_quantile(times->ms, n_times, 0.5),
        .p95_ms = bench_quantile(times->ms, n_times, 0.95),
        .p99_ms = bench_quantile(times->ms, n_times, 0.99),
        .items_per_s = (double)n_times / b->seconds[way],
      };
    }
  }
  report_rows(&b->options, rows, n);
}

int main(int argc, char **argv)
{
  const struct bench_options defaults = { .workload = "fairness", .items = 50000, .threads = 2, .seconds = 8 };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  b.n_workers = b.options.threads < THREADS_MAX ? b.options.threads : THREADS_MAX;
  open_engine(&b);
  open_workers(&b);
  run_window(&b, WITH, b.options.seconds / 4); /* costs become known */
  for (int way = 0; way < N_WAYS; way++) {
    b.seconds[way] = 0;
    for (int kind = 0; kind < N_KINDS; kind++)
      atomic_store(&b.times[way][kind].n, 0);
  }
  for (int window = 0; window < WINDOWS * N_WAYS; window++)
    run_window(&b, window % N_WAYS, b.options.seconds / WINDOWS / N_WAYS);
  report_begin(&b.options, "Short queries beside long batches");
  report(&b);
  close_all(&b);
  return bench_end(&b.options);
}
