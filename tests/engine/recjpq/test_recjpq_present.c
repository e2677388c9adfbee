/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of filters: threads share it, and searches stay exact while the codes of admitted items change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <pthread.h>

#include "engine/recjpq/recjpq_present.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

/* Enough items that filters are looked at (recjpq_rule.c). */
enum { ITEMS = 140000, SPLITS = 4, SUBITEMS = 16, CHANGES = 1000, ROUNDS = 12, K = 10, BATCH = 3 };

struct world {
  struct dice dice;
  struct engine *engine;
  struct searcher *searcher;
  struct temp_dir dir;
};

static uint64_t seed;

/* ---- Threads ---- */

enum { THREADS = 4, FILTERS = 2 * RECJPQ_PRESENT_FILTERS, STEPS = 20000 };

struct sharer {
  struct recjpq_present *present;
  struct dice dice;
  size_t n_known; /* sets that were found */
  pthread_t thread;
};

static struct recjpq_present_set set_of(uint64_t words_id, size_t split)
{
  struct dice dice = { words_id * SPLITS + split };
  struct recjpq_present_set set;

  for (size_t i = 0; i < RECJPQ_PRESENT_WORDS; i++)
    set.words[i] = dice_u64(&dice);
  return set;
}

static void *share_sets(void *context)
{
  struct sharer *s = context;
  struct recjpq_present_set sets[SPLITS];

  for (int step = 0; step < STEPS; step++) {
    uint64_t id = 1 + dice_below(&s->dice, FILTERS), known = recjpq_present_get(s->present, id, sets);
    for (size_t m = 0; m < SPLITS; m++) {
      struct recjpq_present_set set = set_of(id, m);
      if (known >> m & 1)
        assert_memory_equal(&sets[m], &set, sizeof set);
    }
    s->n_known += known != 0;
    size_t split = dice_below(&s->dice, SPLITS);
    const struct recjpq_present_set set = set_of(id, split);
    recjpq_present_put(s->present, id, split, &set);
  }
  return NULL;
}

static void threads_find_what_others_have_kept(void **state)
{
  struct sharer sharers[THREADS] = { 0 };
  struct recjpq_present_set sets[SPLITS];
  struct recjpq_present *present;

  (void)state;
  assert_ok(recjpq_present_open(SPLITS, &present));
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < THREADS; i++) {
      sharers[i] = (struct sharer){ present, { seed + (uint64_t)round * THREADS + i }, 0, 0 };
      assert_int_equal(pthread_create(&sharers[i].thread, NULL, share_sets, &sharers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
      pthread_join(sharers[i].thread, NULL);
      assert_in_range(sharers[i].n_known, STEPS / 4, STEPS - 1); /* half of the filters are kept */
    }
    recjpq_present_forget(present);
    for (uint64_t id = 1; id <= FILTERS; id++)
      assert_int_equal(recjpq_present_get(present, id, sets), 0);
  }
  recjpq_present_close(&present);
}

/* ---- Searches ---- */

/* Put n items, one after the other or at random. New ones have the code of their first split as year. */
static void put_items(struct world *w, size_t first, size_t n, bool is_new)
{
  static char keys[CHANGES][16];
  static uint8_t codes[CHANGES][SPLITS];
  static struct part parts[CHANGES];
  static struct attribute_value years[CHANGES];
  static struct item_change changes[CHANGES];

  for (size_t i = 0; i < n; i++) {
    snprintf(keys[i], sizeof keys[i], "%zu", is_new ? first + i : dice_below(&w->dice, ITEMS));
    for (size_t m = 0; m < SPLITS; m++)
      codes[i][m] = (uint8_t)dice_below(&w->dice, SUBITEMS);
    parts[i] = (struct part){ .space = span_of_str("pq"), .codes = span_of(codes[i], SPLITS) };
    years[i].name = filter_attributes().v[YEAR].name;
    years[i].value = (struct value){ .kind = VALUE_INTEGER, .integer = codes[i][0] };
    changes[i] = (struct item_change){ .key = span_of_str(keys[i]), .parts = &parts[i], .n_parts = 1 };
    changes[i].attributes = &years[i];
    changes[i].n_attributes = is_new;
  }
  fixture_apply(w->engine, changes, n);
}

static void open_world(struct world *w)
{
  float centroids[SPLITS * SUBITEMS];
  char path[PATH_MAX];
  struct engine_space space = { .name = "pq", .model_path = path };
  struct engine_config config = { .spaces = &space,
                                  .n_spaces = 1,
                                  .max_items = ITEMS,
                                  .max_k = K,
                                  .max_batch = BATCH,
                                  .isa = isa_detect(),
                                  .attributes = filter_attributes() };

  *w = (struct world){ .dice = { seed } };
  temp_dir_init(&w->dir);
  snprintf(path, sizeof path, "%s/pq.safetensors", w->dir.path);
  for (size_t i = 0; i < SPLITS * SUBITEMS; i++)
    centroids[i] = (float)(i % SUBITEMS) + dice_float(&w->dice, 0.4f);
  model_file_write_recjpq(path, centroids, SPLITS, SUBITEMS, 1);
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  for (size_t first = 0; first < ITEMS; first += CHANGES)
    put_items(w, first, CHANGES, true);
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
}

/* Search with filters that the queries dislike, in two ways. */
static void compare(struct world *w)
{
  static const char *const filters[BATCH] = { "year < 4", "year < 8", "year in (1, 3, 9)" };
  float vectors[BATCH][SPLITS];
  struct query queries[BATCH], judged[BATCH];
  struct answer answers[BATCH] = { 0 }, expected[BATCH] = { 0 };
  struct region region = { 0 };

  for (size_t q = 0; q < BATCH; q++) {
    for (size_t m = 0; m < SPLITS; m++)
      vectors[q][m] = 1 + dice_float(&w->dice, 0.5f);
    queries[q] = (struct query){ .space = span_of_str("pq"), .k = K, .vector = { vectors[q], SPLITS } };
    queries[q].filter = span_of_str(filters[q]);
    assert_ok(engine_check_filter(w->engine, &queries[q], &region));
    judged[q] = queries[q];
    judged[q].method = span_of_str("prune(8)"); /* does not leave out anything */
  }
  fixture_search(w->engine, w->searcher, judged, BATCH, expected);
  struct span kept[BATCH][K];
  float scores[BATCH][K];
  for (size_t q = 0; q < BATCH; q++) {
    assert_int_equal(expected[q].n_hits, K);
    for (size_t i = 0; i < K; i++) {
      assert_ok(region_copy(&region, expected[q].hits[i].key, &kept[q][i]));
      scores[q][i] = expected[q].hits[i].score;
    }
  }
  fixture_search(w->engine, w->searcher, queries, BATCH, answers);
  for (size_t q = 0; q < BATCH; q++) {
    assert_true(answers[q].receipt.is_exact);
    assert_int_equal(answers[q].n_hits, K);
    for (size_t i = 0; i < K; i++) {
      assert_true(answers[q].hits[i].score == scores[q][i]);
      assert_true(span_equal(answers[q].hits[i].key, kept[q][i]));
    }
  }
  region_fini(&region);
}

static void searches_are_exact_while_codes_change(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  for (int round = 0; round < ROUNDS; round++) {
    compare(&w); /* what the filter's items have is found in the first search, */
    compare(&w); /* and known in the second, */
    put_items(&w, 0, 1 + dice_below(&w.dice, 20), false); /* until some of them have other codes, of any kind */
  }
  close_world(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_find_what_others_have_kept),
    cmocka_unit_test(searches_are_exact_while_codes_change),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
