/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes in both arenas, compared with a plain model: which items are expired and embargoed at each epoch's time,
 * after random puts, partial changes, deletes, loads and steps of the clock, and when that changes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine_state.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 9000, SPACES = 2, BATCH = 500, KEY_BYTES = 16 };
enum { BEGINS, YEAR, ENDS, N_ATTRIBUTES };

#define START_MS INT64_C(1790000000000)

static const struct attribute attributes[N_ATTRIBUTES] = {
  [BEGINS] = { { (const uint8_t *)"begins", 6 }, ATTRIBUTE_TIME },
  [YEAR] = { { (const uint8_t *)"year", 4 }, ATTRIBUTE_INTEGER },
  [ENDS] = { { (const uint8_t *)"ends", 4 }, ATTRIBUTE_TIME },
};
static const char *const names[SPACES] = { "one", "two" };

/* What an item should be. */
struct item {
  bool is_there;
  bool has_part[SPACES];
  bool has[N_ATTRIBUTES];
  int64_t values[N_ATTRIBUTES];
};

struct world {
  struct dice dice;
  struct temp_dir dir;
  char path[PATH_MAX];
  struct engine_space spaces[SPACES];
  struct engine *engine;
  int64_t now_ms;
  int64_t newest_ms; /* the latest time that the engine was told */
  struct item items[ITEMS];
};

static uint64_t seed;

static int64_t tell_time(void *context)
{
  struct world *w = context;

  w->newest_ms = w->now_ms > w->newest_ms ? w->now_ms : w->newest_ms;
  return w->now_ms;
}

static struct world *open_world(uint64_t salt, const char *not_before, const char *expires)
{
  struct world *w = calloc(1, sizeof *w);
  struct engine_config config = { .spaces = w->spaces,
                                  .n_spaces = SPACES,
                                  .max_items = ITEMS,
                                  .max_k = 10,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .attributes = { attributes, N_ATTRIBUTES },
                                  .lifetimes = { not_before, expires, { tell_time, w } } };

  w->dice.state = seed + salt;
  w->now_ms = START_MS;
  temp_dir_init(&w->dir);
  snprintf(w->path, sizeof w->path, "%s/dot.safetensors", w->dir.path);
  vector_file_write_plain(w->path, "dot", 1);
  for (size_t i = 0; i < SPACES; i++)
    w->spaces[i] = (struct engine_space){ .name = names[i], .model_path = w->path };
  assert_ok(engine_open(&config, &w->engine));
  return w;
}

static void close_world(struct world *w)
{
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  free(w);
}

static struct span key_of(size_t item, char key[KEY_BYTES])
{
  return span_of(key, (size_t)snprintf(key, KEY_BYTES, "item %zu", item));
}

/* Changes -------------------- */

struct batch {
  struct item_change changes[BATCH];
  struct attribute_value values[BATCH][N_ATTRIBUTES];
  struct part parts[BATCH][SPACES];
  char keys[BATCH][KEY_BYTES];
};

static void draw_values(struct world *w, struct item *item, struct item_change *change)
{
  for (size_t a = 0; a < N_ATTRIBUTES; a++) {
    struct value *value = &change->attributes[change->n_attributes].value;
    if (dice_below(&w->dice, 3) == 0)
      continue;
    item->has[a] = dice_below(&w->dice, 4) > 0;
    item->values[a] = w->now_ms - 50 + (int64_t)dice_below(&w->dice, dice_below(&w->dice, 2) ? 100 : 3000);
    *value = (struct value){ item->has[a] ? VALUE_INTEGER : VALUE_NULL, .integer = item->values[a] };
    change->attributes[change->n_attributes++].name = attributes[a].name;
  }
}

static void draw_parts(struct world *w, struct item *item, struct item_change *change)
{
  static const float one = 1.0f;

  for (size_t s = 0; s < SPACES; s++) {
    if (dice_below(&w->dice, 2))
      continue;
    item->has_part[s] = true;
    change->parts[change->n_parts++] = (struct part){ .space = span_of_str(names[s]), .vector = { &one, 1 } };
  }
}

