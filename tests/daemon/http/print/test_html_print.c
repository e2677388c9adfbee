/* SPDX-License-Identifier: Apache-2.0 */
/* Values in HTML: hostile text, and numbers for people. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/http/print/html_print.h"

static FILE *out;
static char *text;
static size_t n_text;

static void begin(void)
{
  out = open_memstream(&text, &n_text);
  assert_non_null(out);
}

static void expect(const char *wanted)
{
  assert_int_equal(fclose(out), 0);
  assert_string_equal(text, wanted);
  free(text);
}

static void expect_number(double value, const char *wanted)
{
  begin();
  html_print_number(out, value);
  expect(wanted);
}

static void expect_bytes(double n, const char *wanted)
{
  begin();
  html_print_bytes(out, n);
  expect(wanted);
}

static void expect_duration(double seconds, const char *wanted)
{
  begin();
  html_print_duration(out, seconds);
  expect(wanted);
}

static void test_text_cannot_end_its_place(void **state)
{
  (void)state;
  begin();
  html_print_text(out, "<script>\"a\" & 'b'\x01\x7f\n\xc3\xa4");
  expect("&lt;script&gt;&quot;a&quot; &amp; 'b'   \xc3\xa4");
}

static void test_numbers(void **state)
{
  (void)state;
  expect_number(0, "0");
  expect_number(999, "999");
  expect_number(1000, "1,000");
  expect_number(-1234567, "-1,234,567");
  expect_number(0.0449, "0.045");
  expect_number(1.5, "1.50");
  expect_number(12.34, "12.3");
  expect_number(1234.6, "1,235");
}

static void test_bytes(void **state)
{
  (void)state;
  expect_bytes(0, "0 bytes");
  expect_bytes(1023, "1,023 bytes");
  expect_bytes(1536, "1.50 KiB");
  expect_bytes(3.0 * (1 << 30), "3 GiB");
  expect_bytes(5e18, "4,547,474 TiB");
}

static void test_durations(void **state)
{
  (void)state;
  expect_duration(-1, "0 s");
  expect_duration(59.9, "59 s");
  expect_duration(60, "1 min");
  expect_duration(2 * 3600 + 61, "2 h 1 min");
  expect_duration(3 * 86400 + 3600, "3 d 1 h");
}

static void test_a_time(void **state)
{
  (void)state;
  begin();
  html_print_time(out, INT64_C(1700000000123));
  expect("2023-11-14 22:13:20");
  begin();
  html_print_time(out, INT64_MAX);
  expect("292278994-08-17 07:12:55");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_text_cannot_end_its_place),
    cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_bytes),
    cmocka_unit_test(test_durations),
    cmocka_unit_test(test_a_time),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
