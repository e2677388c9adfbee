/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench expiry: how long it takes until half of the items, which expire or appear at one moment, are gone or there,
 * and how long searches take meanwhile. One thread passes the time, another searches. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "engine/engine_state.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_report.h"
#include "tests/support/vector_file.h"

enum { DIM = 16, BATCH = 1000, ROUNDS_MAX = 20, FLIPS_MAX = 2 * ROUNDS_MAX, SEARCHES_MAX = 1 << 20, KEY_BYTES = 16 };
enum { BEGINS, ENDS, ATTRIBUTES };

/* Between two flips the searches have this long for themselves. */
enum { IDLE_MS = 100 };

struct stretch {
  double from_ms, to_ms;
};

struct bench {
  struct bench_options options;
  struct attribute attributes[ATTRIBUTES];
  struct engine_space space;
  struct engine *engine;
  int64_t now_ms;
  _Atomic bool is_over;
  struct stretch searches[SEARCHES_MAX];
  size_t n_searches;
  struct stretch flips[FLIPS_MAX];
  size_t n_flips;
  double times[SEARCHES_MAX];
};

static int64_t tell_time(void *now_ms)
{
  return *(const int64_t *)now_ms;
}

static void open_engine(struct bench *b)
{
  struct engine_config config = { .spaces = &b->space,
                                  .n_spaces = 1,
                                  .max_items = b->options.items,
                                  .max_k = 10,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .attributes = { b->attributes, ATTRIBUTES },
                                  .lifetimes = { "begins", "ends", { tell_time, &b->now_ms } } };
  static char path[300];

  b->attributes[BEGINS] = (struct attribute){ span_of_str("begins"), ATTRIBUTE_TIME };
  b->attributes[ENDS] = (struct attribute){ span_of_str("ends"), ATTRIBUTE_TIME };
  b->now_ms = INT64_C(1790000000000);
  snprintf(path, sizeof path, "%s", bench_path(&b->options, "dot.safetensors"));
  vector_file_write_plain(path, "dot", DIM);
  b->space = (struct engine_space){ .name = "dot", .model_path = path };
  bench_check(engine_open(&config, &b->engine));
}

/* An item and the memory that its change points to. */
struct item {
  char key[KEY_BYTES];
  float vector[DIM];
  struct part part;
  struct attribute_value values[ATTRIBUTES];
};

/* Give every second item a life from 100 to 200 ms from now on.
 *
 * has_parts  also give all items their vectors
 */
static struct item_change change_of(struct bench *b, size_t i, bool has_parts, struct item *item)
{
  struct item_change change = { .key = span_of(item->key, (size_t)snprintf(item->key, KEY_BYTES, "%zu", i)),
                                .parts = &item->part,
                                .attributes = item->values };

  if (has_parts) {
    dice_fill(&b->options.dice, item->vector, DIM, 1.0f);
    item->part = (struct part){ .space = span_of_str("dot"), .vector = { item->vector, DIM } };
    change.n_parts = 1;
  }
  for (int a = 0; i % 2 && a < ATTRIBUTES; a++) {
    struct value moment = { VALUE_INTEGER, .integer = b->now_ms + (a == BEGINS ? 100 : 200) };
    item->values[change.n_attributes++] = (struct attribute_value){ b->attributes[a].name, moment };
  }
  return change;
}

static void write_items(struct bench *b, bool has_parts)
{
  static struct item items[BATCH];
  static struct item_change changes[BATCH];
  size_t n = 0, step = has_parts ? 1 : 2;

  for (size_t i = step - 1; i < b->options.items; i += step) {
    changes[n] = change_of(b, i, has_parts, &items[n]);
    if (++n == BATCH || i + step >= b->options.items) {
      bench_check(engine_apply(b->engine, changes, n, NULL, 0));
      n = 0;
    }
    bench_progress("items", i + 1, b->options.items);
  }
}

/* Searches -------------------- */

static void search_once(struct bench *b, struct searcher *s, struct dice *dice)
{
  float vector[DIM];
  struct query query = {
    .space = span_of_str("dot"), .method = span_of_str("exact"), .k = 10, .vector = { vector, DIM }
  };
  const struct query *queries = &query;
  struct method method;
  struct answer answer;
  size_t space;

  dice_fill(dice, vector, DIM, 1.0f);
  bench_check(engine_check_query(b->engine, &query, &space, &method));
  double from_ms = bench_wall_ms();
  bench_check(searcher_search(s, space, &method, &queries, 1, &answer));
  if (b->n_searches < SEARCHES_MAX)
    b->searches[b->n_searches++] = (struct stretch){ from_ms, bench_wall_ms() };
}

