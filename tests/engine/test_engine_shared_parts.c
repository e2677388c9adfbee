/* SPDX-License-Identifier: Apache-2.0 */
/* Generations that use the parts of another one: who gets a part, who refuses it, and which models do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine_spaces.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { SPLITS = 2, SUBITEMS = 4, FEWER = 3 };

struct world {
  struct temp_dir dir;
  char path[PATH_MAX], fewer[PATH_MAX], wide[PATH_MAX], vectors[PATH_MAX];
  struct engine *engine;
  struct searcher *searcher;
};

/* The score of a code is its number, times a factor. */
static void write_codes_model(const char *path, size_t n_splits, size_t n_subitems, float factor)
{
  float centroids[(SPLITS + 1) * SUBITEMS];

  for (size_t m = 0; m < n_splits; m++) {
    for (size_t i = 0; i < n_subitems; i++)
      centroids[m * n_subitems + i] = factor * (float)i;
  }
  model_file_write_recjpq(path, centroids, n_splits, n_subitems, 1);
}

static void write_models(struct world *w)
{
  temp_dir_init(&w->dir);
  snprintf(w->path, sizeof w->path, "%s/4", w->dir.path);
  snprintf(w->fewer, sizeof w->fewer, "%s/3", w->dir.path);
  snprintf(w->wide, sizeof w->wide, "%s/wide", w->dir.path);
  snprintf(w->vectors, sizeof w->vectors, "%s/vectors", w->dir.path);
  write_codes_model(w->path, SPLITS, SUBITEMS, 1);
  write_codes_model(w->fewer, SPLITS, FEWER, 10);
  write_codes_model(w->wide, SPLITS + 1, SUBITEMS, 1);
  vector_file_write_plain(w->vectors, "dot", 2);
}

static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);
  struct engine_space space = { .name = "pq", .model_path = w->path };
  struct engine_config config = {
    .spaces = &space, .n_spaces = 1, .max_items = 100, .max_k = 10, .max_batch = 1, .isa = isa_detect()
  };

  write_models(w);
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  return w;
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  free(w);
}

static err_t try_derive(struct world *w, uint32_t generation, uint32_t parts_of, const char *path)
{
  const struct engine_space space = {
    .name = "pq", .model_path = path, .generation = generation, .parts_of = parts_of
  };
  struct engine_model *model = NULL;

  TRY(engine_load_model(&space, &model));
  err_code_t err = engine_add_space(w->engine, &model);
  engine_model_close(&model);
  return err;
}

static struct part part_of(const char *space, const uint8_t codes[SPLITS])
{
  return (struct part){ .space = span_of_str(space), .codes = span_of(codes, SPLITS) };
}

static void put(struct world *w, const char *key, const char *space, uint8_t code)
{
  const uint8_t codes[SPLITS] = { code, code };
  struct part part = part_of(space, codes);

  fixture_put(w->engine, span_of_str(key), &part, 1);
}

/* Put a part into one generation alone. */
static void fill(struct world *w, uint32_t generation, const char *key, uint8_t code)
{
  const uint8_t codes[SPLITS] = { code, code };
  struct part part = part_of("pq", codes);
  const struct item_change change = { .key = span_of_str(key), .parts = &part, .n_parts = 1 };

  assert_ok(engine_check_fill(w->engine, span_of_str("pq"), generation, &part));
  assert_ok(engine_fill_space(w->engine, span_of_str("pq"), generation, &change, 1));
}

static void assert_hits(struct world *w, const char *space, size_t n, float best)
{
  static const float ones[SPLITS] = { 1, 1 };
  const struct query query = { .space = span_of_str(space), .k = 10, .vector = { ones, SPLITS } };
  struct answer answer;

  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_int_equal(answer.n_hits, n);
  if (n > 0)
    assert_true(answer.hits[0].score == best);
}

static uint64_t refused_by(struct world *w, uint32_t generation)
{
  struct engine_space_info info;

  for (size_t i = 0; i < engine_n_spaces(w->engine); i++) {
    if (engine_space_get(w->engine, i, &info) && info.generation == generation)
      return info.n_refused;
  }
  return UINT64_MAX;
}

