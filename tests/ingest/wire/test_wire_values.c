/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of items, parameters of queries and the admitted count of answers, in protobuf and JSON. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ingest/wire/wire.h"
#include "ingest/wire/wire_message.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { ROUNDS = 300, TEXT_BYTES = 1 << 20 };

static struct region region;

static int reset(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

static struct value of_bool(bool is_true)
{
  return (struct value){ .kind = VALUE_BOOL, .is_true = is_true };
}

static struct value of_integer(int64_t integer)
{
  return (struct value){ .kind = VALUE_INTEGER, .integer = integer };
}

static struct value of_number(double number)
{
  return (struct value){ .kind = VALUE_NUMBER, .number = number };
}

static struct value of_text(const char *text)
{
  return (struct value){ .kind = VALUE_TEXT, .text = span_of_str(text) };
}

static void assert_value(const struct value *a, const struct value *b)
{
  assert_int_equal(a->kind, b->kind);
  switch (a->kind) {
  case VALUE_NULL:
    break;
  case VALUE_BOOL:
    assert_int_equal(a->is_true, b->is_true);
    break;
  case VALUE_INTEGER:
    assert_true(a->integer == b->integer);
    break;
  case VALUE_NUMBER:
    assert_memory_equal(&a->number, &b->number, sizeof a->number);
    break;
  case VALUE_TEXT:
    assert_true(span_equal(a->text, b->text));
    break;
  case VALUE_LIST:
    assert_int_equal(a->list.n, b->list.n);
    for (size_t i = 0; i < a->list.n; i++)
      assert_value(&a->list.v[i], &b->list.v[i]);
    break;
  }
}

static const struct value *find(const struct item_change *item, const char *name)
{
  for (size_t i = 0; i < item->n_attributes; i++) {
    if (span_equal(item->attributes[i].name, span_of_str(name)))
      return &item->attributes[i].value;
  }
  fail_msg("there is no attribute %s", name);
  return NULL;
}

static err_code_t read_item(const char *json, struct item_change *out)
{
  return wire_decode_item(span_of_str(json), WIRE_JSON, &region, out);
}

static err_code_t read_query(const char *json, struct query *out)
{
  return wire_decode_query(span_of_str(json), WIRE_JSON, &region, out);
}

static void json_values_are_plain(void **state)
{
  struct item_change item = { 0 };
  struct value tags[] = { of_text("a"), of_text("b") };

  (void)state;
  assert_ok(read_item("{\"parts\":{},\"attributes\":{\"country\":\"de\",\"price\":9.5,\"tags\":[\"a\",\"b\"],"
                      "\"available\":true,\"expires\":1790000000000,\"old\":null,\"none\":[]}}",
                      &item));
  assert_int_equal(item.n_attributes, 7);
  assert_value(find(&item, "country"), &(struct value){ .kind = VALUE_TEXT, .text = span_of_str("de") });
  assert_true(find(&item, "price")->kind == VALUE_NUMBER && find(&item, "price")->number == 9.5);
  assert_value(find(&item, "tags"), &(struct value){ .kind = VALUE_LIST, .list = { tags, 2 } });
  assert_true(find(&item, "available")->kind == VALUE_BOOL && find(&item, "available")->is_true);
  assert_true(find(&item, "expires")->integer == 1790000000000);
  assert_int_equal(find(&item, "old")->kind, VALUE_NULL);
  assert_true(find(&item, "none")->kind == VALUE_LIST && find(&item, "none")->list.n == 0);
}

/* As a double, such an integer would be rounded to another one. Where the field says that it is a number, it is one. */
static void integers_beyond_64_bits_are_refused(void **state)
{
  struct item_change item = { 0 };
  struct query query = { 0 };

  (void)state;
  assert_fails(read_item("{\"attributes\":{\"price\":9223372036854775808}}", &item), ERR_ITEM,
               "attributes[\"price\"]: 9223372036854775808 is not between -9223372036854775808 and");
  assert_fails(read_item("{\"attributes\":{\"cost\":[1,-100000000000000000000]}}", &item), ERR_ITEM,
               "attributes[\"cost\"][1]: expected an integer of at most 64 bits, not -100000000000000000000");
  assert_fails(read_query("{\"filter\":\"x\",\"parameters\":[1,9223372036854775809]}", &query), ERR_QUERY,
               "parameters[1]: 9223372036854775809 is not between -9223372036854775808 and 9223372036854775807");
  assert_fails(read_query("{\"filter\":\"x\",\"parameters\":[[18446744073709551616]]}", &query), ERR_QUERY,
               "parameters[0][0]: expected an integer of at most 64 bits, not 18446744073709551616");
  assert_ok(read_item("{\"attributes\":{\"most\":9223372036854775807,\"one\":{\"number\":10000000000000000000},"
                      "\"price\":1e19}}",
                      &item));
  assert_true(find(&item, "most")->kind == VALUE_INTEGER && find(&item, "most")->integer == INT64_MAX);
  assert_true(find(&item, "one")->kind == VALUE_NUMBER && find(&item, "one")->number == 1e19);
  assert_true(find(&item, "price")->kind == VALUE_NUMBER && find(&item, "price")->number == 1e19);
}

/* What protobuf libraries print as JSON is accepted, too. */
static void json_values_may_be_objects_of_their_fields(void **state)
{
  struct item_change item = { 0 };

  (void)state;
  assert_ok(read_item("{\"attributes\":{\"country\":{\"text\":\"de\"},\"n\":{\"integer\":\"17\"},\"old\":{},"
                      "\"tags\":{\"list\":{\"texts\":[\"a\",\"b\"]}}}}",
                      &item));
  assert_true(span_equal(find(&item, "country")->text, span_of_str("de")));
  assert_true(find(&item, "n")->integer == 17);
  assert_int_equal(find(&item, "old")->kind, VALUE_NULL);
  assert_int_equal(find(&item, "tags")->list.n, 2);
}

static void wrong_attributes_name_their_place(void **state)
{
  static const struct {
    const char *json, *text;
  } cases[] = {
    { "{\"attributes\":[1]}", "attributes: expected an object, not a list" },
    { "{\"attributes\":{\"tags\":[\"a\",null]}}",
      "attributes[\"tags\"][1]: expected text, a number, true or false, not null" },
    { "{\"attributes\":{\"tags\":[[\"a\"]]}}",
      "attributes[\"tags\"][0]: expected text, a number, true or false, not a list" },
    { "{\"attributes\":{\"price\":1e400}}", "attributes[\"price\"]: 1e400 does not fit a double" },
    { "{\"attributes\":{\"price\":-1e309}}", "attributes[\"price\"]: -1e309 does not fit a double" },
    { "{\"attributes\":{\"price\":{\"cents\":1}}}", "attributes[\"price\"]: unknown field \"cents\"" },
    { "{\"attributes\":{\"a\\u0000\":1}}", "not JSON" },
    { "{\"attributes\":{\"country\":\"d\\u0000e\"}}", "attributes[\"country\"]: text with a zero character" },
    { "{\"attributes\":{\"in stock\":true}}", "attributes[\"in stock\"]: a name is a letter or _" },
    { "{\"attributes\":{\"\":true}}", "attributes[\"\"]: a name is a letter or _" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct item_change item = { 0 };
    err_code_t err = read_item(cases[i].json, &item);
    if (err == ERR_OK || !strstr(err_message(), cases[i].text))
      fail_msg("%s gave \"%s\", not \"%s\"", cases[i].json, err ? err_message() : "no error", cases[i].text);
  }
}

/* Write an item with `n` attributes, and in the last one a list of `elements` texts of `bytes` bytes; 1: one text. */
static char *print_item(size_t n, size_t elements, size_t bytes)
{
  static char json[TEXT_BYTES];
  int at = snprintf(json, sizeof json, "{\"attributes\":{");

  for (size_t i = 1; i < n; i++)
    at += snprintf(json + at, sizeof json - (size_t)at, "\"a%zu\":1,", i);
  at += snprintf(json + at, sizeof json - (size_t)at, "\"x\":%s", elements > 1 ? "[" : "");
  for (size_t i = 0; i < elements; i++)
    at += snprintf(json + at, sizeof json - (size_t)at, "%s\"%0*zu\"", i ? "," : "", (int)bytes, i);
  snprintf(json + at, sizeof json - (size_t)at, "%s}}", elements > 1 ? "]" : "");
  return json;
}

static void limits_are_exact(void **state)
{
  struct item_change item = { 0 };

  (void)state;
  assert_ok(read_item(print_item(ATTRIBUTES_MAX, ATTRIBUTE_SET_MAX, ATTRIBUTE_TEXT_MAX), &item));
  assert_int_equal(item.n_attributes, ATTRIBUTES_MAX);
  assert_fails(read_item(print_item(ATTRIBUTES_MAX + 1, 1, 1), &item), ERR_ITEM, "attributes: 65 elements, at most 64");
  assert_fails(read_item(print_item(1, ATTRIBUTE_SET_MAX + 1, 3), &item), ERR_ITEM,
               "attributes[\"x\"]: 257 elements, at most 256");
  assert_fails(read_item(print_item(1, 1, ATTRIBUTE_TEXT_MAX + 1), &item), ERR_ITEM, "bytes, at most 256");
  assert_fails(read_item(print_item(1, 2, ATTRIBUTE_TEXT_MAX + 1), &item), ERR_ITEM, "bytes, at most 256");
}

static void protobuf_attributes_are_checked_too(void **state)
{
  struct item_change item = { 0 };

  (void)state;
  assert_fails(wire_decode_item(span_of("\x12\x05\x0a\x01z\x12\x00\x12\x05\x0a\x01z\x12\x00", 14), WIRE_PROTOBUF,
                                &region, &item),
               ERR_ITEM, "attributes[\"z\"]: the attribute occurs twice");
  assert_fails(wire_decode_item(span_of("\x12\x0e\x0a\x01p\x12\x09\x19\x00\x00\x00\x00\x00\x00\xf8\x7f", 16),
                                WIRE_PROTOBUF, &region, &item),
               ERR_ITEM, "attributes[\"p\"]: expected a finite number, not nan");
  assert_fails(wire_decode_item(span_of("\x12\x08\x0a\x01t\x12\x03\x22\x01\xff", 10), WIRE_PROTOBUF, &region, &item),
               ERR_ITEM, "attributes[\"t\"]: expected UTF-8");
  assert_fails(wire_decode_item(span_of("\x12\x08\x0a\x01t\x12\x03\x22\x01\x00", 10), WIRE_PROTOBUF, &region, &item),
               ERR_ITEM, "attributes.value.text: text with a zero character");
  assert_ok(wire_decode_item(span_of("\x12\x03\x0a\x01t", 5), WIRE_PROTOBUF, &region, &item));
  assert_int_equal(find(&item, "t")->kind, VALUE_NULL);
}

static char *draw_text(struct dice *d, size_t most)
{
  size_t n = dice_below(d, most + 1);
  char *text;

  assert_ok(region_array(&region, n + 1, 1, &text));
  for (size_t i = 0; i < n; i++)
    text[i] = (char)(' ' + dice_below(d, 95));
  return text;
}

static struct value draw_scalar(struct dice *d, enum value_kind kind)
{
  uint64_t bits = dice_u64(d);
  double number;

  switch (kind) {
  case VALUE_BOOL:
    return of_bool(bits & 1);
  case VALUE_INTEGER:
    return of_integer((int64_t)bits >> (bits & 63));
  case VALUE_NUMBER:
    memcpy(&number, &bits, sizeof number);
    return of_number(isfinite(number) ? number : 0.1);
  default:
    return of_text(draw_text(d, 40));
  }
}

static struct value draw_value(struct dice *d)
{
  struct value *v;
  size_t n = dice_below(d, 6);

  if (dice_below(d, 3))
    return draw_scalar(d, (enum value_kind)(VALUE_BOOL + (int)dice_below(d, 4)));
  assert_ok(region_array(&region, n, sizeof *v, &v));
  for (size_t i = 0; i < n; i++)
    v[i] = draw_scalar(d, VALUE_TEXT);
  return (struct value){ .kind = n ? VALUE_LIST : VALUE_NULL, .list = { v, n } };
}

static void items_survive_both_formats(void **state)
{
  struct dice d = { dice_seed() };

  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    struct attribute_value attributes[ATTRIBUTES_MAX];
    struct item_change item = { .attributes = attributes, .n_attributes = dice_below(&d, ATTRIBUTES_MAX + 1) };
    char names[ATTRIBUTES_MAX][24];
    region_reset(&region);
    for (size_t i = 0; i < item.n_attributes; i++) {
      snprintf(names[i], sizeof names[i], "a%zu", i);
      attributes[i] = (struct attribute_value){ span_of_str(names[i]), draw_value(&d) };
    }
    for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
      struct item_change back = { 0 };
      struct span bytes;
      assert_ok(wire_encode_item(&item, format, &region, &bytes));
      assert_ok(wire_decode_item(bytes, format, &region, &back));
      assert_int_equal(back.n_attributes, item.n_attributes);
      for (size_t i = 0; i < item.n_attributes; i++)
        assert_value(find(&back, names[i]), &attributes[i].value);
    }
  }
}

