/* SPDX-License-Identifier: Apache-2.0 */
/* What the store keeps of the control topic: records, and marks of retired generations whose parts are deleted. */
#include "daemon/models/model_rows.h"

#include "tests/support/store_fixture.h"

static struct region region;
static struct model_rows rows;

static struct store_position at(int64_t next)
{
  return (struct store_position){ { 0, next }, next - 1, 1, 1, 1 };
}

static void put_mark(struct fixture *f, const char *name)
{
  struct store_position position = at(1);

  assert_ok(model_rows_put_mark(f->store, name, &position));
}

/* Store a record that says this, as it comes from the topic after those of the state. */
static void store(struct fixture *f, const char *name, const struct model_change *change,
                  const struct model_state *models)
{
  const struct store_model_record record = { span_of_str(name), true, span_of_str("{}") };
  struct store_model_record records[MODEL_ROWS_PER_RECORD];
  struct store_position position = at(2);
  size_t n = 0;

  assert_ok(model_rows_append(&record, change, models, &region, records, &n));
  assert_ok(store_models_put(f->store, records, n, &position));
}

static void add(struct fixture *f, const char *name, uint32_t generation)
{
  const struct model_state nothing = { 0 };
  const struct model_change change = { MODEL_ADD, .space = span_of_str("books"), .generation = generation };

  store(f, name, &change, &nothing);
}

/* Is there a mark of this generation of `books` after a restart? */
static bool is_marked(struct fixture *f, uint32_t generation)
{
  AUTO(model_state_fini) struct model_state state = { 0 };
  struct space_name name;

  reopen(f);
  region_reset(&region);
  assert_ok(model_rows_read(f->store, &region, &state, &rows));
  for (size_t i = 0; i < rows.n; i++) {
    if (model_rows_is_mark(&rows.at[i], &name) && span_equal(name.space, span_of_str("books")) &&
        name.generation == generation)
      return true;
  }
  return false;
}

static void a_mark_survives_a_restart(void **state)
{
  struct fixture *f = *state;

  put_mark(f, "books@2");
  assert_true(is_marked(f, 2));
  assert_false(is_marked(f, 1));
  put_mark(f, "books"); /* the canonical name of the first generation */
  assert_true(is_marked(f, 1));
}

/* Otherwise a later start would take the parts that came since then for deleted, and leave them when the generation is
 * retired again. */
static void a_generation_that_is_added_again_loses_its_mark_and_no_other_does(void **state)
{
  struct fixture *f = *state;

  put_mark(f, "books");
  put_mark(f, "books@2");
  put_mark(f, "books@22");
  add(f, "books@2", 2);
  assert_false(is_marked(f, 2));
  assert_true(is_marked(f, 1));
  assert_true(is_marked(f, 22));
  assert_int_equal(rows.n, 3);
  add(f, "books@1", 1);
  assert_false(is_marked(f, 1));
  put_mark(f, "books@2");
  assert_true(is_marked(f, 2));
}

/* 3 derives from 2, and 4 from 3: the parts of 4 are those of 2. */
static void the_generation_whose_parts_are_used_loses_its_mark(void **state)
{
  struct fixture *f = *state;
  AUTO(model_state_fini) struct model_state models = { 0 };
  char digest[MODEL_DIGEST_CHARS + 1];
  struct model_change change = { MODEL_ADD,
                                 .space = span_of_str("books"),
                                 .generation = 3,
                                 .digest = span_of(digest, MODEL_DIGEST_CHARS),
                                 .path = span_of_str("/books-3"),
                                 .derives_from = 2 };

  memset(digest, 'd', sizeof digest);
  assert_ok(model_state_apply(&models, &change));
  put_mark(f, "books@2");
  put_mark(f, "books@3");
  change.generation = 4;
  change.derives_from = 3;
  store(f, "books@4", &change, &models);
  assert_false(is_marked(f, 2));
  assert_true(is_marked(f, 3));
}

static void a_retired_generation_keeps_its_mark(void **state)
{
  struct fixture *f = *state;
  const struct model_state nothing = { 0 };
  const struct model_change change = { MODEL_RETIRE, .space = span_of_str("books"), .generation = 2 };

  put_mark(f, "books@2");
  store(f, "books@2", &change, &nothing);
  assert_true(is_marked(f, 2));
}

/* A name that fills a key leaves no room for the mark's character. */
static void a_name_of_full_length_has_no_mark(void **state)
{
  struct fixture *f = *state;
  char name[SPACE_NAME_MAX + 1];
  const struct model_state nothing = { 0 };
  const struct model_change change = { MODEL_ADD, .space = span_of(name, SPACE_NAME_MAX - 2), .generation = 2 };

  memset(name, 'b', sizeof name);
  memcpy(name + SPACE_NAME_MAX - 2, "@2", sizeof "@2");
  put_mark(f, name);
  assert_ok(store_models_get(f->store, &region, &rows.at, &rows.n, &rows.has_position, &rows.position));
  assert_int_equal(rows.n, 0);
  store(f, name, &change, &nothing);
  assert_ok(store_models_get(f->store, &region, &rows.at, &rows.n, &rows.has_position, &rows.position));
  assert_int_equal(rows.n, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    CASE(a_mark_survives_a_restart),
    CASE(a_generation_that_is_added_again_loses_its_mark_and_no_other_does),
    CASE(the_generation_whose_parts_are_used_loses_its_mark),
    CASE(a_retired_generation_keeps_its_mark),
    CASE(a_name_of_full_length_has_no_mark),
  };

  int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
  region_fini(&region);
  return n_failed;
}
