/* SPDX-License-Identifier: Apache-2.0 */
/* Which hits are left out, and what that means for the receipt. Searches with a least score: compared with the same
 * ones without it. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/min_score.h"
#include "kernels/device.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

enum { HITS = 4, ITEMS = 9000, ROUNDS = 40, METHODS = 6 };

static const struct subject {
  const char *space;
  const char *methods[METHODS];
} subjects[] = {
  { "dot", { "exact", "brute_force" } },
  { "pq", { "exact", "pqtopk", "default", "prune(8)", "prune_limited(8,1)", "prune_inflated(4,150)" } },
  { "mol", { "exact", "brute_force", "two_pass", "average(60)", "per_embedding(8)", "combined(5,30)" } },
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

struct world {
  struct temp_dir dir;
  char paths[SUBJECTS][PATH_MAX];
  struct engine *engine;
  struct searcher *searcher;
  struct dice dice;
};

static uint64_t seed;

static const float scores[HITS] = { 3.0f, 2.0f, 2.0f, -1.0f };

/* ---- Cutting ---- */

static struct answer cut(const struct query *query, size_t n_hits, struct receipt receipt)
{
  static struct hit hits[HITS];

  for (size_t i = 0; i < HITS; i++)
    hits[i] = (struct hit){ .score = scores[i] };
  struct answer answer = { .hits = hits, .n_hits = n_hits, .receipt = receipt };
  min_score_cut(query, &answer);
  return answer;
}

static void cuts(float min_score, struct receipt receipt, size_t n_left, struct receipt expected)
{
  const struct query query = { .k = HITS, .has_min_score = true, .min_score = min_score };
  const struct answer answer = cut(&query, HITS, receipt);

  assert_int_equal(answer.n_hits, n_left);
  assert_true(answer.receipt.is_exact == expected.is_exact);
  assert_true(answer.receipt.has_bound == expected.has_bound);
  if (expected.has_bound)
    assert_true(answer.receipt.bound == expected.bound);
}

static void hits_below_it_are_left_out(void **state)
{
  const struct receipt all = { .is_exact = true }, best = { true, true, -1.0f };

  (void)state;
  cuts(-1.0f, all, 4, all);
  cuts(-0.5f, all, 3, (struct receipt){ true, true, -0.5f });
  cuts(-2.0f, best, 4, best);
  cuts(2.0f, best, 3, (struct receipt){ true, true, 2.0f });
  cuts(2.5f, best, 1, (struct receipt){ true, true, 2.5f });
  cuts(3.5f, all, 0, (struct receipt){ true, true, 3.5f });
}

static void a_bound_below_it_proves_the_answer(void **state)
{
  (void)state;
  cuts(2.0f, (struct receipt){ false, true, 1.5f }, 3, (struct receipt){ true, true, 2.0f });
  cuts(2.0f, (struct receipt){ false, true, 2.0f }, 3, (struct receipt){ false, true, 2.0f });
  cuts(3.5f, (struct receipt){ false, true, 4.0f }, 0, (struct receipt){ false, true, 4.0f });
}

static void without_it_nothing_changes(void **state)
{
  const struct query query = { .k = HITS, .min_score = 10.0f };
  const struct answer answer = cut(&query, HITS, (struct receipt){ false, true, 1.0f });

  (void)state;
  assert_int_equal(answer.n_hits, HITS);
  assert_false(answer.receipt.is_exact);
  assert_false(min_score_is_missed(&query, 5.0f));
}

static void an_answer_that_lacks_no_item_has_no_bound(void **state)
{
  const struct query query = { .k = HITS, .has_min_score = true, .min_score = 1.0f };
  const struct answer answer = cut(&query, 0, (struct receipt){ .is_exact = true });

  (void)state;
  assert_int_equal(answer.n_hits, 0);
  assert_true(answer.receipt.is_exact);
  assert_false(answer.receipt.has_bound);
}

/* ---- Searches ---- */

static void write_models(struct world *w)
{
  temp_dir_init(&w->dir);
  for (size_t i = 0; i < SUBJECTS; i++)
    small_model_write(w->dir.path, subjects[i].space, SMALL_REAL, &w->dice, w->paths[i]);
}

struct item {
  char key[8];
  uint8_t codes[SMALL_SPLITS];
  float vector[SMALL_DIM];
  struct part parts[SUBJECTS];
  struct attribute_value attributes[2];
};

