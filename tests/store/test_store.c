/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of changes, compared with an oracle in memory. The store is reopened in between. */
#include "store/store.h"

#include "base/parallel.h"
#include "tests/support/one_thread.h"
#include "tests/support/store_fixture.h"

static uint64_t seed;

static void random_batches_match_the_oracle_across_reopens(void **state)
{
  enum { ROUNDS = ONE_THREAD_TIMES(300), BATCH_MAX = 60, PARTITIONS = 5 };
  struct fixture *f = *state;
  struct dice dice = { seed };
  struct oracle o = { 0 };
  struct oracle_item batch[BATCH_MAX];
  size_t n = 0;
  int64_t offset = 0;
  int64_t next[PARTITIONS] = { -1, -1, -1, -1, -1 };

  for (int round = 0; round < ROUNDS; round++) {
    bool is_repeated = dice_below(&dice, 6) == 0;
    if (!is_repeated) {
      n = dice_below(&dice, BATCH_MAX + 1);
      for (size_t i = 0; i < n; i++)
        batch[i] = random_change(&dice, 300, offset++);
    }
    struct store_position position = position_of((int32_t)dice_below(&dice, PARTITIONS), offset);
    oracle_apply_both(&o, f->store, batch, n, &position, 1);
    next[position.at.partition] = offset;
    if (dice_below(&dice, 8) == 0)
      reopen(f);
    if (dice_below(&dice, 4) == 0) {
      oracle_compare(&o, f->store);
      oracle_compare_served(&o);
    }
    assert_same_positions(f, next, PARTITIONS);
  }
  reopen(f);
  oracle_compare(&o, f->store);
  assert_true(o.n > 50);
  oracle_fini(&o);
}

/* Large batches with few deletes: their keys are looked up and written together. */
static void large_batches_match_the_oracle(void **state)
{
  enum { ROUNDS = ONE_THREAD_TIMES(40), BATCH_MAX = 400, DELETES = 100 };
  static struct oracle_item batch[BATCH_MAX];
  struct fixture *f = *state;
  struct dice dice = { seed + 1 };
  struct oracle o = { 0 };
  int64_t offset = 0;

  for (int round = 0; round < ROUNDS; round++) {
    size_t n = dice_below(&dice, BATCH_MAX + 1);
    bool has_deletes = round % 2;
    for (size_t i = 0; i < n; i++) {
      batch[i] = random_change(&dice, 3000, offset++);
      batch[i].is_delete = has_deletes && dice_below(&dice, DELETES) == 0;
    }
    struct store_position position = position_of(0, offset);
    oracle_apply_both(&o, f->store, batch, n, &position, 1);
    if (dice_below(&dice, 8) == 0)
      reopen(f);
    oracle_compare(&o, f->store);
  }
  oracle_compare_served(&o);
  assert_true(o.n > 25 * ROUNDS);
  oracle_fini(&o);
}

static void replaying_batches_changes_nothing(void **state)
{
  enum { N = 400 };
  struct fixture *f = *state;
  struct dice dice = { seed };
  struct oracle o = { 0 };
  struct oracle now = { 0 };
  struct oracle_item log[N];

  for (size_t i = 0; i < N; i++) {
    log[i] = random_change(&dice, 90, (int64_t)i);
    log[i].partition = (int32_t)(log[i].id % 3);
    log[i].offset = (int64_t)i;
  }
  oracle_apply_both(&now, f->store, log, N, NULL, 0);
  for (size_t i = 0; i < N; i++)
    oracle_apply(&o, &log[i]);
  for (size_t from = 0; from < N; from += 37) {
    oracle_apply_both(&now, f->store, log + from, N - from, NULL, 0);
    oracle_compare(&o, f->store); /* the same items as before the replay, slot by slot */
  }
  oracle_fini(&o);
  oracle_fini(&now);
}

