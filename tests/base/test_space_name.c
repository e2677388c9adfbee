/* SPDX-License-Identifier: Apache-2.0 */
/* Names of spaces: with and without a generation, canonical, and those that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/space_name.h"

static void a_name_is_taken_apart_and_printed_in_its_canonical_form(void **state)
{
  static const struct {
    const char *text, *space, *canonical;
    uint32_t generation;
  } rows[] = {
    { "books", "books", "books", 0 },
    { "books@1", "books", "books", 1 },
    { "books@2", "books", "books@2", 2 },
    { "a.b-c_d@999999999", "a.b-c_d", "a.b-c_d@999999999", SPACE_GENERATION_MAX },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct space_name name;
    char text[SPACE_NAME_MAX + 1];
    assert_true(space_name_parse(span_of_str(rows[i].text), &name));
    assert_true(span_equal(name.space, span_of_str(rows[i].space)));
    assert_int_equal(name.generation, rows[i].generation);
    assert_true(space_name_print(&name, text));
    assert_string_equal(text, rows[i].canonical);
  }
}

static void what_follows_the_sign_must_be_a_generation(void **state)
{
  static const char *const texts[] = { "books@",   "books@0",   "books@02",         "books@x",
                                       "books@2 ", "books@-1",  "books@1000000000", "@2",
                                       "@",        "books@2@3", "books@4294967298" };

  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct space_name name;
    if (space_name_parse(span_of_str(texts[i]), &name))
      fail_msg("%s is a name with generation %u", texts[i], name.generation);
  }
}

static void a_canonical_name_has_at_most_64_bytes(void **state)
{
  char space[SPACE_NAME_MAX], text[SPACE_NAME_MAX + 1];
  struct space_name name = { span_of(space, SPACE_NAME_MAX), 1 };

  (void)state;
  memset(space, 's', sizeof space);
  assert_true(space_name_print(&name, text));
  name.generation = 2;
  assert_false(space_name_print(&name, text));
  name.space.n = SPACE_NAME_MAX - 2;
  assert_true(space_name_print(&name, text));
  name.generation = 10;
  assert_false(space_name_print(&name, text));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_name_is_taken_apart_and_printed_in_its_canonical_form),
    cmocka_unit_test(what_follows_the_sign_must_be_a_generation),
    cmocka_unit_test(a_canonical_name_has_at_most_64_bytes),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
