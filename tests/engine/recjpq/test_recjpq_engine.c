/* SPDX-License-Identifier: Apache-2.0 */
/* RecJPQ searches compared with brute force in double precision, over awkward catalogues that change between searches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/method.h"
#include "engine/engine.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum { MAX_ITEMS = 3000, MAX_SPLITS = 9, MAX_DIM = 4, MAX_SUBITEMS = 256 };

/* What the engine should hold. Item i is live if is_live[i]; its key is its number. */
struct world {
  struct dice dice;
  size_t n_splits, n_subitems, split_dim;
  float centroids[MAX_SPLITS * MAX_SUBITEMS * MAX_DIM];
  uint8_t codes[MAX_ITEMS][MAX_SPLITS];
  bool is_live[MAX_ITEMS];
  double scores[MAX_ITEMS];
  struct engine *engine;
  struct searcher *searcher;
  struct temp_dir dir;
};

static uint64_t seed;

static struct span key_of(size_t i, char *text)
{
  return span_of(text, (size_t)sprintf(text, "%05zu", i));
}

static size_t index_of(struct span key)
{
  return strtoul((const char *)key.p, NULL, 10);
}

/* How codes are drawn. */
enum draw { DRAW_UNIFORM, DRAW_SKEWED, DRAW_FEW, DRAW_ALL_EQUAL, N_DRAWS };

static void draw_codes(struct world *w, enum draw draw, uint8_t *codes)
{
  for (size_t m = 0; m < w->n_splits; m++) {
    size_t b = dice_below(&w->dice, w->n_subitems);
    if (draw == DRAW_SKEWED)
      b = b * dice_below(&w->dice, w->n_subitems) / w->n_subitems;
    if (draw == DRAW_FEW)
      b %= 3;
    if (draw == DRAW_ALL_EQUAL)
      b = 0;
    codes[m] = (uint8_t)(b % w->n_subitems);
  }
}

static void put(struct world *w, size_t i, enum draw draw)
{
  char text[16];

  draw_codes(w, draw, w->codes[i]);
  struct part part = { .space = span_of_str("pq"), .codes = span_of(w->codes[i], w->n_splits) };
  fixture_put(w->engine, key_of(i, text), &part, 1);
  w->is_live[i] = true;
}

static void delete(struct world *w, size_t i)
{
  char text[16];

  fixture_delete(w->engine, key_of(i, text));
  w->is_live[i] = false;
}

static struct world *open_world_with(size_t n_splits, size_t n_subitems, size_t split_dim, enum isa isa, bool has_cells)
{
  struct world *w = calloc(1, sizeof *w);
  char path[sizeof w->dir.path + 32];
  struct engine_space space = { .name = "pq", .model_path = path, .has_no_cells = !has_cells };
  struct engine_config config = { &space, 1, MAX_ITEMS, 2 * MAX_ITEMS, 16, isa, ENGINE_CPU, 1, { 0 }, { 0 } };

  w->dice.state = seed + n_splits * 1000 + n_subitems;
  w->n_splits = n_splits;
  w->n_subitems = n_subitems;
  w->split_dim = split_dim;
  dice_fill(&w->dice, w->centroids, n_splits * n_subitems * split_dim, 1.0f);
  temp_dir_init(&w->dir);
  snprintf(path, sizeof path, "%s/pq.safetensors", w->dir.path);
  model_file_write_recjpq(path, w->centroids, n_splits, n_subitems, split_dim);
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  return w;
}

static struct world *open_world(size_t n_splits, size_t n_subitems, size_t split_dim, enum isa isa)
{
  return open_world_with(n_splits, n_subitems, split_dim, isa, true);
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  free(w);
}

