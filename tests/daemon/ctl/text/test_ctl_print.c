/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of text from the network: it does not control the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "daemon/ctl/text/ctl_print.h"

/* Every character up to U+FFFF, and one beyond. */
static void json_for_a_terminal_has_the_same_value(void **state)
{
  static const char *const unsafe[] = { "\x7f",         "\xc2\x80",     "\xc2\x9f",    "\xe2\x80\xaa",
                                        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9" };
  char *text, *every = malloc(6 * 65536 + 8);
  size_t n_text, n = (size_t)sprintf(every, "\"\xf0\x9f\x8d\x82");

  (void)state;
  for (unsigned c = 1; c < 0x10000; c++) {
    if (c < 0xd800 || c > 0xdfff)
      n += (size_t)sprintf(every + n, "\\u%04x", c);
  }
  strcpy(every + n, "\"");
  json_t *json = json_loads(every, JSON_DECODE_ANY, NULL);
  FILE *out = open_memstream(&text, &n_text);
  assert_true(ctl_print_json_value(json, JSON_ENCODE_ANY, out));
  fclose(out);
  json_t *again = json_loads(text, JSON_DECODE_ANY, NULL);
  assert_true(json_equal(json, again));
  for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
    assert_null(strstr(text, unsafe[i]));
  assert_non_null(strstr(text, "~\\u007f\\u0080"));
  assert_non_null(strstr(text, "\\u009f\xc2\xa0"));
  assert_non_null(strstr(text, "\\u202e\xe2\x80\xaf"));
  json_decref(json);
  json_decref(again);
  free(every);
  free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(json_for_a_terminal_has_the_same_value),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
