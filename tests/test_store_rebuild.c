/* Rebuilding: what the new generation has not written is swept, and only that. */
#include "store/store.h"

#include "tests/support/store_fixture.h"

static uint64_t seed;

struct deleted {
  struct oracle *oracle;
  size_t n;
  size_t n_calls;
  size_t n_max; /* of one call */
};

static err_code_t note_deleted(void *context, struct item_change *changes, size_t n)
{
  struct deleted *d = context;
  struct region region = { 0 };

  assert_true(n > 0);
  for (size_t i = 0; i < n; i++) {
    size_t at = 0;
    assert_true(changes[i].is_delete);
    while (at < d->oracle->n && !span_equal(oracle_key(d->oracle->items[at].id, &region), changes[i].key))
      at++;
    assert_true(at < d->oracle->n);
    assert_true(d->oracle->items[at].generation < d->oracle->generation);
    d->oracle->items[at] = d->oracle->items[--d->oracle->n];
  }
  d->n += n;
  d->n_calls++;
  d->n_max = n > d->n_max ? n : d->n_max;
  region_fini(&region);
  return ERR_OK;
}

static void assert_nothing_known_of_the_log(const struct fixture *f)
{
  struct store_source source;
  size_t n;

  assert_true(store_is_rebuilding(f->store));
  assert_false(store_source_get(f->store, &source));
  assert_null(f->store->cluster_id);
  assert_null(f->store->topic);
  store_positions(f->store, &n);
  assert_int_equal(n, 0);
}

static void begin_rebuild(struct fixture *f, struct oracle *o)
{
  const struct store_position positions[] = { position_of(0, 100000), position_of(3, 7) };

  assert_ok(store_source_put(f->store, &(struct store_source){ "c", "t" }));
  assert_ok(store_apply(f->store, NULL, 0, positions, 2, NULL));
  assert_ok(store_begin_rebuild(f->store));
  o->generation++;
  assert_nothing_known_of_the_log(f);
}

static void sweep_to_the_end(struct fixture *f, struct deleted *d, size_t max)
{
  bool is_done = false;
  size_t n_steps = (d->oracle->n + max - 1) / max;

  for (; !is_done; n_steps--) {
    assert_true(n_steps > 0); /* each looks at `max` items */
    assert_ok(store_sweep(f->store, max, note_deleted, d, &is_done));
    oracle_compare(d->oracle, f->store);
    assert_int_equal(store_is_rebuilding(f->store), !is_done);
  }
  assert_int_equal(n_steps, 0);
  assert_true(d->n_max <= max);
}