/* Compute all scores in double precision; items that are not live score -inf. Returns the number of live items. */
static size_t score_all(struct world *w, const float *query)
{
  size_t n_live = 0;

  for (size_t i = 0; i < MAX_ITEMS; i++) {
    w->scores[i] = w->is_live[i] ? 0.0 : -INFINITY;
    n_live += w->is_live[i];
    for (size_t m = 0; w->is_live[i] && m < w->n_splits; m++) {
      const float *centroid = w->centroids + (m * w->n_subitems + w->codes[i][m]) * w->split_dim;
      for (size_t k = 0; k < w->split_dim; k++)
        w->scores[i] += (double)query[m * w->split_dim + k] * centroid[k];
    }
  }
  return n_live;
}

/* Assert that the hits are the k best, best first, ties by key and no item twice. Scores that differ by less than the
 * tolerance count as equal. */
static void assert_exact(struct world *w, const struct answer *answer, size_t k, size_t n_live)
{
  const double tolerance = 1e-5;

  assert_true(answer->receipt.is_exact);
  assert_int_equal(answer->n_hits, k < n_live ? k : n_live);
  assert_int_equal(answer->counts.items, n_live);
  assert_int_equal(answer->receipt.has_bound, k < n_live);
  for (size_t i = 0; i < answer->n_hits; i++) {
    size_t index = index_of(answer->hits[i].key);
    assert_true(fabs(w->scores[index] - answer->hits[i].score) < tolerance);
    if (i > 0 && answer->hits[i].score == answer->hits[i - 1].score)
      assert_true(span_compare(answer->hits[i - 1].key, answer->hits[i].key) < 0);
    else if (i > 0)
      assert_true(answer->hits[i].score < answer->hits[i - 1].score);
    w->scores[index] = -INFINITY; /* returned once; no remaining score may exceed the last hit */
  }
  double last = answer->n_hits ? (double)answer->hits[answer->n_hits - 1].score : INFINITY;
  for (size_t i = 0; i < MAX_ITEMS; i++)
    assert_true(w->scores[i] <= last + tolerance);
}

static void check_searches(struct world *w, size_t k)
{
  static const char *const methods[] = { "default", "pqtopk", "prune(1)", "prune(8)", "prune(256)", "exact" };
  float query[MAX_SPLITS * MAX_DIM];
  struct answer first = { 0 };
  struct hit *first_hits = NULL;

  dice_fill(&w->dice, query, w->n_splits * w->split_dim, 1.0f);
  if (dice_below(&w->dice, 8) == 0)
    memset(query, 0, sizeof query); /* every item ties */
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
    struct query q = {
      .space = span_of_str("pq"),
      .method = span_of_str(methods[i]),
      .k = (uint32_t)k,
      .vector = { query, w->n_splits * w->split_dim },
    };
    struct answer answer;
    struct searcher *searcher = w->searcher;
    struct searcher *other = NULL;
    if (i > 0) { /* keep the hits of the first answer */
      assert_ok(searcher_open(w->engine, &other));
      searcher = other;
    }
    size_t n_live = score_all(w, query);
    fixture_search(w->engine, searcher, &q, 1, &answer);
    char name[METHOD_TEXT_MAX];
    method_print(&answer.method, name);
    assert_string_equal(name, methods[i]);
    assert_exact(w, &answer, k, n_live);
    if (i == 0) {
      first = answer;
      first_hits = answer.hits;
    } else {
      fixture_assert_same_hits(&answer, &first);
    }
    searcher_close(&other);
  }
  assert_ptr_equal(first.hits, first_hits);
}

static void churn(struct world *w, enum draw draw)
{
  size_t n_steps = 40 + dice_below(&w->dice, 200);

  for (size_t s = 0; s < n_steps; s++) {
    size_t i = dice_below(&w->dice, MAX_ITEMS / (1 + draw));
    if (dice_below(&w->dice, 3) == 0)
      delete(w, i); /* also items that are absent */
    else
      put(w, i, draw);
  }
}

