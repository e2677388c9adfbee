/* SPDX-License-Identifier: Apache-2.0 */
/* Searches on a GPU while updates are applied, beside the same searches while none are. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/gpu_race.h"

/* An update gives an item a row of the start: in version v, item i has the row that item i + v * STEP had. When all
 * items are at one version, the catalogue is that of the start under other keys. */
enum { UPDATES_PER_MS = 1000, BATCH_MAX = 4096, BATCH_LEAST = 1000, WINDOWS = 10, TIMES_MAX = 1 << 18, STEP = 7919 };

struct live {
  struct gpu_bench *bench;
  size_t n_items, version, next; /* items below `next` are at `version`, the others at the version before it */
  _Atomic bool is_live, is_over;
  size_t n_updates;
  double live_ms;
  double *times[2]; /* idle, live */
  size_t n_times[2];
};

static void part_of(const void *context, uint32_t item, struct part *part)
{
  const struct live *l = context;

  l->bench->subject->part_of(l->bench->subject->data, (uint32_t)((item + l->version * STEP) % l->n_items), part);
}

/* Update the next n items, or as many as this version has left. Return how many. */
static size_t write_batch(struct live *l, size_t n)
{
  uint32_t items[BATCH_MAX];

  if (l->next == l->n_items) {
    l->version++;
    l->next = 0;
  }
  n = n < BATCH_MAX ? n : BATCH_MAX;
  n = n < l->n_items - l->next ? n : l->n_items - l->next;
  for (size_t i = 0; i < n; i++)
    items[i] = (uint32_t)(l->next + i);
  bench_engine_apply(&l->bench->cuda, items, NULL, n, part_of, l);
  l->next += n;
  return n;
}

/* Apply the updates that are due, as soon as the last batch is published. */
static void *write_updates(void *context)
{
  struct live *l = context;
  double begin = bench_wall_ms();
  size_t n_done = 0;

  while (!atomic_load(&l->is_over)) {
    double due = (bench_wall_ms() - begin) * UPDATES_PER_MS - (double)n_done;
    if (!atomic_load(&l->is_live)) {
      clock_sleep_ns(CLOCK_NS_PER_MS);
      begin = bench_wall_ms();
      n_done = 0;
    } else if (due < BATCH_LEAST) {
      clock_sleep_ns(CLOCK_NS_PER_MS / 10);
    } else {
      size_t n = write_batch(l, (size_t)due);
      n_done += n;
      l->n_updates += n;
    }
  }
  return NULL;
}

static void search_window(struct live *l, struct engine_racer *racer, size_t window, double ms)
{
  bool is_live = window % 2;
  double begin = bench_wall_ms(), now = begin;

  atomic_store(&l->is_live, is_live);
  for (size_t round = window * 1000003; now - begin < ms; round++) {
    double start = bench_wall_ms();
    engine_racer_search(racer, round);
    now = bench_wall_ms();
    if (l->n_times[is_live] < TIMES_MAX)
      l->times[is_live][l->n_times[is_live]++] = now - start;
  }
  l->live_ms += is_live ? now - begin : 0;
}

static void search_windows(struct live *l, struct engine_racer *racer)
{
  pthread_t writer;

  if (pthread_create(&writer, NULL, write_updates, l)) {
    perror("bench: error: pthread_create");
    exit(1);
  }
  for (size_t window = 0; window < WINDOWS; window++)
    search_window(l, racer, window, l->bench->options.seconds * 2e3 / WINDOWS);
  atomic_store(&l->is_over, true);
  pthread_join(writer, NULL);
}

/* When all items are at one version, scores are those of the start. */
static void judge(struct live *l, struct engine_racer *racer)
{
  static struct engine_racer cpu;
  const struct gpu_subject *s = l->bench->subject;

  while (l->next < l->n_items)
    write_batch(l, BATCH_MAX);
  bench_check(engine_racer_init(&l->bench->cpu, s->live_method, s->queries, s->n_queries, s->dim, (uint32_t)s->live_k,
                                1, &cpu));
  for (size_t query = 0; query < 3; query++) {
    engine_racer_search(racer, query);
    engine_racer_search(&cpu, query);
    const struct answer *a = &racer->answers[0], *b = &cpu.answers[0];
    bool is_same = a->n_hits == b->n_hits;
    for (size_t i = 0; is_same && i < a->n_hits; i++)
      is_same = memcmp(&a->hits[i].score, &b->hits[i].score, sizeof(float)) == 0;
    if (!is_same)
      bench_fail("%s after %zu updates, query %zu: other scores", s->live_method, l->n_updates, query);
  }
}

static struct bench_row make_row(const struct live *l, const char *name, bool is_live)
{
  const double *times = l->times[is_live];
  size_t n = l->n_times[is_live];
  struct bench_row row = {
    .method = name,
    .variant = is_live ? "live" : "idle",
    .items = l->n_items,
    .k = l->bench->subject->live_k,
    .batch = 1,
    .threads = 1,
    .n_runs = n,
    .median_ms = bench_quantile(times, n, 0.5),
    .p95_ms = bench_quantile(times, n, 0.95),
    .p99_ms = bench_quantile(times, n, 0.99),
    .device = l->bench->device.name,
  };

  if (is_live) {
    row.other = "idle p99";
    row.ratio_to_other = row.p99_ms / bench_quantile(l->times[0], l->n_times[0], 0.99);
    row.items_per_s = (double)l->n_updates / l->live_ms * 1e3;
  }
  return row;
}

size_t gpu_live_race_run(struct gpu_bench *b, struct bench_row *rows)
{
  static struct engine_racer racer;
  static char name[64];
  const struct gpu_subject *s = b->subject;
  struct live l = { .bench = b, .n_items = b->options.items };
  size_t n_rows = 0;

  snprintf(name, sizeof name, "%s %s", s->name, s->live_method);
  bench_check(
      engine_racer_init(&b->cuda, s->live_method, s->queries, s->n_queries, s->dim, (uint32_t)s->live_k, 1, &racer));
  if (!gpu_race_try(b, &racer, name))
    return 0;
  l.next = l.n_items;
  for (int i = 0; i < 2; i++)
    bench_check(mem_array(TIMES_MAX, sizeof *l.times[i], &l.times[i]));
  search_windows(&l, &racer);
  judge(&l, &racer);
  rows[n_rows++] = make_row(&l, name, false);
  rows[n_rows++] = make_row(&l, name, true);
  for (int i = 0; i < 2; i++)
    mem_free(&l.times[i]);
  return n_rows;
}
