/* SPDX-License-Identifier: Apache-2.0 */
/* What queries admit: an evaluated filter is used again until something changes that it sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/admission/admission.h"
#include "engine/engine_state.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_version.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 200, SPACES = 2, ATTRIBUTES = 5 };

static const char *const spaces[SPACES] = { "a", "b" };
static const struct attribute attributes[ATTRIBUTES] = {
  { { (const uint8_t *)"country", 7 }, ATTRIBUTE_KEYWORD }, { { (const uint8_t *)"tags", 4 }, ATTRIBUTE_KEYWORDS },
  { { (const uint8_t *)"price", 5 }, ATTRIBUTE_NUMBER },    { { (const uint8_t *)"sold", 4 }, ATTRIBUTE_BOOL },
  { { (const uint8_t *)"ends", 4 }, ATTRIBUTE_TIME },
};

static struct temp_dir dir;

struct world {
  struct engine *engine;
  struct searcher *searcher;
  struct region region;
};

static int64_t now_ms = 1790000000000;

static int64_t tell_time(void *context)
{
  (void)context;
  return now_ms;
}

static int write_model(void **state)
{
  char path[sizeof dir.path + 32];

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  return 0;
}

static int remove_model(void **state)
{
  (void)state;
  temp_dir_fini(&dir);
  return 0;
}

static struct attribute_value text_of(const char *attribute, const char *text)
{
  return (struct attribute_value){ span_of_str(attribute), { .kind = VALUE_TEXT, .text = span_of_str(text) } };
}

static struct attribute_value number_of(const char *attribute, double number)
{
  return (struct attribute_value){ span_of_str(attribute), { .kind = VALUE_NUMBER, .number = number } };
}

static struct attribute_value time_of(const char *attribute, int64_t time_ms)
{
  return (struct attribute_value){ span_of_str(attribute), { .kind = VALUE_INTEGER, .integer = time_ms } };
}

static struct attribute_value truth_of(const char *attribute, bool is_true)
{
  return (struct attribute_value){ span_of_str(attribute), { .kind = VALUE_BOOL, .is_true = is_true } };
}

static struct attribute_value none_of(const char *attribute)
{
  return (struct attribute_value){ span_of_str(attribute), { .kind = VALUE_NULL } };
}

static struct attribute_value tags_of(struct value *elements, size_t n)
{
  return (struct attribute_value){ span_of_str("tags"), { .kind = VALUE_LIST, .list = { elements, n } } };
}

static void put_value(struct world *w, const char *key, struct attribute_value value)
{
  struct item_change change = { .key = span_of_str(key), .attributes = &value, .n_attributes = 1 };

  fixture_apply(w->engine, &change, 1);
}

static void put_vector(struct world *w, const char *key, const char *space, float number)
{
  fixture_put_vector(w->engine, span_of_str(key), space, &number, 1);
}

static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);
  char path[sizeof dir.path + 32];
  struct engine_space both[SPACES];
  struct engine_config config = { .spaces = both,
                                  .n_spaces = SPACES,
                                  .max_items = ITEMS,
                                  .max_k = ITEMS,
                                  .max_batch = 4,
                                  .isa = isa_detect(),
                                  .attributes = { attributes, ATTRIBUTES },
                                  .lifetimes = { .expires = "ends", .clock = { tell_time, NULL } } };

  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  for (size_t i = 0; i < SPACES; i++)
    both[i] = (struct engine_space){ .name = spaces[i], .model_path = path };
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  for (size_t i = 0; i < SPACES; i++) {
    put_vector(w, "one", spaces[i], 1);
    put_vector(w, "two", spaces[i], 2);
  }
  put_value(w, "one", text_of("country", "de"));
  put_value(w, "two", number_of("price", 2));
  return w;
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  region_fini(&w->region);
  free(w);
}

/* Search with a filter. Returns whether it had to be evaluated, or patched. */
static bool evaluates_in(struct world *w, const char *space, const char *filter)
{
  float one = 1;
  struct query query = {
    .space = span_of_str(space), .k = ITEMS, .vector = { &one, 1 }, .filter = span_of_str(filter)
  };
  struct engine_filters before, after;
  struct answer answer;

  region_reset(&w->region);
  assert_ok(engine_check_filter(w->engine, &query, &w->region));
  engine_filters_get(w->engine, &before);
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  engine_filters_get(w->engine, &after);
  assert_int_equal(filter_version(&w->engine->pair->arenas[0], 0, query.tree),
                   filter_version(&w->engine->pair->arenas[1], 0, query.tree));
  uint64_t n_made = after.n_evaluated - before.n_evaluated + after.n_patched - before.n_patched;
  assert_int_equal(after.n_known - before.n_known + n_made, 1);
  return n_made > 0;
}

