/* SPDX-License-Identifier: Apache-2.0 */
/* The seen store against its model: random records, restarts, expiry, a map that grows, readers, kills and damage. */
#include "store/seen/seen_store.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"
#include "tests/support/dice.h"
#include "tests/support/one_thread.h"
#include "tests/support/seen_model.h"
#include "tests/support/temp_dir.h"

enum { TTL_MS = 100000, ITEMS_MAX = 40 };

static uint64_t seed;
static int64_t now_ms = 1000000000;

static int64_t clock_of_test(void)
{
  return now_ms;
}

struct fixture {
  struct temp_dir dir;
  char path[PATH_MAX];
  struct seen_store_limits limits;
  struct seen_store *store;
  struct seen_model model;
};

static void open_sized(struct fixture *f, size_t map_bytes)
{
  assert_ok(seen_store_open_sized(f->path, &f->limits, map_bytes, true, &f->store));
  f->store->clock_unix_ms = clock_of_test;
}

static int setup(void **state)
{
  struct fixture *f = calloc(1, sizeof *f);

  assert_non_null(f);
  f->limits = (struct seen_store_limits){ .max_per_user = 100, .ttl_ms = TTL_MS };
  temp_dir_init(&f->dir);
  snprintf(f->path, sizeof f->path, "%s/seen", f->dir.path);
  *state = f;
  return 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;

  seen_store_close(&f->store);
  temp_dir_fini(&f->dir);
  free(f);
  return 0;
}

/* A change, with memory for what it points to. */
struct record {
  struct seen_change change;
  unsigned user;
  unsigned ids[ITEMS_MAX];
  char user_name[16];
  char names[ITEMS_MAX][16];
  struct span items[ITEMS_MAX];
};

static void finish_record(struct record *r, unsigned user, size_t n, int64_t time_ms)
{
  r->user = user;
  r->change = (struct seen_change){
    .user = seen_model_name(user, r->user_name), .items = r->items, .n_items = n, .time_unix_ms = time_ms
  };
  for (size_t i = 0; i < n; i++)
    r->items[i] = seen_model_name(r->ids[i], r->names[i]);
}

static void draw_record(struct dice *dice, struct record *r)
{
  size_t n = dice_below(dice, ITEMS_MAX + 1);
  unsigned n_ids = dice_below(dice, 2) ? SEEN_MODEL_ITEMS : 30;

  for (size_t i = 0; i < n; i++)
    r->ids[i] = (unsigned)dice_below(dice, n_ids);
  int64_t time_ms = now_ms - (int64_t)dice_below(dice, dice_below(dice, 5) ? 1000 : 3 * TTL_MS / 2);
  finish_record(r, (unsigned)dice_below(dice, SEEN_MODEL_USERS), n, time_ms);
  r->change.is_forgotten = dice_below(dice, 40) == 0;
  if (dice_below(dice, 20) == 0)
    r->change.time_unix_ms = now_ms + 1000 * TTL_MS; /* a clock that is ahead */
}

static void apply_to_model(struct seen_model *m, const struct seen_store *s, const struct record *r)
{
  int64_t time_ms = r->change.time_unix_ms < now_ms ? r->change.time_unix_ms : now_ms;

  if (r->change.is_forgotten)
    seen_model_forget(m, r->user);
  for (size_t i = 0; !r->change.is_forgotten && i < r->change.n_items; i++) {
    if (time_ms >= seen_store_expired_before(s, now_ms))
      seen_model_append(m, r->user, r->ids[i], time_ms);
  }
}

/* Apply one batch of random records. */
static void apply_random(struct fixture *f, struct dice *dice, int64_t next)
{
  enum { BATCH_MAX = 8 };
  static struct record records[BATCH_MAX];
  struct seen_change changes[BATCH_MAX];
  struct store_position position = { .at = { 3, next }, .last_offset = next - 1 };
  size_t n = dice_below(dice, BATCH_MAX + 1);

  for (size_t i = 0; i < n; i++) {
    draw_record(dice, &records[i]);
    changes[i] = records[i].change;
    apply_to_model(&f->model, f->store, &records[i]);
  }
  assert_ok(seen_store_apply(f->store, changes, n, &position, 1));
}