/* Draw the change of an item, and make it in the model. */
static void draw_change(struct world *w, struct batch *b, size_t n, size_t i, bool is_delete)
{
  struct item *item = &w->items[i];
  struct item_change *change = &b->changes[n];

  *change = (struct item_change){ .key = key_of(i, b->keys[n]),
                                  .is_delete = is_delete,
                                  .is_whole = !is_delete && dice_below(&w->dice, 5) == 0,
                                  .parts = b->parts[n],
                                  .attributes = b->values[n] };
  if (is_delete || change->is_whole)
    *item = (struct item){ 0 };
  item->is_there = !is_delete;
  if (!is_delete) {
    draw_values(w, item, change);
    draw_parts(w, item, change);
  }
}

static void churn(struct world *w, size_t deletes)
{
  static struct batch b;
  size_t n = dice_below(&w->dice, BATCH + 1);

  for (size_t i = 0; i < n; i++)
    draw_change(w, &b, i, dice_below(&w->dice, ITEMS), dice_below(&w->dice, 100) < deletes);
  fixture_apply(w->engine, b.changes, n);
}

/* Move the clock: mostly a little forward, sometimes far, sometimes back. */
static void step(struct world *w)
{
  size_t what = dice_below(&w->dice, 8);

  if (what == 0)
    w->now_ms -= (int64_t)dice_below(&w->dice, 500);
  else
    w->now_ms += (int64_t)dice_below(&w->dice, what == 1 ? 2000 : 40);
}

/* Checks -------------------- */

static bool has_expired(const struct world *w, const struct item *item, int64_t time_ms)
{
  return w->engine->lifetimes.expires != ATTRIBUTE_NONE && item->has[ENDS] && item->values[ENDS] <= time_ms;
}

static bool is_embargoed(const struct world *w, const struct item *item, int64_t time_ms)
{
  return w->engine->lifetimes.not_before != ATTRIBUTE_NONE && item->has[BEGINS] && item->values[BEGINS] > time_ms &&
         !has_expired(w, item, time_ms);
}

/* The first moment after `time_ms` at which an item changes. */
static int64_t next_change(const struct world *w, int64_t time_ms)
{
  int64_t next = INT64_MAX;

  for (size_t i = 0; i < ITEMS; i++) {
    const struct item *item = &w->items[i];
    if (!item->is_there || has_expired(w, item, time_ms))
      continue;
    if (is_embargoed(w, item, time_ms) && item->values[BEGINS] < next)
      next = item->values[BEGINS];
    if (w->engine->lifetimes.expires != ATTRIBUTE_NONE && item->has[ENDS] && item->values[ENDS] < next)
      next = item->values[ENDS];
  }
  return next;
}

static void assert_item(const struct world *w, const struct arena *a, size_t i, uint64_t n_alive[SPACES])
{
  const struct lifetimes *l = &a->lifetimes;
  const struct item *item = &w->items[i];
  char key[KEY_BYTES];
  uint32_t slot = keys_find(&a->keys, key_of(i, key));

  assert_int_equal(slot != KEYS_NONE, item->is_there);
  if (!item->is_there)
    return;
  assert_int_equal(bits_get(l->expired, slot), has_expired(w, item, l->time_ms));
  assert_int_equal(bits_get(l->embargoed, slot), is_embargoed(w, item, l->time_ms));
  bool is_alive = !has_expired(w, item, l->time_ms) && !is_embargoed(w, item, l->time_ms);
  for (size_t s = 0; s < SPACES; s++) {
    assert_int_equal(bits_get(a->spaces[s].alive, slot), is_alive && item->has_part[s]);
    n_alive[s] += is_alive && item->has_part[s];
  }
}

/* Check the bits of all slots, those without an item too. */
static void assert_arena(const struct world *w, const struct arena *a)
{
  const struct lifetimes *l = &a->lifetimes;
  size_t n_words = bits_words(ITEMS);
  uint64_t n_alive[SPACES] = { 0 };

  for (size_t i = 0; i < ITEMS; i++)
    assert_item(w, a, i, n_alive);
  for (size_t s = 0; s < SPACES; s++) {
    assert_int_equal(a->spaces[s].n_alive, n_alive[s]);
    assert_int_equal(bits_count(a->spaces[s].alive, n_words), n_alive[s]);
  }
  assert_int_equal(bits_count(l->expired, n_words), l->n_expired);
  assert_int_equal(bits_count(l->embargoed, n_words), l->n_embargoed);
  assert_true(l->next_ms <= next_change(w, l->time_ms));
}

