/* SPDX-License-Identifier: Apache-2.0 */
/* Items in protobuf and JSON, and wrong fields of items. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/wire_fixture.h"

static void assert_same_parts(const struct item_change *a, const struct item_change *b)
{
  assert_int_equal(a->n_parts, b->n_parts);
  for (size_t i = 0; i < a->n_parts; i++) {
    assert_same_span(a->parts[i].space, b->parts[i].space);
    assert_same_floats(a->parts[i].vector, b->parts[i].vector);
    assert_same_floats(a->parts[i].components, b->parts[i].components);
    assert_same_floats(a->parts[i].item_gate, b->parts[i].item_gate);
    assert_same_span(a->parts[i].codes, b->parts[i].codes);
  }
}

static void items_come_back_from_both_formats(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < ROUNDS; round++) {
    region_reset(&region);
    region_reset(&scratch);
    struct item_change item = roll_item(&d);
    for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
      struct item_change back = { .offset = 7 };
      struct span value;
      assert_int_equal(wire_encode_item(&item, format, &region, &value), ERR_OK);
      assert_int_equal(decode_item(value, format, &back), ERR_OK);
      assert_same_parts(&item, &back);
      assert_int_equal(back.offset, 7);
      if (format == WIRE_JSON || value.n > 0)
        assert_int_equal(wire_format_of(value, (struct span){ 0 }), format);
    }
  }
}

static void encoded_items_look_like_this(void **state)
{
  float v[] = { 1.0f, 0.1f, -1e-20f };
  uint8_t codes[] = { 3, 255 };
  struct part parts[] = { { .space = span_of_str("books"), .vector = { v, 3 } },
                          { .space = span_of_str("c"), .codes = span_of(codes, 2) } };
  struct item_change item = { .parts = parts, .n_parts = 2 };
  struct span value;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_item(&item, WIRE_JSON, &region, &value), ERR_OK);
  assert_string_equal((const char *)value.p, "{\"parts\":{\"books\":{\"vector\":[1.0,0.100000001,-9.99999968e-21]},"
                                             "\"c\":{\"codes\":[3,255]}}}");
  assert_int_equal(wire_encode_item(&item, WIRE_PROTOBUF, &region, &value), ERR_OK);
  static const uint8_t expected[] = "\x0a\x19\x0a\x05" "books" "\x12\x10\x0a\x0e\x12\x0c"
                                    "\x00\x00\x80\x3f\xcd\xcc\xcc\x3d\x08\xe5\x3c\x9e"
                                    "\x0a\x09\x0a\x01" "c" "\x12\x04\x22\x02\x03\xff";
  assert_int_equal(value.n, sizeof expected - 1);
  assert_memory_equal(value.p, expected, value.n);
}

static void an_empty_protobuf_value_is_an_item_without_parts(void **state)
{
  struct item_change item = { .n_parts = 9 };
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_decode_item((struct span){ 0 }, WIRE_PROTOBUF, &region, &item), ERR_OK);
  assert_int_equal(item.n_parts, 0);
  assert_int_equal(wire_decode_item((struct span){ 0 }, WIRE_JSON, &region, &item), ERR_WIRE);
  assert_int_equal(decode_item(span_of_str("{}"), WIRE_JSON, &item), ERR_OK);
  assert_int_equal(item.n_parts, 0);
}

/* An item as protobuf's own JSON mapping writes it: lowerCamelCase, with data and codes in Base64. */
static void the_json_of_protobuf_libraries_is_read(void **state)
{
  const char *text = "{\n  \"parts\": {\n    \"films\": {\n      \"codes\": \"AAH/\"\n    },\n    \"books\": {\n"
                     "      \"vector\": {\n        \"data\": \"AADAPwAAAMA=\"\n      },\n      \"itemGate\": {\n"
                     "        \"type\": \"F16\",\n        \"data\": \"ADwAwA==\"\n      },\n      \"components\": {\n"
                     "        \"values\": [\n          0.5,\n          1.0\n        ]\n      }\n    }\n  }\n}";
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of_str(text), WIRE_JSON, &item), ERR_OK);
  assert_int_equal(item.n_parts, 2);
  assert_same_span(item.parts[0].codes, span_of("\x00\x01\xff", 3));
  assert_same_span(item.parts[1].space, span_of_str("books"));
  assert_same_floats(item.parts[1].vector, (struct floats){ (float[]){ 1.5f, -2.0f }, 2 });
  assert_same_floats(item.parts[1].item_gate, (struct floats){ (float[]){ 1.0f, -2.0f }, 2 });
  assert_same_floats(item.parts[1].components, (struct floats){ (float[]){ 0.5f, 1.0f }, 2 });
}

