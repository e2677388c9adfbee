/* SPDX-License-Identifier: Apache-2.0 */
/* Globs: all short patterns and texts, compared with a recursive matcher, and the time that many stars take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/glob.h"

/* Match by the definition, with recursion: the oracle. */
static bool matches(const char *pattern, const char *text)
{
  if (*pattern == '\0')
    return *text == '\0';
  if (*pattern == '*')
    return matches(pattern + 1, text) || (*text && matches(pattern, text + 1));
  return *text && (*pattern == '?' || *pattern == *text) && matches(pattern + 1, text + 1);
}

static void every_short_pattern_matches_what_its_definition_says(void **state)
{
  static const char alphabet[] = "ab*?";
  char pattern[6], text[6];

  (void)state;
  for (unsigned p = 0; p < 1024 * 6; p++) {
    size_t n = p / 1024;
    for (size_t i = 0; i < n; i++)
      pattern[i] = alphabet[(p >> (2 * i)) & 3];
    pattern[n] = '\0';
    for (unsigned t = 0; t < 32 * 6; t++) {
      size_t n_text = t / 32;
      for (size_t i = 0; i < n_text; i++)
        text[i] = alphabet[(t >> i) & 1];
      text[n_text] = '\0';
      if (glob_matches(pattern, span_of_str(text)) != matches(pattern, text))
        fail_msg("\"%s\" against \"%s\"", pattern, text);
    }
  }
}

static void many_stars_take_no_time(void **state)
{
  char text[250];

  (void)state;
  memset(text, 'a', sizeof text);
  assert_false(glob_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", span_of(text, sizeof text)));
  assert_true(glob_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a", span_of(text, sizeof text)));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_short_pattern_matches_what_its_definition_says),
    cmocka_unit_test(many_stars_take_no_time),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
