/* SPDX-License-Identifier: Apache-2.0 */
/* One method's race on a GPU: warm up, time rounds, and compare a sample of answers with the processor's. */
#include "tests/bench/gpu_race.h"

#include <stdio.h>
#include <string.h>

#include "engine/backend/backend.h"
#include "engine/cuda/device_worker.h"
#include "engine/engine_state.h"
#include "tests/bench/bench_clock.h"

enum { WARM_UP_ROUNDS = 20, QUICK_BATCH = 4 };

static const double WARM_UP_MS = 300;

bool gpu_bench_wants(const struct gpu_bench *b, const char *name)
{
  bool is_named = b->options.n_methods == 0;

  for (size_t i = 0; i < b->options.n_methods; i++)
    is_named |= strcmp(b->options.methods[i], name) == 0 || strcmp(b->options.methods[i], b->subject->name) == 0;
  return is_named;
}

bool gpu_race_try(struct gpu_bench *b, struct engine_racer *racer, const char *name)
{
  if (engine_racer_try(racer, 0) == ERR_OK)
    return true;
  if (strstr(err_message(), "not written yet"))
    report_skipped(&b->options, name, err_message());
  else
    bench_fail("%s: %s", name, err_message());
  return false;
}

static void add_filters(struct engine_racer *racer, const struct gpu_case *c)
{
  racer->n_lots = c->n_lots;
  racer->n_filters = c->n_filters;
}

/* Check that the processor returns the same hits for one query, to the last bit. */
static void judge(struct gpu_bench *b, const struct gpu_case *c, const struct answer *answer, size_t query)
{
  static struct engine_racer cpu;

  bench_check(engine_racer_init(&b->cpu, c->method, b->subject->queries, b->subject->n_queries, b->subject->dim,
                                (uint32_t)c->k, 1, &cpu));
  add_filters(&cpu, c);
  engine_racer_search(&cpu, query);
  const struct answer *expected = &cpu.answers[0];
  if (answer->n_hits != expected->n_hits) {
    bench_fail("%s, query %zu: %zu hits, not %zu", c->name, query, answer->n_hits, expected->n_hits);
    return;
  }
  for (size_t i = 0; i < answer->n_hits; i++) {
    const struct hit *x = &answer->hits[i], *y = &expected->hits[i];
    if (!span_equal(x->key, y->key) || memcmp(&x->score, &y->score, sizeof x->score) != 0) {
      bench_fail("%s, query %zu, hit %zu: item %u with %.9g, not item %u with %.9g", c->name, query, i,
                 bench_item_of(x->key), (double)x->score, bench_item_of(y->key), (double)y->score);
      return;
    }
  }
}

static void warm_up(const struct gpu_bench *b, struct engine_racer *racer)
{
  double begin = bench_wall_ms();

  for (size_t i = 1; !b->is_quick && i <= WARM_UP_ROUNDS && bench_wall_ms() - begin < WARM_UP_MS; i++)
    engine_racer_search(racer, i);
}

/* Of run_timed(). */
static struct device_timer *timer;
static double began, ended; /* wall times; 0: not yet */

/* The times of a case's rounds, in ms. */
struct times {
  double wall[RACE_ROUNDS_MAX], device[RACE_ROUNDS_MAX];
  double before[RACE_ROUNDS_MAX], after[RACE_ROUNDS_MAX]; /* the backend's search */
};

/* Search as the cuda backend does, with the timer. */
static err_t run_timed(method_search *search, const struct columns *columns, struct search_batch *batch)
{
  batch->worker->timer = timer;
  batch->worker->is_timed = false;
  if (began == 0) /* else the second search of a batch */
    began = bench_wall_ms();
  err_code_t err = backend_cuda.search(search, columns, batch);
  ended = bench_wall_ms();
  batch->worker->timer = NULL;
  return err;
}