static void check_coming_and_going(bool has_cells)
{
  static const size_t shapes[][3] = { { 8, 256, 4 }, { 1, 16, 3 }, { 2, 256, 1 }, { 9, 5, 2 }, { 4, 1, 2 } };

  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (enum draw draw = DRAW_UNIFORM; draw < N_DRAWS; draw++) {
      struct world *w = open_world_with(shapes[s][0], shapes[s][1], shapes[s][2], isa_detect(), has_cells);
      check_searches(w, 5); /* an empty catalogue */
      for (int round = 0; round < 8; round++) {
        churn(w, draw);
        check_searches(w, 1 + dice_below(&w->dice, 20));
        check_searches(w, 2 * MAX_ITEMS);
      }
      close_world(w);
    }
  }
}

static void every_method_is_exact_while_items_come_and_go(void **state)
{
  (void)state;
  check_coming_and_going(true);
}

static void every_method_is_exact_without_cells(void **state)
{
  (void)state;
  check_coming_and_going(false);
}

static void without_cells_an_item_takes_one_byte_for_each_split(void **state)
{
  (void)state;
  for (int has_cells = 0; has_cells < 2; has_cells++) {
    struct world *w = open_world_with(8, 256, 4, isa_detect(), has_cells);
    struct engine_space_info info;
    engine_space_get(w->engine, 0, &info);
    assert_true(has_cells ? info.bytes_per_item > 50 : info.bytes_per_item == 8);
    close_world(w);
  }
}

static void every_isa_gives_the_same_bytes(void **state)
{
  (void)state;
  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++) {
    struct world *w = open_world(8, 256, 4, (enum isa)isa);
    for (int round = 0; round < 6; round++) {
      churn(w, DRAW_SKEWED);
      check_searches(w, 50);
    }
    close_world(w);
  }
}

static void pruning_scores_fewer_items_than_the_exhaustive_scan(void **state)
{
  struct world *w = open_world(8, 256, 4, isa_detect());
  float query[MAX_SPLITS * MAX_DIM];
  uint64_t n_scored = 0;

  (void)state;
  for (size_t i = 0; i < MAX_ITEMS; i++)
    put(w, i, DRAW_SKEWED);
  for (int round = 0; round < 20; round++) {
    dice_fill(&w->dice, query, w->n_splits * w->split_dim, 1.0f);
    memset(query + w->split_dim, 0, (w->n_splits - 1) * w->split_dim * sizeof *query); /* one split decides */
    struct query q = {
      .space = span_of_str("pq"),
      .method = span_of_str("prune(1)"),
      .k = 5,
      .vector = { query, w->n_splits * w->split_dim },
    };
    struct answer answer;
    fixture_search(w->engine, w->searcher, &q, 1, &answer);
    n_scored += answer.counts.scored;
  }
  assert_in_range(n_scored, 1, 20 * MAX_ITEMS / 4);
  close_world(w);
}

static void methods_that_do_not_exist_are_refused_with_those_that_do(void **state)
{
  static const char *const methods[] = {
    "prune", "prune(257)", "prune(8,2)", "pqtopk(1)", "prune_inflated(8)", "prune_inflated(8,99)",
    "prune_limited(0,1)", "prune_limited(300,1)", "default(2)", "brute_force",
  };
  struct world *w = open_world(2, 10, 2, isa_detect());
  float query[4] = { 0 };

  (void)state;
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
    struct query q = {
      .space = span_of_str("pq"), .method = span_of_str(methods[i]), .k = 1, .vector = { query, 4 },
    };
    struct method method;
    size_t space;
    assert_int_equal(engine_check_query(w->engine, &q, &space, &method), ERR_METHOD);
    if (strcmp(methods[i], "prune_limited(0,1)") != 0)
      assert_non_null(strstr(err_message(), "use exact, pqtopk, default, prune(BS), prune_inflated(BS,PERCENT) or "
                                            "prune_limited(BS,ITERATIONS), with BS from 1 to 256"));
  }
  close_world(w);
}