static void assert_world(const struct world *w)
{
  for (size_t i = 0; i < 2; i++)
    assert_arena(w, &w->engine->pair->arenas[i]);
  assert_true(engine_next_change_ms(w->engine) <= next_change(w, w->newest_ms));
}

/* After time has passed: nothing that the front arena shows has changed since its time. */
static void assert_passed(struct world *w)
{
  int64_t front_ms = pair_front(w->engine->pair)->lifetimes.time_ms;

  assert_true(front_ms <= w->newest_ms);
  assert_true(next_change(w, front_ms) > w->newest_ms);
  assert_true(engine_next_change_ms(w->engine) > w->newest_ms);
}

static void live(struct world *w, size_t n_steps, size_t deletes)
{
  for (size_t i = 0; i < n_steps; i++) {
    step(w);
    if (dice_below(&w->dice, 2)) {
      assert_ok(engine_pass_time(w->engine));
      assert_passed(w);
    } else {
      churn(w, deletes);
      assert_int_equal(pair_front(w->engine->pair)->lifetimes.time_ms, w->newest_ms);
    }
    if (i % 8 == 0)
      assert_world(w);
  }
  assert_world(w);
}

/* Tests -------------------- */

static void both_arenas_know_who_is_alive_at_their_time(void **state)
{
  static const char *const pairs[][2] = { { "begins", "ends" }, { NULL, "ends" }, { "begins", "" } };

  (void)state;
  for (size_t i = 0; i < 3; i++) {
    struct world *w = open_world(i, pairs[i][0], pairs[i][1]);
    live(w, 150, 10);
    live(w, 150, 90); /* memory is given back */
    live(w, 100, 10);
    close_world(w);
  }
}

static void an_epoch_is_published_just_when_an_item_changes(void **state)
{
  struct world *w = open_world(10, "begins", "ends");

  (void)state;
  live(w, 40, 10);
  w->now_ms = w->newest_ms;
  assert_ok(engine_pass_time(w->engine));
  for (int i = 0; i < 300 && next_change(w, w->newest_ms) != INT64_MAX; i++) {
    int64_t next = next_change(w, w->newest_ms);
    uint64_t epoch = pair_front(w->engine->pair)->epoch;
    w->now_ms = next - 1;
    assert_ok(engine_pass_time(w->engine));
    assert_int_equal(pair_front(w->engine->pair)->epoch, epoch);
    w->now_ms = next;
    assert_ok(engine_pass_time(w->engine));
    assert_int_equal(pair_front(w->engine->pair)->epoch, epoch + 1);
    assert_int_equal(pair_front(w->engine->pair)->lifetimes.time_ms, next);
  }
  assert_world(w);
  close_world(w);
}

static err_code_t feed(void *context, struct engine_loading *loading)
{
  AUTO(region_fini) struct region region = { 0 };
  struct world *w = context;
  static struct batch b;

  w->now_ms += 100; /* loading takes time */
  for (size_t first = 0; first < ITEMS; first += LOAD_BLOCK_SLOTS) {
    size_t end = first + LOAD_BLOCK_SLOTS < ITEMS ? first + LOAD_BLOCK_SLOTS : (size_t)ITEMS;
    for (size_t i = first; i < end; i += BATCH) {
      size_t n = end - i < BATCH ? end - i : (size_t)BATCH;
      for (size_t j = 0; j < n; j++)
        draw_change(w, &b, j, i + j, false);
      TRY(engine_loading_put(loading, &region, i, b.changes, n));
    }
  }
  return ERR_OK;
}