/* Return a new item, which borrows from `item`. */
static struct item_change draw_item(struct world *w, size_t i, struct item *item)
{
  static const char *const countries[] = { "at", "ch", "de" };
  const struct value country = { .kind = VALUE_TEXT, .text = span_of_str(countries[dice_below(&w->dice, 3)]) };
  const struct value year = { .kind = VALUE_INTEGER, .integer = (int64_t)dice_below(&w->dice, 9) };

  snprintf(item->key, sizeof item->key, "%zu", i * 7919 % 10007);
  dice_fill(&w->dice, item->vector, SMALL_DIM, 1.0f);
  for (size_t m = 0; m < SMALL_SPLITS; m++)
    item->codes[m] = (uint8_t)dice_below(&w->dice, SMALL_SUBITEMS);
  item->parts[0] = (struct part){ .space = span_of_str("dot"), .vector = { item->vector, SMALL_DIM } };
  item->parts[1] = (struct part){ .space = span_of_str("pq"), .codes = span_of(item->codes, SMALL_SPLITS) };
  item->parts[2] = (struct part){ .space = span_of_str("mol"), .vector = { item->vector, SMALL_DIM } };
  item->attributes[0] = (struct attribute_value){ span_of_str("country"), country };
  item->attributes[1] = (struct attribute_value){ span_of_str("year"), year };
  return (struct item_change){ .key = span_of_str(item->key),
                               .parts = item->parts,
                               .n_parts = SUBJECTS,
                               .attributes = item->attributes,
                               .n_attributes = 2 };
}

static void put_items(struct world *w)
{
  static struct item items[ITEMS];
  static struct item_change changes[ITEMS];

  for (size_t i = 0; i < ITEMS; i++)
    changes[i] = draw_item(w, i, &items[i]);
  fixture_apply(w->engine, changes, ITEMS);
}

static void open_world(struct world *w, enum engine_backend backend, size_t n_threads)
{
  struct engine_space spaces[SUBJECTS];
  struct engine_config config = { .spaces = spaces,
                                  .n_spaces = SUBJECTS,
                                  .max_items = ITEMS,
                                  .max_k = ITEMS,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .backend = backend,
                                  .n_workers = 1,
                                  .attributes = filter_attributes() };
  struct engine_threads threads = { .per_search = n_threads, .max = n_threads, .shares_always = true };

  *w = (struct world){ .dice = { seed } };
  write_models(w);
  for (size_t i = 0; i < SUBJECTS; i++)
    spaces[i] = (struct engine_space){ .name = subjects[i].space, .model_path = w->paths[i] };
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(engine_share_searches(w->engine, &threads));
  assert_ok(searcher_open(w->engine, &w->searcher));
  put_items(w);
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
}

/* Search, and copy the hits: the next search takes their memory. */
static struct answer search(struct world *w, const struct query *query, struct region *region)
{
  struct answer answer = { 0 };
  struct hit *hits;

  fixture_search(w->engine, w->searcher, query, 1, &answer);
  assert_int_equal(answer.error, ANSWER_OK);
  assert_ok(region_array(region, answer.n_hits + 1, sizeof *hits, &hits));
  for (size_t i = 0; i < answer.n_hits; i++) {
    hits[i] = answer.hits[i];
    assert_ok(region_copy(region, answer.hits[i].key, &hits[i].key));
  }
  answer.hits = hits;
  return answer;
}

/* A score of a hit, one just above it, or one above or below all. */
static float draw_min_score(struct world *w, const struct answer *whole)
{
  float some = whole->n_hits > 0 ? whole->hits[dice_below(&w->dice, whole->n_hits)].score : 0.0f;
  const float drawn[] = { some, some, nextafterf(some, INFINITY), some - 0.25f, FLT_MAX, -FLT_MAX };

  return drawn[dice_below(&w->dice, sizeof drawn / sizeof drawn[0])];
}

/* Returns whether hits were cut. */
static bool assert_cut(const struct query *query, const struct answer *answer, const struct answer *whole)
{
  const struct receipt *receipt = &answer->receipt, *of_whole = &whole->receipt;
  size_t n = 0;

  while (n < whole->n_hits && whole->hits[n].score >= query->min_score)
    n++;
  assert_int_equal(answer->n_hits, n);
  for (size_t i = 0; i < n; i++) {
    assert_true(span_equal(answer->hits[i].key, whole->hits[i].key));
    assert_memory_equal(&answer->hits[i].score, &whole->hits[i].score, sizeof(float));
  }
  if (n == query->k) {
    assert_true(receipt->is_exact == of_whole->is_exact && receipt->bound == of_whole->bound);
    return false;
  }
  if (!query->max_per.n) /* then what is too low may have been crowded out as well */
    assert_true(receipt->has_bound == (of_whole->has_bound || n < whole->n_hits));
  if (!receipt->has_bound)
    return false;
  float bound = fmaxf(of_whole->has_bound ? of_whole->bound : -INFINITY, query->min_score);
  bool is_exact = of_whole->is_exact || of_whole->bound < query->min_score;
  if (query->max_per.n) /* fewer hits make further rounds, which may prove what was approximate */
    assert_true(receipt->bound <= bound && receipt->is_exact >= is_exact);
  else
    assert_true(receipt->bound == bound && receipt->is_exact == is_exact);
  return n < whole->n_hits;
}

