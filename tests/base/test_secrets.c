/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets are replaced in texts and error messages. The process has one list, so each test has its own secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/secrets.h"

static void assert_hidden_as(const char *text, const char *expected)
{
  char copy[128];

  snprintf(copy, sizeof copy, "%s", text);
  secrets_hide(copy, sizeof copy);
  assert_string_equal(copy, expected);
}

static void every_occurrence_of_a_secret_is_hidden(void **state)
{
  (void)state;
  secrets_add("tr0ub4dor");
  assert_hidden_as("tr0ub4dor", "***");
  assert_hidden_as("a=tr0ub4dor b=tr0ub4dortr0ub4dor.", "a=*** b=******.");
  assert_hidden_as("tr0ub4do r0ub4dor", "tr0ub4do r0ub4dor");
}

static void several_secrets_are_hidden(void **state)
{
  (void)state;
  secrets_add("correct horse");
  secrets_add("battery staple");
  secrets_add("correct horse");
  assert_hidden_as("battery staple, correct horse", "***, ***");
}

static void a_short_secret_does_not_garble_words(void **state)
{
  (void)state;
  secrets_add("kafka");
  secrets_add("");
  assert_hidden_as("kafka is away", "kafka is away");
}

static void assert_cut_as(const char *text, size_t size, const char *expected)
{
  char copy[64];

  assert_in_range(snprintf(copy, size, "%s", text), size, 100); /* it was cut */
  secrets_hide(copy, size);
  assert_string_equal(copy, expected);
}

static void the_beginning_of_a_secret_at_a_cut_is_hidden(void **state)
{
  (void)state;
  secrets_add("xyzzyxyz");
  assert_cut_as("password=xyzzyxyz", 9 + 5 + 1, "password=*****");
  assert_cut_as("password=xyzzyxyz", 9 + 1 + 1, "password=*");
  assert_cut_as("a=xyzzyxyz b=xyzzyxyz", 13 + 7 + 1, "a=*** b=*******");
  assert_cut_as("xyzzyxyz", 7 + 1, "*******"); /* not its end, xyz */
  assert_cut_as("password=none, zzy", 17 + 1, "password=none, zz");
  assert_hidden_as("password=xyzzy", "password=xyzzy"); /* this text ends here */
}

static void an_error_message_has_no_secret(void **state)
{
  (void)state;
  secrets_add("open sesame");
  assert_int_equal(err_set(ERR_CONFIG, "f", 1, "the value %s is wrong", "open sesame"), ERR_CONFIG);
  assert_string_equal(err_message(), "the value *** is wrong");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_occurrence_of_a_secret_is_hidden),
    cmocka_unit_test(several_secrets_are_hidden),
    cmocka_unit_test(a_short_secret_does_not_garble_words),
    cmocka_unit_test(the_beginning_of_a_secret_at_a_cut_is_hidden),
    cmocka_unit_test(an_error_message_has_no_secret),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
