/* SPDX-License-Identifier: Apache-2.0 */
/* Method `exact` of Mixture-of-Logits where the queries of a batch have filters of their own: it returns the bytes of
 * brute force at every instruction level, whatever the queries admit and however they share filters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/engine_state.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden.h"
#include "tests/support/one_thread.h"

enum {
  LOTS = 1000, /* values of the attribute that filters read */
  MAX_BATCH = 12,
  K_MAX = 20, /* far fewer than a filter admits: thresholds rise, and sketches drop items */
  MAX_COMPONENTS = 8 * 32,
  MAX_L = 64,
  FILTER_BYTES = 64,
  N_EXCLUDED = 300,   /* looked up late where enough are admitted */
  MANY_ITEMS = 75000, /* enough for seeds of each query */
  KEY_BYTES = 16,
};

static const struct attribute lot = { { (const uint8_t *)"lot", 3 }, ATTRIBUTE_INTEGER };

static struct dice dice;

struct world {
  struct engine *engine;
  struct searcher *searcher, *judge;
  size_t n_items, n_query, n_item, dim, n_logits;
  struct region region;
  float components[MAX_BATCH][MAX_COMPONENTS], gates[MAX_BATCH][MAX_L];
  char filters[MAX_BATCH][FILTER_BYTES], excluded_keys[N_EXCLUDED][KEY_BYTES];
  struct span excluded[N_EXCLUDED];
  struct query queries[MAX_BATCH];
};

static struct span key_of(size_t item, char text[KEY_BYTES])
{
  return span_of(text, (size_t)snprintf(text, KEY_BYTES, "%05zu", item * 7919 % 99991));
}

/* Draw n components. Of near ones, some point in few directions, as trained ones do: sketches drop many items. */
static void draw_components(float *out, size_t n, size_t dim, bool is_near)
{
  for (size_t i = 0; i < n; i++, out += dim) {
    struct dice pool = { 100 * i + dice_below(&dice, 3) };
    dice_fill(is_near && dice_below(&dice, 6) == 0 ? &pool : &dice, out, dim, 1.0f);
    for (size_t k = 0; k < dim; k++)
      out[k] += dice_float(&dice, 0.2f);
  }
}

static void put_items(struct world *w, bool is_near)
{
  float components[MAX_COMPONENTS], gate[MAX_L];
  char text[KEY_BYTES];

  for (size_t i = 0; i < w->n_items; i++) {
    draw_components(components, w->n_item, w->dim, is_near);
    dice_fill(&dice, gate, w->n_logits, 2.0f);
    struct part part = { .space = span_of_str("space"),
                         .components = { components, w->n_item * w->dim },
                         .item_gate = { gate, w->n_logits } };
    struct attribute_value value = { lot.name, { .kind = VALUE_INTEGER, .integer = (int64_t)dice_below(&dice, LOTS) } };
    struct item_change change = {
      .key = key_of(i, text), .parts = &part, .n_parts = 1, .attributes = &value, .n_attributes = 1
    };
    fixture_apply(w->engine, &change, 1);
  }
}

static void world_open(struct world *w, const char *golden, enum isa isa, size_t n_items, size_t n_threads)
{
  char path[256];
  struct engine_space space = { .name = "space", .model_path = path };
  struct engine_config config = { .spaces = &space,
                                  .n_spaces = 1,
                                  .max_items = n_items,
                                  .max_k = K_MAX,
                                  .max_batch = MAX_BATCH,
                                  .isa = isa,
                                  .backend = ENGINE_CPU,
                                  .attributes = { &lot, 1 } };
  struct engine_threads threads = { .per_search = n_threads, .max = n_threads, .shares_always = true };

  *w = (struct world){ .n_items = n_items };
  snprintf(path, sizeof path, "%s/weights.safetensors", golden);
  struct golden *weights = golden_open(path);
  w->n_query = (size_t)golden_number(weights, "mol.Pq");
  w->n_item = (size_t)golden_number(weights, "mol.Px");
  w->dim = (size_t)golden_number(weights, "mol.dP");
  w->n_logits = w->n_query * w->n_item;
  golden_close(&weights);
  snprintf(path, sizeof path, "%s/%s/weights.safetensors", SLUICE_GOLDEN_DIR, golden);
  assert_ok(engine_open(&config, &w->engine));
  if (n_threads > 1)
    assert_ok(engine_share_searches(w->engine, &threads));
  assert_ok(searcher_open(w->engine, &w->searcher));
  assert_ok(searcher_open(w->engine, &w->judge));
}

static void world_close(struct world *w)
{
  searcher_close(&w->judge);
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  region_fini(&w->region);
}

