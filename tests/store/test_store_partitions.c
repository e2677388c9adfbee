/* SPDX-License-Identifier: Apache-2.0 */
/* One key in several partitions: every reading order gives the same items. Also a full catalogue, which loses nothing.
 *
 * The oracle here applies the rule of store.h to whole logs. It knows nothing of reading orders, batches and replays.
 */
#include "store/store.h"

#include "tests/support/store_fixture.h"

enum { PARTITIONS = 4, LENGTH_MAX = 40, KEYS = 5, TIMES = 15, BATCH_MAX = 12 };

static uint64_t seed;

/* ---- Logs, and the items that they make ---- */

struct logs {
  struct oracle_item records[PARTITIONS][LENGTH_MAX];
  size_t lengths[PARTITIONS];
  size_t n_partitions;
};

/* Write random logs. Timestamps tie and go back, and offsets have gaps. */
static void write_logs(struct logs *logs, struct dice *dice, size_t n_partitions)
{
  *logs = (struct logs){ .n_partitions = n_partitions };
  for (size_t p = 0; p < n_partitions; p++) {
    int64_t offset = 0;
    logs->lengths[p] = dice_below(dice, LENGTH_MAX + 1);
    for (size_t i = 0; i < logs->lengths[p]; i++) {
      struct oracle_item *r = &logs->records[p][i];
      offset += 1 + (int64_t)dice_below(dice, 3);
      *r = (struct oracle_item){
        .id = 1 + (uint32_t)dice_below(dice, KEYS),
        .is_delete = dice_below(dice, 3) == 0,
        .is_whole = dice_below(dice, 6) == 0,
        .partition = (int32_t)p,
        .offset = offset,
        .timestamp_ms = 1 + (int64_t)dice_below(dice, TIMES),
      };
      for (size_t j = 0; j < ORACLE_SPACES && !r->is_delete; j++)
        r->seeds[j] = dice_below(dice, 2) ? dice_u64(dice) | 1 : 0;
      if (!r->is_delete)
        oracle_draw_attributes(dice, r);
    }
  }
}

/* Compute the state of a key in one partition. Returns false if the partition has no record of it. */
static bool fold(const struct logs *logs, size_t partition, uint32_t id, struct oracle_item *out)
{
  bool is_found = false;

  *out = (struct oracle_item){ .is_delete = true };
  for (size_t i = 0; i < logs->lengths[partition]; i++) {
    if (logs->records[partition][i].id != id)
      continue;
    oracle_fold(out, &logs->records[partition][i]);
    is_found = true;
  }
  return is_found;
}

/* Compute the items by the rule. */
static void expect(const struct logs *logs, struct oracle *o)
{
  for (uint32_t id = 1; id <= KEYS; id++) {
    struct oracle_item best;
    bool has_best = false;
    for (size_t p = 0; p < logs->n_partitions; p++) {
      struct oracle_item state;
      if (!fold(logs, p, id, &state))
        continue;
      if (!has_best || state.timestamp_ms >= best.timestamp_ms) /* on a tie the higher partition wins */
        best = state;
      has_best = true;
    }
    if (has_best && !best.is_delete)
      *oracle_push(&o->items, &o->n, &o->capacity) = best;
  }
}

/* ---- Reading them into a store ---- */

struct reading {
  const struct logs *logs;
  struct store *store;
  struct oracle *engine; /* its `served` applies the effects */
  size_t next[PARTITIONS];
  size_t n_refused;
};

static bool is_at_end(const struct reading *r)
{
  for (size_t p = 0; p < r->logs->n_partitions; p++)
    if (r->next[p] < r->logs->lengths[p])
      return false;
  return true;
}

/* Make the position after the first n records of a partition. */
static struct store_position position_at(const struct logs *logs, size_t p, size_t n)
{
  return position_of((int32_t)p, n ? logs->records[p][n - 1].offset + 1 : 0);
}

