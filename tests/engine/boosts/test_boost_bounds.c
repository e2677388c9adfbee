/* SPDX-License-Identifier: Apache-2.0 */
/* Which items may have boosts of at least some sum: none of those that have is lost, and few others stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/boosts/boost_bounds.h"
#include "engine/engine_state.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

/* Two blocks of the scan, and a part of a third. */
enum { ITEMS = 2 * PQ_BLOCK_ITEMS + 1000, CHANGES = 1024, QUERIES = 60, LEASTS = 12 };
enum { MANY_ITEMS = 68 * PQ_BLOCK_ITEMS + 100 }; /* of which a sample has every fourth block, and a part of the last */

#define NOW 1700000000000

static uint64_t seed;

struct world {
  struct temp_dir dir;
  struct engine *engine;
  struct admission held;
  struct region region;
  struct dice dice;
};

static void open_world(struct world *w, size_t items)
{
  char path[PATH_MAX];
  struct engine_space space = { .name = "dot", .model_path = path };
  struct engine_config config = { .spaces = &space,
                                  .n_spaces = 1,
                                  .max_items = MANY_ITEMS,
                                  .max_k = 1,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .attributes = filter_attributes() };

  *w = (struct world){ .dice = { seed } };
  temp_dir_init(&w->dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", w->dir.path);
  vector_file_write_plain(path, "dot", 1);
  assert_ok(engine_open(&config, &w->engine));
  for (size_t i = 0; i < items; i++) {
    char key[24];
    const float one = 1;
    snprintf(key, sizeof key, "%zu", i);
    struct part part = { .space = span_of_str("dot"), .vector = { &one, 1 } };
    struct item_change change = { .key = span_of_str(key), .parts = &part, .n_parts = 1 };
    assert_ok(engine_check_item(w->engine, &change));
    assert_ok(engine_apply(w->engine, &change, 1, NULL, 0));
  }
}

static void close_world(struct world *w)
{
  admission_release(&w->held);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  region_fini(&w->region);
}

static void put(struct world *w, size_t item, size_t attribute, struct value value)
{
  char key[24];
  struct attribute_value named = { filter_attributes().v[attribute].name, value };
  struct item_change change = { .attributes = &named, .n_attributes = 1 };

  snprintf(key, sizeof key, "%zu", item);
  change.key = span_of_str(key);
  fixture_apply(w->engine, &change, 1);
}

static void put_values(struct world *w, size_t items)
{
  struct dice *d = &w->dice;

  for (size_t i = 0; i < items; i++) {
    if (dice_below(d, 4))
      put(w, i, PRICE, (struct value){ .kind = VALUE_NUMBER, .number = 1.5 + (double)dice_float(d, 1) });
    if (dice_below(d, 8))
      put(w, i, YEAR, (struct value){ .kind = VALUE_INTEGER, .integer = (int64_t)dice_below(d, 40) - 9 });
    put(w, i, EXPIRES, (struct value){ .kind = VALUE_INTEGER, .integer = NOW - (int64_t)dice_below(d, 1u << 30) });
  }
}

/* ---- Comparing ---- */

static void draw_boosts(struct world *w, struct query *query, struct boost *boosts)
{
  static const char *const filters[] = { "year > 20", "price < 1", "not has(price)", "year = 99" };
  static const char *const attributes[] = { "price", "year", "expires" };

  *query = (struct query){ .boosts = boosts, .n_boosts = 1 + dice_below(&w->dice, QUERY_BOOSTS_MAX), .now_unix_ms = NOW };
  for (size_t i = 0; i < query->n_boosts; i++) {
    size_t a = dice_below(&w->dice, 4);
    boosts[i] = (struct boost){ .weight = (double)dice_float(&w->dice, dice_below(&w->dice, 3) ? 1 : 1e6f) };
    if (a == 3)
      boosts[i].filter = span_of_str(filters[dice_below(&w->dice, 4)]);
    else
      boosts[i].attribute = span_of_str(attributes[a]);
    if (a == 2)
      boosts[i].half_life_ms = (int64_t)1 << dice_below(&w->dice, 40);
  }
  assert_ok(engine_check_filter(w->engine, query, &w->region));
}

/* Narrow random slots. Returns how many have at least these boosts; *n_left: how many are left. */
static uint64_t narrow(struct world *w, const struct boosts *b, const struct boost_bounds *bounds, double least,
                       uint64_t *n_left)
{
  size_t n_words = bits_words(b->arena->n_slots);
  uint64_t *words, *before, *scratch, n = 0;

  assert_ok(region_array(&w->region, n_words, sizeof *words, &words));
  assert_ok(region_array(&w->region, n_words, sizeof *scratch, &scratch));
  assert_ok(region_array(&w->region, n_words, sizeof *before, &before));
  for (size_t slot = 0; slot < b->arena->n_slots; slot++) {
    if (dice_below(&w->dice, 5))
      bits_set(words, (uint32_t)slot);
  }
  memcpy(before, words, n_words * sizeof *words);
  *n_left = boost_bounds_narrow(bounds, least, words);
  assert_int_equal(bits_count(words, n_words), *n_left);
  if (least > -INFINITY) /* there are so few blocks that all are in the sample */
    assert_int_equal(boost_bounds_estimate(bounds, least, before, scratch), *n_left);
  for (size_t slot = 0; slot < 64 * n_words; slot++) {
    bool is_asked = bits_get(before, slot), is_enough = is_asked && boosts_of_slot(b, (uint32_t)slot) >= least;
    assert_true(is_asked || !bits_get(words, slot));
    assert_true(!is_enough || bits_get(words, slot));
    n += is_enough;
  }
  return n;
}

static void bind(struct world *w, const struct query *query, struct boosts *b, struct boost_bounds **bounds)
{
  const struct arena *front = pair_acquire(w->engine->pair);
  const struct admission_target target = { .arena = front, .cache = w->engine->filters };

  pair_release(w->engine->pair, front); /* nobody publishes meanwhile */
  assert_ok(admission_find(&target, &query, 1, &w->region, &w->held));
  assert_ok(boosts_bind(front, &w->engine->attributes, query, &w->region, b));
  assert_ok(boosts_evaluate(b, &target, &w->region, &w->held));
  assert_ok(boost_bounds_make(b, w->engine->kernels, &w->region, bounds));
}

static void no_item_is_lost_of(struct world *w)
{
  struct boost boosts[QUERY_BOOSTS_MAX];
  struct boost_bounds *bounds;
  struct boosts b;
  struct query query;
  uint64_t n_left;

  for (int q = 0; q < QUERIES; q++) {
    admission_release(&w->held);
    region_reset(&w->region);
    draw_boosts(w, &query, boosts);
    bind(w, &query, &b, &bounds);
    assert_true(narrow(w, &b, bounds, -INFINITY, &n_left) == n_left);
    for (int i = 0; i < LEASTS; i++) {
      uint32_t slot = (uint32_t)dice_below(&w->dice, b.arena->n_slots);
      double least = fmin(boosts_of_slot(&b, slot), bounds->highest);
      assert_true(boosts_of_slot(&b, slot) <= bounds->highest && bounds->highest <= boost_bounds_highest(&b));
      narrow(w, &b, bounds, least, &n_left);
    }
  }
}

static void no_item_is_lost(void **state)
{
  static const size_t sizes[] = { ITEMS, PQ_BLOCK_ITEMS, 65, 1 };
  struct world w;

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    open_world(&w, sizes[i]);
    no_item_is_lost_of(&w); /* nobody has an attribute */
    put_values(&w, sizes[i]);
    no_item_is_lost_of(&w);
    put(&w, sizes[i] / 2, PRICE, (struct value){ .kind = VALUE_NUMBER, .number = -1e9 });
    no_item_is_lost_of(&w);
    close_world(&w);
  }
}

