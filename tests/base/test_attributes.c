/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of attributes: look-ups, copies and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/attributes.h"
#include "tests/support/assert_ok.h"

static struct attribute attribute(const char *name, enum attribute_type type)
{
  return (struct attribute){ span_of_str(name), type };
}

static void finds_attributes_whatever_the_hint(void **state)
{
  const struct attribute v[] = { attribute("country", ATTRIBUTE_KEYWORD), attribute("price", ATTRIBUTE_NUMBER),
                                 attribute("pric", ATTRIBUTE_BOOL) };
  const struct attributes attributes = { v, 3 };

  (void)state;
  for (size_t hint = 0; hint < 5; hint++) {
    assert_int_equal(attributes_find(&attributes, span_of_str("country"), hint), 0);
    assert_int_equal(attributes_find(&attributes, span_of_str("price"), hint), 1);
    assert_int_equal(attributes_find(&attributes, span_of_str("pric"), hint), 2);
    assert_true(attributes_find(&attributes, span_of_str("Price"), hint) == ATTRIBUTE_NONE);
  }
  assert_true(attributes_find(&(struct attributes){ 0 }, span_of_str("price"), 0) == ATTRIBUTE_NONE);
}

static void a_copy_outlives_its_source(void **state)
{
  char name[] = "price";
  struct attribute v[] = { attribute(name, ATTRIBUTE_TIME) };
  struct attributes copy;

  (void)state;
  assert_ok(attributes_copy(&(struct attributes){ v, 1 }, &copy));
  memset(name, 'x', sizeof name);
  assert_int_equal(attributes_find(&copy, span_of_str("price"), 0), 0);
  assert_int_equal(copy.v[0].type, ATTRIBUTE_TIME);
  attributes_free(&copy);
  assert_int_equal(copy.n, 0);
  attributes_free(&copy);
}

static void types_are_found_by_their_names(void **state)
{
  enum attribute_type type;

  (void)state;
  for (int i = 0; i < N_ATTRIBUTE_TYPES; i++) {
    assert_true(attribute_type_find(span_of_str(attribute_type_name((enum attribute_type)i)), &type));
    assert_int_equal(type, i);
  }
  assert_false(attribute_type_find(span_of_str("Bool"), &type));
  assert_false(attribute_type_find(span_of_str(""), &type));
}

static void names_are_letters_and_digits(void **state)
{
  static const char *const good[] = { "a", "_", "Z9", "in_stock", "not_before2" };
  static const char *const bad[] = { "", "9a", "a-b", "a.b", "a b", "\xc3\xa4" };
  char longest[ATTRIBUTE_NAME_MAX + 1];

  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_true(attribute_name_is_valid(span_of_str(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_false(attribute_name_is_valid(span_of_str(bad[i])));
  memset(longest, 'a', sizeof longest);
  assert_true(attribute_name_is_valid(span_of(longest, ATTRIBUTE_NAME_MAX)));
  assert_false(attribute_name_is_valid(span_of(longest, sizeof longest)));
  assert_false(attribute_name_is_valid(span_of("a\0b", 3)));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(finds_attributes_whatever_the_hint),
    cmocka_unit_test(a_copy_outlives_its_source),
    cmocka_unit_test(types_are_found_by_their_names),
    cmocka_unit_test(names_are_letters_and_digits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