/* Time all further searches of the engine with this timer; NULL: stop. */
static void time_searches(struct engine *e, struct device_timer *by)
{
  static struct backend timed;

  timed = backend_cuda;
  timed.search = run_timed;
  timer = by;
  e->backends.at[0] = by ? &timed : &backend_cuda;
}

/* Returns the number of rounds. */
static size_t time_rounds(struct gpu_bench *b, struct engine_racer *racer, struct times *t)
{
  size_t n = 0, least = b->is_quick ? 1 : 2;
  double begin = bench_wall_ms();

  while (n < least || (n < RACE_ROUNDS_MAX && bench_wall_ms() - begin < 1e3 * b->options.seconds)) {
    bench_check(gpu_ceilings_flush(b->ceilings));
    double start = bench_wall_ms();
    began = 0;
    engine_racer_search(racer, 1 + n);
    double end = bench_wall_ms();
    t->wall[n] = end - start;
    t->before[n] = began - start;
    t->after[n] = end - ended;
    bench_check(device_timer_read(b->timer, &t->device[n++]));
  }
  return n;
}

static struct bench_row make_row(const struct gpu_bench *b, const struct gpu_case *c, size_t n, const struct times *t)
{
  struct gpu_work work = c->work(c, (double)b->options.items);
  double device_ms = bench_quantile(t->device, n, 0.5);

  return (struct bench_row){
    .method = c->name,
    .items = b->options.items,
    .k = c->k,
    .batch = c->batch,
    .threads = 1,
    .n_runs = n,
    .median_ms = bench_quantile(t->wall, n, 0.5),
    .p95_ms = bench_quantile(t->wall, n, 0.95),
    .device = b->device.name,
    .device_ms = device_ms,
    .device_p95_ms = bench_quantile(t->device, n, 0.95),
    .before_ms = bench_quantile(t->before, n, 0.5),
    .after_ms = bench_quantile(t->after, n, 0.5),
    .target_ms = b->options.items == b->subject->default_items ? c->target_ms : 0,
    .of_ceiling = device_ms > 0 ? gpu_work_floor_ms(&work, &b->limits) / device_ms : 0,
    .verdict = c->is_exact ? VERDICT_EXACT : VERDICT_UNCHECKED, /* if one were not, the exit status would be 1 */
    .recall = 1,
    .bytes_per_item = (double)bench_engine_bytes(&b->cuda),
  };
}

static void profile(struct gpu_bench *b, struct engine_racer *racer, const struct gpu_case *c)
{
  bench_check(gpu_ceilings_flush(b->ceilings));
  fprintf(stderr, "bench: profiles %s, batch %zu\n", c->name, c->batch);
  bench_check(gpu_ceilings_profile(true));
  engine_racer_search(racer, 1);
  bench_check(gpu_ceilings_profile(false));
}

bool gpu_race_run(struct gpu_bench *b, const struct gpu_case *given, struct bench_row *row)
{
  static struct engine_racer racer;
  static struct times times;
  struct gpu_case c = *given;

  if (b->is_quick && c.batch > QUICK_BATCH)
    c.batch = QUICK_BATCH;
  bench_check(engine_racer_init(&b->cuda, c.method, b->subject->queries, b->subject->n_queries, b->subject->dim,
                                (uint32_t)c.k, c.batch, &racer));
  add_filters(&racer, &c);
  if (!gpu_race_try(b, &racer, c.name))
    return false;
  judge(b, &c, &racer.answers[0], 0);
  if (c.batch > 1)
    judge(b, &c, &racer.answers[c.batch - 1], c.batch - 1);
  warm_up(b, &racer);
  if (b->is_profiled) {
    profile(b, &racer, &c);
    return false;
  }
  time_searches(b->cuda.engine, b->timer);
  size_t n = time_rounds(b, &racer, &times);
  time_searches(b->cuda.engine, NULL);
  *row = make_row(b, &c, n, &times);
  return true;
}
