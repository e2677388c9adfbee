/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench seen: what it takes to leave out what a user has seen. A cold user is read from the seen store; of a kept
 * one, the daemon has the set already; a paging one has been kept, but has seen a page of further items since. Each
 * takes turns with the same search without anything left out. The store holds more than the processor's caches do.
 * Answers are compared with a scan over all items that the user has not seen.
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

enum { QUERIES = 128, K = 10, KEPT_RUNS = 64, PAGE = 10 };

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
  uint32_t *items; /* [n_users][2 * n_seen] what they have seen; there is room for pages */
  size_t *counts;  /* [n_users] how many items that is */
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
  if ((*set)->n_distinct != b->counts[b->user])
    bench_fail("user %u has seen %zu items, not %zu", b->user, (*set)->n_distinct, b->counts[b->user]);
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

/* Let the user see items. No two of a user's are the same, and their order is not that of the catalogue. */
static void see(struct bench *b, const uint32_t *items, size_t n)
{
  uint8_t (*keys)[BENCH_KEY_BYTES];
  struct span *spans;

  bench_check(region_array(&b->region, n, sizeof *keys, &keys));
  bench_check(region_array(&b->region, n, sizeof *spans, &spans));
  for (size_t i = 0; i < n; i++)
    spans[i] = bench_key(items[i], keys[i]);
  struct seen_change change = { .user = span_of(&b->user, sizeof b->user),
                                .items = spans,
                                .n_items = n,
                                .time_unix_ms = clock_unix_ms() };
  bench_check(seen_store_apply(b->seen.store, &change, 1, NULL, 0));
  b->counts[b->user] += n;
  b->seen.stamps[b->user]++;
}

static void forget(struct bench *b)
{
  struct seen_change change = { .user = span_of(&b->user, sizeof b->user), .is_forgotten = true };

  bench_check(seen_store_apply(b->seen.store, &change, 1, NULL, 0));
  b->counts[b->user] = 0;
}

/* The next user has asked before, and sees a page of items, each beside one that it has seen. One that has no room for
 * a page begins anew. */
static void prepare_paging(void *self, size_t round)
{
  struct bench *b = self;

  prepare_cold(self, round);
  uint32_t *items = b->items + b->user * 2 * b->n_seen;
  if (b->counts[b->user] + PAGE > 2 * b->n_seen) {
    forget(b);
    see(b, items, b->n_seen);
  }
  acquire_once(self, round);
  size_t n = b->counts[b->user];
  for (size_t i = n; i < n + PAGE; i++)
    items[i] = items[i - b->n_seen] + 1;
  see(b, items + n, PAGE);
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
  for (size_t i = 0; i < b->counts[b->user]; i++)
    b->is_absent[b->items[b->user * 2 * b->n_seen + i]] = 1;
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

/* Let the user see items that lie far from each other. */
static void fill_user(struct bench *b)
{
  size_t stride = b->data.n_items / b->n_seen, first = dice_below(&b->options.dice, stride - 1);
  uint32_t *items = b->items + b->user * 2 * b->n_seen;

  for (size_t i = 0; i < b->n_seen; i++)
    items[i] = (uint32_t)(first + i * 7919 % b->n_seen * stride);
  see(b, items, b->n_seen);
}

static void open_store(struct bench *b, const char *name)
{
  struct seen_store_limits limits = { .max_per_user = 2 * b->n_seen };

  bench_check(seen_store_open(bench_path(&b->options, name), &limits, &b->seen.store));
  bench_check(mem_array(b->n_users, sizeof *b->seen.stamps, &b->seen.stamps));
  bench_check(mem_array(b->n_users * 2 * b->n_seen, sizeof *b->items, &b->items));
  bench_check(mem_array(b->n_users, sizeof *b->counts, &b->counts));
}

static void close_store(struct bench *b)
{
  seen_store_close(&b->seen.store);
  mem_free(&b->seen.stamps);
  mem_free(&b->items);
  mem_free(&b->counts);
}

static void fill_store(struct bench *b)
{
  for (b->user = 0; b->user < b->n_users; b->user++) {
    region_reset(&b->region);
    fill_user(b);
    bench_progress("users", b->user + 1, b->n_users);
  }
  b->user = 0;
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
  add(b, &race, "exact, paging user", prepare_paging, search, 0);
  add(b, &race, "exact, cold user", prepare_cold, search, 0);
  add(b, &race, "the set, kept", prepare_kept, acquire_often, 1.0 / KEPT_RUNS);
  add(b, &race, "the set, paging", prepare_paging, acquire_once, 0);
  add(b, &race, "the set, cold", prepare_cold, acquire_once, 0);
  race_run(&race);
  race_report(&race);
}

/* store  its name; a small catalogue has less than n_seen to see */
static void measure(struct bench *b, const char *store, size_t n_seen)
{
  b->n_seen = size_min(n_seen, b->data.n_items / 10);
  b->n_users = TIMES_SEEN * b->data.n_items / b->n_seen;
  open_store(b, store);
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
  measure(&b, "seen", 1000);
  measure(&b, "much-seen", 10000);
  bench_engine_close(&b.engine);
  recjpq_data_close(&b.data);
  region_fini(&b.region);
  mem_free(&b.is_absent);
  return bench_end(&b.options);
}
