/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of log lines: what log_quote() has written is read back, and damaged or cut text does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/log_pairs.h"
#include "tests/support/dice.h"

static uint64_t seed;

static void check_next(const char **text, const char *key, const char *value)
{
  struct log_pair pair;

  assert_true(log_pairs_next(text, &pair));
  assert_true(span_equal(pair.key, span_of_str(key)));
  assert_true(span_equal(pair.value, span_of_str(value)));
}

static void pairs_come_in_order(void **state)
{
  const char *text = "topic=items partition=3 reason=\"a = b\" empty= quoted=\"\" last=\"x\"";
  struct log_pair pair;

  (void)state;
  check_next(&text, "topic", "items");
  check_next(&text, "partition", "3");
  check_next(&text, "reason", "a = b");
  check_next(&text, "empty", "");
  check_next(&text, "quoted", "");
  check_next(&text, "last", "x");
  assert_false(log_pairs_next(&text, &pair));
}

static void a_key_is_found_at_its_place_only(void **state)
{
  struct log_pair pair;

  (void)state;
  assert_true(log_pairs_find("note=\"reason=no\" reason=yes", "reason", &pair));
  assert_true(span_equal(pair.value, span_of_str("yes")));
  assert_false(log_pairs_find("note=\"reason=no\"", "reason", &pair));
}

static void words_without_a_value_are_skipped_and_a_cut_value_ends_with_the_text(void **state)
{
  const char *text = "  lone =x a=1 word b=\"cut off";
  struct log_pair pair;

  (void)state;
  check_next(&text, "a", "1");
  check_next(&text, "b", "cut off");
  assert_false(log_pairs_next(&text, &pair));
}

static void a_quoted_value_has_its_bytes_back(void **state)
{
  struct dice dice = { seed };
  uint8_t bytes[100];
  char line[600], back[512];
  struct log_pair pair;

  (void)state;
  for (int round = 0; round < 2000; round++) {
    size_t n = dice_below(&dice, sizeof bytes);
    for (size_t i = 0; i < n; i++)
      bytes[i] = (uint8_t)dice_u64(&dice);
    snprintf(line, sizeof line, "a=1 key=%s z=2", log_quote(span_of(bytes, n)));
    assert_true(log_pairs_find(line, "key", &pair));
    assert_int_equal(log_pairs_unquote(pair.value, back), n);
    if (n)
      assert_memory_equal(back, bytes, n);
  }
}

static void any_text_is_read_to_its_end(void **state)
{
  static const char letters[] = " =\"\\x0fa";
  struct dice dice = { seed };
  struct log_pair pair;

  (void)state;
  for (int round = 0; round < 20000; round++) {
    size_t n = dice_below(&dice, 30), n_pairs = 0;
    char *text = malloc(n + 1), *out = malloc(n + 1); /* of the exact size, for the address sanitizer */
    for (size_t i = 0; i < n; i++)
      text[i] = letters[dice_below(&dice, sizeof letters - 1)];
    text[n] = '\0';
    for (const char *at = text; log_pairs_next(&at, &pair); n_pairs++)
      assert_true(log_pairs_unquote(pair.value, out) <= pair.value.n);
    assert_true(n_pairs <= n);
    free(text);
    free(out);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(pairs_come_in_order),
    cmocka_unit_test(a_key_is_found_at_its_place_only),
    cmocka_unit_test(words_without_a_value_are_skipped_and_a_cut_value_ends_with_the_text),
    cmocka_unit_test(a_quoted_value_has_its_bytes_back),
    cmocka_unit_test(any_text_is_read_to_its_end),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
