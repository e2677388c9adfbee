/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped records: rows, keys, envelopes, deletes, and what cannot be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "tests/support/format_fixture.h"

#define ROW "{\"id\":7,\"embedding\":[1,-2.5]}"

static void a_row_becomes_an_item(void **state)
{
  (void)state;
  open_format("id", NULL, false, false);
  assert_ok(decode(NULL, "{\"id\":7,\"embedding\":[1,-2.5,3e-3],\"pq\":{\"codes\":[0,255]},\"available\":true,"
                         "\"shipping\":{\"country\":\"de\"},\"tags\":[\"a\",\"b\"],\"year\":1990,"
                         "\"price\":{\"amount\":9.5},\"expires\":\"2026-11-22T12:00:00Z\",\"other\":{\"x\":[null]}}"));
  assert_key("7");
  assert_true(item.is_whole && !item.is_delete);
  assert_int_equal(item.partition, 3);
  assert_int_equal(item.offset, 17);
  assert_int_equal(item.n_parts, 2);
  assert_true(span_equal(item.parts[0].space, span_of_str("books")));
  assert_int_equal(item.parts[0].vector.n, 3);
  assert_float_equal(item.parts[0].vector.v[1], -2.5, 0);
  assert_true(span_equal(item.parts[1].space, span_of_str("films")));
  assert_true(span_equal(item.parts[1].codes, span_of("\x00\xff", 2)));
  assert_true(attribute_of("available")->is_true);
  assert_true(span_equal(attribute_of("country")->text, span_of_str("de")));
  assert_int_equal(attribute_of("tags")->list.n, 2);
  assert_int_equal(attribute_of("year")->integer, 1990);
  assert_float_equal(attribute_of("price")->number, 9.5, 0);
  assert_int_equal(attribute_of("expires")->integer, 1795348800000);
  close_format();
}

static void what_a_row_lacks_is_removed(void **state)
{
  (void)state;
  open_format("id", NULL, false, false);
  assert_ok(decode(NULL, "{\"id\":7,\"embedding\":null,\"year\":1990}"));
  assert_true(item.is_whole && !item.is_delete);
  assert_int_equal(item.n_parts, 0);
  assert_int_equal(attribute_of("price")->kind, VALUE_NULL);
  assert_ok(decode(NULL, "{\"id\":7,\"embedding\":null,\"year\":null}"));
  assert_true(item.is_delete);
  assert_int_equal(item.n_attributes, 0);
  assert_fails(decode(NULL, "{\"id\":7,\"emmbedding\":[1]}"), ERR_ITEM,
               "the record has none of the mapped fields, such as embedding");
  close_format();
}

/* Debezium has a placeholder for large values of PostgreSQL that have not changed. */
static void an_unavailable_value_is_kept(void **state)
{
  const char *const values[] = { "\"__debezium_unavailable_value\"", "[\"__debezium_unavailable_value\"]",
                                 "\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\"",
                                 ("[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,"
                                  "118,97,108,117,101]") };
  char text[256];

  (void)state;
  open_format("id", NULL, false, false);
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    snprintf(text, sizeof text, "{\"id\":7,\"embedding\":%s,\"year\":1990,\"tags\":null}", values[i]);
    assert_ok(decode(NULL, text));
    assert_false(item.is_whole || item.is_delete);
    assert_int_equal(item.n_parts, 0);
    assert_int_equal(attribute_of("year")->integer, 1990);
    assert_int_equal(attribute_of("tags")->kind, VALUE_NULL);
  }
  assert_ok(decode(NULL, "{\"id\":7,\"embedding\":[1],\"shipping\":{\"country\":\"__debezium_unavailable_value\"}}"));
  assert_int_equal(item.n_parts, 1);
  assert_null(attribute_of("country"));
  close_format();
}

static void keys_are_text_or_integers(void **state)
{
  (void)state;
  open_format("id", NULL, false, false);
  assert_ok(decode("x", "{\"id\":\"a \\u0022b\",\"year\":1}"));
  assert_key("a \"b");
  assert_ok(decode("x", "{\"id\":-5,\"year\":1}"));
  assert_key("-5");
  assert_ok(decode("x", "{\"id\":18446744073709551615,\"year\":1}"));
  assert_key("18446744073709551615");
  assert_fails(decode("x", "{\"id\":1.5,\"year\":1}"), ERR_ITEM, "id: expected text or an integer, not a fraction");
  assert_fails(decode("x", "{\"id\":1e999,\"year\":1}"), ERR_ITEM,
               "id: expected text or an integer, not a number beyond 64 bits");
  assert_fails(decode("x", "{\"id\":[1],\"year\":1}"), ERR_ITEM, "id: expected text or an integer, not a list");
  assert_fails(decode("x", "{\"id\":\"\",\"year\":1}"), ERR_ITEM, "the item's key has 0 bytes: an item key has 1 to");
  assert_fails(decode("x", "{\"id\":\"a\\u0000b\",\"year\":1}"), ERR_ITEM, "id: text with a zero character");
  assert_fails(decode("x", "{\"id\":null,\"year\":1}"), ERR_ITEM, "id: the item's key is null");
  assert_fails(decode("x", "{\"year\":1}"), ERR_ITEM, "id: the item's key is not there");
  close_format();
}

