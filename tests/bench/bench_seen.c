/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench seen: what it takes to leave out what a user has seen. A cold user is read from the seen store; of a kept
 * one, the daemon has the set already. Each takes turns with the same search without anything left out. The store holds
 * more than the processor's caches do. Answers are compared with a scan over all items that the user has not seen.
 *
 * The store and the sets are those of the daemon. What lies between them, daemon/seen/seen.c, needs a topic; here is
 * another one in its place. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"
#include "daemon/queries/seen_sets.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/recjpq_data.h"

enum { QUERIES = 128, K = 10, KEPT_RUNS = 64 };

/* What all users together have seen, in items of the catalogue: 60 MB by default. */
enum { TIMES_SEEN = 2 };

struct seen {
  struct seen_store *store;
  uint64_t *stamps; /* of the users 0, 1, ... */
};

struct bench {
  struct bench_options options;
  struct recjpq_data data;
  struct bench_engine engine;
  struct engine_racer plain, exact;
  struct seen seen;
  struct seen_sets *sets;
  struct region region;
  uint8_t *is_absent;
  uint32_t *items; /* [n_users][n_seen] what they have seen */
  size_t n_users, n_seen;
  /* Of the current run. */
  uint32_t user;
  struct recjpq_tables tables;
  struct truth truth;
};

/* In the place of daemon/seen/seen.c -------------------- */

static uint32_t number_of(struct span user)
{
  uint32_t number;

  memcpy(&number, user.p, sizeof number);
  return number;
}

err_t seen_read(struct seen *s, struct span user, uint64_t first_chunk, struct region *region, struct seen_keys *out)
{
  return seen_store_read(s->store, user, first_chunk, region, out);
}

uint64_t seen_stamp(const struct seen *s, struct span user)
{
  return s->stamps[number_of(user)];
}

bool seen_is_expired(const struct seen *s, int64_t time_unix_ms)
{
  return seen_store_is_expired(s->store, time_unix_ms);
}

/* Racers -------------------- */

static struct seen_set *acquire(struct bench *b, const struct key_set **set)
{
  struct seen_set *held;

  bench_check(seen_sets_acquire(b->sets, span_of(&b->user, sizeof b->user), &b->region, set, &held));
  if ((*set)->n != b->n_seen)
    bench_fail("user %u has seen %zu items, not %zu", b->user, (*set)->n, b->n_seen);
  return held;
}

static void release(struct bench *b, struct seen_set *held)
{
  if (held)
    seen_sets_release(b->sets, held);
}

static void acquire_once(void *self, size_t round)
{
  const struct key_set *set;

  (void)round;
  release(self, acquire(self, &set));
}

/* Another user asks, who has seen something since. */
static void prepare_cold(void *self, size_t round)
{
  struct bench *b = self;

  (void)round;
  region_reset(&b->region);
  b->user = (b->user + 1) % (uint32_t)b->n_users;
  b->seen.stamps[b->user]++;
}

static void prepare_kept(void *self, size_t round)
{
  prepare_cold(self, round);
  acquire_once(self, round);
}

static void acquire_often(void *self, size_t round)
{
  for (int i = 0; i < KEPT_RUNS; i++)
    acquire_once(self, round);
}

static const float *vector_of(const struct bench *b, size_t round)
{
  return b->data.queries + round % QUERIES * RECJPQ_DIM;
}

static void search(void *self, size_t round)
{
  struct bench *b = self;
  struct query query = { .space = span_of_str("bench"), .k = K, .vector = { vector_of(b, round), RECJPQ_DIM } };
  const struct query *queries = &query;
  struct seen_set *held = acquire(b, &query.seen);

  bench_check(searcher_search(b->engine.searcher, 0, &b->exact.method, &queries, 1, b->exact.answers));
  release(b, held);
}

/* Judging -------------------- */

static void collect(void *self, struct found *found)
{
  engine_racer_collect(&((struct bench *)self)->exact, found);
}

static const struct truth *truth_of(void *context, size_t round)
{
  struct bench *b = context;

  memset(b->is_absent, 0, b->data.n_items);
  for (size_t i = 0; i < b->n_seen; i++)
    b->is_absent[b->items[b->user * b->n_seen + i]] = 1;
  recjpq_data_tables_make(&b->data, round, &b->tables);
  recjpq_data_scan(&b->tables, b->data.codes, b->is_absent, b->data.n_items, K + 1, &b->truth);
  return &b->truth;
}

static double score_of(void *context, size_t round, size_t query, uint32_t item)
{
  struct bench *b = context;

  (void)round;
  (void)query;
  return recjpq_data_score(&b->tables, b->data.codes + (size_t)item * RECJPQ_SPLITS);
}

/* Races -------------------- */