static bool evaluates(struct world *w, const char *filter)
{
  return evaluates_in(w, "a", filter);
}

static void a_filter_stays_while_only_vectors_change(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_true(evaluates(w, "country = 'de'"));
  assert_false(evaluates(w, "country = 'de'"));
  for (int i = 0; i < 5; i++) {
    put_vector(w, "one", "a", (float)i);
    assert_false(evaluates(w, "country = 'de'"));
  }
  assert_ok(engine_set_positions(w->engine, NULL, 0));
  assert_false(evaluates(w, "country = 'de'"));
  close_world(w);
}

static void a_filter_is_evaluated_again_when_an_attribute_that_it_names_changes(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_true(evaluates(w, "country = 'de' or not (price < 3 and sold)"));
  put_value(w, "one", text_of("country", "at"));
  assert_true(evaluates(w, "country = 'de' or not (price < 3 and sold)"));
  put_value(w, "one", number_of("price", 1));
  assert_true(evaluates(w, "country = 'de' or not (price < 3 and sold)"));
  put_value(w, "two", truth_of("sold", false));
  assert_true(evaluates(w, "country = 'de' or not (price < 3 and sold)"));
  put_value(w, "two", truth_of("sold", true));
  assert_true(evaluates(w, "country = 'de' or not (price < 3 and sold)"));
  put_value(w, "two", none_of("sold"));
  assert_true(evaluates(w, "country = 'de' or not (price < 3 and sold)"));
  close_world(w);
}

static void a_filter_stays_while_other_attributes_change(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_true(evaluates(w, "country = 'de'"));
  put_value(w, "one", number_of("price", 7));
  put_value(w, "two", truth_of("sold", true));
  put_value(w, "two", none_of("price"));
  assert_false(evaluates(w, "country = 'de'"));
  close_world(w);
}

static void a_value_that_is_put_again_is_no_change(void **state)
{
  struct value sale_new[2] = { { VALUE_TEXT, .text = span_of_str("new") },
                               { VALUE_TEXT, .text = span_of_str("sale") } };
  const struct attribute_value values[] = { text_of("country", "fr"), tags_of(sale_new, 2), number_of("price", 4),
                                            truth_of("sold", true) };
  static const char *const filters[] = { "country = 'fr'", "tags has 'sale'", "price = 4", "sold" };
  struct world *w = open_world();

  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    put_value(w, "one", values[i]);
    assert_true(evaluates(w, filters[i]));
    put_value(w, "one", values[i]);
    assert_false(evaluates(w, filters[i]));
    put_value(w, "two", values[i]);
    assert_true(evaluates(w, filters[i]));
  }
  put_value(w, "one", tags_of(sale_new, 1));
  assert_true(evaluates(w, "tags has 'sale'"));
  put_value(w, "one", tags_of(sale_new, 0));
  assert_true(evaluates(w, "tags has 'sale'"));
  put_value(w, "one", none_of("country"));
  assert_true(evaluates(w, "country = 'fr'"));
  put_value(w, "one", none_of("country"));
  assert_false(evaluates(w, "country = 'fr'"));
  close_world(w);
}

static void a_filter_is_evaluated_again_when_items_come_or_go(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_true(evaluates(w, "country = 'de'"));
  put_vector(w, "three", "b", 3); /* a new slot, without a part of this space */
  assert_true(evaluates(w, "country = 'de'"));
  put_vector(w, "three", "a", 3);
  assert_true(evaluates(w, "country = 'de'"));
  fixture_delete(w->engine, span_of_str("one")); /* "three" moves into its slot */
  assert_true(evaluates(w, "country = 'de'"));
  put_value(w, "four", none_of("country")); /* no parts, no attributes */
  put_vector(w, "five", "a", 5);
  assert_true(evaluates(w, "country = 'de'"));
  fixture_delete(w->engine, span_of_str("four")); /* "five" moves into its slot */
  assert_true(evaluates(w, "country = 'de'"));
  fixture_delete(w->engine, span_of_str("unknown"));
  assert_false(evaluates(w, "country = 'de'"));
  close_world(w);
}