static void reopen(struct fixture *f)
{
  seen_store_close(&f->store);
  open_sized(f, 1 << 20);
}

static void assert_next(const struct fixture *f, int64_t next)
{
  size_t n;
  const struct store_position *positions = seen_store_positions(f->store, &n);

  assert_int_equal(n, 1);
  assert_int_equal(positions->at.partition, 3);
  assert_int_equal(positions->at.next, next);
  assert_ptr_equal(seen_store_find_position(f->store, 3), positions);
  assert_null(seen_store_find_position(f->store, 2));
}

static void sweep_round(struct fixture *f, struct dice *dice)
{
  bool is_done = false;

  while (!is_done)
    assert_ok(seen_store_sweep(f->store, 1 + dice_below(dice, 50), &is_done));
}

static void random_records_match_the_model(void **state)
{
  static const uint64_t limits[] = { 64, 1, 7, 100, 150, 1000 };
  struct fixture *f = *state;
  struct dice dice = { seed };

  for (size_t i = 0; i < ONE_THREAD_TIMES(sizeof limits / sizeof limits[0]); i++) {
    f->limits.max_per_user = limits[i];
    f->limits.ttl_ms = i % 3 == 2 ? 0 : TTL_MS;
    f->model = (struct seen_model){ 0 };
    open_sized(f, 1 << 16);
    assert_int_equal(mdb_env_set_flags(f->store->env->mdb, MDB_NOSYNC, 1), MDB_SUCCESS);
    for (int64_t next = 1; next <= 150; next++) {
      apply_random(f, &dice, next);
      now_ms += (int64_t)dice_below(&dice, dice_below(&dice, 10) ? 100 : TTL_MS / 2);
      if (dice_below(&dice, 10) == 0)
        sweep_round(f, &dice);
      if (dice_below(&dice, 10) == 0)
        reopen(f);
      seen_model_compare(&f->model, f->store);
      assert_next(f, next);
    }
    assert_true(f->store->env->map_bytes > 1 << 16);
    seen_store_close(&f->store);
    temp_dir_remove(f->path);
  }
}

/* What a user has seen, as someone knows it who reads on from where the last read ended. */
struct follower {
  bool has[SEEN_MODEL_ITEMS];
  uint64_t newest_chunk;
  int64_t oldest_unix_ms;
};

/* Read all, or what has changed. Returns whether it was all. */
static bool read_on(struct seen_store *s, unsigned user, uint64_t first_chunk, struct follower *w)
{
  struct region region = { 0 };
  struct seen_keys read;
  char name[16];

  assert_ok(seen_store_read(s, seen_model_name(user, name), first_chunk, &region, &read));
  if (read.is_whole)
    *w = (struct follower){ .oldest_unix_ms = INT64_MAX };
  for (unsigned i = 0; i < SEEN_MODEL_ITEMS; i++) {
    struct span item = seen_model_name(i, name);
    for (size_t k = 0; k < read.n; k++)
      w->has[i] |= span_equal(read.keys[k], item);
  }
  w->newest_chunk = read.newest_chunk;
  if (read.oldest_unix_ms < w->oldest_unix_ms)
    w->oldest_unix_ms = read.oldest_unix_ms;
  region_fini(&region);
  return read.is_whole;
}