static void read_batch(struct reading *r, struct dice *dice)
{
  struct region region = { 0 };
  struct item_change changes[BATCH_MAX];
  struct store_position positions[PARTITIONS];
  struct store_effects effects;
  size_t n = 0;

  for (size_t want = dice_below(dice, BATCH_MAX + 1); n < want && !is_at_end(r);) {
    size_t p = dice_below(dice, r->logs->n_partitions);
    if (r->next[p] < r->logs->lengths[p])
      changes[n++] = oracle_change(&r->logs->records[p][r->next[p]++], &region);
  }
  for (size_t p = 0; p < r->logs->n_partitions; p++)
    positions[p] = position_at(r->logs, p, r->next[p]);
  assert_ok(store_apply(r->store, changes, n, positions, r->logs->n_partitions, &effects));
  r->n_refused += effects.n_refused;
  for (size_t i = 0; i < effects.n_changes; i++)
    oracle_serve(r->engine, &effects.changes[i], &region);
  region_fini(&region);
}

static int64_t stored_next(const struct store *s, size_t partition)
{
  const struct store_position *position = store_find_position(s, (int32_t)partition);

  return position ? position->at.next : 0;
}

/* Go back to the stored positions. */
static void rewind_to_stored(struct reading *r)
{
  for (size_t p = 0; p < r->logs->n_partitions; p++)
    while (r->next[p] > 0 && position_at(r->logs, p, r->next[p]).at.next > stored_next(r->store, p))
      r->next[p]--;
}

static err_code_t check_items(void *context, struct item_change *changes, size_t n)
{
  const struct oracle *o = context;
  struct region region = { 0 };

  for (size_t i = 0; i < n; i++) {
    bool is_found = false;
    for (size_t j = 0; j < o->n && !is_found; j++) {
      struct item_change want = oracle_change(&o->items[j], &region);
      is_found = oracle_is_same(&want, &changes[i]);
    }
    assert_true(is_found);
  }
  region_fini(&region);
  return ERR_OK;
}

/* Assert that the store has these items, and that the engine's model has them, too. */
static void assert_holds(const struct reading *r, const struct oracle *want)
{
  struct store_stats stats;

  assert_ok(store_visit_all(r->store, 3, check_items, (void *)(uintptr_t)want));
  store_stats(r->store, &stats);
  assert_int_equal(stats.n_items, want->n);
  struct oracle both = *want;
  both.served = r->engine->served;
  both.n_served = r->engine->n_served;
  oracle_compare_served(&both);
}

static void begin_anew(struct fixture *f)
{
  bool is_done = false;

  skip_syncs(f);
  assert_ok(store_begin_rebuild(f->store));
  assert_ok(store_finish_rebuild(f->store));
  while (!is_done)
    assert_ok(store_tidy(f->store, 1000, &is_done));
}

static void every_order_of_reading_gives_the_same_items(void **state)
{
  enum { LOGS = 120, ORDERS = 6 };
  struct fixture *f = *state;
  struct dice dice = { seed };

  for (int i = 0; i < LOGS; i++) {
    struct logs logs;
    struct oracle want = { 0 };
    write_logs(&logs, &dice, 1 + dice_below(&dice, PARTITIONS));
    expect(&logs, &want);
    for (int order = 0; order < ORDERS; order++) {
      struct oracle engine = { 0 };
      struct reading r = { .logs = &logs, .store = f->store, .engine = &engine };
      begin_anew(f);
      while (!is_at_end(&r)) {
        read_batch(&r, &dice);
        if (dice_below(&dice, 8) == 0) { /* read again from an earlier place */
          size_t p = dice_below(&dice, logs.n_partitions);
          r.next[p] = dice_below(&dice, r.next[p] + 1);
        }
        if (dice_below(&dice, 150) == 0) {
          reopen(f);
          skip_syncs(f);
          r.store = f->store;
        }
      }
      assert_holds(&r, &want);
      oracle_fini(&engine);
    }
    oracle_fini(&want);
  }
}

static void with_one_partition_no_tombstone_is_kept(void **state)
{
  struct fixture *f = *state;
  struct dice dice = { seed + 1 };
  struct store_stats stats;

  store_set_log_partitions(f->store, 1);
  for (int i = 0; i < 50; i++) {
    struct logs logs;
    struct oracle want = { 0 };
    struct oracle engine = { 0 };
    struct reading r = { .logs = &logs, .store = f->store, .engine = &engine };
    write_logs(&logs, &dice, 1);
    expect(&logs, &want);
    begin_anew(f);
    while (!is_at_end(&r))
      read_batch(&r, &dice);
    assert_holds(&r, &want);
    store_stats(f->store, &stats);
    assert_int_equal(stats.n_aside, 0);
    oracle_fini(&engine);
    oracle_fini(&want);
  }
}