static void a_part_goes_to_all_generations_that_use_it(void **state)
{
  struct world *w = open_world();

  (void)state;
  put(w, "before", "pq", 2);
  assert_ok(try_derive(w, 2, 1, w->fewer));
  assert_ok(try_derive(w, 3, 0, w->path));
  assert_false(engine_has_space(w->engine, span_of_str("pq@2")));
  assert_hits(w, "pq@2", 0, 0);
  put(w, "a", "pq", 1);
  assert_hits(w, "pq", 2, 4);
  assert_hits(w, "pq@2", 1, 20);
  assert_hits(w, "pq@3", 0, 0);
  put(w, "b", "pq@1", 2);
  assert_hits(w, "pq@2", 2, 40);
  fixture_delete(w->engine, span_of_str("b"));
  assert_hits(w, "pq", 2, 4);
  assert_hits(w, "pq@2", 1, 20);
  close_world(w);
}

static void a_fill_reaches_one_generation_alone(void **state)
{
  struct world *w = open_world();

  (void)state;
  put(w, "a", "pq", 1);
  assert_ok(try_derive(w, 2, 1, w->fewer));
  fill(w, 2, "a", 2);
  assert_hits(w, "pq", 1, 2);
  assert_hits(w, "pq@2", 1, 40);
  assert_fails(engine_fill_space(w->engine, span_of_str("pq"), 3, NULL, 0), ERR_SPACE, "has no generation 3");
  close_world(w);
}

static void removing_a_generation_leaves_the_others_their_parts(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_ok(try_derive(w, 2, 1, w->fewer));
  put(w, "a", "pq", 1);
  assert_ok(engine_set_current(w->engine, span_of_str("pq"), 2));
  assert_ok(engine_remove_space(w->engine, span_of_str("pq"), 1));
  assert_true(engine_has_space(w->engine, span_of_str("pq")));
  put(w, "b", "pq", 2);
  assert_hits(w, "pq", 2, 40);
  assert_ok(try_derive(w, 3, 1, w->path)); /* its root is gone, and its parts are still used */
  put(w, "c", "pq", 0);
  assert_hits(w, "pq@3", 1, 0);
  assert_hits(w, "pq", 3, 40);
  close_world(w);
}

static err_code_t feed(void *context, struct engine_loading *loading)
{
  static const uint8_t codes[SPLITS] = { SUBITEMS - 1, SUBITEMS - 1 };
  AUTO(region_fini) struct region scratch = { 0 };
  struct part part = part_of("pq", codes);
  const struct item_change change = { .key = span_of_str("a"), .parts = &part, .n_parts = 1 };

  (void)context;
  return engine_loading_put(loading, &scratch, 0, &change, 1);
}

static void a_part_that_one_generation_refuses_is_counted_there_and_taken_by_the_other(void **state)
{
  static const uint8_t unknown[SPLITS] = { SUBITEMS, SUBITEMS };
  struct world *w = open_world();
  struct part part = part_of("pq", unknown);

  (void)state;
  assert_ok(try_derive(w, 2, 1, w->fewer));
  put(w, "a", "pq", 1);
  assert_hits(w, "pq@2", 1, 20);
  put(w, "a", "pq", SUBITEMS - 1); /* generation 2 does not go on with the former part */
  assert_hits(w, "pq", 1, 6);
  assert_hits(w, "pq@2", 0, 0);
  assert_true(refused_by(w, 2) == 1 && refused_by(w, 1) == 0);
  assert_ok(engine_replace(w->engine, feed, NULL, 1, NULL, 0));
  assert_hits(w, "pq", 1, 6);
  assert_hits(w, "pq@2", 0, 0);
  assert_int_equal(refused_by(w, 2), 1); /* counted anew */
  assert_fails(engine_check_part(w->engine, &part), ERR_ITEM, "code 0 is 4");
  part.codes.n = 1;
  assert_fails(engine_check_part(w->engine, &part), ERR_ITEM, "codes has 1 sub-items");
  close_world(w);
}

static void a_model_that_needs_other_parts_is_refused_with_both_shapes(void **state)
{
  struct world *w = open_world();
  size_t n = engine_n_spaces(w->engine);

  (void)state;
  assert_fails(try_derive(w, 2, 1, w->wide), ERR_MODEL, "its model needs 3 codes of an item, and a part has 2 codes");
  assert_fails(try_derive(w, 2, 1, w->vectors), ERR_MODEL, "its model needs a vector of 2 numbers");
  assert_int_equal(engine_n_spaces(w->engine), n);
  assert_ok(try_derive(w, 2, 0, w->vectors));
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_part_goes_to_all_generations_that_use_it),
    cmocka_unit_test(a_fill_reaches_one_generation_alone),
    cmocka_unit_test(removing_a_generation_leaves_the_others_their_parts),
    cmocka_unit_test(a_part_that_one_generation_refuses_is_counted_there_and_taken_by_the_other),
    cmocka_unit_test(a_model_that_needs_other_parts_is_refused_with_both_shapes),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