static void reading_on_leads_to_what_a_read_of_all_returns(void **state)
{
  static struct follower followers[SEEN_MODEL_USERS];
  struct fixture *f = *state;
  struct dice dice = { seed };
  size_t n_on = 0, n_whole = 0;

  open_sized(f, 1 << 20);
  assert_int_equal(mdb_env_set_flags(f->store->env->mdb, MDB_NOSYNC, 1), MDB_SUCCESS);
  for (int64_t next = 1; next <= ONE_THREAD_TIMES(300); next++) {
    apply_random(f, &dice, next);
    now_ms += (int64_t)dice_below(&dice, dice_below(&dice, 40) ? 100 : TTL_MS);
    if (dice_below(&dice, 10) == 0)
      sweep_round(f, &dice);
    for (unsigned user = 0; user < SEEN_MODEL_USERS; user++) {
      struct follower *on = &followers[user], all = { 0 };
      bool is_stale = seen_store_is_expired(f->store, on->oldest_unix_ms);
      assert_true(read_on(f->store, user, SEEN_WHOLE_LOG, &all));
      bool is_whole = read_on(f->store, user, is_stale ? SEEN_WHOLE_LOG : on->newest_chunk, on);
      n_whole += is_whole && !is_stale;
      n_on += !is_whole;
      assert_memory_equal(on->has, all.has, sizeof all.has);
      assert_int_equal(on->newest_chunk, all.newest_chunk);
      assert_true(on->oldest_unix_ms <= all.oldest_unix_ms);
    }
  }
  assert_true(n_on > 100 && n_whole > 20); /* logs were compacted, forgotten and swept */
}

/* Let user 1 see items at some time. */
static void see_at(struct fixture *f, int64_t time_ms, unsigned first, size_t n)
{
  static struct record r;

  for (size_t i = 0; i < n; i++)
    r.ids[i] = first + (unsigned)i;
  finish_record(&r, 1, n, time_ms);
  assert_ok(seen_store_apply(f->store, &r.change, 1, NULL, 0));
}

/* The newest chunk may expire before an older one, because times are in no order. */
static void the_number_of_a_chunk_that_was_swept_is_not_given_again(void **state)
{
  struct fixture *f = *state;
  struct follower on = { 0 };
  bool is_done;

  open_sized(f, 1 << 20);
  see_at(f, now_ms, 0, 32);
  see_at(f, now_ms, 32, 31);
  see_at(f, now_ms - TTL_MS + 1000, 63, 1); /* the last of a chunk */
  see_at(f, now_ms - TTL_MS + 1000, 64, 1);
  now_ms += 1001;
  assert_true(read_on(f->store, 1, SEEN_WHOLE_LOG, &on));
  assert_false(on.has[63] || on.has[64]);
  assert_ok(seen_store_sweep(f->store, 1000, &is_done));
  see_at(f, now_ms, 63, 2); /* 63 goes to the older chunk, and 64 to a new one */
  read_on(f->store, 1, on.newest_chunk, &on);
  assert_true(on.has[62] && on.has[63] && on.has[64]);
}

static void append(struct fixture *f, unsigned user, unsigned first, size_t n)
{
  static struct record r;

  for (size_t i = 0; i < n; i++)
    r.ids[i] = first + (unsigned)i;
  finish_record(&r, user, n, now_ms);
  apply_to_model(&f->model, f->store, &r);
  assert_ok(seen_store_apply(f->store, &r.change, 1, NULL, 0));
}

static size_t n_read(struct fixture *f, unsigned user)
{
  return seen_model_compare_user(&f->model, f->store, user, seen_store_expired_before(f->store, now_ms));
}

static void items_seen_again_push_nothing_out(void **state)
{
  struct fixture *f = *state;

  open_sized(f, 1 << 20);
  for (unsigned i = 0; i < 100; i++)
    append(f, 1, i, 1);
  for (unsigned i = 0; i < 1000; i++)
    append(f, 1, 90 + i % 10, 1);
  assert_int_equal(n_read(f, 1), 100);
  for (unsigned i = 0; i < 1000; i++)
    append(f, 1, i % 100, 1);
  seen_model_compare(&f->model, f->store);
  assert_true(n_read(f, 1) >= 100);
}

static void the_newest_are_kept_and_an_eighth_more(void **state)
{
  struct fixture *f = *state;

  open_sized(f, 1 << 20);
  for (unsigned i = 0; i < SEEN_MODEL_ITEMS; i++) {
    append(f, 2, i, 1);
    size_t n = n_read(f, 2);
    assert_true(n >= (i < 100 ? i + 1 : 100) && n <= 112);
  }
}