static void offset_not_above_the_stored_one_is_skipped_in_its_partition_only(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  const struct oracle_item steps[] = {
    { .id = 1, .seeds = { 1 }, .partition = 2, .offset = 10 },
    { .id = 1, .seeds = { 2 }, .partition = 2, .offset = 9 },
    { .id = 1, .seeds = { 3 }, .partition = 2, .offset = 10 },
    { .id = 1, .is_delete = true, .partition = 2, .offset = 10 },
  };
  const struct oracle_item other = { .id = 1, .seeds = { 4 }, .partition = 0, .offset = 3, .timestamp_ms = 1000 };

  oracle_apply_both(&o, f->store, steps, 4, NULL, 0);
  assert_int_equal(o.items[0].seeds[0], 1); /* the oracle agrees */
  oracle_compare(&o, f->store);
  oracle_apply_both(&o, f->store, &other, 1, NULL, 0);
  assert_int_equal(o.items[0].seeds[0], 4);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static void change_keeps_parts_that_it_does_not_name_unless_it_is_whole(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  const struct oracle_item steps[] = {
    { .id = 1, .seeds = { 1, 2, 0, 0 }, .offset = 1 },
    { .id = 1, .seeds = { 0, 3, 4, 0 }, .offset = 2 },
    { .id = 1, .seeds = { 0, 0, 0, 5 }, .offset = 3, .is_whole = true },
  };

  oracle_apply_both(&o, f->store, steps, 2, NULL, 0);
  assert_true(o.items[0].seeds[0] == 1 && o.items[0].seeds[1] == 3 && o.items[0].seeds[2] == 4);
  oracle_compare(&o, f->store);
  oracle_apply_both(&o, f->store, steps + 2, 1, NULL, 0);
  assert_true(o.items[0].seeds[0] == 0 && o.items[0].seeds[3] == 5);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static err_code_t take_first_part(void *context, struct item_change *changes, size_t n)
{
  assert_int_equal(n, 1);
  assert_int_equal(changes[0].n_parts, 1);
  *(float *)context = changes[0].parts[0].vector.v[0];
  return ERR_OK;
}

static void later_part_of_a_space_named_twice_is_kept(void **state)
{
  struct fixture *f = *state;
  const float numbers[] = { 1.0f, 2.0f };
  struct part parts[] = {
    { .space = span_of_str("s"), .vector = { &numbers[0], 1 } },
    { .space = span_of_str("s"), .vector = { &numbers[1], 1 } },
  };
  struct item_change change = { .key = span_of_str("k"), .parts = parts, .n_parts = 2 };
  float got = 0;

  assert_ok(store_apply(f->store, &change, 1, NULL, 0, NULL));
  assert_ok(store_visit_all(f->store, 1, take_first_part, &got));
  assert_true(got == 2.0f);
}

static void change_that_makes_an_item_too_large_is_left_out(void **state)
{
  struct fixture *f = *state;
  static const uint8_t byte = 0;
  struct part small = { .space = span_of_str("s"), .codes = span_of(&byte, 1) };
  struct part huge = { .space = span_of_str("t"), .codes = span_of(&byte, (size_t)2 << 30) };
  struct item_change changes[] = {
    { .key = span_of_str("a"), .parts = &small, .n_parts = 1, .offset = 1 },
    { .key = span_of_str("a"), .parts = &huge, .n_parts = 1, .offset = 2 },
    { .key = span_of_str("b"), .parts = &huge, .n_parts = 1, .offset = 3, .partition = 1 },
    { .key = span_of_str("c"), .parts = &small, .n_parts = 1, .offset = 4 },
  };
  const enum store_effect want[] = { STORE_APPLIED, STORE_UNFIT, STORE_UNFIT, STORE_APPLIED };
  struct store_position position = position_of(0, 5);
  struct store_effects effects;
  struct store_stats stats;

  assert_ok(store_apply(f->store, changes, 4, &position, 1, &effects));
  assert_memory_equal(effects.kinds, want, sizeof want);
  assert_int_equal(effects.n_changes, 2);
  assert_int_equal(effects.n_unfit, 2);
  changes[0].offset = 6;
  assert_ok(store_apply(f->store, changes, 1, NULL, 0, &effects));
  assert_int_equal(effects.n_unfit, 0); /* each batch has its own count */
  store_stats(f->store, &stats);
  assert_int_equal(stats.n_items, 2);
}

static void batch_that_fails_leaves_nothing(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  static const uint8_t long_key[ITEM_KEY_MAX + 1];
  struct item_change changes[] = {
    { .key = span_of_str("new"), .offset = 100 },
    { .key = span_of(long_key, sizeof long_key), .offset = 101 },
  };
  struct store_position position = position_of(0, 102);
  const int64_t none = -1;

  fill(f, &o, 5);
  assert_int_equal(store_apply(f->store, changes, 2, &position, 1, NULL), ERR_ITEM);
  oracle_compare(&o, f->store);
  assert_same_positions(f, &none, 1);
  reopen(f);
  oracle_compare(&o, f->store);
  assert_same_positions(f, &none, 1);
  assert_ok(store_apply(f->store, changes, 1, &position, 1, NULL)); /* the store is still usable */
  oracle_fini(&o);
}

static void positions_without_changes_are_kept_and_do_not_go_back(void **state)
{
  struct fixture *f = *state;
  const struct store_position first[] = { position_of(4, 100), position_of(0, 7), position_of(2, 5) };
  const struct store_position second[] = { position_of(0, 6), position_of(2, 9), position_of(1, 1), position_of(1, 0) };
  const int64_t next[] = { 7, 1, 9, -1, 100 };

  assert_ok(store_apply(f->store, NULL, 0, first, 3, NULL));
  assert_ok(store_apply(f->store, NULL, 0, second, 4, NULL));
  assert_same_positions(f, next, 5);
  reopen(f);
  assert_same_positions(f, next, 5);
}

static void source_is_kept_until_another_is_put(void **state)
{
  struct fixture *f = *state;
  struct store_source got;

  assert_false(store_source_get(f->store, &got));
  assert_ok(store_source_put(f->store, &(struct store_source){ "cluster-1", "a.topic" }));
  reopen(f);
  assert_true(store_source_get(f->store, &got));
  assert_string_equal(got.cluster_id, "cluster-1");
  assert_string_equal(got.topic, "a.topic");
  assert_ok(store_source_put(f->store, &(struct store_source){ got.topic, "" })); /* its own text, and "" */
  assert_true(store_source_get(f->store, &got));
  assert_string_equal(got.cluster_id, "a.topic");
  assert_string_equal(got.topic, "");
}

static err_code_t stop_at_third(void *context, struct item_change *changes, size_t n)
{
  int *calls = context;

  (void)changes;
  assert_true(n <= 4);
  return ++*calls == 3 ? ERR_FULL : ERR_OK;
}

static void a_scan_that_is_given_up_leaves_the_store_usable(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  int calls = 0;

  fill(f, &o, 20);
  assert_int_equal(store_visit_all(f->store, 4, stop_at_third, &calls), ERR_FULL);
  assert_int_equal(calls, 3);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

/* What several threads have seen of one scan. */
struct seen {
  struct store_scan scan;
  _Atomic size_t n_items;
  _Atomic uint64_t slots; /* a bit for each slot */
};

static err_code_t see_chunks(void *context)
{
  AUTO(region_fini) struct region region = { 0 };
  struct seen *seen = context;
  struct item_change *changes;
  uint64_t first;
  size_t n;

  do {
    TRY(store_scan_next(&seen->scan, &region, &first, &changes, &n));
    for (size_t i = 0; i < n; i++)
      atomic_fetch_or(&seen->slots, UINT64_C(1) << (first + i));
    atomic_fetch_add(&seen->n_items, n);
  } while (n > 0);
  return ERR_OK;
}

static void threads_that_scan_together_see_each_item_once(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct store_stats stats;

  fill(f, &o, 20);
  store_stats(f->store, &stats);
  assert_in_range(stats.n_items, 1, 63);
  for (size_t n_threads = 1; n_threads <= 4; n_threads++) {
    struct seen seen = { 0 };
    assert_ok(store_scan_begin(f->store, 2, &seen.scan));
    assert_ok(parallel_run(n_threads, see_chunks, &seen));
    assert_ok(store_scan_end(&seen.scan));
    assert_int_equal(seen.n_items, stats.n_items);
    assert_int_equal(seen.slots, (UINT64_C(1) << stats.n_items) - 1);
  }
  oracle_fini(&o);
}

/* A thread that reads one item again and again. */
struct reader {
  struct store *store;
  _Atomic bool is_done;
  _Atomic uint64_t n_read;
};

static void *read_again_and_again(void *context)
{
  struct reader *r = context;
  struct region region = { 0 };
  int64_t newest = -1;

  while (!atomic_load(&r->is_done)) {
    struct item_change item;
    bool is_found = false;
    region_reset(&region);
    if (store_read_item(r->store, span_of_str("k"), 1 << 20, &region, &is_found, &item) != ERR_OK || !is_found ||
        item.offset < newest || item.n_parts != 1 || item.parts[0].vector.v[0] != (float)item.offset)
      break;
    newest = item.offset;
    atomic_fetch_add(&r->n_read, 1);
  }
  region_fini(&region);
  return NULL;
}

static void apply_number(struct fixture *f, int64_t offset)
{
  const float number = (float)offset;
  struct part part = { .space = span_of_str("s"), .vector = { &number, 1 } };
  struct item_change change = { .key = span_of_str("k"), .parts = &part, .n_parts = 1, .offset = offset };

  assert_ok(store_apply(f->store, &change, 1, NULL, 0, NULL));
}

static void an_item_is_read_while_it_changes(void **state)
{
  enum { CHANGES = 300, READS = 50 };
  struct fixture *f = *state;
  struct reader reader = { .store = f->store };
  pthread_t thread;
  int64_t offset = 0;

  apply_number(f, offset++);
  assert_int_equal(pthread_create(&thread, NULL, read_again_and_again, &reader), 0);
  while (offset < CHANGES || atomic_load(&reader.n_read) < READS)
    apply_number(f, offset++);
  assert_ok(store_begin_rebuild(f->store)); /* the live catalogue is the one that is read */
  uint64_t n_before = atomic_load(&reader.n_read);
  for (int i = 0; i < 10000 && atomic_load(&reader.n_read) < n_before + READS; i++)
    usleep(1000);
  assert_true(atomic_load(&reader.n_read) >= n_before + READS);
  atomic_store(&reader.is_done, true);
  pthread_join(thread, NULL);
}

static void an_item_that_is_missing_or_too_large_is_not_read(void **state)
{
  struct fixture *f = *state;
  struct region region = { 0 };
  struct item_change item;
  bool is_found = true;

  assert_ok(store_read_item(f->store, span_of_str("k"), 1 << 20, &region, &is_found, &item));
  assert_false(is_found);
  apply_number(f, 1);
  assert_ok(store_read_item(f->store, span_of_str("k"), 1 << 20, &region, &is_found, &item));
  assert_true(is_found);
  assert_int_equal(item.offset, 1);
  assert_int_equal(store_read_item(f->store, span_of_str("k"), 16, &region, &is_found, &item), ERR_TOO_LARGE);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(random_batches_match_the_oracle_across_reopens),
    STORE_TEST(large_batches_match_the_oracle),
    STORE_TEST(replaying_batches_changes_nothing),
    STORE_TEST(offset_not_above_the_stored_one_is_skipped_in_its_partition_only),
    STORE_TEST(change_keeps_parts_that_it_does_not_name_unless_it_is_whole),
    STORE_TEST(later_part_of_a_space_named_twice_is_kept),
    STORE_TEST(change_that_makes_an_item_too_large_is_left_out),
    STORE_TEST(batch_that_fails_leaves_nothing),
    STORE_TEST(positions_without_changes_are_kept_and_do_not_go_back),
    STORE_TEST(source_is_kept_until_another_is_put),
    STORE_TEST(a_scan_that_is_given_up_leaves_the_store_usable),
    STORE_TEST(threads_that_scan_together_see_each_item_once),
    STORE_TEST(an_item_is_read_while_it_changes),
    STORE_TEST(an_item_that_is_missing_or_too_large_is_not_read),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
