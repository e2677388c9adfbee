/* SPDX-License-Identifier: Apache-2.0 */
/* Values of mapped records: each form that databases and connectors write, and the errors of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/format_fixture.h"

/* Decode a row with one member more than its id. */
static err_code_t decode_member(const char *member)
{
  char text[1024];

  snprintf(text, sizeof text, "{\"id\":7,%s}", member);
  return decode(NULL, text);
}

static void assert_vector(const char *json)
{
  char text[256];

  snprintf(text, sizeof text, "\"embedding\":%s", json);
  assert_ok(decode_member(text));
  assert_int_equal(item.parts[0].vector.n, 2);
  assert_float_equal(item.parts[0].vector.v[0], 1, 0);
  assert_float_equal(item.parts[0].vector.v[1], -2.5, 0);
}

static void vectors_have_three_forms(void **state)
{
  (void)state;
  assert_vector("[1,-2.5]");
  assert_vector("\"[1, -2.5]\"");
  assert_vector("\"AACAPwAAIMA=\"");
  assert_vector("\"AACAPwAAIMA\"");
  assert_fails(decode_member("\"embedding\":[]"), ERR_ITEM, "embedding: expected numbers, but there are none");
  assert_fails(decode_member("\"embedding\":\"\""), ERR_ITEM, "embedding: expected numbers, but there are none");
  assert_fails(decode_member("\"embedding\":[1,\"2\"]"), ERR_ITEM, "embedding[1]: expected a number, not text");
  assert_fails(decode_member("\"embedding\":[1,null]"), ERR_ITEM, "embedding[1]: expected a number, not null");
  assert_fails(decode_member("\"embedding\":[1,1e39]"), ERR_ITEM, "embedding[1]: 1e+39 does not fit in 32 bits");
  assert_fails(decode_member("\"embedding\":[1e999]"), ERR_ITEM, "embedding[0]: 1e999 does not fit");
  assert_fails(decode_member("\"embedding\":\"[1e999]\""), ERR_ITEM, "embedding[0]: 1e999 does not fit");
  assert_fails(decode_member("\"embedding\":\"[1,\""), ERR_ITEM, "embedding: a list as text, but not JSON");
  assert_fails(decode_member("\"embedding\":\"{1,2}\""), ERR_ITEM, "embedding: not Base64");
  assert_fails(decode_member("\"embedding\":\"AACAPw0=\""), ERR_ITEM, "Base64 of 5 bytes, not a multiple of 4");
  assert_fails(decode_member("\"embedding\":\"AADAfw==\""), ERR_ITEM, "embedding: number 0 is not finite");
  assert_fails(decode_member("\"embedding\":7"), ERR_ITEM,
               "embedding: expected a list of numbers, or Base64 text, not an integer");
  assert_fails(decode_member("\"embedding\":1e999"), ERR_ITEM, "not a number beyond 64 bits");
}

static void codes_have_three_forms(void **state)
{
  const char *const forms[] = { "[7,255]", "\"[7,255]\"", "\"B/8=\"" };

  (void)state;
  for (size_t i = 0; i < 3; i++) {
    char text[64];
    snprintf(text, sizeof text, "\"pq\":{\"codes\":%s}", forms[i]);
    assert_ok(decode_member(text));
    assert_true(span_equal(item.parts[0].codes, span_of("\x07\xff", 2)));
  }
  assert_fails(decode_member("\"pq\":{\"codes\":[256]}"), ERR_ITEM, "pq.codes[0]: 256 is not between 0 and 255");
  assert_fails(decode_member("\"pq\":{\"codes\":[]}"), ERR_ITEM, "pq.codes: expected codes, but there are none");
  assert_fails(decode_member("\"pq\":{\"codes\":true}"), ERR_ITEM, "pq.codes: expected a list of 0..255");
}

static void texts_are_texts_or_integers(void **state)
{
  char longest[ATTRIBUTE_TEXT_MAX + 64] = "\"shipping\":{\"country\":\"";

  (void)state;
  assert_ok(decode_member("\"shipping\":{\"country\":17}"));
  assert_true(span_equal(attribute_of("country")->text, span_of_str("17")));
  assert_fails(decode_member("\"shipping\":{\"country\":1.5}"), ERR_ITEM,
               "shipping.country: expected text or an integer, not a fraction");
  assert_fails(decode_member("\"shipping\":{\"country\":\"a\\u0000\"}"), ERR_ITEM, "text with a zero character");
  memset(longest + strlen(longest), 'x', ATTRIBUTE_TEXT_MAX + 1);
  strcat(longest, "\"}");
  assert_fails(decode_member(longest), ERR_ITEM, "shipping.country: a text of 257 bytes, at most 256");
  assert_ok(decode_member("\"tags\":\"[\\\"b\\\", 3]\""));
  assert_int_equal(attribute_of("tags")->list.n, 2);
  assert_true(span_equal(attribute_of("tags")->list.v[1].text, span_of_str("3")));
  assert_ok(decode_member("\"tags\":[]"));
  assert_int_equal(attribute_of("tags")->list.n, 0);
  assert_fails(decode_member("\"tags\":\"a,b\""), ERR_ITEM, "tags: expected a list of texts, not text");
  assert_fails(decode_member("\"tags\":[\"a\",{}]"), ERR_ITEM, "tags[1]: expected text or an integer, not an object");
}

