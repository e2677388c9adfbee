/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilding beside the live catalogue: which catalogue is live, which one follows the log, and what is left of others.
 */
#include "store/store.h"

#include "tests/support/store_fixture.h"

static uint64_t seed;

static const struct store_source old_source = { "old cluster", "old.topic" };
static const struct store_source new_source = { "new cluster", "new.topic" };

static void assert_source(const struct store_source *got, const struct store_source *want)
{
  assert_string_equal(got->cluster_id, want->cluster_id);
  assert_string_equal(got->topic, want->topic);
}

static void assert_nothing_known_of_the_log(const struct fixture *f)
{
  struct store_source source;
  size_t n;

  assert_false(store_source_get(f->store, &source));
  store_positions(f->store, &n);
  assert_int_equal(n, 0);
}

static void assert_live_log(const struct fixture *f, int64_t next)
{
  const struct positions *positions = &f->store->sides[f->store->meta.live].positions;
  struct store_source source;

  assert_int_equal(positions->n, 1);
  assert_int_equal(positions->rows[0].at.next, next);
  assert_true(store_live_source_get(f->store, &source));
  assert_source(&source, &old_source);
}

static struct store_stats stats_of(const struct fixture *f)
{
  struct store_stats stats;

  store_stats(f->store, &stats);
  return stats;
}

/* Fill a live catalogue with n items, read to offset 100 of partition 0. */
static void fill_live(struct fixture *f, struct oracle *o, uint32_t n)
{
  const struct store_position position = position_of(0, 100);

  fill(f, o, n);
  assert_ok(store_source_put(f->store, &old_source));
  oracle_apply_both(o, f->store, NULL, 0, &position, 1);
}

/* The new log. Its offsets start below those of the old one. */
static const struct oracle_item new_log[] = {
  { .id = 7, .seeds = { 1, 0, 0, 0 }, .offset = 0 },
  { .id = 9, .seeds = { 0, 2, 0, 0 }, .offset = 1 },
  { .id = 7, .seeds = { 0, 3, 0, 0 }, .offset = 2 },
  { .id = 3, .is_delete = true, .offset = 3 },
  { .id = 99, .seeds = { 5, 0, 0, 0 }, .offset = 4 },
};
enum { NEW_LOG = 5, NEW_ITEMS = 3 };

static void the_live_catalogue_stays_as_it_is_until_the_rebuilt_one_takes_its_place(void **state)
{
  struct fixture *f = *state;
  struct oracle live = { 0 };
  struct oracle rebuilt = { 0 };
  const struct store_position position = position_of(0, NEW_LOG);
  const int64_t next = NEW_LOG;

  fill_live(f, &live, 20);
  assert_false(store_is_rebuilding(f->store));
  assert_ok(store_begin_rebuild(f->store));
  assert_true(store_is_rebuilding(f->store));
  assert_nothing_known_of_the_log(f);
  assert_live_log(f, 100);

  oracle_apply_both(&rebuilt, f->store, new_log, NEW_LOG, &position, 1);
  assert_ok(store_source_put(f->store, &new_source));
  oracle_compare(&live, f->store);
  assert_live_log(f, 100);
  assert_same_positions(f, &next, 1);
  assert_int_equal(stats_of(f).n_rebuilt_items, NEW_ITEMS);

  assert_ok(store_finish_rebuild(f->store));
  for (int round = 0; round < 2; round++) { /* also after a restart */
    struct store_source source;
    assert_false(store_is_rebuilding(f->store));
    oracle_compare(&rebuilt, f->store);
    assert_same_positions(f, &next, 1);
    assert_true(store_source_get(f->store, &source));
    assert_source(&source, &new_source);
    assert_int_equal(stats_of(f).n_rebuilt_items, 0);
    reopen(f);
  }
  oracle_fini(&live);
  oracle_fini(&rebuilt);
}

static void a_rebuild_continues_after_a_restart(void **state)
{
  struct fixture *f = *state;
  struct oracle live = { 0 };
  struct oracle rebuilt = { 0 };

  fill_live(f, &live, 20);
  assert_ok(store_begin_rebuild(f->store));
  for (int64_t i = 0; i < NEW_LOG; i++) {
    const struct store_position position = position_of(0, i + 1);
    const int64_t next = i + 1;
    oracle_apply_both(&rebuilt, f->store, &new_log[i], 1, &position, 1);
    reopen(f);
    assert_true(store_is_rebuilding(f->store));
    assert_same_positions(f, &next, 1);
    assert_live_log(f, 100);
    oracle_compare(&live, f->store);
  }
  assert_ok(store_finish_rebuild(f->store));
  oracle_compare(&rebuilt, f->store);
  oracle_fini(&live);
  oracle_fini(&rebuilt);
}

