/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a value has, and damaged bytes in both formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/wire_fixture.h"

static void the_header_decides_the_format_and_then_the_first_byte(void **state)
{
  struct span json = span_of_str("{}"), other = span_of_str("\x0a"), none = { 0 };
  (void)state;

  assert_int_equal(wire_format_of(json, none), WIRE_JSON);
  assert_int_equal(wire_format_of(other, none), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(none, none), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(other, span_of_str("application/json")), WIRE_JSON);
  assert_int_equal(wire_format_of(other, span_of_str("Application/JSON; charset=utf-8")), WIRE_JSON);
  assert_int_equal(wire_format_of(json, span_of_str("application/x-protobuf")), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(json, span_of_str("application/protobuf")), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(json, span_of_str("application/octet-stream")), WIRE_JSON);
  assert_int_equal(wire_format_of(other, span_of_str("application/jsonx")), WIRE_PROTOBUF);
  assert_string_equal(wire_content_type(WIRE_JSON), "application/json");
  assert_string_equal(wire_content_type(WIRE_PROTOBUF), "application/x-protobuf");
}

static void try_all(struct span value)
{
  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
    struct item_change item;
    struct query query;
    region_reset(&region);
    err_code_t of_item = decode_item(value, format, &item), of_query = decode_query(value, format, &query);
    assert_true(of_item == ERR_OK || of_item == ERR_WIRE || of_item == ERR_ITEM);
    assert_true(of_query == ERR_OK || of_query == ERR_WIRE || of_query == ERR_QUERY);
  }
}

static struct span roll_value(struct dice *d, enum wire_format format)
{
  struct span value;
  struct query query = roll_query(d);
  struct item_change item = roll_item(d);

  if (dice_below(d, 2))
    assert_int_equal(wire_encode_item(&item, format, &scratch, &value), ERR_OK);
  else
    assert_int_equal(wire_message_write(&query_message(&query, dice_below(d, 2))->base, format, NULL, &scratch, &value),
                     ERR_OK);
  return value;
}

static void messages_cut_at_any_byte_are_safe(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < 8; round++) {
    region_reset(&scratch);
    struct span value = roll_value(&d, round % 2 ? WIRE_JSON : WIRE_PROTOBUF);
    for (size_t n = 0; n < value.n && n < 1500; n++)
      try_all(span_of(value.p, n));
  }
}

static void cut_json_is_never_a_message(void **state)
{
  struct dice d = { dice_seed() };
  struct query q;
  (void)state;

  region_reset(&scratch);
  struct query from = roll_query(&d);
  struct span text = print_json_query(&from, false);
  for (size_t n = 0; n < text.n; n++) {
    region_reset(&region);
    assert_int_equal(decode_query(span_of(text.p, n), WIRE_JSON, &q), ERR_WIRE);
  }
}

static void messages_with_changed_bytes_are_safe(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < 1500; round++) {
    region_reset(&scratch);
    struct span value = roll_value(&d, round % 2 ? WIRE_JSON : WIRE_PROTOBUF);
    uint8_t *bytes = exact_copy(value);
    for (size_t i = 0; value.n && i < 1 + dice_below(&d, 4); i++)
      bytes[dice_below(&d, value.n)] = (uint8_t)(dice_below(&d, 2) ? dice_u64(&d) : 1u << dice_below(&d, 8));
    try_all(span_of(bytes, value.n));
    free(bytes);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_header_decides_the_format_and_then_the_first_byte),
    cmocka_unit_test(messages_cut_at_any_byte_are_safe),
    cmocka_unit_test(cut_json_is_never_a_message),
    cmocka_unit_test(messages_with_changed_bytes_are_safe),
  };

  return cmocka_run_group_tests(tests, NULL, free_regions);
}