/* A large item is copied, so that the memory of decoding is freed. Its attributes are copied with it. */
static void attributes_of_large_items_are_kept(void **state)
{
  static float numbers[100000];
  struct part part = { .space = span_of_str("books"), .vector = { numbers, 100000 } };
  struct value tags[] = { of_text("x"), of_text("y") };
  struct attribute_value attributes[] = {
    { span_of_str("tags"), { .kind = VALUE_LIST, .list = { tags, 2 } } },
    { span_of_str("country"), of_text("de") },
    { span_of_str("old"), { .kind = VALUE_NULL } },
  };
  struct item_change item = { .parts = &part, .n_parts = 1, .attributes = attributes, .n_attributes = 3 };
  struct item_change back = { 0 };
  AUTO(region_fini) struct region encoded = { 0 };
  struct span bytes;

  (void)state;
  assert_ok(wire_encode_item(&item, WIRE_PROTOBUF, &encoded, &bytes));
  assert_true(bytes.n > WIRE_KEPT_WHOLE);
  assert_ok(wire_decode_item(bytes, WIRE_PROTOBUF, &region, &back));
  memset((void *)bytes.p, 0xa5, bytes.n);
  for (size_t i = 0; i < 3; i++)
    assert_value(&back.attributes[i].value, &attributes[i].value);
}