static void the_record_s_key_may_be_the_item_s(void **state)
{
  (void)state;
  open_format(NULL, NULL, false, false);
  assert_ok(decode("a b", ROW));
  assert_key("a b");
  assert_ok(decode("7", ROW));
  assert_key("7");
  assert_ok(decode("\"7 \\u00fc\"", ROW));
  assert_key("7 \xc3\xbc");
  assert_ok(decode("{\"id\": 7}", ROW));
  assert_key("7");
  assert_ok(decode("{\"schema\":{\"type\":\"struct\"},\"payload\":{\"id\":\"x\"}}", ROW));
  assert_key("x");
  assert_ok(decode("{\"schema\":{\"type\":\"int64\"},\"payload\":7}", ROW));
  assert_key("7");
  assert_fails(decode(NULL, ROW), ERR_ITEM, "the record has no key: catalogue.mapping.key can take");
  assert_fails(decode("", ROW), ERR_ITEM, "the item's key has 0 bytes");
  assert_fails(decode("{\"a\":1,\"b\":2}", ROW), ERR_ITEM, "the record's key has 2 members: catalogue.mapping.key");
  assert_fails(decode("{}", ROW), ERR_ITEM, "the record's key has 0 members");
  assert_fails(decode("{\"id\":{}}", ROW), ERR_ITEM, "the record's key: expected text or an integer, not an object");
  assert_fails(decode("{\"id\":7", ROW), ERR_ITEM, "the record's key is \"{\\x22id\\x22:7\": not JSON");
  assert_fails(decode("\"7", ROW), ERR_ITEM, "not JSON");
  assert_fails(decode_bytes(span_of("\0\0\0\0\0\0\0\7", 8), span_of_str(ROW)), ERR_ITEM,
               "is neither text nor JSON: catalogue.mapping.key can take it from the value");
  assert_fails(decode("\xff", ROW), ERR_ITEM, "is neither text nor JSON");
  close_format();
}

static void assert_deletes(const char *key, const char *value, const char *due)
{
  assert_ok(decode(key, value));
  assert_true(item.is_delete);
  assert_key(due);
}

static void tombstones_and_flags_delete(void **state)
{
  (void)state;
  open_format("id", "deleted_at", false, false);
  assert_deletes("7", NULL, "7");
  assert_deletes("{\"id\":7}", NULL, "7");
  assert_deletes("{\"tenant\":1,\"id\":7}", NULL, "7");
  assert_fails(decode("{\"tenant\":1,\"key\":7}", NULL), ERR_ITEM, "the record's key has 2 members, but no id");
  assert_fails(decode(NULL, NULL), ERR_ITEM, "the record has no key");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":true,\"year\":1}", "7");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":\"true\"}", "7");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":1795348800000}", "7");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":\"2026-11-22 12:00:00\"}", "7");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":\"1\"}", "7");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":1e999}", "7");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":-99999999999999999999}", "7");
  assert_deletes(NULL, "{\"id\":7,\"deleted_at\":\"0001-01-01T00:00:00Z\"}", "7");
  const char *const living[] = { "null",
                                 "false",
                                 "\"false\"",
                                 "\"\"",
                                 "0",
                                 "0.0",
                                 "\"0\"",
                                 "\"0.00\"",
                                 "\"0000-00-00 00:00:00\"",
                                 "\"0000-00-00T00:00:00.000Z\"" };
  for (size_t i = 0; i < sizeof living / sizeof living[0]; i++) {
    char text[128];
    snprintf(text, sizeof text, "{\"id\":7,\"year\":1,\"deleted_at\":%s}", living[i]);
    assert_ok(decode(NULL, text));
    assert_false(item.is_delete);
  }
  assert_fails(decode(NULL, "{\"id\":7,\"deleted_at\":\"no\"}"), ERR_ITEM,
               "deleted_at: expected true, false or a time, not \"no\"");
  assert_fails(decode(NULL, "{\"id\":7,\"deleted_at\":\"-\"}"), ERR_ITEM, "expected true, false or a time, not \"-\"");
  assert_fails(decode(NULL, "{\"id\":7,\"deleted_at\":[]}"), ERR_ITEM, "not a list");
  close_format();
}