static void too_many_texts_are_refused(void **state)
{
  char text[1024] = "\"tags\":[0";

  (void)state;
  for (int i = 0; i < ATTRIBUTE_SET_MAX; i++)
    strcat(text, ",0");
  strcat(text, "]");
  assert_fails(decode_member(text), ERR_ITEM, "tags: 257 elements, at most 256");
}

static void assert_bool(const char *json, bool due)
{
  char text[64];

  snprintf(text, sizeof text, "\"available\":%s", json);
  assert_ok(decode_member(text));
  assert_int_equal(attribute_of("available")->is_true, due);
}

static void booleans_may_be_bits(void **state)
{
  (void)state;
  assert_bool("true", true);
  assert_bool("false", false);
  assert_bool("1", true);
  assert_bool("0", false);
  assert_fails(decode_member("\"available\":2"), ERR_ITEM, "available: expected true, false, 1 or 0, not an integer");
  assert_fails(decode_member("\"available\":\"true\""), ERR_ITEM, "not text");
}

static void numbers_may_be_text(void **state)
{
  (void)state;
  assert_ok(decode_member("\"year\":1990.0,\"price\":{\"amount\":\"12.50\"}"));
  assert_int_equal(attribute_of("year")->integer, 1990);
  assert_float_equal(attribute_of("price")->number, 12.5, 0);
  assert_ok(decode_member("\"year\":\"-9223372036854775808\",\"price\":{\"amount\":18446744073709551616}"));
  assert_true(attribute_of("year")->integer == INT64_MIN);
  assert_float_equal(attribute_of("price")->number, 0x1p64, 0);
  assert_fails(decode_member("\"year\":1990.5"), ERR_ITEM, "year: expected an integer, not a fraction");
  assert_ok(decode_member("\"year\":-9007199254740991.0"));
  assert_true(attribute_of("year")->integer == -9007199254740991);
  assert_fails(decode_member("\"year\":9007199254740993.0"), ERR_ITEM,
               "year: 9007199254740992 is not below 2^53, from where on doubles are rounded: write it without a point");
  assert_fails(decode_member("\"year\":1e19"), ERR_ITEM, "year: expected an integer of at most 64 bits, not 1e+19");
  assert_fails(decode_member("\"year\":-1e300"), ERR_ITEM, "year: expected an integer of at most 64 bits, not -1e+300");
  assert_fails(decode_member("\"year\":1e999"), ERR_ITEM, "year: expected an integer of at most 64 bits, not 1e999");
  assert_fails(decode_member("\"year\":9223372036854775808"), ERR_ITEM, "year: 9223372036854775808 is not between");
  assert_fails(decode_member("\"year\":\"x\""), ERR_ITEM, "year: expected an integer of at most 64 bits, not \"x\"");
  const char *const wrong[] = { "BOI=", "", "1e999", "nan", "0x10", "1 2", "1-", "." };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char text[64];
    snprintf(text, sizeof text, "\"price\":{\"amount\":\"%s\"}", wrong[i]);
    assert_fails(decode_member(text), ERR_ITEM, "price.amount: expected a number, not the text");
  }
}

static void times_are_milliseconds_or_text(void **state)
{
  (void)state;
  assert_ok(decode_member("\"expires\":1795348800000"));
  assert_int_equal(attribute_of("expires")->integer, 1795348800000);
  assert_ok(decode_member("\"expires\":1795348800000.0"));
  assert_int_equal(attribute_of("expires")->integer, 1795348800000);
  assert_ok(decode_member("\"expires\":\"2026-11-22T13:00:00.250999+01:00\""));
  assert_int_equal(attribute_of("expires")->integer, 1795348800250);
  assert_fails(decode_member("\"expires\":\"2026-11-22\""), ERR_ITEM,
               "expires: expected milliseconds since 1970 or text such as");
  assert_fails(decode_member("\"expires\":-1"), ERR_ITEM, "expires: a time before 1970");
  assert_fails(decode_member("\"expires\":1795348800000000"), ERR_ITEM, "is it not in milliseconds?");
  assert_fails(decode_member("\"expires\":-1.0"), ERR_ITEM, "expires: a time before 1970");
  assert_fails(decode_member("\"expires\":1.5"), ERR_ITEM, "expires: expected an integer, not a fraction");
  assert_fails(decode_member("\"expires\":1e19"), ERR_ITEM,
               "expires: expected an integer of at most 64 bits, not 1e+19");
  assert_fails(decode_member("\"expires\":true"), ERR_ITEM, "expires: expected an integer, not true");
}

static int begin(void **state)
{
  (void)state;
  open_format("id", NULL, false, false);
  return 0;
}

static int end(void **state)
{
  (void)state;
  close_format();
  region_fini(&region);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(vectors_have_three_forms),       cmocka_unit_test(codes_have_three_forms),
    cmocka_unit_test(texts_are_texts_or_integers),    cmocka_unit_test(too_many_texts_are_refused),
    cmocka_unit_test(booleans_may_be_bits),           cmocka_unit_test(numbers_may_be_text),
    cmocka_unit_test(times_are_milliseconds_or_text),
  };

  return cmocka_run_group_tests(tests, begin, end);
}