/* Let a user see items, no two of which are the same, in an order that the catalogue does not have. */
static void put_user(struct bench *b, uint32_t user, uint8_t (*keys)[BENCH_KEY_BYTES], struct span *spans)
{
  struct seen_change change = {
    .user = span_of(&user, sizeof user), .items = spans, .n_items = b->n_seen, .time_unix_ms = clock_unix_ms()
  };
  size_t stride = b->data.n_items / b->n_seen, first = dice_below(&b->options.dice, stride);

  for (size_t i = 0; i < b->n_seen; i++) {
    uint32_t item = (uint32_t)(first + i * 7919 % b->n_seen * stride);
    b->items[user * b->n_seen + i] = item;
    spans[i] = bench_key(item, keys[i]);
  }
  bench_check(seen_store_apply(b->seen.store, &change, 1, NULL, 0));
  bench_progress("users", user + 1, b->n_users);
}

static void open_store(struct bench *b)
{
  struct seen_store_limits limits = { .max_per_user = b->n_seen };
  char name[32];

  snprintf(name, sizeof name, "seen-%zu", b->n_seen);
  bench_check(seen_store_open(bench_path(&b->options, name), &limits, &b->seen.store));
  bench_check(mem_array(b->n_users, sizeof *b->seen.stamps, &b->seen.stamps));
  bench_check(mem_array(b->n_users * b->n_seen, sizeof *b->items, &b->items));
}

static void close_store(struct bench *b)
{
  seen_store_close(&b->seen.store);
  mem_free(&b->seen.stamps);
  mem_free(&b->items);
}

static void fill_store(struct bench *b)
{
  uint8_t (*keys)[BENCH_KEY_BYTES];
  struct span *spans;

  bench_check(mem_array(b->n_seen, sizeof *keys, &keys));
  bench_check(mem_array(b->n_seen, sizeof *spans, &spans));
  for (uint32_t user = 0; user < b->n_users; user++)
    put_user(b, user, keys, spans);
  mem_free(&spans);
  mem_free(&keys);
}

static void add(struct bench *b, struct race *race, const char *name, void (*prepare)(void *, size_t),
                void (*run)(void *, size_t), double scale)
{
  struct racer *racer = race_add(race, name, b, run, run == search ? collect : NULL);

  racer->prepare = prepare;
  racer->must_be_exact = run == search;
  racer->scale = scale;
}

static void race_users(struct bench *b)
{
  AUTO(race_fini) struct race race = { 0 };
  char variant[32];

  bench_check(race_init(&b->options, b->data.n_items, K, 1, &race));
  snprintf(variant, sizeof variant, "%zu seen", b->n_seen);
  race.variant = variant;
  race.context = b;
  race.truth_of = truth_of;
  race.score_of = score_of;
  race_add(&race, "scalar", &b->plain, engine_racer_run, NULL); /* nothing is left out: ratios are to it */
  add(b, &race, "exact, kept user", prepare_kept, search, 0);
  add(b, &race, "exact, cold user", prepare_cold, search, 0);
  add(b, &race, "the set, kept", prepare_kept, acquire_often, 1.0 / KEPT_RUNS);
  add(b, &race, "the set, cold", prepare_cold, acquire_once, 0);
  race_run(&race);
  race_report(&race);
}

static void measure(struct bench *b, size_t n_seen)
{
  b->n_seen = size_min(n_seen, b->data.n_items / 10);
  b->n_users = TIMES_SEEN * b->data.n_items / b->n_seen;
  b->user = 0;
  open_store(b);
  fill_store(b);
  bench_check(seen_sets_open(&b->seen, engine_key_hash(b->engine.engine), SEEN_SETS_BYTES, &b->sets));
  race_users(b);
  seen_sets_close(&b->sets);
  close_store(b);
}

int main(int argc, char **argv)
{
  static struct bench b;
  const struct bench_options defaults = { .workload = "seen", .items = 2194464, .seconds = 2 };

  bench_begin(argc, argv, &defaults, &b.options);
  report_begin(&b.options, "What users have seen; `scalar` is RecJPQ's `exact` with nothing left out");
  recjpq_data_open(&b.options.dice, b.options.items, QUERIES, &b.data);
  bench_check(mem_array(b.data.n_items, 1, &b.is_absent));
  bench_check(bench_engine_open(recjpq_data_write(&b.data, &b.options), b.data.n_items, K, 1, isa_detect(), &b.engine));
  bench_engine_fill(&b.engine, b.data.n_items, recjpq_data_part_of, &b.data);
  bench_check(engine_racer_init(&b.engine, "exact", b.data.queries, QUERIES, RECJPQ_DIM, K, 1, &b.plain));
  b.exact = b.plain;
  measure(&b, 1000);
  measure(&b, 10000);
  bench_engine_close(&b.engine);
  recjpq_data_close(&b.data);
  region_fini(&b.region);
  mem_free(&b.is_absent);
  return bench_end(&b.options);
}