static void debezium_s_envelope_is_opened(void **state)
{
  (void)state;
  open_format(NULL, "deleted", true, false);
  for (const char *op = "cru"; *op; op++) {
    char text[256];
    snprintf(text, sizeof text, "{\"before\":null,\"after\":%s,\"source\":{},\"op\":\"%c\"}", ROW, *op);
    assert_ok(decode("{\"id\":7}", text));
    assert_int_equal(item.n_parts, 1);
    assert_key("7");
    snprintf(text, sizeof text, "{\"schema\":{},\"payload\":{\"after\":%s,\"op\":\"%c\"}}", ROW, *op);
    assert_ok(decode("{\"schema\":{},\"payload\":{\"id\":7}}", text));
    assert_int_equal(item.n_parts, 1);
  }
  assert_deletes("{\"id\":7}", "{\"before\":{\"id\":7},\"after\":null,\"op\":\"d\"}", "7");
  assert_deletes("{\"id\":7}", "{\"before\":null,\"op\":\"d\"}", "7");
  assert_deletes("{\"id\":7}", NULL, "7");
  assert_deletes("{\"id\":7}", "{\"after\":{\"deleted\":true},\"op\":\"u\"}", "7");
  assert_fails(decode("7", ROW), ERR_ITEM, "op: expected Debezium's c, r, u or d");
  assert_fails(decode("7", "{\"op\":\"t\"}"), ERR_ITEM, "op: expected Debezium's c, r, u or d, not \"t\"");
  assert_fails(decode("7", "{\"op\":5}"), ERR_ITEM, "op: expected Debezium's c, r, u or d, not an integer");
  assert_fails(decode("7", "{\"op\":1e999}"), ERR_ITEM,
               "op: expected Debezium's c, r, u or d, not a number beyond 64 bits");
  assert_fails(decode("7", "{\"op\":\"u\"}"), ERR_ITEM, "after: it is not there");
  assert_fails(decode("7", "{\"op\":\"u\",\"after\":null}"), ERR_ITEM, "after: expected an object, not null");
  assert_fails(decode("7", "{\"schema\":{},\"payload\":null}"), ERR_WIRE, "null where an object is expected");
  close_format();
}

/* Debezium leaves some large values out of an update. Other events have the whole row. */
static void what_an_update_lacks_is_kept(void **state)
{
  (void)state;
  open_format(NULL, NULL, true, false);
  assert_ok(decode("7", "{\"after\":{\"year\":1990,\"tags\":null,\"price\":null},\"op\":\"u\"}"));
  assert_false(item.is_whole || item.is_delete);
  assert_int_equal(item.n_parts, 0);
  assert_int_equal(item.n_attributes, 3);
  assert_int_equal(attribute_of("year")->integer, 1990);
  assert_int_equal(attribute_of("tags")->kind, VALUE_NULL);
  assert_int_equal(attribute_of("price")->kind, VALUE_NULL);
  assert_ok(decode("7", "{\"after\":{\"id\":7},\"op\":\"u\"}"));
  assert_false(item.is_whole || item.is_delete);
  assert_int_equal(item.n_parts + item.n_attributes, 0);
  assert_ok(decode("7", "{\"after\":{\"year\":1990},\"op\":\"c\"}"));
  assert_true(item.is_whole);
  assert_fails(decode("7", "{\"after\":{\"id\":7},\"op\":\"r\"}"), ERR_ITEM, "none of the mapped fields");
  close_format();
}

static void a_deleted_row_s_key_is_in_the_row_or_in_the_record_s_key(void **state)
{
  (void)state;
  open_format("sku.code", NULL, true, false);
  assert_deletes("x", "{\"before\":{\"sku\":{\"code\":\"k\"}},\"op\":\"d\"}", "k");
  assert_deletes("{\"id\":8}", "{\"before\":{\"id\":8},\"op\":\"d\"}", "8");
  close_format();
}

