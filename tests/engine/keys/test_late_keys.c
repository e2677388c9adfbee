/* SPDX-License-Identifier: Apache-2.0 */
/* Excluded keys that are looked up during a search, of catalogues that are large enough for warm-ups, rings and seeds.
 * The answers are those of a method that takes excluded keys as slots before it searches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/keys/key_set.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/mol_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum {
  ITEMS = 280000,
  VECTOR_ITEMS = 20000, /* the first ones have vectors too */
  SPLITS = 4,
  SUBITEMS = 256,
  SPLIT_DIM = 2,
  DIM = SPLITS * SPLIT_DIM,
  BATCH = 1000,
  EXCLUDED = 3000,
  ROUNDS = 12,
};

static const struct subject {
  const char *space, *judge;
  const char *methods[3];
} subjects[] = {
  { "pq", "default", { "exact", "pqtopk" } },
  { "mol", "brute_force", { "exact" } },
  { "dot", "brute_force", { "exact" } },
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static uint64_t seed;
static struct temp_dir dir;

struct world {
  struct dice dice;
  struct engine *engine;
  struct searcher *searcher, *judge;
  struct region region;
  struct span keys[EXCLUDED];
  float vector[DIM];
};

static void fill(struct world *w)
{
  static uint8_t codes[BATCH][SPLITS];
  static float vectors[BATCH][DIM];
  static uint32_t numbers[BATCH];
  static struct part parts[BATCH][SUBJECTS];
  static struct item_change changes[BATCH];

  for (uint32_t first = 0; first < ITEMS; first += BATCH) {
    for (uint32_t i = 0; i < BATCH; i++) {
      for (size_t m = 0; m < SPLITS; m++) /* low codes are frequent, so many items tie */
        codes[i][m] = (uint8_t)dice_below(&w->dice, 1 + dice_below(&w->dice, SUBITEMS));
      dice_fill(&w->dice, vectors[i], DIM, 1.0f);
      numbers[i] = first + i;
      for (size_t s = 0; s < SUBJECTS; s++)
        parts[i][s] = (struct part){ .space = span_of_str(subjects[s].space), .vector = { vectors[i], DIM } };
      parts[i][0] = (struct part){ .space = span_of_str("pq"), .codes = span_of(codes[i], SPLITS) };
      changes[i] = (struct item_change){ .key = span_of(&numbers[i], sizeof *numbers),
                                         .parts = parts[i],
                                         .n_parts = first < VECTOR_ITEMS ? SUBJECTS : 1 };
    }
    assert_ok(engine_apply(w->engine, changes, BATCH, NULL, 0));
  }
}

static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);
  const struct mol_file mol = { .n_query = 2, .n_item = 3, .dim = 4, .hidden = 8, .vector_dim = DIM, .weight = 1.0f };
  char paths[SUBJECTS][sizeof dir.path + 32];
  float numbers[SPLITS * SUBITEMS * SPLIT_DIM];
  struct engine_space spaces[SUBJECTS];
  struct engine_config config = {
    .spaces = spaces, .n_spaces = SUBJECTS, .max_items = ITEMS, .max_k = EXCLUDED, .max_batch = 1, .isa = isa_detect()
  };

  w->dice.state = seed;
  temp_dir_init(&dir);
  for (size_t s = 0; s < SUBJECTS; s++) {
    snprintf(paths[s], sizeof paths[s], "%s/%s.safetensors", dir.path, subjects[s].space);
    spaces[s] = (struct engine_space){ .name = subjects[s].space, .model_path = paths[s] };
  }
  dice_fill(&w->dice, numbers, sizeof numbers / sizeof numbers[0], 1.0f);
  model_file_write_recjpq(paths[0], numbers, SPLITS, SUBITEMS, SPLIT_DIM);
  mol_file_write(paths[1], &mol, &w->dice);
  vector_file_write_plain(paths[2], "dot", DIM);
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  assert_ok(searcher_open(w->engine, &w->judge));
  fill(w);
  return w;
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  searcher_close(&w->judge);
  engine_close(&w->engine);
  region_fini(&w->region);
  temp_dir_fini(&dir);
  free(w);
}

static struct query query_of(struct world *w, const struct subject *s, const char *method, uint32_t k)
{
  return (struct query){
    .space = span_of_str(s->space), .method = span_of_str(method), .k = k, .vector = { w->vector, DIM }
  };
}

