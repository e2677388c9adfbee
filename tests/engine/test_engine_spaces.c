/* SPDX-License-Identifier: Apache-2.0 */
/* Generations of a space: their names, what is refused, who is alive, and memory that goes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <unistd.h>

#include "engine/engine_spaces.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/heap.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { MAX_ITEMS = 20000, LARGE_DIM = 256 };

static const struct attribute attributes[] = { { { (const uint8_t *)"expires", 7 }, ATTRIBUTE_TIME } };

struct world {
  struct temp_dir dir;
  char path[PATH_MAX], large[PATH_MAX], broken[PATH_MAX];
  struct engine *engine;
  struct searcher *searcher;
  int64_t now_ms;
};

static int64_t tell_time(void *context)
{
  const struct world *w = context;

  return w->now_ms;
}

/* An engine with the spaces v and other: dot products of vectors with one number. */
static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);
  struct engine_space spaces[2] = { { .name = "v" }, { .name = "other" } };
  struct engine_config config = { .spaces = spaces,
                                  .n_spaces = 2,
                                  .max_items = MAX_ITEMS,
                                  .max_k = 10,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .attributes = { attributes, 1 },
                                  .lifetimes = { NULL, "expires", { tell_time, w } } };

  w->now_ms = 1000;
  temp_dir_init(&w->dir);
  snprintf(w->path, sizeof w->path, "%s/dot.safetensors", w->dir.path);
  snprintf(w->large, sizeof w->large, "%s/large.safetensors", w->dir.path);
  snprintf(w->broken, sizeof w->broken, "%s/broken.safetensors", w->dir.path);
  vector_file_write_plain(w->path, "dot", 1);
  vector_file_write_plain(w->large, "dot", LARGE_DIM);
  model_file_write(w->broken, "{\"__metadata__\":{}}", NULL, 0);
  spaces[0].model_path = spaces[1].model_path = w->path;
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

static struct span name_of(const char *text)
{
  return span_of_str(text);
}

static err_t try_add(struct world *w, const char *name, uint32_t generation, const char *path)
{
  const struct engine_space space = { .name = name, .model_path = path, .generation = generation };
  struct engine_model *model = NULL;

  TRY(engine_load_model(&space, &model));
  err_code_t err = engine_add_space(w->engine, &model);
  assert_int_equal(model == NULL, err == ERR_OK);
  engine_model_close(&model);
  return err;
}

static void put(struct world *w, const char *key, const char *space, float value)
{
  fixture_put_vector(w->engine, span_of_str(key), space, &value, 1);
}

static void search(struct world *w, const char *space, struct answer *out)
{
  static const float one = 1.0f;
  const struct query query = { .space = span_of_str(space), .k = 10, .vector = { &one, 1 } };

  fixture_search(w->engine, w->searcher, &query, 1, out);
}

static err_t check(struct world *w, const char *space)
{
  static const float one = 1.0f;
  const struct query query = { .space = span_of_str(space), .k = 10, .vector = { &one, 1 } };
  struct method method;
  size_t number;

  return engine_check_query(w->engine, &query, &number, &method);
}

static uint64_t epoch_of(struct world *w)
{
  struct engine_epoch epoch;

  engine_epoch_get(w->engine, &epoch, NULL, 0);
  return epoch.number;
}

static void assert_hits(struct world *w, const char *space, uint32_t generation, size_t n, float best)
{
  struct answer answer;

  search(w, space, &answer);
  assert_int_equal(answer.generation, generation);
  assert_int_equal(answer.n_hits, n);
  assert_true(span_equal(answer.space, span_of_str("v")));
  if (n > 0)
    assert_true(answer.hits[0].score == best);
}

static uint32_t answering(struct world *w, const char *space, uint32_t generation)
{
  static const float one = 1.0f;
  const struct query query = {
    .space = span_of_str(space), .generation = generation, .k = 10, .vector = { &one, 1 }
  };
  struct answer answer;

  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  return answer.generation;
}

static void the_generation_of_a_query_counts_if_its_name_has_none(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_ok(try_add(w, "v", 2, w->path));
  assert_int_equal(answering(w, "v", 0), 1);
  assert_int_equal(answering(w, "v", 1), 1);
  assert_int_equal(answering(w, "v", 2), 2);
  assert_int_equal(answering(w, "v", 3), 1);
  assert_int_equal(answering(w, "v@1", 2), 1);
  assert_ok(engine_set_current(w->engine, name_of("v"), 2));
  assert_int_equal(answering(w, "v", 1), 1);
  assert_int_equal(answering(w, "v", 3), 2);
  close_world(w);
}