static void *search(void *context)
{
  struct bench *b = context;
  struct dice dice = { 1 };
  struct searcher *s;

  bench_check(searcher_open(b->engine, &s));
  while (!atomic_load(&b->is_over))
    search_once(b, s, &dice);
  searcher_close(&s);
  return NULL;
}

/* Flips -------------------- */

static void rest(void)
{
  nanosleep(&(struct timespec){ .tv_nsec = IDLE_MS * 1000000L }, NULL);
}

static void flip(struct bench *b, uint64_t n_alive)
{
  struct engine_space_info info;

  rest();
  b->now_ms += 100;
  double from_ms = bench_wall_ms();
  bench_check(engine_pass_time(b->engine));
  b->flips[b->n_flips++] = (struct stretch){ from_ms, bench_wall_ms() };
  engine_space_get(b->engine, 0, &info);
  if (info.n_alive != n_alive)
    bench_fail("%llu items are alive", (unsigned long long)info.n_alive);
  rest();
}

static bool meets_flip(const struct bench *b, const struct stretch *search)
{
  for (size_t i = 0; i < b->n_flips; i++) {
    if (search->from_ms < b->flips[i].to_ms && b->flips[i].from_ms < search->to_ms)
      return true;
  }
  return false;
}

/* Is a search beside a flip? Others have the catalogue's writes beside them. */
static bool is_at_rest(const struct bench *b, const struct stretch *search)
{
  for (size_t i = 0; i < b->n_flips; i++) {
    bool is_before = search->from_ms > b->flips[i].from_ms - IDLE_MS && search->to_ms < b->flips[i].from_ms;
    bool is_after = search->from_ms > b->flips[i].to_ms && search->to_ms < b->flips[i].to_ms + IDLE_MS;
    if (is_before || is_after)
      return true;
  }
  return false;
}

static struct bench_row row_of_flips(struct bench *b)
{
  for (size_t i = 0; i < b->n_flips; i++)
    b->times[i] = b->flips[i].to_ms - b->flips[i].from_ms;
  return (struct bench_row){ .method = "half of the items expire, or appear",
                             .items = b->options.items,
                             .k = 1,
                             .batch = 1,
                             .threads = 1,
                             .n_runs = b->n_flips,
                             .median_ms = bench_quantile(b->times, b->n_flips, 0.5),
                             .p95_ms = bench_quantile(b->times, b->n_flips, 0.95),
                             .target_ms = 50 };
}

static struct bench_row row_of_searches(struct bench *b, bool at_flips)
{
  size_t n = 0;

  for (size_t i = 0; i < b->n_searches; i++) {
    const struct stretch *s = &b->searches[i];
    if (at_flips ? meets_flip(b, s) : is_at_rest(b, s))
      b->times[n++] = s->to_ms - s->from_ms;
  }
  if (n == 0)
    bench_fail("there was no search%s", at_flips ? " during a flip" : "");
  return (struct bench_row){ .method = "a search",
                             .variant = at_flips ? "meanwhile" : "idle",
                             .items = b->options.items,
                             .k = 10,
                             .batch = 1,
                             .threads = 1,
                             .n_runs = n,
                             .median_ms = bench_quantile(b->times, n, 0.5),
                             .p95_ms = bench_quantile(b->times, n, 0.95),
                             .p99_ms = bench_quantile(b->times, n, 0.99) };
}

int main(int argc, char **argv)
{
  static struct bench b;
  const struct bench_options defaults = { .workload = "expiry", .items = 2000000, .seconds = 30 };
  pthread_t searcher;

  bench_begin(argc, argv, &defaults, &b.options);
  open_engine(&b);
  write_items(&b, true);
  if (pthread_create(&searcher, NULL, search, &b) != 0)
    bench_fail("the thread of searches cannot be started");
  double end = bench_wall_ms() + 1e3 * b.options.seconds;
  uint64_t n = b.options.items, n_lasting = n - n / 2;
  for (int round = 0; round < ROUNDS_MAX && (round == 0 || bench_wall_ms() < end); round++) {
    if (round > 0)
      write_items(&b, false);
    flip(&b, n);
    flip(&b, n_lasting);
  }
  atomic_store(&b.is_over, true);
  pthread_join(searcher, NULL);
  report_begin(&b.options, "Items that expire together");
  struct bench_row rows[] = { row_of_flips(&b), row_of_searches(&b, false), row_of_searches(&b, true) };
  rows[2].other = "idle";
  rows[2].ratio_to_other = rows[1].p99_ms / rows[2].p99_ms;
  report_rows(&b.options, rows, 3);
  engine_close(&b.engine);
  return bench_end(&b.options);
}
