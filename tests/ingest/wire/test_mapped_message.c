/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped messages of Protobuf: rows, what is empty in them, framing, keys and deletes. The messages are those of
 * tests/ingest/protobuf/shop.proto, written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/format_fixture.h"

#define CODE "\x0a\x03\x0a\x01x" /* sku.code = "x" */

static void open_message(const char *message, bool is_framed, bool is_debezium)
{
  format = (struct item_format){ .is_mapped = true, .is_framed = is_framed, .mapping.is_debezium = is_debezium };
  assert_ok(protobuf_source_open(SLUICE_SOURCE_DIR "/tests/ingest/protobuf/shop.desc", message,
                                 &format.mapping.messages));
  map(MAPPING_VECTOR, "books", N_ATTRIBUTE_TYPES, "embedding");
  map(MAPPING_CODES, "films", N_ATTRIBUTE_TYPES, "packed_embedding");
  map(MAPPING_ATTRIBUTE, "price", ATTRIBUTE_NUMBER, "price");
  map(MAPPING_ATTRIBUTE, "published", ATTRIBUTE_TIME, "published_at");
  map(MAPPING_ATTRIBUTE, "ends", ATTRIBUTE_TIME, "ends_ms");
  map(MAPPING_ATTRIBUTE, "tags", ATTRIBUTE_KEYWORDS, "tags");
  map(MAPPING_ATTRIBUTE, "year", ATTRIBUTE_INTEGER, "year");
  map(MAPPING_ATTRIBUTE, "coupon", ATTRIBUTE_KEYWORD, "coupon");
}

static void open_film(bool is_framed)
{
  open_message("shop.v1.Film", is_framed, false);
  assert_ok(json_path_init(span_of_str("sku.code"), &format.mapping.key));
  assert_ok(json_path_init(span_of_str("gone"), &format.mapping.deleted));
}

static err_code_t decode_literal(const char *key, const char *bytes, size_t n)
{
  return decode_bytes(key ? span_of_str(key) : (struct span){ 0 }, span_of(bytes, n));
}

/* The bytes of a literal, without its final zero. */
#define DECODE(key, bytes) decode_literal(key, bytes, sizeof(bytes) - 1)

static void a_message_becomes_an_item(void **state)
{
  (void)state;
  open_film(false);
  assert_ok(DECODE(NULL, CODE "\x12\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0"   /* embedding */
                              "\x19\x00\x00\x00\x00\x00\x00)@"             /* price */
                              "\x22\x06\x08\xc0\xb2\x8b\xd8\x06"           /* published_at */
                              "*\x01\x61*\x01\x62\x30\xc6\x0fR\x00"        /* tags, year, coupon */
                              "j\x02\x00\xff\xb0\x01\xe8\x07\xa0\x06\x01")); /* packed_embedding, ends_ms, unknown */
  assert_key("x");
  assert_true(item.is_whole && !item.is_delete);
  assert_int_equal(item.n_parts, 2);
  assert_int_equal(item.parts[0].vector.n, 2);
  assert_float_equal(item.parts[0].vector.v[1], -2, 0);
  assert_true(span_equal(item.parts[1].codes, span_of("\x00\xff", 2)));
  assert_float_equal(attribute_of("price")->number, 12.5, 0);
  assert_int_equal(attribute_of("published")->integer, 1795348800000);
  assert_int_equal(attribute_of("ends")->integer, 1000);
  assert_int_equal(attribute_of("tags")->list.n, 2);
  assert_int_equal(attribute_of("year")->integer, 1990);
  assert_int_equal(attribute_of("coupon")->kind, VALUE_TEXT);
  close_format();
}

static void what_is_not_written_is_its_default_or_no_value(void **state)
{
  (void)state;
  open_film(false);
  assert_ok(DECODE(NULL, CODE));
  assert_true(item.is_whole && !item.is_delete);
  assert_int_equal(item.n_parts, 0); /* an empty list, empty bytes */
  assert_int_equal(attribute_of("price")->kind, VALUE_NUMBER);
  assert_float_equal(attribute_of("price")->number, 0, 0);
  assert_int_equal(attribute_of("tags")->kind, VALUE_LIST);
  assert_int_equal(attribute_of("tags")->list.n, 0);
  assert_int_equal(attribute_of("ends")->kind, VALUE_NULL); /* 0 is no time */
  assert_int_equal(attribute_of("published")->kind, VALUE_NULL);
  assert_int_equal(attribute_of("year")->kind, VALUE_NULL);
  assert_int_equal(attribute_of("coupon")->kind, VALUE_NULL);
  assert_ok(DECODE(NULL, CODE "0\x00")); /* what is optional, and 0, is 0 */
  assert_int_equal(attribute_of("year")->kind, VALUE_INTEGER);
  assert_fails(DECODE(NULL, ""), ERR_ITEM, "sku.code: the item's key is not there");
  assert_fails(DECODE(NULL, "\x0a\x00"), ERR_ITEM, "the item's key has 0 bytes");
  close_format();
}