static void expired_items_are_not_read_and_their_room_is_freed(void **state)
{
  struct fixture *f = *state;
  struct seen_store_stats stats;
  bool is_done;

  open_sized(f, 1 << 20);
  append(f, 1, 0, 10);
  now_ms += TTL_MS - 1000;
  append(f, 2, 0, 20);
  assert_int_equal(n_read(f, 1), 10);
  now_ms += 1000; /* as old as can be */
  assert_int_equal(n_read(f, 1), 10);
  assert_false(seen_store_is_expired(f->store, now_ms - TTL_MS));
  assert_ok(seen_store_sweep(f->store, 1000, &is_done));
  assert_int_equal(n_read(f, 1), 10);
  now_ms++;
  assert_int_equal(n_read(f, 1), 0);
  assert_true(seen_store_is_expired(f->store, now_ms - TTL_MS - 1));
  assert_int_equal(n_read(f, 2), 20);
  assert_ok(seen_store_sweep(f->store, 1000, &is_done));
  assert_true(is_done);
  seen_store_stats(f->store, &stats);
  assert_int_equal(stats.n_users, 1);
  assert_int_equal(stats.n_items, 20);
  seen_model_compare(&f->model, f->store);
  now_ms += TTL_MS;
  assert_ok(seen_store_sweep(f->store, 1000, &is_done));
  seen_store_stats(f->store, &stats);
  assert_int_equal(stats.n_users, 0);
  assert_int_equal(stats.n_items, 0);
}

/* The number of a chunk has several bytes. */
static void a_round_of_the_sweep_looks_at_each_chunk_once(void **state)
{
  enum { ITEMS = 1600, PER_CHUNK = 6, CHUNKS = (ITEMS + PER_CHUNK - 1) / PER_CHUNK, AT_ONCE = 100 };
  struct fixture *f = *state;
  char key[ITEM_KEY_MAX] = { 0 };
  struct span item = span_of(key, sizeof key);
  const struct seen_change change = { .user = span_of_str("u"), .items = &item, .n_items = 1, .time_unix_ms = now_ms };
  bool is_done = false;
  size_t n_calls = 0;

  f->limits.max_per_user = ITEMS;
  open_sized(f, 1 << 20);
  assert_int_equal(mdb_env_set_flags(f->store->env->mdb, MDB_NOSYNC, 1), MDB_SUCCESS);
  for (int i = 0; i < ITEMS; i++) {
    memcpy(key, &i, sizeof i);
    assert_ok(seen_store_apply(f->store, &change, 1, NULL, 0));
  }
  for (; !is_done && n_calls < CHUNKS; n_calls++)
    assert_ok(seen_store_sweep(f->store, AT_ONCE, &is_done));
  assert_int_equal(n_calls, (CHUNKS + AT_ONCE - 1) / AT_ONCE);
}

static void without_a_time_to_live_nothing_expires(void **state)
{
  struct fixture *f = *state;
  bool is_done;

  f->limits.ttl_ms = 0;
  open_sized(f, 1 << 20);
  append(f, 1, 0, 10);
  now_ms += (int64_t)1000 * TTL_MS;
  append(f, 1, 10, 10);
  assert_ok(seen_store_sweep(f->store, 1000, &is_done));
  assert_true(is_done);
  assert_int_equal(n_read(f, 1), 20);
  assert_false(seen_store_is_expired(f->store, 0));
}

/* Partitions and clocks differ: a record may be older than those before it. */
static void the_oldest_time_of_a_log_is_that_of_any_item(void **state)
{
  struct fixture *f = *state;
  struct region region = { 0 };
  struct seen_keys read;
  char name[16];

  open_sized(f, 1 << 20);
  append(f, 1, 0, 1);
  now_ms -= 1000;
  append(f, 1, 1, 1);
  now_ms += 500;
  append(f, 1, 2, 1);
  assert_ok(seen_store_read(f->store, seen_model_name(1, name), SEEN_WHOLE_LOG, &region, &read));
  assert_int_equal(read.n, 3);
  assert_int_equal(read.oldest_unix_ms, now_ms - 500);
  region_fini(&region);
}