static void an_abandoned_rebuild_leaves_the_live_catalogue_with_its_log(void **state)
{
  struct fixture *f = *state;
  struct oracle live = { 0 };
  struct oracle rebuilt = { 0 };
  const struct oracle_item more = { .id = 4, .seeds = { 0, 9 }, .offset = 101 };
  const struct store_position position = position_of(0, 5);
  struct store_source source;

  fill_live(f, &live, 20);
  uint64_t n_aside = stats_of(f).n_aside;
  assert_ok(store_begin_rebuild(f->store));
  assert_int_equal(stats_of(f).n_aside, 0);
  oracle_apply_both(&rebuilt, f->store, new_log, NEW_LOG, &position, 1);
  assert_int_not_equal(stats_of(f).n_aside, n_aside);
  assert_ok(store_source_put(f->store, &new_source));
  assert_ok(store_abandon_rebuild(f->store));
  assert_int_equal(stats_of(f).n_aside, n_aside);
  assert_false(store_is_rebuilding(f->store));
  assert_live_log(f, 100);
  assert_true(store_source_get(f->store, &source));
  assert_source(&source, &old_source);
  oracle_apply_both(&live, f->store, &more, 1, NULL, 0);
  reopen(f);
  oracle_compare(&live, f->store);
  assert_live_log(f, 100);
  oracle_fini(&live);
  oracle_fini(&rebuilt);
}

static void beginning_again_drops_what_was_gathered_and_raises_the_number(void **state)
{
  struct fixture *f = *state;
  struct oracle live = { 0 };

  fill_live(f, &live, 20);
  assert_int_equal(store_rebuild_number(f->store), 0);
  for (uint64_t round = 1; round <= 6; round++) { /* more rounds than there are sides */
    struct oracle rebuilt = { 0 };
    const struct store_position position = position_of(0, 5);
    assert_ok(store_begin_rebuild(f->store));
    assert_nothing_known_of_the_log(f);
    assert_int_equal(stats_of(f).n_rebuilt_items, 0);
    oracle_apply_both(&rebuilt, f->store, new_log, NEW_LOG, &position, 1);
    assert_ok(store_source_put(f->store, &new_source));
    if (round % 2)
      reopen(f);
    assert_int_equal(store_rebuild_number(f->store), round);
    oracle_compare(&live, f->store);
    oracle_fini(&rebuilt);
  }
  assert_ok(store_finish_rebuild(f->store));
  assert_int_equal(store_rebuild_number(f->store), 6);
  assert_int_equal(stats_of(f).n_items, NEW_ITEMS);
  oracle_fini(&live);
}

static void dropped_rows_are_freed_in_small_steps(void **state)
{
  enum { N = 300, STEP = 40 };
  struct fixture *f = *state;
  struct oracle live = { 0 };
  bool is_done = false;
  int n_steps = 0;

  fill_live(f, &live, N);
  assert_ok(store_begin_rebuild(f->store));
  assert_ok(store_finish_rebuild(f->store));
  reopen(f);
  for (; !is_done; n_steps++) {
    assert_true(n_steps < N);
    assert_ok(store_tidy(f->store, STEP, &is_done));
  }
  assert_int_equal(n_steps, (2 * N + 1) / STEP + 1); /* rows of items, keys and positions */
  assert_ok(store_tidy(f->store, STEP, &is_done));
  assert_true(is_done);
  oracle_fini(&live);
}

static void fill_at_once(struct fixture *f, struct oracle *o, uint32_t n)
{
  struct oracle_item *items = calloc(n, sizeof *items);

  assert_non_null(items);
  for (uint32_t id = 0; id < n; id++)
    items[id] = (struct oracle_item){ .id = id, .seeds = { id + 1, 0, id + 3 }, .offset = id };
  oracle_apply_both(o, f->store, items, n, NULL, 0);
  free(items);
}

/* Any number of rebuilds takes the disk space of two catalogues at most. */
static void rebuilds_use_the_space_of_those_before(void **state)
{
  enum { N = 400, ROUNDS = 12 };
  struct fixture *f = *state;
  uint64_t used_bytes = 0;

  for (int round = 0; round < ROUNDS; round++) {
    struct oracle o = { 0 };
    bool is_done = false;
    assert_ok(store_begin_rebuild(f->store));
    fill_at_once(f, &o, N);
    assert_ok(store_finish_rebuild(f->store));
    while (!is_done)
      assert_ok(store_tidy(f->store, N, &is_done));
    oracle_compare(&o, f->store);
    if (round == 2)
      used_bytes = stats_of(f).used_bytes;
    oracle_fini(&o);
  }
  assert_true(stats_of(f).used_bytes <= used_bytes * 3 / 2);
}