/* Is a tenth of the items left if a twentieth has enough, although one value is far off? */
static void one_value_far_off_does_not_hide_the_others(void **state)
{
  struct boost boosts[] = { { .weight = 1, .attribute = span_of_str("price") },
                            { .weight = -0.01, .attribute = span_of_str("year") },
                            { .weight = 1, .attribute = span_of_str("expires"), .half_life_ms = 1 << 28 } };
  struct query query = { .boosts = boosts, .n_boosts = 3, .now_unix_ms = NOW };
  struct boost_bounds *bounds;
  struct boosts b;
  uint64_t n_left;
  struct world w;

  (void)state;
  open_world(&w, ITEMS);
  put_values(&w, ITEMS);
  put(&w, 5, PRICE, (struct value){ .kind = VALUE_NUMBER, .number = 1e9 });
  put(&w, 6, YEAR, (struct value){ .kind = VALUE_INTEGER, .integer = -1000000000 });
  bind(&w, &query, &b, &bounds);
  assert_true(bounds->highest > 1e9);
  uint64_t n = narrow(&w, &b, bounds, 2.9, &n_left);
  assert_in_range(n, ITEMS / 100, ITEMS / 10);
  assert_in_range(n_left, n, 2 * n + ITEMS / 50);
  close_world(&w);
}