static void an_item_that_is_recorded_late_in_its_chunk_keeps_its_latest_time(void **state)
{
  struct fixture *f = *state;

  open_sized(f, 1 << 20);
  append(f, 1, 0, 1);
  now_ms -= TTL_MS / 2;
  append(f, 1, 0, 1);
  now_ms += TTL_MS + TTL_MS / 4; /* the late record alone would have expired */
  assert_int_equal(seen_model_has_read(f->store, 1, 0), 1);
  assert_int_equal(f->store->counts.n_items, 1);
}

static void an_item_that_is_recorded_late_keeps_its_latest_time(void **state)
{
  struct fixture *f = *state;
  const struct seen_model_item *late = &f->model.items[1][0];

  open_sized(f, 1 << 20);
  append(f, 1, 0, 1);
  append(f, 1, 10, 40);
  append(f, 1, 50, 40);
  now_ms -= TTL_MS / 2;
  append(f, 1, 0, 1); /* in another chunk than before */
  for (unsigned i = 0; i < 60; i++)
    append(f, 1, 100, 1 + i % 2);
  append(f, 1, 110, 30); /* compacts */
  assert_true(f->store->counts.n_items <= 100 && late->latest_ms == now_ms + TTL_MS / 2);
  now_ms += TTL_MS + TTL_MS / 4;
  assert_true(n_read(f, 1) > 0);
  assert_true(late->latest_ms >= seen_store_expired_before(f->store, now_ms));
  assert_int_equal(seen_model_has_read(f->store, 1, 0), 1);
}

static void a_forgotten_user_begins_anew(void **state)
{
  struct fixture *f = *state;
  struct record r;
  struct seen_store_stats stats;

  open_sized(f, 1 << 20);
  append(f, 3, 0, ITEMS_MAX);
  append(f, 4, 0, 5);
  finish_record(&r, 3, 0, now_ms);
  r.change.is_forgotten = true;
  apply_to_model(&f->model, f->store, &r);
  assert_ok(seen_store_apply(f->store, &r.change, 1, NULL, 0));
  assert_int_equal(n_read(f, 3), 0);
  assert_int_equal(n_read(f, 4), 5);
  append(f, 3, 7, 1);
  assert_int_equal(n_read(f, 3), 1);
  for (int i = 0; i < 2; i++) { /* before and after a restart */
    seen_store_stats(f->store, &stats);
    assert_int_equal(stats.n_users, 2);
    assert_int_equal(stats.n_items, 6);
    assert_true(stats.used_bytes > 0);
    reopen(f);
  }
}

/* The transaction begins again in a larger map. */
static void a_batch_that_fills_the_map_counts_once(void **state)
{
  enum { RECORDS = 20 * SEEN_MODEL_USERS };
  struct fixture *f = *state;
  struct record *records = calloc(RECORDS, sizeof *records);
  struct seen_change changes[RECORDS];

  assert_non_null(records);
  f->limits.max_per_user = SEEN_MODEL_ITEMS;
  open_sized(f, 1 << 16);
  for (unsigned i = 0; i < RECORDS; i++) {
    for (unsigned k = 0; k < ITEMS_MAX; k++)
      records[i].ids[k] = (i / SEEN_MODEL_USERS * ITEMS_MAX + k) % SEEN_MODEL_ITEMS;
    finish_record(&records[i], i % SEEN_MODEL_USERS, ITEMS_MAX, now_ms);
    apply_to_model(&f->model, f->store, &records[i]);
    changes[i] = records[i].change;
  }
  assert_ok(seen_store_apply(f->store, changes, RECORDS, NULL, 0));
  assert_true(f->store->env->map_bytes > 1 << 16);
  seen_model_compare(&f->model, f->store);
  free(records);
}