/* Query q admits the lots from `low` to `high`; none is left out if high is LOTS - 1. */
static void set_query(struct world *w, size_t q, size_t low, size_t high)
{
  draw_components(w->components[q], w->n_query, w->dim, true);
  dice_fill(&dice, w->gates[q], w->n_logits, 2.0f);
  w->queries[q] = (struct query){ .space = span_of_str("space"),
                                  .method = span_of_str("exact"),
                                  .k = (uint32_t)(1 + dice_below(&dice, K_MAX)),
                                  .components = { w->components[q], w->n_query * w->dim },
                                  .query_gate = { w->gates[q], w->n_logits } };
  if (high - low == LOTS - 1)
    return;
  snprintf(w->filters[q], FILTER_BYTES, "lot between %zu and %zu", low, high);
  w->queries[q].filter = span_of_str(w->filters[q]);
  assert_ok(engine_check_filter(w->engine, &w->queries[q], &w->region));
}

static void exclude_some(struct world *w, struct query *query)
{
  query->n_exclude = dice_below(&dice, 3) == 0 ? 20 : N_EXCLUDED;
  for (size_t i = 0; i < query->n_exclude; i++)
    w->excluded[i] = key_of(dice_below(&dice, w->n_items), w->excluded_keys[i]);
  query->exclude = w->excluded;
}

/* Compare a batch with brute force, one query after the other. */
static void check_batch(struct world *w, size_t n)
{
  struct answer answers[MAX_BATCH], brute[1];

  fixture_search(w->engine, w->searcher, w->queries, n, answers);
  for (size_t q = 0; q < n; q++) {
    struct query query = w->queries[q];
    query.method = span_of_str("brute_force");
    fixture_search(w->engine, w->judge, &query, 1, brute);
    fixture_assert_same_hits(&answers[q], &brute[0]);
    assert_true(answers[q].receipt.is_exact);
    assert_true(answers[q].receipt.bound == brute[0].receipt.bound);
  }
}

/* A batch whose queries have n_filters filters of `share` thousandths of the items. The last query may differ. */
static void check_filters(struct world *w, size_t n, size_t n_filters, size_t share, bool is_last_open)
{
  for (size_t q = 0; q < n; q++) {
    size_t low = q % n_filters * (LOTS - share) / n_filters;
    set_query(w, q, low, low + share - 1);
  }
  if (is_last_open)
    set_query(w, n - 1, 0, LOTS - 1);
  exclude_some(w, &w->queries[dice_below(&dice, n)]);
  check_batch(w, n);
}

static void check_world(struct world *w)
{
  check_filters(w, 12, 12, 100, false); /* apart, in tiles */
  check_filters(w, 12, 12, 100, true);  /* one of them in blocks */
  check_filters(w, 12, 3, 150, false);  /* in groups */
  check_filters(w, 12, 3, 20, true);
  check_filters(w, 9, 5, 250, false); /* in groups of two */
  check_filters(w, 5, 5, 10, false);  /* alone */
  check_filters(w, 1, 1, 300, false); /* a single query, in blocks */
  check_filters(w, 2, 2, 200, false);
  check_filters(w, 12, 12, 700, false); /* together */
}

static void filters_of_their_own_are_searched_exactly_at_every_level(void **state)
{
  static const char *const models[] = { "small_uid", "edge", "books" };
  static const size_t n_items[] = { 3000, 1100, 3000 };

  (void)state;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    for (size_t i = 0; i < ONE_THREAD_TIMES(3); i++) {
      static struct world w;
      world_open(&w, models[i], isa, isa == ISA_REF ? n_items[i] / 3 : n_items[i], 1);
      put_items(&w, i != 1);
      check_world(&w);
      world_close(&w);
    }
  }
}

static void threads_that_share_filtered_searches_return_the_same(void **state)
{
  static struct world w;

  (void)state;
  world_open(&w, "small_uid", isa_detect(), 5000, 3);
  put_items(&w, true);
  check_world(&w);
  world_close(&w);
}

/* Tiles that were screened, and the sum of the thresholds. */
static struct {
  size_t n;
  double thresholds;
} screened;

static uint32_t count_screened(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                               const struct mol_screen_query *query, const uint32_t *items, float threshold,
                               uint32_t *logits)
{
  const struct kernels *k = NULL;

  screened.n++;
  screened.thresholds += (double)threshold;
  assert_ok(kernels_get(isa_detect(), &k));
  return k->mol_screen_logits(shape, gate, query, items, threshold, logits);
}

/* A query that is searched alone, because the filters of its batch admit few items each, begins with the floor that its
 * seeds have shown, as in a batch of its own: the same tiles are screened with the same thresholds. */
