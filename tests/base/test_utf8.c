/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: the limits of every range, forms that are not well-formed, and repairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/utf8.h"

static void utf8_is_told_from_other_bytes(void **state)
{
  static const char *const good[] = { "", "abc\n", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                      "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf" };
  static const char *const bad[] = { "\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe0\xa0",
                                     "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                                     "\xff", "a\xe2\x82", "\xe2\x82\x41", "\xf0\x90\x80" };
  (void)state;

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_true(utf8_is_valid(span_of_str(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_false(utf8_is_valid(span_of_str(bad[i])));
  assert_false(utf8_is_valid(span_of("a\0b", 3)));
}

static void the_good_beginning_of_a_text_is_measured(void **state)
{
  (void)state;
  assert_int_equal(utf8_prefix(span_of_str("")), 0);
  assert_int_equal(utf8_prefix(span_of_str("a\xc3\xbc")), 3);
  assert_int_equal(utf8_prefix(span_of_str("a\xc3\xbc\xe2\x82")), 3);
  assert_int_equal(utf8_prefix(span_of("ab\0c", 4)), 2);
}

static void characters_are_counted(void **state)
{
  (void)state;
  assert_int_equal(utf8_count(span_of_str("")), 0);
  assert_int_equal(utf8_count(span_of_str("a\xc3\xbc\xe2\x82\xac\xf0\x90\x80\x80z")), 5);
}

static void bad_bytes_are_mended(void **state)
{
  struct region region = { 0 };
  char *mended;
  (void)state;

  assert_int_equal(utf8_mend(&region, span_of("a\xff\xc3\xbc\0\xe2\x82", 7), &mended), ERR_OK);
  assert_string_equal(mended, "a?\xc3\xbc???");
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(utf8_is_told_from_other_bytes),
    cmocka_unit_test(the_good_beginning_of_a_text_is_measured),
    cmocka_unit_test(characters_are_counted),
    cmocka_unit_test(bad_bytes_are_mended),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