static void longest_names_fit(void **state)
{
  struct fixture *f = *state;
  char name[SEEN_USER_MAX], key[ITEM_KEY_MAX];
  struct span items[] = { span_of(key, ITEM_KEY_MAX), span_of(key, ITEM_KEY_MAX - 1), span_of(key, 1) };
  struct seen_change change = {
    .user = span_of(name, SEEN_USER_MAX), .items = items, .n_items = 3, .time_unix_ms = now_ms
  };
  struct region region = { 0 };
  struct seen_keys read;

  memset(name, 0xff, sizeof name);
  memset(key, 0xff, sizeof key);
  open_sized(f, 1 << 20);
  for (int i = 0; i < 20; i++) {
    key[0] = (char)i;
    assert_ok(seen_store_apply(f->store, &change, 1, NULL, 0));
  }
  assert_ok(seen_store_read(f->store, change.user, SEEN_WHOLE_LOG, &region, &read));
  assert_int_equal(read.n, 60);
  assert_int_equal(read.oldest_unix_ms, now_ms);
  assert_ok(seen_store_read(f->store, span_of(name, SEEN_USER_MAX - 1), SEEN_WHOLE_LOG, &region, &read));
  assert_int_equal(read.n, 0);
  assert_int_equal(read.oldest_unix_ms, INT64_MAX);
  region_fini(&region);
}

static void positions_never_go_back_until_they_are_forgotten(void **state)
{
  struct fixture *f = *state;
  struct store_position position = { .at = { 3, 10 }, .last_offset = 9 };
  size_t n;

  open_sized(f, 1 << 20);
  append(f, 1, 0, 3);
  assert_ok(seen_store_apply(f->store, NULL, 0, &position, 1));
  position.at.next = 5;
  assert_ok(seen_store_apply(f->store, NULL, 0, &position, 1));
  assert_next(f, 10);
  reopen(f);
  assert_next(f, 10);
  assert_ok(seen_store_forget_positions(f->store));
  seen_store_positions(f->store, &n);
  assert_int_equal(n, 0);
  reopen(f);
  seen_store_positions(f->store, &n);
  assert_int_equal(n, 0);
  assert_int_equal(n_read(f, 1), 3);
}

/* ---- Readers beside the writer ---- */

struct reader {
  struct fixture *fixture;
  _Atomic bool is_stopping;
  _Atomic unsigned n_reads;
  pthread_t thread;
};

/* The user's items are appended in order and never dropped, so a read has all up to some item. */
static void *read_often(void *context)
{
  struct reader *r = context;
  struct region region = { 0 };
  struct seen_keys read;
  size_t n_before = 0;
  char name[16];

  while (!atomic_load(&r->is_stopping)) {
    region_reset(&region);
    if (seen_store_read(r->fixture->store, seen_model_name(1, name), SEEN_WHOLE_LOG, &region, &read) != ERR_OK ||
        read.n < n_before)
      abort();
    for (size_t i = 0; i < read.n; i++) {
      if (!span_equal(read.keys[i], seen_model_name((unsigned)i, name)))
        abort();
    }
    n_before = read.n;
    atomic_fetch_add(&r->n_reads, 1);
  }
  region_fini(&region);
  return NULL;
}

static void readers_see_whole_records_while_the_map_grows(void **state)
{
  enum { READERS = 3 };
  struct fixture *f = *state;
  struct reader readers[READERS];

  f->limits.max_per_user = 100000;
  open_sized(f, 1 << 16);
  for (size_t i = 0; i < READERS; i++) {
    readers[i] = (struct reader){ .fixture = f };
    assert_int_equal(pthread_create(&readers[i].thread, NULL, read_often, &readers[i]), 0);
  }
  for (unsigned i = 0; i < SEEN_MODEL_ITEMS; i++) {
    append(f, 1, i, 1);
    for (unsigned user = 2; user < SEEN_MODEL_USERS; user++)
      append(f, user, i - i % ITEMS_MAX, ITEMS_MAX);
  }
  for (size_t i = 0; i < READERS; i++) {
    while (atomic_load(&readers[i].n_reads) < 10)
      clock_sleep_ns(CLOCK_NS_PER_MS);
    atomic_store(&readers[i].is_stopping, true);
    pthread_join(readers[i].thread, NULL);
  }
  assert_true(f->store->env->map_bytes > 1 << 16);
  assert_int_equal(n_read(f, 1), SEEN_MODEL_ITEMS);
}

/* ---- Kills ---- */