static void a_filter_stays_while_parts_of_other_spaces_come_or_go(void **state)
{
  struct item_change whole = { .key = span_of_str("three"), .is_whole = true };
  struct world *w = open_world();

  (void)state;
  put_vector(w, "three", "a", 3);
  assert_true(evaluates_in(w, "a", "country = 'de'"));
  assert_true(evaluates_in(w, "b", "country = 'de'"));
  put_vector(w, "three", "b", 3);
  assert_false(evaluates_in(w, "a", "country = 'de'"));
  assert_true(evaluates_in(w, "b", "country = 'de'"));
  fixture_apply(w->engine, &whole, 1); /* its parts are dropped */
  assert_true(evaluates_in(w, "a", "country = 'de'"));
  assert_true(evaluates_in(w, "b", "country = 'de'"));
  close_world(w);
}

static void a_filter_is_evaluated_again_when_an_item_expires_or_is_renewed(void **state)
{
  struct world *w = open_world();

  (void)state;
  put_value(w, "one", time_of("ends", now_ms + 10));
  assert_true(evaluates(w, "country = 'de'"));
  now_ms += 9;
  put_vector(w, "one", "a", 3);
  assert_false(evaluates(w, "country = 'de'"));
  now_ms += 1;
  put_vector(w, "one", "a", 3); /* an epoch of another change */
  assert_true(evaluates(w, "country = 'de'"));
  put_value(w, "one", time_of("ends", now_ms + 10));
  assert_true(evaluates(w, "country = 'de'"));
  put_value(w, "one", time_of("ends", now_ms + 20));
  assert_false(evaluates(w, "country = 'de'"));
  now_ms += 20;
  assert_ok(engine_pass_time(w->engine));
  assert_true(evaluates(w, "country = 'de'"));
  assert_false(evaluates(w, "country = 'de'"));
  close_world(w);
}

static err_code_t feed_one(void *context, struct engine_loading *loading)
{
  struct world *w = context;
  struct item_change one = { .key = span_of_str("one") };

  return engine_loading_put(loading, &w->region, 0, &one, 1);
}

static void a_filter_is_evaluated_again_after_the_catalogue_is_replaced(void **state)
{
  struct world *w = open_world();

  (void)state;
  assert_true(evaluates(w, "country = 'de'"));
  assert_ok(engine_replace(w->engine, feed_one, w, 1, NULL, 0));
  assert_true(evaluates(w, "country = 'de'"));
  assert_false(evaluates(w, "country = 'de'"));
  put_vector(w, "one", "a", 3);
  assert_true(evaluates(w, "country = 'de'"));
  put_vector(w, "one", "a", 4);
  assert_false(evaluates(w, "country = 'de'"));
  close_world(w);
}

/* Programs for a device -------------------- */

/* Find what queries admit where a device can make words. out lives in the world's region. */
static void admit_for_device(struct world *w, struct query *queries, size_t n, struct admission *out)
{
  const struct admission_target target = { .arena = pair_front(w->engine->pair),
                                           .cache = w->engine->filters,
                                           .makes_words = true };
  const struct query *pointers[4];

  *out = (struct admission){ 0 };
  region_reset(&w->region);
  for (size_t i = 0; i < n; i++) {
    assert_ok(engine_check_filter(w->engine, &queries[i], &w->region));
    pointers[i] = &queries[i];
  }
  assert_ok(admission_find(&target, pointers, n, &w->region, out));
}

/* Does a query with this filter get a program? */
static bool has_program(struct world *w, const char *filter)
{
  struct query query = { .space = span_of_str("a"), .k = 1, .filter = span_of_str(filter) };
  struct admission admission;

  admit_for_device(w, &query, 1, &admission);
  const struct admit *admit = &admission.admits[0];
  bool is_made = admit->program != NULL;
  assert_int_equal(admit->words == NULL, is_made);
  admission_release(&admission);
  return is_made;
}