static void frames_are_taken_off(void **state)
{
#define FRAME          "\0\0\0\1\2"
#define BYTES(literal) span_of(literal, sizeof(literal) - 1)
  (void)state;
  open_format(NULL, NULL, false, true);
  assert_ok(decode_bytes(BYTES("x"), BYTES(FRAME ROW)));
  assert_int_equal(item.n_parts, 1);
  assert_key("x");
  assert_ok(decode_bytes(BYTES(FRAME "{\"id\":7}"), BYTES(FRAME ROW)));
  assert_key("7");
  assert_ok(decode_bytes(BYTES(FRAME "{\"id\":7}"), (struct span){ 0 }));
  assert_true(item.is_delete);
  assert_fails(decode("x", ROW), ERR_WIRE, "not framed as catalogue.framing says: its first byte is 0x7b, not 0");
  for (size_t n = 0; n < 5; n++)
    assert_fails(decode_bytes(BYTES("x"), span_of(FRAME, n)), ERR_WIRE, "the framing alone has 5");
  assert_fails(decode_bytes(BYTES("x"), BYTES(FRAME)), ERR_WIRE, "not JSON");
  assert_fails(decode_bytes(BYTES("x"), BYTES(FRAME FRAME ROW)), ERR_WIRE, "not JSON");
  close_format();
  format = (struct item_format){ .is_framed = true }; /* Sluice's own messages */
  assert_ok(decode_bytes(BYTES("x"), BYTES(FRAME "{\"parts\":{\"b\":{\"vector\":[1]}}}")));
  assert_int_equal(item.n_parts, 1);
#define MESSAGE "\x0a\x05\x0a\x01s\x12\x00"
  assert_ok(decode_bytes(BYTES("x"), BYTES(FRAME "\x00" MESSAGE)));
  assert_ok(decode_bytes(BYTES("x"), BYTES(FRAME "\x02\x08" MESSAGE)));
  assert_ok(decode_bytes(BYTES("x"), BYTES(FRAME "\x04\x80\x01\x02" MESSAGE)));
  assert_int_equal(item.n_parts, 1);
  const struct span wrong[] = { BYTES(FRAME),
                                BYTES(FRAME "\x80"),
                                BYTES(FRAME "\x01\x00"),
                                BYTES(FRAME "\x7e\x00"),
                                BYTES(FRAME "\x06\x00\x00"),
                                BYTES(FRAME "\xff\xff\xff\xff\xff\x01") };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_fails(decode_bytes(BYTES("x"), wrong[i]), ERR_WIRE, "no list of message indexes follows the schema's id");
  assert_fails(decode_bytes(BYTES("x"), BYTES(MESSAGE)), ERR_WIRE, "its first byte is 0x0a, not 0");
}

static void what_is_no_row_is_unreadable(void **state)
{
  (void)state;
  open_format("id", NULL, false, false);
  assert_fails(decode("x", ""), ERR_WIRE, "not JSON");
  assert_fails(decode("x", "[1]"), ERR_WIRE, "JSON, but a list where an object is expected");
  assert_fails(decode("x", "\"row\""), ERR_WIRE, "JSON, but text where an object is expected");
  assert_fails(decode("x", "null"), ERR_WIRE, "JSON, but null where an object is expected");
  assert_fails(decode("x", "{\"id\":7"), ERR_WIRE, "not JSON");
  assert_fails(decode("x", "{\"id\":7}{}"), ERR_WIRE, "not JSON");
  close_format();
}

/* Repeat a text n times, between two others. */
static char *repeated(const char *before, const char *text, size_t n, const char *after)
{
  size_t n_text = strlen(text);
  char *out = calloc(1, strlen(before) + n * n_text + strlen(after) + 1);

  assert_non_null(out);
  strcpy(out, before);
  for (size_t i = 0; i < n; i++)
    memcpy(out + strlen(before) + i * n_text, text, n_text);
  strcat(out, after);
  return out;
}

static void hostile_rows_take_little(void **state)
{
  char *deep = repeated("{\"id\":7,\"embedding\":", "[", 100000, "");
  char *many = repeated("{\"id\":7,\"embedding\":[", "[],", 1000000, "1]}");
  char *nested = repeated("{\"id\":7,\"embedding\":\"[", "[],", 1000000, "1]\"}");
  char *large = repeated("{\"id\":7,\"embedding\":[", "1e999,", 500000, "1]}");

  (void)state;
  open_format("id", NULL, false, false);
  assert_fails(decode(NULL, deep), ERR_WIRE, "not JSON: maximum parsing depth reached");
  assert_fails(decode(NULL, many), ERR_WIRE, "memory to parse");
  assert_fails(decode(NULL, nested), ERR_ITEM, "embedding: a list as text, but the JSON takes more than");
  assert_fails(decode(NULL, large), ERR_ITEM, "embedding[0]: 1e999 does not fit");
  assert_true(region_bytes(&region) < 64 << 20);
  close_format();
  free(deep);
  free(many);
  free(nested);
  free(large);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_row_becomes_an_item),
    cmocka_unit_test(what_a_row_lacks_is_removed),
    cmocka_unit_test(an_unavailable_value_is_kept),
    cmocka_unit_test(keys_are_text_or_integers),
    cmocka_unit_test(the_record_s_key_may_be_the_item_s),
    cmocka_unit_test(tombstones_and_flags_delete),
    cmocka_unit_test(debezium_s_envelope_is_opened),
    cmocka_unit_test(what_an_update_lacks_is_kept),
    cmocka_unit_test(a_deleted_row_s_key_is_in_the_row_or_in_the_record_s_key),
    cmocka_unit_test(frames_are_taken_off),
    cmocka_unit_test(what_is_no_row_is_unreadable),
    cmocka_unit_test(hostile_rows_take_little),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
