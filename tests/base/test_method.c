/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and printing methods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/method.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

static uint64_t seed;

static void every_form_is_read_and_written_back(void **state)
{
  static const struct {
    const char *text, *name;
    unsigned n_args;
    uint32_t args[2];
    const char *printed;
  } rows[] = {
    { "", "exact", 0, { 0, 0 }, "exact" },
    { "exact", "exact", 0, { 0, 0 }, "exact" },
    { "brute_force", "brute_force", 0, { 0, 0 }, "brute_force" },
    { "_", "_", 0, { 0, 0 }, "_" },
    { "average(1)", "average", 1, { 1, 0 }, "average(1)" },
    { "average( 4000)", "average", 1, { 4000, 0 }, "average(4000)" },
    { "average(0004000)", "average", 1, { 4000, 0 }, "average(4000)" },
    { "average(4294967295)", "average", 1, { 4294967295u, 0 }, "average(4294967295)" },
    { "combined(100,1000)", "combined", 2, { 100, 1000 }, "combined(100,1000)" },
    { "combined(100, 1000)", "combined", 2, { 100, 1000 }, "combined(100,1000)" },
    { "abcdefghijklmnopqrstuvw", "abcdefghijklmnopqrstuvw", 0, { 0, 0 }, "abcdefghijklmnopqrstuvw" },
    { "abcdefghijklmnopqrstuvw(4294967295,4294967295)", "abcdefghijklmnopqrstuvw", 2, { UINT32_MAX, UINT32_MAX },
      "abcdefghijklmnopqrstuvw(4294967295,4294967295)" },
  };
  char text[METHOD_TEXT_MAX];

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct method method, again;
    assert_ok(method_parse(span_of_str(rows[i].text), &method));
    assert_string_equal(method.name, rows[i].name);
    assert_int_equal(method.n_args, rows[i].n_args);
    assert_memory_equal(method.args, rows[i].args, sizeof method.args);
    method_print(&method, text);
    assert_string_equal(text, rows[i].printed);
    assert_ok(method_parse(span_of_str(text), &again));
    assert_memory_equal(&again, &method, sizeof method); /* methods are compared by their bytes */
  }
}

static void every_malformed_form_is_refused_and_quoted(void **state)
{
  static const char *const texts[] = {
    " ",          "(",           "()",           "(5)",           "Average",         "average(",      "average()",
    "average)",   "average(0)",  "average(-1)",  "average(+1)",   "average(1",       "average(1,",    "average(1,)",
    "average(,1)", "average(1,2,3)", "average(1,2,)", "average(1)x", "average(1))",  "average((1)",   "average(1 )",
    "average (1)", "average(1 ,2)", "average(x)",  "average(1.5)",  "average(1e3)",   "average(0x1)",
    "average(4294967296)", "average(99999999999999999999)", "average(00000000001)", "average(1;2)", "average2", "a-b",
    "a b", "exact ", " exact", "average(\t1)",
    "abcdefghijklmnopqrstuvwx", "a\xc3\xa4", "\xff", "average(\xc2\xb2)",
  };

  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct method method = { .name = "untouched" };
    if (method_parse(span_of_str(texts[i]), &method) != ERR_METHOD)
      fail_msg("\"%s\" was not refused", texts[i]);
    assert_non_null(strstr(err_message(), "name(N1,N2)"));
    assert_string_equal(method.name, "untouched");
  }
}

static void a_zero_byte_is_no_end(void **state)
{
  struct method method;

  (void)state;
  assert_int_equal(method_parse(span_of("exact\0", 6), &method), ERR_METHOD);
  assert_int_equal(method_parse(span_of("\0", 1), &method), ERR_METHOD);
  assert_int_equal(method_parse(span_of("average(1\0)", 11), &method), ERR_METHOD);
  assert_ok(method_parse(span_of("average(17)junk", 11), &method)); /* parsing must stop at the end of the span */
  assert_int_equal(method.args[0], 17);
}

/* Text that is accepted must be printed as a text with the same meaning. */
static void noise_is_refused_or_read_back_the_same(void **state)
{
  static const char letters[] = "abz_(((),,,) 019999AZ-\xff";
  struct dice dice = { seed };
  char bytes[48], text[METHOD_TEXT_MAX];
  size_t n_accepted = 0;

  (void)state;
  for (int round = 0; round < 50000; round++) {
    struct method method, again;
    size_t n = dice_below(&dice, sizeof bytes);
    for (size_t i = 0; i < n; i++)
      bytes[i] = letters[dice_below(&dice, i < 2 ? 4 : sizeof letters)];
    if (dice_below(&dice, 2))
      n = (size_t)snprintf(bytes, sizeof bytes, "ab(%zu,%zu)", dice_below(&dice, 7), dice_below(&dice, 5000000000));
    uint8_t *exact = malloc(n ? n : 1); /* in a block of exactly this size, the sanitizer sees a read past the end */
    memcpy(exact, bytes, n);
    if (method_parse(span_of(exact, n), &method) == ERR_OK) {
      n_accepted++;
      method_print(&method, text);
      assert_ok(method_parse(span_of_str(text), &again));
      assert_memory_equal(&again, &method, sizeof method);
    }
    free(exact);
  }
  assert_true(n_accepted > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_form_is_read_and_written_back),
    cmocka_unit_test(every_malformed_form_is_refused_and_quoted),
    cmocka_unit_test(a_zero_byte_is_no_end),
    cmocka_unit_test(noise_is_refused_or_read_back_the_same),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