static void a_catalogue_that_is_replaced_has_nobody_who_expired_meanwhile(void **state)
{
  struct world *w = open_world(20, "begins", "ends");

  (void)state;
  for (int i = 0; i < 3; i++) {
    memset(w->items, 0, sizeof w->items);
    assert_ok(engine_replace(w->engine, feed, w, 2, NULL, 0));
    assert_int_equal(pair_front(w->engine->pair)->lifetimes.time_ms, w->newest_ms);
    assert_world(w);
    live(w, 60, 30);
  }
  close_world(w);
}

static void items_that_expired_long_ago_are_listed(void **state)
{
  AUTO(region_fini) struct region region = { 0 };
  struct world *w = open_world(30, NULL, "ends");
  struct span *keys;
  size_t n, n_due = 0;

  (void)state;
  live(w, 40, 10);
  w->now_ms = w->newest_ms;
  assert_ok(engine_pass_time(w->engine));
  assert_ok(engine_list_expired(w->engine, 20, ITEMS, &region, &keys, &n));
  for (size_t i = 0; i < ITEMS; i++)
    n_due += w->items[i].is_there && has_expired(w, &w->items[i], w->now_ms - 20);
  assert_true(n_due > 3);
  assert_int_equal(n, n_due);
  for (size_t i = 0; i < n; i++)
    assert_true(has_expired(w, &w->items[strtoul((const char *)keys[i].p + 5, NULL, 10)], w->now_ms - 20));
  assert_ok(engine_list_expired(w->engine, 20, 3, &region, &keys, &n));
  assert_int_equal(n, 3);
  close_world(w);
}

static void an_attribute_that_cannot_say_lifetimes_is_refused(void **state)
{
  struct world *w = open_world(40, NULL, NULL);
  struct engine_config config = { .spaces = w->spaces,
                                  .n_spaces = SPACES,
                                  .max_items = ITEMS,
                                  .max_k = 10,
                                  .max_batch = 1,
                                  .attributes = { attributes, N_ATTRIBUTES },
                                  .lifetimes = { .expires = "year" } };
  struct engine_epoch epoch;
  struct engine *e;

  (void)state;
  engine_epoch_get(w->engine, &epoch, NULL, 0);
  assert_false(epoch.has_time);
  assert_int_equal(engine_open(&config, &e), ERR_CONFIG);
  assert_non_null(strstr(err_message(), "expires: the attribute year has the type integer"));
  config.lifetimes = (struct engine_lifetimes){ .not_before = "born" };
  assert_int_equal(engine_open(&config, &e), ERR_CONFIG);
  assert_non_null(strstr(err_message(), "not_before: there is no attribute \"born\""));
  close_world(w);
}

static err_t normalize(struct world *w, size_t attribute, int64_t time_ms)
{
  struct attribute_value value = { attributes[attribute].name, { .kind = VALUE_INTEGER, .integer = time_ms } };
  bool is_known;

  return engine_normalize_attribute(w->engine, NULL, &value, &is_known);
}

static void a_time_in_seconds_is_refused(void **state)
{
  struct world *w = open_world(5, "begins", "ends");

  (void)state;
  assert_int_equal(normalize(w, ENDS, 1795348800), ERR_ITEM);
  assert_non_null(strstr(err_message(), "attributes[\"ends\"]: 1795348800 ms since 1970"));
  assert_non_null(strstr(err_message(), "write 1795348800000"));
  assert_int_equal(normalize(w, BEGINS, 1795348800), ERR_ITEM);
  assert_ok(normalize(w, ENDS, 1795348800000));
  assert_ok(normalize(w, ENDS, 0)); /* expired from the beginning */
  assert_ok(normalize(w, YEAR, 1795348800));
  close_world(w);
  w = open_world(6, "begins", NULL);
  assert_ok(normalize(w, ENDS, 1795348800)); /* a time that says no lifetime may be in 1970 */
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(both_arenas_know_who_is_alive_at_their_time),
    cmocka_unit_test(an_epoch_is_published_just_when_an_item_changes),
    cmocka_unit_test(a_catalogue_that_is_replaced_has_nobody_who_expired_meanwhile),
    cmocka_unit_test(items_that_expired_long_ago_are_listed),
    cmocka_unit_test(an_attribute_that_cannot_say_lifetimes_is_refused),
    cmocka_unit_test(a_time_in_seconds_is_refused),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