static void a_vector_that_is_not_finite_is_refused(void **state)
{
  (void)state;
  open_film(false);
  assert_fails(DECODE(NULL, CODE "\x12\x08\x00\x00\xc0\x3f\x00\x00\xc0\x7f"), ERR_ITEM, "embedding[1]: expected a number");
  assert_fails(DECODE(NULL, CODE "\x19\x00\x00\x00\x00\x00\x00\xf0\x7f"), ERR_ITEM,
               "price: expected a number, not the text \"Infinity\"");
  close_format();
}

static void a_message_may_delete(void **state)
{
  (void)state;
  open_film(false);
  assert_ok(DECODE(NULL, CODE "\xa8\x01\x01")); /* gone */
  assert_key("x");
  assert_true(item.is_delete);
  assert_ok(decode("x", NULL));
  assert_key("x");
  assert_true(item.is_delete);
  assert_fails(decode("\xff", NULL), ERR_ITEM, "is neither text nor JSON");
  close_format();
}

/* An item whose message has nothing but vectors, and now has none. */
static void a_message_without_anything_deletes(void **state)
{
  (void)state;
  format = (struct item_format){ .is_mapped = true };
  assert_ok(protobuf_source_open(SLUICE_SOURCE_DIR "/tests/ingest/protobuf/shop.desc", "shop.v1.Film",
                                 &format.mapping.messages));
  map(MAPPING_VECTOR, "books", N_ATTRIBUTE_TYPES, "embedding");
  assert_ok(DECODE("x", ""));
  assert_true(item.is_delete);
  close_format();
}

static void framing_is_taken_off(void **state)
{
  (void)state;
  open_film(true);
  assert_ok(DECODE(NULL, "\0\0\0\0\x07" "\0" CODE));
  assert_key("x");
  assert_ok(DECODE(NULL, "\0\0\0\0\x07" "\x04\x02\x00" CODE));
  assert_key("x");
  assert_fails(DECODE(NULL, CODE), ERR_WIRE, "its first byte is 0x0a, not 0");
  assert_fails(DECODE(NULL, "\0\0\0\0\x07"), ERR_WIRE, "no list of message indexes follows");
  assert_fails(decode_bytes(span_of("\0\0\0\0\x07\0\x0a\x01x", 9), (struct span){ 0 }), ERR_ITEM,
               "the record's key is framed, but a framed key of Protobuf cannot be read");
  assert_ok(decode("x", NULL));
  assert_key("x");
  close_format();
}

static void keys_are_text_as_it_is(void **state)
{
  (void)state;
  open_message("shop.v1.Film", false, false);
  assert_ok(DECODE("{\"id\":7}", "0\x05"));
  assert_key("{\"id\":7}");
  close_format();
}

static void a_message_may_be_an_envelope(void **state)
{
  (void)state;
  open_message("shop.v1.Event", false, true);
  assert_ok(DECODE("x", "\x12\x02\x30\x05\x1a\x01u"));
  assert_int_equal(attribute_of("year")->integer, 5);
  assert_true(item.is_whole); /* what is missing is null */
  assert_ok(DECODE("x", "\x12\x20\x30\x05R\x1c__debezium_unavailable_value\x1a\x01u"));
  assert_false(item.is_whole);
  assert_null(attribute_of("coupon"));
  assert_ok(DECODE("x", "\x0a\x00\x1a\x01\x64"));
  assert_true(item.is_delete);
  assert_fails(DECODE("x", "\x1a\x01u"), ERR_ITEM, "after: it is not there");
  close_format();
}

static int end(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_message_becomes_an_item),
    cmocka_unit_test(what_is_not_written_is_its_default_or_no_value),
    cmocka_unit_test(a_vector_that_is_not_finite_is_refused),
    cmocka_unit_test(a_message_may_delete),
    cmocka_unit_test(a_message_without_anything_deletes),
    cmocka_unit_test(framing_is_taken_off),
    cmocka_unit_test(keys_are_text_as_it_is),
    cmocka_unit_test(a_message_may_be_an_envelope),
  };

  return cmocka_run_group_tests(tests, NULL, end);
}