static void queries_have_a_filter_with_parameters(void **state)
{
  struct query query = { 0 };

  (void)state;
  assert_ok(read_query("{\"filter\":\"price < $1 and country in $2\",\"parameters\":[20,[\"de\",\"at\"]]}", &query));
  assert_true(span_equal(query.filter, span_of_str("price < $1 and country in $2")));
  assert_int_equal(query.n_parameters, 2);
  assert_true(query.parameters[0].kind == VALUE_INTEGER && query.parameters[0].integer == 20);
  assert_true(query.parameters[1].kind == VALUE_LIST && query.parameters[1].list.n == 2);
  assert_true(span_equal(query.parameters[1].list.v[1].text, span_of_str("at")));
  assert_ok(read_query("{\"filter\":\"\"}", &query));
  assert_int_equal(query.filter.n, 0);
}

static void a_list_of_a_query_has_values_of_all_kinds(void **state)
{
  struct query query = { 0 };
  const struct value expected[] = { of_bool(true), of_integer(7), of_number(2.5), of_text("x") };

  (void)state;
  assert_ok(read_query("{\"filter\":\"x\",\"parameters\":[[\"x\",2.5,7,true]]}", &query));
  assert_value(&query.parameters[0], &(struct value){ .kind = VALUE_LIST, .list = { expected, 4 } });
}