/* The same item as Python's protobuf encodes it, with `values` packed. */
static void the_bytes_of_protobuf_libraries_are_read(void **state)
{
  static const uint8_t bytes[] = "\x0a\x2e\x0a\x05" "books" "\x12\x25\x0a\x0a\x12\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0"
                                 "\x12\x0a\x1a\x08\x00\x00\x00\x3f\x00\x00\x80\x3f"
                                 "\x1a\x08\x08\x01\x12\x04\x00\x3c\x00\xc0\x22\x01\x07";
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of(bytes, sizeof bytes - 1), WIRE_PROTOBUF, &item), ERR_OK);
  assert_int_equal(item.n_parts, 1);
  assert_same_floats(item.parts[0].vector, (struct floats){ (float[]){ 1.5f, -2.0f }, 2 });
  assert_same_floats(item.parts[0].components, (struct floats){ (float[]){ 0.5f, 1.0f }, 2 });
  assert_same_floats(item.parts[0].item_gate, (struct floats){ (float[]){ 1.0f, -2.0f }, 2 });
  assert_same_span(item.parts[0].codes, span_of("\x07", 1));
}

static void unpacked_values_and_unknown_fields_are_read(void **state)
{
  static const uint8_t bytes[] = "\x0a\x13\x0a\x01" "s" "\x12\x0e\x0a\x0c"
                                 "\x1d\x00\x00\x80\x3f" "\x38\x05" "\x1d\x00\x00\x00\x40" "\x7a\x02xy";
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of(bytes, sizeof bytes - 1), WIRE_PROTOBUF, &item), ERR_OK);
  assert_same_floats(item.parts[0].vector, (struct floats){ (float[]){ 1.0f, 2.0f }, 2 });
}

static void assert_bad_item(struct span value, enum wire_format format, err_code_t code, const char *sentence)
{
  struct item_change item = { .n_parts = 77 };

  region_reset(&region);
  assert_int_equal(decode_item(value, format, &item), code);
  assert_string_equal(err_message(), sentence);
  assert_int_equal(item.n_parts, 77);
}

static void assert_bad_json_item(const char *text, const char *sentence)
{
  assert_bad_item(span_of_str(text), WIRE_JSON, ERR_ITEM, sentence);
}

