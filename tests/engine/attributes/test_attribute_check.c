/* SPDX-License-Identifier: Apache-2.0 */
/* Values against the types of their attributes: what is accepted, its kept form, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/attributes/attribute_check.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

static struct region region;

static const struct value yes = { .kind = VALUE_BOOL, .is_true = true };
static const struct value seven = { .kind = VALUE_INTEGER, .integer = 7 };
static const struct value below_zero = { .kind = VALUE_INTEGER, .integer = -1 };
static const struct value half = { .kind = VALUE_NUMBER, .number = 0.5 };
static const struct value word = { .kind = VALUE_TEXT, .text = { (const uint8_t *)"cheap", 5 } };
static const struct value numbers = { .kind = VALUE_LIST, .list = { &seven, 1 } };
static const struct value words = { .kind = VALUE_LIST, .list = { &word, 1 } };
static const struct value nothing = { .kind = VALUE_LIST, .list = { NULL, 0 } };

static err_code_t check(enum attribute_type type, struct value value)
{
  struct attribute attribute = { span_of_str("price"), type };

  return attribute_normalize(&attribute, &region, &value);
}

static void each_type_takes_its_values_and_no_others(void **state)
{
  static const struct value *const all[] = { &yes, &seven, &below_zero, &half, &word, &numbers, &words, &nothing };
  static const char accepted[N_ATTRIBUTE_TYPES][9] = {
    [ATTRIBUTE_BOOL] = "y.......",    [ATTRIBUTE_KEYWORD] = "....y...", [ATTRIBUTE_KEYWORDS] = "......yy",
    [ATTRIBUTE_INTEGER] = ".yy.....", [ATTRIBUTE_NUMBER] = ".yyy....",  [ATTRIBUTE_TIME] = ".y......",
  };

  (void)state;
  for (int type = 0; type < N_ATTRIBUTE_TYPES; type++) {
    assert_ok(check((enum attribute_type)type, (struct value){ .kind = VALUE_NULL }));
    for (size_t i = 0; i < 8; i++)
      assert_int_equal(check((enum attribute_type)type, *all[i]), accepted[type][i] == 'y' ? ERR_OK : ERR_ITEM);
  }
}

static void refusals_name_attribute_type_and_value(void **state)
{
  const struct value whole = { .kind = VALUE_NUMBER, .number = 3 }, large = { .kind = VALUE_NUMBER, .number = -1e300 };

  (void)state;
  assert_fails(check(ATTRIBUTE_NUMBER, word), ERR_ITEM,
               "attributes[\"price\"]: expected a finite number, not the text \"cheap\"");
  assert_fails(check(ATTRIBUTE_INTEGER, half), ERR_ITEM,
               "expected an integer, without a decimal point or an exponent, not the number 0.5");
  assert_fails(check(ATTRIBUTE_INTEGER, whole), ERR_ITEM, "not the number 3.0");
  assert_fails(check(ATTRIBUTE_INTEGER, large), ERR_ITEM, "not the number -1.0000000000000001e+300");
  assert_fails(check(ATTRIBUTE_TIME, below_zero), ERR_ITEM,
               "milliseconds since 1970, not negative), not the integer -1");
  assert_fails(check(ATTRIBUTE_BOOL, seven), ERR_ITEM, "expected true or false, not the integer 7");
  assert_fails(check(ATTRIBUTE_KEYWORD, words), ERR_ITEM, "expected text, not a list of 1");
  assert_fails(check(ATTRIBUTE_KEYWORDS, word), ERR_ITEM, "expected a list of texts, not the text \"cheap\"");
  assert_fails(check(ATTRIBUTE_KEYWORDS, numbers), ERR_ITEM, "expected only texts in the list, not the integer 7");
  assert_fails(check(ATTRIBUTE_NUMBER, (struct value){ .kind = VALUE_NUMBER, .number = NAN }), ERR_ITEM, "nan");
}

static void limits_are_exact(void **state)
{
  static uint8_t bytes[ATTRIBUTE_TEXT_MAX + 1];
  static struct value many[ATTRIBUTE_SET_MAX + 1];
  struct value text = { .kind = VALUE_TEXT, .text = { bytes, ATTRIBUTE_TEXT_MAX } };
  struct value set = { .kind = VALUE_LIST, .list = { many, ATTRIBUTE_SET_MAX } };

  (void)state;
  for (size_t i = 0; i <= ATTRIBUTE_SET_MAX; i++)
    many[i] = text;
  assert_ok(check(ATTRIBUTE_KEYWORD, text));
  assert_ok(check(ATTRIBUTE_KEYWORDS, set));
  text.text.n++;
  set.list.n++;
  assert_fails(check(ATTRIBUTE_KEYWORD, text), ERR_ITEM, "a text of 257 bytes, at most 256");
  assert_fails(check(ATTRIBUTE_KEYWORDS, set), ERR_ITEM, "257 texts, at most 256");
}

static void numbers_get_their_kept_form(void **state)
{
  struct attribute number = { span_of_str("price"), ATTRIBUTE_NUMBER };
  struct value value = { .kind = VALUE_INTEGER, .integer = INT64_MIN };

  (void)state;
  assert_ok(attribute_normalize(&number, &region, &value));
  assert_true(value.kind == VALUE_NUMBER && value.number == -0x1p63);
  value = (struct value){ .kind = VALUE_NUMBER, .number = -0.0 };
  assert_ok(attribute_normalize(&number, &region, &value));
  assert_false(signbit(value.number));
}

static void sets_are_sorted_and_have_each_text_once(void **state)
{
  struct attribute tags = { span_of_str("tags"), ATTRIBUTE_KEYWORDS };
  struct dice d = { dice_seed() };

  (void)state;
  for (int round = 0; round < 500; round++) {
    uint8_t texts[30][2];
    struct value v[30], set = { .kind = VALUE_LIST, .list = { v, dice_below(&d, 31) } };
    size_t n = set.list.n;
    for (size_t i = 0; i < n; i++) {
      texts[i][0] = (uint8_t)('a' + dice_below(&d, 4));
      texts[i][1] = (uint8_t)('a' + dice_below(&d, 4));
      v[i] = (struct value){ .kind = VALUE_TEXT, .text = { texts[i], dice_below(&d, 3) } };
    }
    region_reset(&region);
    assert_ok(attribute_normalize(&tags, &region, &set));
    for (size_t i = 1; i < set.list.n; i++)
      assert_true(span_compare(set.list.v[i - 1].text, set.list.v[i].text) < 0);
    for (size_t i = 0; i < n; i++) {
      bool is_there = false;
      for (size_t j = 0; j < set.list.n; j++)
        is_there |= span_equal(set.list.v[j].text, v[i].text);
      assert_true(is_there);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_type_takes_its_values_and_no_others),
    cmocka_unit_test(refusals_name_attribute_type_and_value),
    cmocka_unit_test(limits_are_exact),
    cmocka_unit_test(numbers_get_their_kept_form),
    cmocka_unit_test(sets_are_sorted_and_have_each_text_once),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  region_fini(&region);
  return failed;
}