static void queries_that_are_searched_alone_begin_with_their_floors(void **state)
{
  enum { SHARE = 118, LOW_STEP = 200, N = 4 };
  static struct world w;
  static struct kernels counting;
  struct answer answers[N];

  (void)state;
  world_open(&w, "small_uid", isa_detect(), MANY_ITEMS, 1);
  counting = *w.engine->kernels;
  if (!counting.mol_screen_logits) {
    world_close(&w);
    skip();
  }
  counting.mol_screen_logits = count_screened;
  w.engine->kernels = &counting;
  put_items(&w, true);
  for (size_t q = 0; q < N; q++) {
    set_query(&w, q, q * LOW_STEP, q * LOW_STEP + SHARE - 1);
    w.queries[q].k = 10;
  }
  screened.n = 0;
  screened.thresholds = 0;
  for (size_t q = 0; q < N; q++)
    fixture_search(w.engine, w.searcher, &w.queries[q], 1, answers);
  size_t n_alone = screened.n;
  double thresholds_alone = screened.thresholds;
  fixture_search(w.engine, w.searcher, w.queries, N, answers);
  assert_true(n_alone > 0);
  assert_int_equal(screened.n, 2 * n_alone);
  assert_true(fabs(screened.thresholds - 2 * thresholds_alone) < 1e-6 * fabs(thresholds_alone));
  world_close(&w);
}

/* Screens that a search has begun, and searches that ran between the steps of others. */
static struct {
  const struct kernels *real;
  bool is_on;
  size_t n_screened, n_between;
} watched;

static void watch_begin(void)
{
  assert_false(watched.is_on);
  watched.is_on = true;
  watched.real->mol_screen_begin();
}

static void watch_end(void)
{
  assert_true(watched.is_on);
  watched.is_on = false;
  watched.real->mol_screen_end();
}

static uint32_t watch_logits(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                             const struct mol_screen_query *query, const uint32_t *items, float threshold,
                             uint32_t *logits)
{
  assert_true(watched.is_on);
  watched.n_screened++;
  return watched.real->mol_screen_logits(shape, gate, query, items, threshold, logits);
}

static uint32_t watch_screen(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                             const struct mol_screen_query *query, const struct mol_screen_rows *items, float threshold,
                             float *scratch)
{
  assert_true(watched.is_on);
  return watched.real->mol_screen(shape, gate, query, items, threshold, scratch);
}

/* Search for another query between two steps. */
static void search_between(void *context)
{
  struct world *w = context;
  struct answer answer;

  assert_false(watched.is_on);
  watched.n_between++;
  fixture_search(w->engine, w->judge, &w->queries[MAX_BATCH - 1], 1, &answer);
  assert_false(watched.is_on);
}

/* A search may end what another one of its thread has begun. So screens are off wherever a search may pause. */
static void searches_that_pause_have_no_screen_on(void **state)
{
  enum { N = MAX_BATCH - 1 };
  static const size_t shares[] = { LOTS, 700, 100, 10 }; /* in blocks; together; apart; alone */
  static struct world w;
  static struct kernels watching;

  (void)state;
  world_open(&w, "small_uid", isa_detect(), 5000, 1);
  watched.real = w.engine->kernels;
  watching = *watched.real;
  if (!watching.mol_screen) {
    world_close(&w);
    skip();
  }
  watching.mol_screen_begin = watch_begin;
  watching.mol_screen_end = watch_end;
  watching.mol_screen_logits = watch_logits;
  watching.mol_screen = watch_screen;
  w.engine->kernels = &watching;
  put_items(&w, true);
  set_query(&w, N, 0, LOTS - 1);
  for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
    struct answer answers[N];
    watched.n_between = 0;
    for (size_t q = 0; q < N; q++)
      set_query(&w, q, q * (LOTS - shares[i]) / N, q * (LOTS - shares[i]) / N + shares[i] - 1);
    searcher_set_pause(w.searcher, w.judge, search_between, &w);
    fixture_search(w.engine, w.searcher, w.queries, N, answers);
    searcher_set_pause(w.searcher, w.judge, NULL, NULL);
    assert_true(watched.n_between > 1);
    check_batch(&w, N);
  }
  assert_true(watched.n_screened > 0);
  world_close(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(filters_of_their_own_are_searched_exactly_at_every_level),
    cmocka_unit_test(threads_that_share_filtered_searches_return_the_same),
    cmocka_unit_test(queries_that_are_searched_alone_begin_with_their_floors),
    cmocka_unit_test(searches_that_pause_have_no_screen_on),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