/* Apply record number i of a log. */
static err_t apply_numbered(struct seen_store *s, int64_t i)
{
  static struct record r;
  struct dice dice = { seed + (uint64_t)i };
  struct store_position position = { .at = { 3, i + 1 }, .last_offset = i };

  draw_record(&dice, &r);
  return seen_store_apply(s, &r.change, 1, &position, 1);
}

static int64_t next_of(const struct seen_store *s)
{
  size_t n;
  const struct store_position *positions = seen_store_positions(s, &n);

  return n ? positions->at.next : 0;
}

/* In a child: go on with the log until the kill. */
static void follow_log(const struct fixture *f)
{
  struct seen_store *s;

  if (seen_store_open_sized(f->path, &f->limits, 1 << 16, true, &s) != ERR_OK)
    _exit(1);
  s->clock_unix_ms = clock_of_test;
  for (int64_t i = next_of(s); apply_numbered(s, i) == ERR_OK; i++) {
  }
  _exit(1);
}

static void kill_child(struct fixture *f, int64_t after_ns)
{
  int status;
  pid_t child = fork();

  assert_true(child >= 0);
  if (child == 0)
    follow_log(f);
  clock_sleep_ns(after_ns);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
}

/* Verify that two stores hold the same. */
static void assert_same(struct seen_store *a, struct seen_store *b)
{
  struct region region = { 0 };
  struct seen_keys in_a, in_b;
  char name[16];

  for (unsigned user = 0; user < SEEN_MODEL_USERS; user++) {
    assert_ok(seen_store_read(a, seen_model_name(user, name), SEEN_WHOLE_LOG, &region, &in_a));
    assert_ok(seen_store_read(b, seen_model_name(user, name), SEEN_WHOLE_LOG, &region, &in_b));
    assert_int_equal(in_a.n, in_b.n);
    for (size_t i = 0; i < in_a.n; i++)
      assert_true(span_equal(in_a.keys[i], in_b.keys[i]));
  }
  assert_memory_equal(&a->counts, &b->counts, sizeof a->counts);
  region_fini(&region);
}

static void after_a_kill_it_holds_the_log_up_to_its_position(void **state)
{
  struct fixture *f = *state;
  struct fixture whole = { .limits = f->limits };
  struct dice dice = { seed };
  int64_t next = 0;

  temp_dir_init(&whole.dir);
  snprintf(whole.path, sizeof whole.path, "%s/seen", whole.dir.path);
  open_sized(&whole, 1 << 20);
  for (int kills = 0; kills < 15 || (next == 0 && kills < 1000); kills++) {
    kill_child(f, (int64_t)dice_below(&dice, 30) * CLOCK_NS_PER_MS);
    open_sized(f, 1 << 16);
    for (; next < next_of(f->store); next++)
      assert_ok(apply_numbered(whole.store, next));
    assert_int_equal(next, next_of(f->store));
    assert_same(f->store, whole.store);
    seen_store_close(&f->store);
  }
  seen_store_close(&whole.store);
  temp_dir_fini(&whole.dir);
}

/* ---- Damage ---- */

static err_code_t damage_row(void *context, MDB_txn *txn)
{
  struct seen_store *s = context;
  MDB_cursor *cursor;
  MDB_val key, value;
  uint8_t bytes[SEEN_CHUNK_BYTES];

  assert_int_equal(mdb_cursor_open(txn, s->logs, &cursor), MDB_SUCCESS);
  assert_int_equal(mdb_cursor_get(cursor, &key, &value, MDB_FIRST), MDB_SUCCESS);
  memcpy(bytes, value.mv_data, value.mv_size);
  bytes[value.mv_size - 1] ^= 1;
  value.mv_data = bytes;
  assert_int_equal(mdb_cursor_put(cursor, &key, &value, MDB_CURRENT), MDB_SUCCESS);
  mdb_cursor_close(cursor);
  return ERR_OK;
}