static void the_first_of_a_version_is_up_to_the_device_and_the_second_is_kept(void **state)
{
  struct world *w = open_world();

  (void)state;
  for (int i = 3; i < 100; i++) {
    char key[8];
    snprintf(key, sizeof key, "%d", i);
    put_value(w, key, number_of("price", i));
  }
  assert_true(has_program(w, "price > 50"));
  assert_false(has_program(w, "price > 50"));
  assert_false(has_program(w, "price > 50"));
  assert_true(has_program(w, "price > 51"));
  assert_false(has_program(w, "tags has 'sale'")); /* texts of sets are not on the device */
  for (int i = 3; i < 100; i++) {                  /* too many changes to patch words */
    char key[8];
    snprintf(key, sizeof key, "%d", i);
    put_value(w, key, number_of("price", i + 1));
  }
  assert_true(has_program(w, "price > 50"));
  close_world(w);
}

static void words_are_patched_rather_than_made_by_the_device(void **state)
{
  struct world *w = open_world();
  struct item_change items[ITEMS - 10];
  char keys[ITEMS - 10][8];

  (void)state;
  for (size_t i = 0; i < ITEMS - 10; i++)
    items[i] = (struct item_change){ .key = span_of(keys[i], (size_t)snprintf(keys[i], sizeof keys[i], "%zu", i)) };
  fixture_apply(w->engine, items, ITEMS - 10);
  assert_true(has_program(w, "has(tags) or price > 50"));
  assert_false(has_program(w, "has(tags) or price > 50"));
  put_value(w, "one", text_of("country", "at")); /* which the filter does not name */
  assert_false(has_program(w, "has(tags) or price > 50"));
  close_world(w);
}

/* The few that are excluded are looked up by themselves: "two" has a price above 1, "one" has none. */
static void a_query_that_looks_many_items_up_gets_words(void **state)
{
  enum { MANY = 100 };
  struct world *w = open_world();
  struct span few[] = { span_of_str("one"), span_of_str("two"), span_of_str("none") }, many[MANY];
  struct query queries[4];
  struct admission admission;

  (void)state;
  for (size_t i = 0; i < MANY; i++)
    many[i] = few[i % 3];
  for (size_t i = 0; i < 4; i++)
    queries[i] = (struct query){ .space = span_of_str("a"), .k = 1, .filter = span_of_str("price > 1") };
  queries[1].exclude = few;
  queries[1].n_exclude = 3;
  queries[2].explain = few;
  queries[2].n_explain = 1;
  queries[3].exclude = many;
  queries[3].n_exclude = MANY;
  admit_for_device(w, queries, 4, &admission);
  const struct admit *admits = admission.admits;
  assert_non_null(admits[0].program);
  assert_int_equal(admits[0].n_admitted, 1); /* a bound: one item has a price */
  assert_ptr_equal(admits[1].program, admits[0].program);
  assert_int_equal(admits[1].n_excluded, 1);
  assert_int_equal(admits[1].n_admitted, 0);
  assert_null(admits[2].program);
  assert_int_equal(admits[2].n_admitted, 1);
  assert_null(admits[3].program);
  assert_int_equal(admits[3].n_admitted, 0);
  admission_release(&admission);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_filter_stays_while_only_vectors_change),
    cmocka_unit_test(a_filter_is_evaluated_again_when_an_attribute_that_it_names_changes),
    cmocka_unit_test(a_filter_stays_while_other_attributes_change),
    cmocka_unit_test(a_value_that_is_put_again_is_no_change),
    cmocka_unit_test(a_filter_is_evaluated_again_when_items_come_or_go),
    cmocka_unit_test(a_filter_stays_while_parts_of_other_spaces_come_or_go),
    cmocka_unit_test(a_filter_is_evaluated_again_when_an_item_expires_or_is_renewed),
    cmocka_unit_test(a_filter_is_evaluated_again_after_the_catalogue_is_replaced),
    cmocka_unit_test(the_first_of_a_version_is_up_to_the_device_and_the_second_is_kept),
    cmocka_unit_test(words_are_patched_rather_than_made_by_the_device),
    cmocka_unit_test(a_query_that_looks_many_items_up_gets_words),
  };

  return cmocka_run_group_tests(tests, write_model, remove_model);
}