static void wrong_items_are_refused_by_name(void **state)
{
  char text[256];
  (void)state;

  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":{\"data\":\"AADA\"}}}}",
                       "parts[\"books\"].vector.data has 3 bytes, not a multiple of 4 (F32)");
  assert_bad_json_item("{\"parts\":{\"books\":{\"components\":{\"type\":\"F16\",\"data\":\"AADA\"}}}}",
                       "parts[\"books\"].components.data has 3 bytes, not a multiple of 2 (F16)");
  assert_bad_json_item("{\"parts\":{\"books\":{\"item_gate\":{\"type\":\"BF16\",\"data\":\"gD+Afw==\"}}}}",
                       "parts[\"books\"].item_gate: number 1 is not finite");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":{\"type\":\"F16\",\"data\":\"AHw=\"}}}}",
                       "parts[\"books\"].vector: number 0 is not finite");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":{\"values\":[1],\"data\":\"AACAPw==\"}}}}",
                       "parts[\"books\"].vector has both data and values");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vectr\":[1]}}}", "parts[\"books\"]: unknown field \"vectr\"; the nearest is \"vector\"");
  assert_bad_json_item("{\"part\":{}}", "unknown field \"part\"; the nearest is \"parts\"");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":[1,1e39]}}}",
                       "parts[\"books\"].vector[1]: 1e+39 does not fit in 32 bits");
  assert_bad_json_item("{\"parts\":{\"books\":{\"codes\":[1,300]}}}",
                       "parts[\"books\"].codes[1]: 300 is not between 0 and 255");
  assert_bad_json_item("{\"parts\":{\"\":{}}}", "parts[\"\"]: the name of a space has 1 to 64 bytes, not 0");
  snprintf(text, sizeof text, "{\"parts\":{\"%065d\":{}}}", 0);
  assert_bad_json_item(text, "parts[\"00000000000000000000000000000000000000000000000000000000000000000\"]: "
                             "the name of a space has 1 to 64 bytes, not 65");
  snprintf(text, sizeof text, "{\"parts\":{\"%064d\":{}}}", 0);
  struct item_change item;
  assert_int_equal(decode_item(span_of_str(text), WIRE_JSON, &item), ERR_OK);
}

static Sluice__V1__Item *item_message(size_t n)
{
  Sluice__V1__Item *item = zeros(sizeof *item);

  sluice__v1__item__init(item);
  item->n_parts = n;
  item->parts = zeros(n * sizeof *item->parts);
  for (size_t i = 0; i < n; i++) {
    item->parts[i] = zeros(sizeof **item->parts);
    sluice__v1__item__parts_entry__init(item->parts[i]);
    item->parts[i]->key = zeros(24);
    snprintf(item->parts[i]->key, 24, "s%zu", i);
    item->parts[i]->value = zeros(sizeof *item->parts[i]->value);
    sluice__v1__part__init(item->parts[i]->value);
  }
  return item;
}