/* The store was told of one partition and sees a second one, because the topic has grown. */
static void a_second_partition_is_noticed(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  const struct store_position positions[] = { position_of(0, 1), position_of(1, 9) };
  const struct oracle_item items[] = {
    { .id = 1, .is_delete = true, .partition = 1, .offset = 8, .timestamp_ms = 50 },
    { .id = 1, .seeds = { 1 }, .partition = 0, .offset = 1, .timestamp_ms = 40 },
  };

  store_set_log_partitions(f->store, 1);
  assert_ok(store_apply(f->store, NULL, 0, positions, 2, NULL));
  oracle_apply_both(&o, f->store, &items[0], 1, positions, 2);
  oracle_apply_both(&o, f->store, &items[1], 1, positions, 2);
  assert_int_equal(o.n, 0);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

/* A position is held back, as before a dead letter that no broker has yet. Applied changes are not applied again. */
static void changes_above_the_position_are_applied_once(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  const struct store_position behind = position_of(0, 1);
  const struct store_position at_end = position_of(0, 5);
  const struct oracle_item items[] = {
    { .id = 1, .seeds = { 1 }, .offset = 0 },
    { .id = 1, .seeds = { 0, 2 }, .offset = 1 },
    { .id = 1, .is_delete = true, .offset = 2 },
    { .id = 2, .seeds = { 1 }, .offset = 3 },
    { .id = 2, .is_delete = true, .offset = 4 },
  };

  store_set_log_partitions(f->store, 1);
  oracle_apply_both(&o, f->store, items, 5, &behind, 1);
  reopen(f);
  store_set_log_partitions(f->store, 1);
  for (size_t i = 1; i < 5; i++) {
    oracle_apply_both(&o, f->store, &items[i], 1, i == 4 ? &at_end : NULL, i == 4);
    oracle_compare(&o, f->store);
    assert_int_equal(o.n, 0);
  }
  oracle_fini(&o);
}

/* ---- A full catalogue ---- */

static void a_full_catalogue_refuses_and_loses_nothing(void **state)
{
  enum { LOGS = 150, PATIENCE = 30 };
  struct fixture *f = *state;
  struct dice dice = { seed + 2 };
  size_t n_refused = 0;

  for (int i = 0; i < LOGS; i++) {
    struct logs logs;
    struct oracle want = { 0 };
    struct oracle engine = { 0 };
    struct reading r = { .logs = &logs, .store = f->store, .engine = &engine };
    size_t limit = dice_below(&dice, KEYS);
    struct store_stats stats;
    write_logs(&logs, &dice, 1 + dice_below(&dice, PARTITIONS));
    expect(&logs, &want);
    begin_anew(f);
    store_set_log_partitions(f->store, logs.n_partitions);
    store_set_limit(f->store, limit);
    for (int round = 0; !is_at_end(&r) || store_has_refused(f->store); round++) {
      read_batch(&r, &dice);
      store_stats(f->store, &stats);
      assert_true(round > PATIENCE || stats.n_items <= limit);
      if (round == PATIENCE) /* make room */
        store_set_limit(f->store, UINT64_MAX);
      if (store_has_refused(f->store) && (round > PATIENCE || dice_below(&dice, 4) == 0)) {
        store_retry_refused(f->store);
        rewind_to_stored(&r);
      }
      if (dice_below(&dice, 150) == 0) { /* a restart also reads from the positions */
        reopen(f);
        skip_syncs(f);
        r.store = f->store;
        store_set_log_partitions(f->store, logs.n_partitions);
        store_set_limit(f->store, round < PATIENCE ? limit : UINT64_MAX);
        rewind_to_stored(&r);
      }
    }
    assert_holds(&r, &want);
    n_refused += r.n_refused;
    oracle_fini(&engine);
    oracle_fini(&want);
  }
  assert_true(n_refused > LOGS);
}

static void updates_and_deletes_apply_to_a_full_catalogue(void **state)
{
  struct fixture *f = *state;
  struct region region = { 0 };
  const struct oracle_item items[] = {
    { .id = 1, .seeds = { 1 }, .offset = 0 },
    { .id = 2, .seeds = { 1 }, .offset = 1 },
    { .id = 3, .seeds = { 1 }, .offset = 2 },       /* refused */
    { .id = 1, .seeds = { 2 }, .offset = 3 },       /* applied */
    { .id = 2, .is_delete = true, .offset = 4 },    /* applied */
    { .id = 3, .seeds = { 0, 1 }, .offset = 5 },    /* refused: there is room, but it must not overtake */
    { .id = 5, .seeds = { 1 }, .partition = 1 },    /* gets the room */
  };
  const enum store_effect want[] = { STORE_APPLIED, STORE_APPLIED, STORE_REFUSED, STORE_APPLIED,
                                     STORE_APPLIED, STORE_REFUSED, STORE_APPLIED };
  const enum store_effect again[] = { STORE_SKIPPED, STORE_SKIPPED, STORE_APPLIED, STORE_SKIPPED,
                                      STORE_SKIPPED, STORE_APPLIED, STORE_SKIPPED };
  const struct store_position positions[] = { position_of(0, 6), position_of(1, 1) };
  const int64_t held[] = { -1, 1 };
  const int64_t next[] = { 6, 1 };
  struct item_change changes[7];
  struct store_effects effects;

  store_set_log_partitions(f->store, 1); /* tombstones are still remembered while a partition is held back */
  store_set_limit(f->store, 2);
  for (size_t i = 0; i < 7; i++)
    changes[i] = oracle_change(&items[i], &region);
  assert_ok(store_apply(f->store, changes, 7, positions, 2, &effects));
  assert_memory_equal(effects.kinds, want, sizeof want);
  assert_int_equal(effects.n_refused, 2);
  assert_true(store_has_refused(f->store));
  assert_same_positions(f, held, 2);

  assert_ok(store_apply(f->store, NULL, 0, positions, 1, &effects)); /* a later batch does not move it either */
  assert_same_positions(f, held, 2);
  store_set_limit(f->store, 4);
  assert_true(store_has_refused(f->store));
  store_retry_refused(f->store);
  assert_ok(store_apply(f->store, changes, 7, positions, 2, &effects));
  assert_memory_equal(effects.kinds, again, sizeof again);
  assert_false(store_has_refused(f->store));
  assert_same_positions(f, next, 2);
  region_fini(&region);
}

static void assert_position(struct fixture *f, int64_t next, int64_t complete_unix_ms)
{
  const struct store_position *stored = store_find_position(f->store, 0);

  assert_non_null(stored);
  assert_int_equal(stored->at.next, next);
  assert_int_equal(stored->complete_unix_ms, complete_unix_ms);
}

/* All is read but what was refused: the time of reading goes on, or a restart would take deletes for missed. */
static void a_position_that_is_held_back_is_as_complete_as_it_was_read(void **state)
{
  struct fixture *f = *state;
  struct region region = { 0 };
  const struct oracle_item items[] = { { .id = 1, .seeds = { 1 }, .offset = 0 },
                                       { .id = 2, .seeds = { 1 }, .offset = 1 } /* refused */ };
  struct store_position position = position_of(0, 1);
  struct item_change changes[2];
  struct store_effects effects;

  for (size_t i = 0; i < 2; i++)
    changes[i] = oracle_change(&items[i], &region);
  store_set_limit(f->store, 1);
  position.complete_unix_ms = 1000;
  assert_ok(store_apply(f->store, &changes[0], 1, &position, 1, &effects));
  position = position_of(0, 2);
  position.complete_unix_ms = 2000;
  assert_ok(store_apply(f->store, &changes[1], 1, &position, 1, &effects));
  assert_int_equal(effects.n_refused, 1);
  assert_position(f, 1, 2000);
  position.at.next = 50;
  position.complete_unix_ms = 3000;
  assert_ok(store_apply(f->store, NULL, 0, &position, 1, &effects));
  assert_position(f, 1, 3000);
  reopen(f);
  assert_position(f, 1, 3000);
  region_fini(&region);
}

static void a_store_with_more_items_than_the_limit_keeps_them(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  const struct oracle_item update = { .id = 3, .seeds = { 9 }, .offset = 100 };

  fill(f, &o, 10);
  reopen(f);
  store_set_limit(f->store, 5);
  oracle_compare(&o, f->store);
  oracle_apply_both(&o, f->store, &update, 1, NULL, 0);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

/* ---- Old tombstones are forgotten ---- */

static int64_t now_ms;

static int64_t fake_clock(void)
{
  return now_ms;
}

static uint64_t n_aside(const struct fixture *f)
{
  struct store_stats stats;

  store_stats(f->store, &stats);
  return stats.n_aside;
}

/* Apply empty batches until all rows have been looked at. */
static void let_pass(struct fixture *f, int64_t ms)
{
  now_ms += ms;
  for (int i = 0; i < 40; i++)
    assert_ok(store_apply(f->store, NULL, 0, NULL, 0, NULL));
}

static void tombstones_are_forgotten_after_their_time(void **state)
{
  enum { N = 100, DAY_MS = 24 * 3600 * 1000 };
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct oracle_item items[N];

  now_ms = INT64_C(1700000000000);
  f->store->clock_unix_ms = fake_clock;
  for (uint32_t i = 0; i < N; i++)
    items[i] = (struct oracle_item){ .id = i, .is_delete = true, .offset = i, .timestamp_ms = 1 };
  oracle_apply_both(&o, f->store, items, N / 2, NULL, 0);
  let_pass(f, DAY_MS);
  oracle_apply_both(&o, f->store, items + N / 2, N / 2, NULL, 0);
  let_pass(f, STORE_TOMBSTONE_MS - DAY_MS - 1);
  assert_int_equal(n_aside(f), N);
  let_pass(f, 1);
  assert_int_equal(n_aside(f), N / 2);
  reopen(f);
  f->store->clock_unix_ms = fake_clock;
  let_pass(f, DAY_MS - 1);
  assert_int_equal(n_aside(f), N / 2);
  let_pass(f, 1);
  assert_int_equal(n_aside(f), 0);
  oracle_fini(&o);
}

/* Without the tombstone the older put would become the item. */
static void a_tombstone_stays_while_its_key_has_parts_in_another_partition(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  const struct oracle_item items[] = {
    { .id = 1, .is_delete = true, .partition = 1, .offset = 1, .timestamp_ms = 50 },
    { .id = 1, .seeds = { 1 }, .partition = 0, .offset = 1, .timestamp_ms = 40 },
    { .id = 2, .is_delete = true, .partition = 1, .offset = 2, .timestamp_ms = 40 },
    { .id = 2, .seeds = { 1 }, .partition = 0, .offset = 2, .timestamp_ms = 50 },
  };
  const struct oracle_item last = { .id = 1, .is_delete = true, .partition = 0, .offset = 3, .timestamp_ms = 60 };

  now_ms = INT64_C(1700000000000);
  f->store->clock_unix_ms = fake_clock;
  oracle_apply_both(&o, f->store, items, 4, NULL, 0);
  assert_int_equal(o.n, 1);
  let_pass(f, 2 * STORE_TOMBSTONE_MS);
  assert_int_equal(n_aside(f), 3);
  oracle_compare(&o, f->store);
  oracle_apply_both(&o, f->store, &last, 1, NULL, 0);
  let_pass(f, 2 * STORE_TOMBSTONE_MS);
  assert_int_equal(n_aside(f), 1); /* the tombstone of key 2, which is older than its item */
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static void positions_keep_the_time_up_to_which_they_are_complete(void **state)
{
  struct fixture *f = *state;
  struct store_position positions[] = { position_of(0, 5), position_of(1, 6) };
  size_t n;

  positions[0].complete_unix_ms = positions[1].complete_unix_ms = 1000;
  assert_ok(store_apply(f->store, NULL, 0, positions, 2, NULL));
  positions[1].complete_unix_ms = 2000;
  assert_ok(store_apply(f->store, NULL, 0, positions + 1, 1, NULL)); /* the same position again */
  for (int round = 0; round < 2; round++) {
    assert_int_equal(store_positions(f->store, &n)[0].complete_unix_ms, 1000);
    assert_int_equal(store_positions(f->store, &n)[1].complete_unix_ms, 2000);
    reopen(f);
  }
}

/* ---- Sweeps ---- */

enum { SWEPT = 1 };

/* Apply a record of the key SWEPT, and move the position past it. Returns what became of it. */
static enum store_effect apply_one(struct fixture *f, int32_t partition, int64_t offset, int64_t timestamp_ms)
{
  struct region region = { 0 };
  struct oracle_item put = {
    .id = SWEPT, .seeds = { 7 }, .partition = partition, .offset = offset, .timestamp_ms = timestamp_ms
  };
  struct item_change change = oracle_change(&put, &region);
  struct store_position position = position_of(partition, offset + 1);
  struct store_effects effects;

  assert_ok(store_apply(f->store, &change, 1, &position, 1, &effects));
  region_fini(&region);
  return effects.kinds[0];
}

static enum store_effect sweep_one(struct fixture *f)
{
  struct region region = { 0 };
  struct item_change sweep = { .key = oracle_key(SWEPT, &region), .is_delete = true, .is_sweep = true };
  struct store_effects effects;

  assert_ok(store_apply(f->store, &sweep, 1, NULL, 0, &effects));
  if (effects.kinds[0] == STORE_APPLIED)
    assert_true(effects.n_changes == 1 && effects.changes[0].is_delete);
  region_fini(&region);
  return effects.kinds[0];
}

static uint64_t n_items(const struct fixture *f)
{
  struct store_stats stats;

  store_stats(f->store, &stats);
  return stats.n_items;
}

static void a_sweep_takes_the_place_of_the_newest_record(void **state)
{
  struct fixture *f = *state;

  store_set_log_partitions(f->store, 2);
  assert_int_equal(sweep_one(f), STORE_SKIPPED);
  assert_int_equal(apply_one(f, 1, 2, 30), STORE_APPLIED);
  assert_int_equal(apply_one(f, 0, 3, 50), STORE_APPLIED);
  assert_int_equal(sweep_one(f), STORE_APPLIED);
  assert_int_equal(n_items(f), 0); /* the state of partition 1 is older */
  reopen(f);
  store_set_log_partitions(f->store, 2);
  assert_int_equal(sweep_one(f), STORE_SKIPPED);
  assert_int_equal(apply_one(f, 0, 3, 50), STORE_SKIPPED); /* read again */
  assert_int_equal(apply_one(f, 1, 4, 40), STORE_ASIDE);   /* older than what was swept */
  assert_int_equal(n_items(f), 0);
  assert_int_equal(apply_one(f, 0, 9, 60), STORE_APPLIED);
  assert_int_equal(n_items(f), 1);
}

static void a_sweep_of_one_partition_leaves_nothing_behind(void **state)
{
  struct fixture *f = *state;

  store_set_log_partitions(f->store, 1);
  assert_int_equal(apply_one(f, 0, 3, 50), STORE_APPLIED);
  assert_int_equal(sweep_one(f), STORE_APPLIED);
  assert_int_equal(n_items(f), 0);
  assert_int_equal(n_aside(f), 0);
}

static void a_sweep_of_an_item_of_a_former_log_does_not_hide_the_next_log(void **state)
{
  struct fixture *f = *state;

  store_set_log_partitions(f->store, 2);
  assert_int_equal(apply_one(f, 0, 300, 50), STORE_APPLIED);
  assert_ok(store_forget_log(f->store));
  assert_int_equal(sweep_one(f), STORE_APPLIED);
  assert_int_equal(n_items(f), 0);
  assert_int_equal(apply_one(f, 0, 0, 40), STORE_APPLIED);
  assert_int_equal(n_items(f), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(every_order_of_reading_gives_the_same_items),
    STORE_TEST(with_one_partition_no_tombstone_is_kept),
    STORE_TEST(a_second_partition_is_noticed),
    STORE_TEST(changes_above_the_position_are_applied_once),
    STORE_TEST(a_full_catalogue_refuses_and_loses_nothing),
    STORE_TEST(updates_and_deletes_apply_to_a_full_catalogue),
    STORE_TEST(a_position_that_is_held_back_is_as_complete_as_it_was_read),
    STORE_TEST(a_store_with_more_items_than_the_limit_keeps_them),
    STORE_TEST(tombstones_are_forgotten_after_their_time),
    STORE_TEST(a_tombstone_stays_while_its_key_has_parts_in_another_partition),
    STORE_TEST(positions_keep_the_time_up_to_which_they_are_complete),
    STORE_TEST(a_sweep_takes_the_place_of_the_newest_record),
    STORE_TEST(a_sweep_of_one_partition_leaves_nothing_behind),
    STORE_TEST(a_sweep_of_an_item_of_a_former_log_does_not_hide_the_next_log),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