static void batches_free_dropped_rows_too(void **state)
{
  struct fixture *f = *state;
  struct oracle live = { 0 };
  struct oracle next = { 0 };
  bool is_done;

  fill_live(f, &live, 300);
  assert_ok(store_begin_rebuild(f->store));
  assert_ok(store_finish_rebuild(f->store));
  fill(f, &next, 30);
  assert_false(f->store->has_leftovers);
  assert_ok(store_tidy(f->store, 1, &is_done));
  assert_true(is_done);
  oracle_compare(&next, f->store);
  oracle_fini(&live);
  oracle_fini(&next);
}

static void a_forgotten_log_leaves_its_items_and_the_next_one_applies_on_top(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };

  fill_live(f, &o, 20);
  assert_ok(store_forget_log(f->store));
  o.log_number++;
  assert_false(store_is_rebuilding(f->store));
  assert_nothing_known_of_the_log(f);
  oracle_compare(&o, f->store);
  reopen(f);
  assert_nothing_known_of_the_log(f);
  oracle_apply_both(&o, f->store, new_log, NEW_LOG, NULL, 0);
  assert_int_equal(o.n, 20); /* one item deleted, one added */
  assert_true(oracle_find(&o, 7)->seeds[0] == 1 && oracle_find(&o, 7)->seeds[1] == 3);
  assert_int_equal(oracle_find(&o, 7)->seeds[3], 7 + 4); /* the new log does not name this part */
  oracle_compare(&o, f->store);
  oracle_compare_served(&o);
  oracle_apply_both(&o, f->store, new_log, NEW_LOG, NULL, 0); /* within the new log, offsets are compared again */
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

/* Random batches, restarts, forgotten logs, and rebuilds that are begun again, abandoned or finished. */
static void random_rebuilds_match_the_oracle_across_reopens(void **state)
{
  enum { ROUNDS = 400, BATCH = 30, KINDS = 16 };
  struct fixture *f = *state;
  struct dice dice = { seed + 1 };
  struct oracle live = { 0 };
  struct oracle rebuilt = { 0 };
  int64_t live_offset = 0;
  int64_t rebuilt_offset = 0;
  int n_finished = 0;

  for (int round = 0; round < ROUNDS; round++) {
    bool was_rebuilding = store_is_rebuilding(f->store);
    struct oracle *current = was_rebuilding ? &rebuilt : &live;
    int64_t *offset = was_rebuilding ? &rebuilt_offset : &live_offset;
    struct oracle_item batch[BATCH];
    switch (dice_below(&dice, KINDS)) {
    case 0:
      assert_ok(store_begin_rebuild(f->store));
      oracle_fini(&rebuilt);
      rebuilt_offset = 0;
      break;
    case 1:
      if (!was_rebuilding)
        break;
      assert_ok(store_finish_rebuild(f->store));
      oracle_fini(&live);
      live = rebuilt;
      live_offset = rebuilt_offset;
      rebuilt = (struct oracle){ 0 };
      n_finished++;
      break;
    case 2:
      if (was_rebuilding && dice_below(&dice, 2))
        assert_ok(store_abandon_rebuild(f->store));
      break;
    case 3:
      if (dice_below(&dice, 2))
        break;
      assert_ok(store_forget_log(f->store));
      current->log_number++;
      *offset = 0;
      break;
    case 4:
    case 5:
      reopen(f);
      assert_int_equal(store_is_rebuilding(f->store), was_rebuilding);
      break;
    default:
      for (size_t i = 0; i < BATCH; i++)
        batch[i] = random_change(&dice, 120, (*offset)++);
      oracle_apply_both(current, f->store, batch, BATCH, NULL, 0);
      oracle_compare_served(current);
    }
    oracle_compare(&live, f->store);
  }
  assert_true(n_finished > 0); /* about ten, by chance */
  oracle_fini(&live);
  oracle_fini(&rebuilt);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(the_live_catalogue_stays_as_it_is_until_the_rebuilt_one_takes_its_place),
    STORE_TEST(a_rebuild_continues_after_a_restart),
    STORE_TEST(an_abandoned_rebuild_leaves_the_live_catalogue_with_its_log),
    STORE_TEST(beginning_again_drops_what_was_gathered_and_raises_the_number),
    STORE_TEST(dropped_rows_are_freed_in_small_steps),
    STORE_TEST(rebuilds_use_the_space_of_those_before),
    STORE_TEST(batches_free_dropped_rows_too),
    STORE_TEST(a_forgotten_log_leaves_its_items_and_the_next_one_applies_on_top),
    STORE_TEST(random_rebuilds_match_the_oracle_across_reopens),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