static void damage_is_an_error_and_never_an_empty_answer(void **state)
{
  struct fixture *f = *state;
  struct region region = { 0 };
  struct seen_keys read;
  char name[16];
  bool is_done;

  open_sized(f, 1 << 20);
  append(f, 1, 0, 5);
  assert_ok(env_write(f->store->env, damage_row, f->store));
  assert_fails(seen_store_read(f->store, seen_model_name(1, name), SEEN_WHOLE_LOG, &region, &read), ERR_STORE_CORRUPT,
               "damaged");
  assert_fails(seen_store_sweep(f->store, 10, &is_done), ERR_STORE_CORRUPT, "damaged");
  region_fini(&region);
}

static err_code_t put_key(void *context, MDB_txn *txn)
{
  const struct seen_store *s = context;
  struct seen_chunk chunk = { 0 };
  uint8_t name[10] = { 200, 'a' }, bytes[SEEN_CHUNK_BYTES]; /* it promises a user of 201 bytes */

  seen_chunk_push(&chunk, (struct seen_item){ span_of_str("item"), now_ms });
  MDB_val key = { sizeof name, name }, value = { seen_chunk_encode(&chunk, bytes), bytes };
  assert_int_equal(mdb_put(txn, s->logs, &key, &value, 0), MDB_SUCCESS);
  return ERR_OK;
}

static void a_key_that_is_no_user_s_is_an_error(void **state)
{
  struct fixture *f = *state;
  bool is_done;

  open_sized(f, 1 << 20);
  assert_ok(env_write(f->store->env, put_key, f->store));
  assert_fails(seen_store_sweep(f->store, 10, &is_done), ERR_STORE_CORRUPT, "damaged");
}

static void a_store_of_items_is_refused(void **state)
{
  struct fixture *f = *state;
  struct store *items = NULL;

  assert_ok(store_open(f->path, &items));
  store_close(&items);
  assert_fails(seen_store_open(f->path, &f->limits, &f->store), ERR_STORE_CORRUPT, "seen_schema");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(random_records_match_the_model, setup, teardown),
    cmocka_unit_test_setup_teardown(reading_on_leads_to_what_a_read_of_all_returns, setup, teardown),
    cmocka_unit_test_setup_teardown(the_number_of_a_chunk_that_was_swept_is_not_given_again, setup, teardown),
    cmocka_unit_test_setup_teardown(items_seen_again_push_nothing_out, setup, teardown),
    cmocka_unit_test_setup_teardown(the_newest_are_kept_and_an_eighth_more, setup, teardown),
    cmocka_unit_test_setup_teardown(expired_items_are_not_read_and_their_room_is_freed, setup, teardown),
    cmocka_unit_test_setup_teardown(a_round_of_the_sweep_looks_at_each_chunk_once, setup, teardown),
    cmocka_unit_test_setup_teardown(without_a_time_to_live_nothing_expires, setup, teardown),
    cmocka_unit_test_setup_teardown(the_oldest_time_of_a_log_is_that_of_any_item, setup, teardown),
    cmocka_unit_test_setup_teardown(an_item_that_is_recorded_late_in_its_chunk_keeps_its_latest_time, setup, teardown),
    cmocka_unit_test_setup_teardown(an_item_that_is_recorded_late_keeps_its_latest_time, setup, teardown),
    cmocka_unit_test_setup_teardown(a_forgotten_user_begins_anew, setup, teardown),
    cmocka_unit_test_setup_teardown(a_batch_that_fills_the_map_counts_once, setup, teardown),
    cmocka_unit_test_setup_teardown(longest_names_fit, setup, teardown),
    cmocka_unit_test_setup_teardown(positions_never_go_back_until_they_are_forgotten, setup, teardown),
    cmocka_unit_test_setup_teardown(readers_see_whole_records_while_the_map_grows, setup, teardown),
    cmocka_unit_test_setup_teardown(after_a_kill_it_holds_the_log_up_to_its_position, setup, teardown),
    cmocka_unit_test_setup_teardown(damage_is_an_error_and_never_an_empty_answer, setup, teardown),
    cmocka_unit_test_setup_teardown(a_key_that_is_no_user_s_is_an_error, setup, teardown),
    cmocka_unit_test_setup_teardown(a_store_of_items_is_refused, setup, teardown),
  };

  log_set_level(LOG_LEVEL_ERROR);
  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