/* The bias of an item is the first dimension of split 0's centroids. The query's first number is 1 (section 3.1). */
static void item_biases_are_the_first_dimension_of_the_first_split(void **state)
{
  static const char *const methods[] = { "default", "pqtopk", "prune(1)", "exact" };
  struct world *w = open_world(3, 16, 2, isa_detect());
  float query[6] = { 1.0f };

  (void)state;
  for (size_t i = 0; i < 200; i++)
    put(w, i, DRAW_UNIFORM);
  for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
    struct query q = {
      .space = span_of_str("pq"), .method = span_of_str(methods[m]), .k = 200, .vector = { query, 6 },
    };
    struct answer answer;
    fixture_search(w->engine, w->searcher, &q, 1, &answer);
    assert_int_equal(answer.n_hits, 200);
    for (size_t i = 0; i < answer.n_hits; i++) { /* a query with only that 1 scores by the biases alone */
      float bias = w->centroids[w->codes[index_of(answer.hits[i].key)][0] * w->split_dim];
      assert_true(answer.hits[i].score == bias);
      assert_true(i == 0 || answer.hits[i - 1].score >= bias);
    }
  }
  close_world(w);
}

static void assert_item_refused(struct world *w, const struct part *part, const char *reason)
{
  struct part copy = *part;
  struct item_change change = { .key = span_of_str("k"), .parts = &copy, .n_parts = 1 };

  assert_int_equal(err_class(engine_check_item(w->engine, &change)), ERR_CLASS_REJECT);
  if (!strstr(err_message(), reason))
    fail_msg("\"%s\" does not say \"%s\"", err_message(), reason);
}

static void parts_that_do_not_fit_are_refused_with_the_reason(void **state)
{
  struct world *w = open_world(2, 10, 2, isa_detect());
  uint8_t codes[] = { 1, 10, 2 };
  float vector[4] = { 0 };
  struct span name = span_of_str("pq");

  (void)state;
  assert_item_refused(w, &(struct part){ .space = name, .codes = span_of(codes, 2) },
                      "code 1 is 10; the model has sub-items 0 to 9");
  assert_item_refused(w, &(struct part){ .space = name, .codes = span_of(codes, 3) },
                      "3 sub-items where the model needs 2");
  assert_item_refused(w, &(struct part){ .space = name, .vector = { vector, 4 } },
                      "codes is missing: 2 sub-items are needed");
  assert_item_refused(w, &(struct part){ .space = name, .codes = span_of(codes, 2), .vector = { vector, 4 } },
                      "vector is given");
  assert_item_refused(w, &(struct part){ .space = span_of_str("qp"), .codes = span_of(codes, 2) }, "no space \"qp\"");
  close_world(w);
}

static void an_item_too_many_is_an_error_that_names_the_setting(void **state)
{
  struct world *w = open_world(2, 10, 2, isa_detect());
  uint8_t codes[] = { 1, 2 };
  struct part part = { .space = span_of_str("pq"), .codes = span_of(codes, 2) };
  char text[16];

  (void)state;
  for (size_t i = 0; i < MAX_ITEMS; i++)
    put(w, i, DRAW_UNIFORM);
  struct item_change change = { .key = key_of(MAX_ITEMS, text), .parts = &part, .n_parts = 1 };
  assert_int_equal(engine_apply(w->engine, &change, 1, NULL, 0), ERR_FULL);
  assert_non_null(strstr(err_message(), "catalogue.max_items = 3000"));
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_method_is_exact_while_items_come_and_go),
    cmocka_unit_test(every_method_is_exact_without_cells),
    cmocka_unit_test(without_cells_an_item_takes_one_byte_for_each_split),
    cmocka_unit_test(every_isa_gives_the_same_bytes),
    cmocka_unit_test(pruning_scores_fewer_items_than_the_exhaustive_scan),
    cmocka_unit_test(methods_that_do_not_exist_are_refused_with_those_that_do),
    cmocka_unit_test(item_biases_are_the_first_dimension_of_the_first_split),
    cmocka_unit_test(parts_that_do_not_fit_are_refused_with_the_reason),
    cmocka_unit_test(an_item_too_many_is_an_error_that_names_the_setting),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