static void rebuild_forgets_old_parts_and_sweeps_what_was_not_written(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct deleted d = { .oracle = &o };
  const struct store_position position = position_of(0, 3);
  /* Offsets of the new log start again, below the old ones. */
  const struct oracle_item log[] = {
    { .id = 7, .seeds = { 1, 0, 0, 0 }, .offset = 0 },
    { .id = 9, .seeds = { 0, 2, 0, 0 }, .offset = 1 },
    { .id = 7, .seeds = { 0, 3, 0, 0 }, .offset = 2 },
    { .id = 3, .is_delete = true, .offset = 2 },
    { .id = 99, .seeds = { 5, 0, 0, 0 }, .offset = 2 },
  };

  fill(f, &o, 20);
  begin_rebuild(f, &o);
  oracle_compare(&o, f->store); /* it keeps the items meanwhile */
  oracle_apply_both(&o, f->store, log, 5, &position, 1);
  assert_int_equal(o.n, 20);
  assert_true(oracle_find(&o, 7)->seeds[0] == 1 && oracle_find(&o, 7)->seeds[1] == 3);
  assert_int_equal(oracle_find(&o, 7)->seeds[3], 0);
  oracle_compare(&o, f->store);
  sweep_to_the_end(f, &d, 4);
  assert_int_equal(o.n, 3);
  assert_int_equal(d.n, 17);
  reopen(f);
  assert_false(store_is_rebuilding(f->store));
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static void sweep_passes_what_is_new_and_goes_on_behind_it(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct deleted d = { .oracle = &o };

  fill(f, &o, 40);
  begin_rebuild(f, &o);
  reopen(f);
  assert_nothing_known_of_the_log(f);
  for (uint32_t id = 20; id < 50; id++) {
    struct oracle_item item = { .id = id, .seeds = { id }, .offset = id };
    oracle_apply_both(&o, f->store, &item, 1, NULL, 0);
  }
  sweep_to_the_end(f, &d, 4);
  assert_int_equal(o.n, 30);
  assert_int_equal(d.n, 20);
  fill(f, &o, 60);
  d.n = 0;
  begin_rebuild(f, &o);
  sweep_to_the_end(f, &d, 7); /* the next one begins at the end again */
  assert_int_equal(d.n, 60);
  oracle_fini(&o);
}

static void sweep_without_a_rebuild_is_done_and_deletes_nothing(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct deleted d = { .oracle = &o };
  bool is_done = false;

  fill(f, &o, 5);
  assert_ok(store_sweep(f->store, 10, note_deleted, &d, &is_done));
  assert_true(is_done);
  assert_int_equal(d.n_calls, 0);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static void sweep_of_an_empty_store_ends_the_rebuild(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct deleted d = { .oracle = &o };
  bool is_done = false;

  begin_rebuild(f, &o);
  assert_ok(store_sweep(f->store, 10, note_deleted, &d, &is_done));
  assert_true(is_done);
  reopen(f);
  assert_false(store_is_rebuilding(f->store));
}

/* Batches and reopening between the steps (a crash does no more), a second rebuild on top of the first. */
static void random_rebuilds_match_the_oracle_across_reopens(void **state)
{
  enum { REBUILDS = 12, BATCH = 40 };
  struct fixture *f = *state;
  struct dice dice = { seed + 1 };
  struct oracle o = { 0 };
  struct deleted d = { .oracle = &o };
  int64_t offset = 0;

  for (int rebuild = 0; rebuild < REBUILDS; rebuild++) {
    bool is_done = false;
    for (size_t steps = dice_below(&dice, 4); !is_done; steps -= steps > 0) {
      struct oracle_item batch[BATCH];
      for (size_t i = 0; i < BATCH; i++)
        batch[i] = random_change(&dice, 250, offset++);
      oracle_apply_both(&o, f->store, batch, BATCH, NULL, 0);
      if (steps == 0)
        assert_ok(store_sweep(f->store, 1 + dice_below(&dice, 60), note_deleted, &d, &is_done));
      if (dice_below(&dice, 3) == 0)
        reopen(f);
      assert_int_equal(store_is_rebuilding(f->store), !is_done && rebuild > 0);
      oracle_compare(&o, f->store);
      if (!is_done && rebuild > 0 && dice_below(&dice, 6) == 0)
        break;
    }
    if (is_done)
      for (size_t i = 0; i < o.n; i++)
        assert_true(o.items[i].generation == o.generation);
    begin_rebuild(f, &o);
    offset = 0;
  }
  assert_true(d.n > 100);
  oracle_fini(&o);
}

static void sweep_that_fills_the_map_is_redone_and_told_once(void **state)
{
  enum { MAP_BYTES = 512 * 1024, N = 480 };
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct deleted d = { .oracle = &o };
  struct oracle_item items[N];
  bool is_done = false;

  store_close(&f->store);
  temp_dir_fini(&f->dir);
  open_sized(f, MAP_BYTES);
  /* In one transaction, so that no page is free; long keys, so that the sweep writes to many pages of `keys`. */
  for (uint32_t i = 0; i < N; i++)
    items[i] = (struct oracle_item){ .id = 7 * i + 700 };
  oracle_apply_both(&o, f->store, items, N, NULL, 0);
  assert_ok(store_begin_rebuild(f->store));
  o.generation++;
  assert_true(f->store->env->used_bytes < MAP_BYTES / 100 * 80);
  assert_int_equal(f->store->env->n_grown, 0);
  assert_ok(store_sweep(f->store, 1000, note_deleted, &d, &is_done));
  assert_true(is_done);
  assert_true(f->store->env->n_redone > 0);
  assert_int_equal(d.n, N);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(rebuild_forgets_old_parts_and_sweeps_what_was_not_written),
    STORE_TEST(sweep_passes_what_is_new_and_goes_on_behind_it),
    STORE_TEST(sweep_without_a_rebuild_is_done_and_deletes_nothing),
    STORE_TEST(sweep_of_an_empty_store_ends_the_rebuild),
    STORE_TEST(random_rebuilds_match_the_oracle_across_reopens),
    STORE_TEST(sweep_that_fills_the_map_is_redone_and_told_once),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