static void wrong_parameters_name_their_place(void **state)
{
  static char json[TEXT_BYTES];
  struct query query = { 0 };
  int at = snprintf(json, sizeof json, "{\"filter\":\"x\",\"parameters\":[[");

  (void)state;
  assert_fails(read_query("{\"filter\":\"x\",\"parameters\":[1,[2,null]]}", &query), ERR_QUERY,
               "parameters[1][1]: expected");
  assert_fails(read_query("{\"parameters\":[1]}", &query), ERR_QUERY, "parameters: there is no filter");
  assert_fails(wire_decode_query(span_of("\x6a\x01x\x72\x09\x19\x00\x00\x00\x00\x00\x00\xf0\x7f", 14), WIRE_PROTOBUF,
                                 &region, &query),
               ERR_QUERY, "parameters[0]: expected a finite number, not inf");
  assert_fails(wire_decode_query(span_of("\x6a\x01x\x72\x00\x72\x03\x22\x01\x00", 10), WIRE_PROTOBUF, &region, &query),
               ERR_QUERY, "parameters[1].text: text with a zero character");
  assert_fails(wire_decode_query(span_of("\x6a\x01x\x72\x08\x2a\x06\x22\x01y\x22\x01\x00", 13), WIRE_PROTOBUF,
                                 &region, &query),
               ERR_QUERY, "parameters[0].list.texts[1]: text with a zero character");
  for (int i = 0; i < QUERY_PARAMETER_VALUES_MAX; i++)
    at += snprintf(json + at, sizeof json - (size_t)at, "%s%d", i ? "," : "", i);
  snprintf(json + at, sizeof json - (size_t)at, "]]}");
  assert_ok(read_query(json, &query));
  snprintf(json + at, sizeof json - (size_t)at, "],1]}");
  assert_fails(read_query(json, &query), ERR_QUERY, "parameters: 10001 values, at most 10000");
  snprintf(json + at, sizeof json - (size_t)at, ",1]]}");
  assert_fails(read_query(json, &query), ERR_QUERY, "parameters[0]: 10001 elements, at most 10000");
}