static void queries_and_parts_name_generations(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_false(engine_has_space(w->engine, name_of("v@2")));
  put(w, "a", "v", 1);
  assert_ok(try_add(w, "v", 2, w->path));
  assert_true(engine_has_space(w->engine, name_of("v@1")) && engine_has_space(w->engine, name_of("v@2")));
  assert_hits(w, "v@2", 2, 0, 0);
  put(w, "a", "v@2", 20);
  put(w, "b", "v@2", 10);
  put(w, "c", "v@1", 3);
  assert_hits(w, "v", 1, 2, 3);
  assert_hits(w, "v@1", 1, 2, 3);
  assert_hits(w, "v@2", 2, 2, 20);
  assert_int_equal(engine_count_missing(w->engine, name_of("v"), 1, 2), 1);
  assert_int_equal(engine_count_missing(w->engine, name_of("v"), 2, 1), 1);
  assert_int_equal(engine_count_missing(w->engine, name_of("v"), 1, 3), 0);
  assert_ok(engine_set_current(w->engine, name_of("v"), 2));
  assert_hits(w, "v", 2, 2, 20);
  put(w, "d", "v", 4); /* a part without a generation is one of the first */
  assert_hits(w, "v@1", 1, 3, 4);
  assert_ok(engine_remove_space(w->engine, name_of("v"), 1));
  assert_false(engine_has_space(w->engine, name_of("v")));
  assert_hits(w, "v", 2, 2, 20);
  close_world(w);
}

static void unknown_generations_are_refused_with_those_that_exist(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_ok(try_add(w, "v", 2, w->path));
  assert_ok(engine_set_current(w->engine, name_of("v"), 2));
  assert_fails(check(w, "v@3"), ERR_SPACE, "space \"v\" has no generation 3; it has 1, 2 (current)");
  assert_fails(check(w, "u@1"), ERR_SPACE, "there is no space \"u@1\"; there are other, v");
  assert_fails(check(w, "v@"), ERR_SPACE, "there is no space \"v@\"");
  assert_fails(check(w, "v@02"), ERR_SPACE, "there is no space \"v@02\"");
  close_world(w);
}

static void what_cannot_be_added_is_refused_and_changes_nothing(void **state)
{
  struct world *w = open_world();
  char name[SPACE_NAME_MAX + 1];
  uint64_t epoch = epoch_of(w);

  (void)state;
  memset(name, 'n', sizeof name - 1);
  name[SPACE_NAME_MAX] = 0;
  assert_fails(try_add(w, "v", 2, w->broken), ERR_MODEL, "broken.safetensors");
  assert_fails(try_add(w, "v", 2, "/none"), ERR_MODEL, "/none");
  assert_fails(try_add(w, "v", 1, w->path), ERR_SPACE, "space v has a generation 1 already");
  assert_fails(try_add(w, "u", 2, w->path), ERR_SPACE, "there is no space u of which 2 could be a generation");
  assert_fails(try_add(w, name, 2, w->path), ERR_MODEL, "the name would have more than 64 bytes");
  assert_fails(engine_set_current(w->engine, name_of("v"), 2), ERR_SPACE, "space \"v\" has no generation 2");
  assert_fails(engine_remove_space(w->engine, name_of("v"), 2), ERR_SPACE, "space \"v\" has no generation 2");
  assert_fails(engine_remove_space(w->engine, name_of("v"), 1), ERR_SPACE, "is the current one of space \"v\"");
  assert_ok(engine_set_current(w->engine, name_of("v"), 1)); /* it is */
  assert_int_equal(epoch_of(w), epoch);
  assert_ok(check(w, "v"));
  close_world(w);
}

static void there_is_an_end_to_places_and_they_are_used_again(void **state)
{
  struct world *w = open_world();
  struct engine_space_info info;
  size_t number = 0;

  (void)state;
  for (uint32_t g = 2; g < 2 + ENGINE_SPACES_MORE; g++)
    assert_ok(try_add(w, "v", g, w->path));
  assert_fails(try_add(w, "v", 1000, w->path), ERR_FULL, "there are 66 spaces, and no room for another");
  assert_ok(engine_remove_space(w->engine, name_of("v"), 7));
  assert_false(engine_space_get(w->engine, 7, &info));
  for (uint32_t g = 100; g < 200; g++) {
    assert_ok(try_add(w, "v", g, w->path));
    assert_true(engine_space_get(w->engine, 7, &info));
    assert_true(info.generation == g && info.number > number && !info.is_current);
    assert_int_equal(info.n_items, 0);
    number = info.number;
    put(w, "a", info.part_name, 1);
    assert_ok(engine_remove_space(w->engine, name_of("v"), g));
  }
  assert_int_equal(engine_n_spaces(w->engine), 2 + ENGINE_SPACES_MORE);
  close_world(w);
}

/* Put an item that expires at a time. */
static void put_expiring(struct world *w, const char *key, int64_t expires_ms)
{
  static const float one = 1.0f;
  struct part part = { .space = span_of_str("v"), .vector = { &one, 1 } };
  struct attribute_value value = { attributes[0].name, { VALUE_INTEGER, .integer = expires_ms } };
  struct item_change change = {
    .key = span_of_str(key), .parts = &part, .n_parts = 1, .attributes = &value, .n_attributes = 1
  };

  fixture_apply(w->engine, &change, 1);
}

