/* SPDX-License-Identifier: Apache-2.0 */
/* Searchers: excluded keys are not returned, and large requests stay cheap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/heap.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum { ITEMS = 60000, SPLITS = 2, SUBITEMS = 16, KEY_BYTES = 8 };

static struct temp_dir dir;
static char (*keys)[KEY_BYTES];
static struct engine *engine;

static int open_full_engine(void **state)
{
  char path[sizeof dir.path + 32];
  struct engine_space space = { .name = "pq", .model_path = path };
  struct engine_config config = { &space, 1, ITEMS, ITEMS, 32, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };
  float centroids[SPLITS * SUBITEMS] = { 0 }; /* every item ties, so keys decide */
  struct item_change *changes = calloc(ITEMS, sizeof *changes);
  struct part part = { .space = span_of_str("pq"), .codes = span_of("\1\2", 2) };

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/pq.safetensors", dir.path);
  model_file_write_recjpq(path, centroids, SPLITS, SUBITEMS, 1);
  assert_ok(engine_open(&config, &engine));
  keys = calloc(ITEMS, sizeof *keys);
  for (size_t i = 0; i < ITEMS; i++) {
    snprintf(keys[i], sizeof keys[i], "%06zu", i);
    changes[i] = (struct item_change){ .key = span_of(keys[i], 6), .parts = &part, .n_parts = 1 };
  }
  assert_ok(engine_apply(engine, changes, ITEMS, NULL, 0));
  free(changes);
  return 0;
}

static int close_engine(void **state)
{
  (void)state;
  engine_close(&engine);
  free(keys);
  temp_dir_fini(&dir);
  return 0;
}

static struct query query_for(size_t k, struct span *exclude, size_t n_exclude)
{
  static const float vector[SPLITS] = { 1.0f, 1.0f };

  return (struct query){ .space = span_of_str("pq"),
                         .k = (uint32_t)k,
                         .vector = { vector, SPLITS },
                         .exclude = exclude,
                         .n_exclude = n_exclude };
}

/* A query of 4 MiB can exclude this many keys. A search with quadratic time would not finish here. */
static void a_long_list_of_excluded_keys_leaves_just_the_rest(void **state)
{
  enum { EXCLUDED = ITEMS - 10 };
  struct span *exclude = calloc(2 * EXCLUDED, sizeof *exclude);
  struct query query = query_for(ITEMS, exclude, 2 * EXCLUDED);
  struct searcher *s;
  struct answer answer;

  (void)state;
  for (size_t i = 0; i < 2 * EXCLUDED; i++) /* all keys but the first ten, each twice */
    exclude[i] = span_of(keys[ITEMS - 1 - i % EXCLUDED], 6);
  assert_ok(searcher_open(engine, &s));
  fixture_search(engine, s, &query, 1, &answer);
  assert_int_equal(answer.n_hits, 10);
  for (size_t i = 0; i < 10; i++)
    assert_memory_equal(answer.hits[i].key.p, keys[i], 6);
  assert_true(answer.receipt.is_exact);
  assert_false(answer.receipt.has_bound); /* every admitted item was returned */
  searcher_close(&s);
  free(exclude);
}

static void excluded_keys_that_are_absent_or_repeated_count_once_or_not(void **state)
{
  struct span exclude[] = { span_of_str("000001"), span_of_str("no"), span_of_str("000001"), span_of_str("000003"),
                            span_of_str("000000") };
  struct query query = query_for(ITEMS, exclude, 5);
  struct searcher *s;
  struct answer answer;

  (void)state;
  assert_ok(searcher_open(engine, &s));
  fixture_search(engine, s, &query, 1, &answer);
  assert_int_equal(answer.n_hits, ITEMS - 3);
  assert_false(answer.receipt.has_bound);
  assert_memory_equal(answer.hits[0].key.p, "000002", 6);
  assert_memory_equal(answer.hits[1].key.p, "000004", 6);
  searcher_close(&s);
}

static void searches_of_any_size_leave_memory_bounded(void **state)
{
  struct dice dice = { dice_seed() };
  struct searcher *s;
  struct answer answers[8];
  struct query queries[8];
  size_t before = heap_used();

  (void)state;
  assert_ok(searcher_open(engine, &s));
  for (size_t round = 0; round < 24; round++) {
    size_t n = 1 + dice_below(&dice, 8);
    for (size_t i = 0; i < n; i++)
      queries[i] = query_for(round < 12 ? 1000 + 100 * round : 1 + dice_below(&dice, 4000), NULL, 0);
    fixture_search(engine, s, queries, n, answers);
  }
  assert_true(heap_used() - before < 16 << 20);
  searcher_close(&s);
  assert_true(heap_used() <= before + 4096);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_long_list_of_excluded_keys_leaves_just_the_rest),
    cmocka_unit_test(excluded_keys_that_are_absent_or_repeated_count_once_or_not),
    cmocka_unit_test(searches_of_any_size_leave_memory_bounded),
  };

  return cmocka_run_group_tests(tests, open_full_engine, close_engine);
}