/* Put items with years of 0 to 99. */
static void put_years(struct world *w, size_t items)
{
  static char keys[CHANGES][24];
  static struct attribute_value years[CHANGES];
  static struct item_change changes[CHANGES];
  const float one = 1;
  struct part part = { .space = span_of_str("dot"), .vector = { &one, 1 } };

  for (size_t first = 0; first < items; first += CHANGES) {
    size_t n = items - first < CHANGES ? items - first : CHANGES;
    for (size_t i = 0; i < n; i++) {
      snprintf(keys[i], sizeof keys[i], "%zu", first + i);
      years[i].name = filter_attributes().v[YEAR].name;
      years[i].value = (struct value){ .kind = VALUE_INTEGER, .integer = (int64_t)dice_below(&w->dice, 100) };
      changes[i] = (struct item_change){ .key = span_of_str(keys[i]), .parts = &part, .n_parts = 1 };
      changes[i].attributes = &years[i];
      changes[i].n_attributes = 1;
    }
    fixture_apply(w->engine, changes, n);
  }
}

/* Some 268,000 are left of 275,000, and 2,700: a sample of a quarter is wrong by a fifth in one run of 10^6. */
static void a_sample_tells_about_how_many_are_left(void **state)
{
  static const double leasts[] = { 0, 3, 99 };
  static const double shares[] = { 1, 0.97, 0.01 };
  struct boost boost = { .weight = 1, .attribute = span_of_str("year") };
  struct query query = { .boosts = &boost, .n_boosts = 1, .now_unix_ms = NOW };
  struct boost_bounds *bounds;
  struct boosts b;
  uint64_t *scratch;
  struct world w;

  (void)state;
  open_world(&w, 0);
  put_years(&w, MANY_ITEMS);
  bind(&w, &query, &b, &bounds);
  const uint64_t *all = arena_space_words(&b.arena->spaces[0]);
  assert_ok(region_array(&w.region, bits_words(b.arena->n_slots), sizeof *scratch, &scratch));
  for (size_t i = 0; i < sizeof leasts / sizeof leasts[0]; i++) {
    double n = (double)boost_bounds_estimate(bounds, leasts[i], all, scratch), expected = shares[i] * MANY_ITEMS;
    assert_true(fabs(n - expected) < 0.2 * expected);
  }
  close_world(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_item_is_lost),
    cmocka_unit_test(one_value_far_off_does_not_hide_the_others),
    cmocka_unit_test(a_sample_tells_about_how_many_are_left),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