/* What is said to be exact has the hits of an exact method. */
static void assert_exact(struct world *w, struct query query, const struct answer *answer, struct region *region)
{
  query.method = span_of_str("exact");
  struct answer exact = search(w, &query, region);
  assert_int_equal(answer->n_hits, exact.n_hits);
  for (size_t i = 0; i < exact.n_hits; i++) {
    assert_true(span_equal(answer->hits[i].key, exact.hits[i].key));
    assert_memory_equal(&answer->hits[i].score, &exact.hits[i].score, sizeof(float));
  }
}

static bool search_one(struct world *w, const char *space, const char *method)
{
  static const uint32_t some_k[] = { 1, 7, 100, ITEMS };
  static const char *const filters[] = { "country != 'de'", "year > 3", "year = 99" };
  const float weight = dice_float(&w->dice, dice_below(&w->dice, 2) ? 0.3f : 30.0f);
  struct boost boost = { .weight = (double)weight, .attribute = span_of_str("year") };
  struct region region = { 0 };
  float vector[SMALL_DIM];

  dice_fill(&w->dice, vector, SMALL_DIM, 1.0f);
  struct query query = { .space = span_of_str(space),
                         .method = span_of_str(method),
                         .k = some_k[dice_below(&w->dice, 4)],
                         .vector = { vector, SMALL_DIM } };
  if (dice_below(&w->dice, 3) == 0)
    query.filter = span_of_str(filters[dice_below(&w->dice, 3)]);
  if (dice_below(&w->dice, 3) == 0)
    query.max_per = (struct max_per){ span_of_str("year"), 1 + (uint32_t)dice_below(&w->dice, 3) };
  query.boosts = &boost;
  query.n_boosts = dice_below(&w->dice, 3) == 0;
  assert_ok(engine_check_filter(w->engine, &query, &region));
  struct answer whole = search(w, &query, &region);
  query.has_min_score = true;
  query.min_score = draw_min_score(w, &whole);
  struct answer answer = search(w, &query, &region);
  bool is_cut = assert_cut(&query, &answer, &whole);
  if (answer.receipt.is_exact && !whole.receipt.is_exact)
    assert_exact(w, query, &answer, &region);
  region_fini(&region);
  return is_cut;
}

static void search_on(enum engine_backend backend, size_t n_threads, int rounds)
{
  struct world *w = calloc(1, sizeof *w);
  size_t n_cut = 0;

  open_world(w, backend, n_threads);
  for (int round = 0; round < rounds; round++) {
    for (size_t s = 0; s < SUBJECTS; s++) {
      for (size_t m = 0; m < METHODS && subjects[s].methods[m]; m++)
        n_cut += search_one(w, subjects[s].space, subjects[s].methods[m]);
    }
  }
  assert_true(n_cut > 0);
  close_world(w);
  free(w);
}

static void searches_find_the_hits_that_reach_it(void **state)
{
  (void)state;
  search_on(ENGINE_CPU, 1, ROUNDS);
}

static void so_do_threads_that_share_them(void **state)
{
  (void)state;
  search_on(ENGINE_CPU, 2, ROUNDS / 6);
}

#ifdef SLUICE_CUDA
static void so_does_a_gpu(void **state)
{
  struct device device;

  (void)state;
  if (device_find(&device) != ERR_OK)
    skip();
  search_on(ENGINE_CUDA, 1, 1);
}
#endif

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_below_it_are_left_out),
    cmocka_unit_test(a_bound_below_it_proves_the_answer),
    cmocka_unit_test(without_it_nothing_changes),
    cmocka_unit_test(an_answer_that_lacks_no_item_has_no_bound),
    cmocka_unit_test(searches_find_the_hits_that_reach_it),
    cmocka_unit_test(so_do_threads_that_share_them),
#ifdef SLUICE_CUDA
    cmocka_unit_test(so_does_a_gpu),
#endif
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