static void long_filters_and_many_parameters_are_refused(void **state)
{
  static char json[TEXT_BYTES];
  struct query query = { 0 };

  (void)state;
  snprintf(json, sizeof json, "{\"filter\":\"%0*d\"}", QUERY_FILTER_MAX, 0);
  assert_ok(read_query(json, &query));
  snprintf(json, sizeof json, "{\"filter\":\"%0*d\"}", QUERY_FILTER_MAX + 1, 0);
  assert_fails(read_query(json, &query), ERR_QUERY, "filter: 16385 bytes, at most 16384");
  int at = snprintf(json, sizeof json, "{\"filter\":\"x\",\"parameters\":[0");
  for (int i = 0; i < QUERY_PARAMETERS_MAX; i++)
    at += snprintf(json + at, sizeof json - (size_t)at, ",%d", i);
  snprintf(json + at, sizeof json - (size_t)at, "]}");
  assert_fails(read_query(json, &query), ERR_QUERY, "parameters: 65 elements, at most 64");
}

static void the_admitted_count_is_shown_only_when_known(void **state)
{
  struct answer answer = { .method = { .name = "exact" }, .counts = { .items = 5 } };
  const char *expected = "\"counts\":{\"items\":5,\"scored\":0,\"candidates\":0,\"admitted\":0}";
  struct span bytes;

  (void)state;
  assert_ok(wire_encode_answer(&answer, WIRE_JSON, &region, &bytes));
  assert_null(strstr((const char *)bytes.p, "admitted"));
  answer.counts.has_admitted = true;
  assert_ok(wire_encode_answer(&answer, WIRE_JSON, &region, &bytes));
  assert_non_null(strstr((const char *)bytes.p, expected));
  answer.counts.admitted = 3;
  assert_ok(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes));
  Sluice__V1__Answer *back = sluice__v1__answer__unpack(NULL, bytes.n, bytes.p);
  assert_non_null(back);
  assert_int_equal(back->counts->admitted, 3);
  sluice__v1__answer__free_unpacked(back, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(json_values_are_plain, reset),
    cmocka_unit_test_teardown(integers_beyond_64_bits_are_refused, reset),
    cmocka_unit_test_teardown(json_values_may_be_objects_of_their_fields, reset),
    cmocka_unit_test_teardown(wrong_attributes_name_their_place, reset),
    cmocka_unit_test_teardown(limits_are_exact, reset),
    cmocka_unit_test_teardown(protobuf_attributes_are_checked_too, reset),
    cmocka_unit_test_teardown(items_survive_both_formats, reset),
    cmocka_unit_test_teardown(attributes_of_large_items_are_kept, reset),
    cmocka_unit_test_teardown(queries_have_a_filter_with_parameters, reset),
    cmocka_unit_test_teardown(a_list_of_a_query_has_values_of_all_kinds, reset),
    cmocka_unit_test_teardown(wrong_parameters_name_their_place, reset),
    cmocka_unit_test_teardown(long_filters_and_many_parameters_are_refused, reset),
    cmocka_unit_test_teardown(the_admitted_count_is_shown_only_when_known, reset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