static void wrong_protobuf_items_are_refused_by_name(void **state)
{
  float nan_at_17[20] = { [17] = NAN };
  (void)state;

  region_reset(&scratch);
  Sluice__V1__Item *item = item_message(3);
  item->parts[1]->value->vector = vector_message((struct floats){ nan_at_17, 20 }, true);
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s1\"].vector: number 17 is not finite");
  item->parts[1]->value->vector = vector_message((struct floats){ nan_at_17, 20 }, false);
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s1\"].vector: number 17 is not finite");
  item->parts[1]->value->vector->n_values = 2;
  item->parts[1]->value->vector->data = (ProtobufCBinaryData){ 3, zeros(3) };
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s1\"].vector has both data and values");
  item->parts[1]->value->vector->n_values = 0;
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"s1\"].vector.data has 3 bytes, not a multiple of 4 (F32)");
  item->parts[1]->value->vector->type = 7;
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"s1\"].vector.type: 7 is not F32 (0), F16 (1) or BF16 (2)");
  item->parts[1]->value->vector = NULL;

  item->parts[2]->key = (char *)"s0";
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s0\"]: the space occurs twice");
  item->parts[2]->key = (char *)"\xff";
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"\\xff\"]: the name of a space must be UTF-8");
  item->parts[2]->key = (char *)"";
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"\"]: the name of a space has 1 to 64 bytes, not 0");

  struct item_change change;
  assert_int_equal(decode_item(pack(&item_message(WIRE_PARTS_MAX)->base), WIRE_PROTOBUF, &change), ERR_OK);
  assert_bad_item(pack(&item_message(WIRE_PARTS_MAX + 1)->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts: 257 elements, at most 256");
}

static void bytes_that_are_no_item_are_refused(void **state)
{
  static const struct {
    const char *p;
    size_t n;
    const char *sentence;
  } cases[] = {
    { "\x0a", 1, "not a protobuf message of type sluice.v1.Item" },
    { "\x0a\xff\xff\xff\xff\x0f", 6, "not a protobuf message of type sluice.v1.Item" },
    { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "not a protobuf message of type sluice.v1.Item" },
    { "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, "not a protobuf message of type sluice.v1.Item" },
    { "\x08\x01", 2, "not a protobuf message of type sluice.v1.Item" },
    { "\x00\x00\x00\x00\x07\x00", 6,
      "not a protobuf message of type sluice.v1.Item (framed for a schema registry? See catalogue.framing; "
      "queries are not framed)" },
    { "\x0a\x02\x12\x01", 4, "not a protobuf message of type sluice.v1.Item.PartsEntry" },
    { "\x0b\x0c", 2, "not a protobuf message of type sluice.v1.Item" },
    { "{\"parts\":{}}", 12,
      "not a protobuf message of type sluice.v1.Item (if it is JSON, send the header content-type: application/json)" },
    { "\n  {\"parts\":{}}", 15,
      "not a protobuf message of type sluice.v1.Item (if it is JSON, send the header content-type: application/json)" },
    { "\n  ", 3, "not a protobuf message of type sluice.v1.Item" },
  };
  (void)state;

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_bad_item(span_of(cases[i].p, cases[i].n), WIRE_PROTOBUF, ERR_WIRE, cases[i].sentence);
  assert_bad_item(span_of("\x0a\x05\x0a\x03" "a\0b", 7), WIRE_PROTOBUF, ERR_ITEM,
                  "parts.key: text with a zero character");
}

static void messages_that_are_too_large_are_told_from_those_that_cannot_be_decoded(void **state)
{
  static const char reason[] = "4194305 bytes are more than the limit of 4194304 for a message";
  size_t n = WIRE_VALUE_MAX + 1;
  uint8_t *large = calloc(n, 1);
  struct query query = { 0 };
  struct seen_change seen = { 0 };
  (void)state;

  assert_non_null(large);
  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
    assert_bad_item(span_of(large, n), format, ERR_TOO_LARGE, reason);
    assert_int_equal(wire_decode_query(span_of(large, n), format, &region, &query), ERR_TOO_LARGE);
    assert_string_equal(err_message(), reason);
    assert_int_equal(wire_decode_seen(span_of(large, n), format, &region, &seen), ERR_TOO_LARGE);
    assert_string_equal(err_message(), reason);
  }
  free(large);
}

static void map_entries_without_key_or_value_are_safe(void **state)
{
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of("\x0a\x03\x0a\x01s", 5), WIRE_PROTOBUF, &item), ERR_OK);
  assert_int_equal(item.n_parts, 1);
  assert_same_span(item.parts[0].space, span_of_str("s"));
  assert_int_equal(item.parts[0].vector.n + item.parts[0].codes.n, 0);
  assert_bad_item(span_of("\x0a\x00", 2), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"\"]: the name of a space has 1 to 64 bytes, not 0");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(items_come_back_from_both_formats),
    cmocka_unit_test(encoded_items_look_like_this),
    cmocka_unit_test(an_empty_protobuf_value_is_an_item_without_parts),
    cmocka_unit_test(the_json_of_protobuf_libraries_is_read),
    cmocka_unit_test(the_bytes_of_protobuf_libraries_are_read),
    cmocka_unit_test(unpacked_values_and_unknown_fields_are_read),
    cmocka_unit_test(wrong_items_are_refused_by_name),
    cmocka_unit_test(wrong_protobuf_items_are_refused_by_name),
    cmocka_unit_test(bytes_that_are_no_item_are_refused),
    cmocka_unit_test(messages_that_are_too_large_are_told_from_those_that_cannot_be_decoded),
    cmocka_unit_test(map_entries_without_key_or_value_are_safe),
  };

  return cmocka_run_group_tests(tests, NULL, free_regions);
}