static void a_new_generation_knows_at_once_who_is_alive(void **state)
{
  struct world *w = open_world();
  struct engine_space_info info;

  (void)state;
  put_expiring(w, "expired", 500);
  put_expiring(w, "soon", 2000);
  put_expiring(w, "late", 9000);
  assert_ok(try_add(w, "v", 2, w->path));
  put(w, "expired", "v@2", 7);
  put(w, "soon", "v@2", 6);
  put(w, "late", "v@2", 5);
  assert_hits(w, "v@2", 2, 2, 6);
  w->now_ms = 3000;
  assert_ok(engine_pass_time(w->engine));
  assert_hits(w, "v@2", 2, 1, 5);
  assert_true(engine_space_get(w->engine, 2, &info));
  assert_true(info.n_items == 3 && info.n_alive == 1);
  close_world(w);
}

static size_t resident_bytes(void)
{
  FILE *f = fopen("/proc/self/statm", "r");
  size_t total = 0, resident = 0;

  malloc_trim(0); /* memory that the allocator keeps does not count */
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%zu %zu", &total, &resident), 2);
  fclose(f);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void put_large(struct world *w)
{
  static const float vector[LARGE_DIM] = { 1 };
  char key[16];

  for (size_t i = 0; i < MAX_ITEMS; i++) {
    struct part part = { .space = span_of_str("v@2"), .vector = { vector, LARGE_DIM } };
    struct item_change change = { .parts = &part, .n_parts = 1 };
    change.key = span_of(key, (size_t)snprintf(key, sizeof key, "%zu", i));
    assert_ok(engine_apply(w->engine, &change, 1, NULL, 0));
  }
}

static void memory_goes_back_when_a_generation_is_removed(void **state)
{
  struct world *w = open_world();
  char key[16];

  (void)state;
  for (size_t i = 0; i < MAX_ITEMS; i++) {
    snprintf(key, sizeof key, "%zu", i);
    put(w, key, "v", 1);
  }
  size_t before = resident_bytes();
  for (int round = 0; round < 2; round++) {
    assert_ok(try_add(w, "v", 2, w->large));
    put_large(w);
    size_t top = resident_bytes();
    assert_ok(engine_remove_space(w->engine, name_of("v"), 2));
    size_t after = resident_bytes();
    printf("resident: %zu KB, with generation 2 %zu KB, without it %zu KB\n", before >> 10, top >> 10, after >> 10);
    if (__sanitizer_get_current_allocated_bytes) /* the shadow memory of sanitizers stays */
      continue;
    assert_true(top - before > (size_t)2 * MAX_ITEMS * LARGE_DIM * sizeof(float));
    assert_true(after < before + (top - before) / 10);
  }
  close_world(w);
}

static void a_generation_that_does_not_fit_is_refused_with_its_bytes(void **state)
{
  struct temp_dir dir;
  char path[PATH_MAX], large[PATH_MAX];
  double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  size_t max_items = (size_t)(machine / (2.0 * LARGE_DIM * sizeof(float))) + 1;
  struct engine_space space = { .name = "v" };
  struct engine_config config = { .spaces = &space, .n_spaces = 1, .max_items = max_items, .max_k = 1, .max_batch = 1 };
  struct world w = { 0 };

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  snprintf(large, sizeof large, "%s/large.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  vector_file_write_plain(large, "dot", LARGE_DIM);
  space.model_path = path;
  assert_ok(engine_open(&config, &w.engine));
  assert_fails(try_add(&w, "v", 2, large), ERR_FULL, "generation 2 of space v needs ");
  assert_non_null(strstr(err_message(), " bytes ("));
  assert_ok(try_add(&w, "v", 2, path));
  engine_close(&w.engine);
  temp_dir_fini(&dir);
}

static void an_engine_opens_with_several_generations(void **state)
{
  struct temp_dir dir;
  char path[PATH_MAX];
  struct engine_space spaces[2] = { { .name = "v", .generation = 3 }, { .name = "v" } };
  struct engine_config config = { .spaces = spaces, .n_spaces = 2, .max_items = 10, .max_k = 10, .max_batch = 1 };
  struct world w = { 0 };

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  spaces[0].model_path = spaces[1].model_path = path;
  assert_ok(engine_open(&config, &w.engine));
  assert_ok(searcher_open(w.engine, &w.searcher));
  put(&w, "a", "v@3", 3);
  put(&w, "a", "v", 1);
  assert_hits(&w, "v", 3, 1, 3);
  assert_hits(&w, "v@1", 1, 1, 1);
  searcher_close(&w.searcher);
  engine_close(&w.engine);
  temp_dir_fini(&dir);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(queries_and_parts_name_generations),
    cmocka_unit_test(the_generation_of_a_query_counts_if_its_name_has_none),
    cmocka_unit_test(unknown_generations_are_refused_with_those_that_exist),
    cmocka_unit_test(what_cannot_be_added_is_refused_and_changes_nothing),
    cmocka_unit_test(there_is_an_end_to_places_and_they_are_used_again),
    cmocka_unit_test(a_new_generation_knows_at_once_who_is_alive),
    cmocka_unit_test(memory_goes_back_when_a_generation_is_removed),
    cmocka_unit_test(a_generation_that_does_not_fit_is_refused_with_its_bytes),
    cmocka_unit_test(an_engine_opens_with_several_generations),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