/* Exclude the n best items. */
static void exclude_best(struct world *w, const struct subject *s, size_t n)
{
  struct query query = query_of(w, s, s->judge, (uint32_t)n);
  struct answer answer;

  fixture_search(w->engine, w->judge, &query, 1, &answer);
  assert_int_equal(answer.n_hits, n);
  for (size_t i = 0; i < n; i++)
    assert_ok(region_copy(&w->region, answer.hits[i].key, &w->keys[i]));
}

static void exclude_any(struct world *w, size_t first, size_t n)
{
  for (size_t i = first; i < n; i++) {
    uint32_t number = (uint32_t)dice_below(&w->dice, 2 * ITEMS); /* half of them are not there */
    assert_ok(region_copy(&w->region, span_of(&number, sizeof number), &w->keys[i]));
  }
}

static void compare(struct world *w, const struct subject *s, const char *method, uint32_t k,
                    const struct key_set *seen)
{
  struct query query = query_of(w, s, method, k), plain = query_of(w, s, s->judge, k);
  struct answer answer, expected;

  plain.exclude = w->keys;
  plain.n_exclude = seen->n;
  query.seen = seen;
  fixture_search(w->engine, w->judge, &plain, 1, &expected);
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_false(answer.counts.has_admitted); /* the keys were looked up late */
  assert_true(expected.counts.has_admitted);
  fixture_assert_same_hits(&answer, &expected);
  assert_true(answer.receipt.is_exact);
  assert_memory_equal(&answer.receipt.bound, &expected.receipt.bound, sizeof(float));
}

/* Exclude hundreds of items: the best ones, or just a few of the best and any others, or any. */
static void draw_excluded(struct world *w, const struct subject *s, size_t round, struct key_set *out)
{
  size_t n = 300 + dice_below(&w->dice, EXCLUDED - 300), n_best[] = { 0, n, 1 + dice_below(&w->dice, 8) };

  if (round % 3 > 0)
    exclude_best(w, s, n_best[round % 3]);
  exclude_any(w, n_best[round % 3], n);
  assert_ok(key_set_init(engine_key_hash(w->engine), w->keys, n, &w->region, out));
}

static void answers_are_those_without_the_excluded_items(void **state)
{
  static const uint32_t some_k[] = { 1, 10, 100, 1000 }; /* thresholds are guessed for the last */
  struct world *w = open_world();
  struct key_set seen;

  (void)state;
  for (size_t round = 0; round < ROUNDS * SUBJECTS; round++) {
    const struct subject *s = &subjects[round / ROUNDS];
    region_reset(&w->region);
    dice_fill(&w->dice, w->vector, DIM, 1.0f);
    draw_excluded(w, s, round, &seen);
    for (size_t i = 0; i < sizeof some_k / sizeof some_k[0]; i++) {
      for (const char *const *method = s->methods; *method; method++)
        compare(w, s, *method, some_k[i], &seen);
    }
  }
  close_world(w);
}

/* Search without the first n_distinct items. Each comes again and again in a list of n keys, of which the query names
 * n_exclude, and the user has seen the rest. Returns whether the answer says how many items are admitted. */
static bool says_admitted(struct world *w, size_t n_distinct, size_t n, size_t n_exclude)
{
  struct query query = query_of(w, &subjects[SUBJECTS - 1], "exact", 10);
  struct key_set seen;
  struct answer answer;

  region_reset(&w->region);
  for (size_t i = 0; i < n; i++) {
    uint32_t number = (uint32_t)(i % n_distinct);
    assert_ok(region_copy(&w->region, span_of(&number, sizeof number), &w->keys[i]));
  }
  assert_ok(key_set_init(engine_key_hash(w->engine), w->keys + n_exclude, n - n_exclude, &w->region, &seen));
  query.exclude = w->keys;
  query.n_exclude = n_exclude;
  query.seen = n > n_exclude ? &seen : NULL;
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  if (answer.counts.has_admitted)
    assert_int_equal(answer.counts.admitted, VECTOR_ITEMS - n_distinct);
  return answer.counts.has_admitted;
}

static void keys_that_come_again_count_once(void **state)
{
  static const size_t n_excluded[] = { 0, 1, 200, 300, 400, 600 };
  struct world *w = open_world();

  (void)state;
  dice_fill(&w->dice, w->vector, DIM, 1.0f);
  for (size_t i = 0; i < sizeof n_excluded / sizeof n_excluded[0]; i++) {
    assert_true(says_admitted(w, 256, 600, n_excluded[i]));
    assert_false(says_admitted(w, 257, 600, n_excluded[i]));
  }
  assert_true(says_admitted(w, 256, 256, 128));
  assert_false(says_admitted(w, 257, 257, 128));
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(answers_are_those_without_the_excluded_items),
    cmocka_unit_test(keys_that_come_again_count_once),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
