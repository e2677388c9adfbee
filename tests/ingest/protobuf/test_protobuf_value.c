/* SPDX-License-Identifier: Apache-2.0 */
/* Values of Protobuf: every type, what is absent, and bytes that are no message. The bytes without another comment were
 * written by Google's library for Python, from the messages of shop.proto and legacy.proto. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ingest/json/json_path.h"
#include "ingest/protobuf/protobuf_source.h"
#include "ingest/protobuf/protobuf_value.h"
#include "tests/support/assert_ok.h"

static struct protobuf_source *shop, *legacy;

static int begin(void **state)
{
  (void)state;
  assert_ok(protobuf_source_open(SLUICE_SOURCE_DIR "/tests/ingest/protobuf/shop.desc", "shop.v1.Film", &shop));
  assert_ok(protobuf_source_open(SLUICE_SOURCE_DIR "/tests/ingest/protobuf/shop.desc", "shop.legacy.Film", &legacy));
  return 0;
}

static int end(void **state)
{
  (void)state;
  protobuf_source_close(&shop);
  protobuf_source_close(&legacy);
  return 0;
}

/* Read bytes from a block of exactly their size. */
static json_t *read_exact(const struct protobuf_source *source, const void *bytes, size_t n)
{
  uint8_t *exact = malloc(n ? n : 1);
  json_t *json = NULL;

  assert_non_null(exact);
  if (n > 0)
    memcpy(exact, bytes, n);
  err_code_t err = protobuf_value_read(protobuf_source_type(source), span_of(exact, n), &json);
  free(exact);
  assert_true(err == ERR_OK || err == ERR_WIRE);
  return json;
}

/* due: the value at the path as JSON; NULL: there is none. */
static void check_value(const struct protobuf_source *source, const void *bytes, size_t n, const char *at,
                        const char *due)
{
  struct json_path path = { 0 };
  json_t *json = read_exact(source, bytes, n);

  if (!json)
    fail_msg("%s: %s", at, err_message());
  assert_ok(json_path_init(span_of_str(at), &path));
  const json_t *found = json_path_find(&path, json);
  char *text = found ? json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  if (!due != !text || (due && strcmp(due, text) != 0))
    fail_msg("%s: %s, not %s", at, text ? text : "nothing", due ? due : "nothing");
  free(text);
  json_decref(json);
  json_path_fini(&path);
}

static void check_bad(const struct protobuf_source *source, const void *bytes, size_t n, const char *due)
{
  assert_null(read_exact(source, bytes, n));
  if (!strstr(err_message(), due))
    fail_msg("\"%s\" is not in: %s", due, err_message());
}

/* The bytes of a literal, without its final zero. */
#define VALUE(bytes, at, due)  check_value(shop, bytes, sizeof(bytes) - 1, at, due)
#define LEGACY(bytes, at, due) check_value(legacy, bytes, sizeof(bytes) - 1, at, due)
#define BAD(bytes, due)        check_bad(shop, bytes, sizeof(bytes) - 1, due)

static void every_kind_of_number_is_read(void **state)
{
  (void)state;
  static const char most[] = /* of each kind the largest number */
      "\x82}^\x0d\x00\x00`@\x11\x9cu\x00\x88<\xe4\x37\xfe\x18\xff\xff\xff\xff\x07 \xff\xff\xff\xff\xff\xff\xff\xff\x7f("
      "\xff\xff\xff\xff\x0f\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x38\xfe\xff\xff\xff\x0f@\xfe\xff\xff\xff\xff"
      "\xff\xff\xff\xff\x01M\xff\xff\xff\xffQ\xff\xff\xff\xff\xff\xff\xff\xff]\xff\xff\xff\x7f\x61\xff\xff\xff\xff\xff"
      "\xff\xff\x7fh\x01";
  static const char least[] =
      "\x82}C\x0d\x00\x00\x80\xff\x11\x00\x00\x00\x00\x00\x00\xf8\x7f\x18\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01 \x80"
      "\x80\x80\x80\x80\x80\x80\x80\x80\x01\x38\xff\xff\xff\xff\x0f@\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01]\x00\x00"
      "\x00\x80\x61\x00\x00\x00\x00\x00\x00\x00\x80";
  VALUE(most, "numbers",
        "{\"b\":true,\"d\":-1.0000000000000001e300,\"f\":3.5,\"i32\":2147483647,\"i64\":9223372036854775807,"
        "\"s32\":2147483647,\"s64\":9223372036854775807,\"sx32\":2147483647,\"sx64\":9223372036854775807,"
        "\"u32\":4294967295,\"u64\":\"18446744073709551615\",\"x32\":4294967295,\"x64\":\"18446744073709551615\"}");
  VALUE(least, "numbers",
        "{\"b\":false,\"d\":\"NaN\",\"f\":\"-Infinity\",\"i32\":-2147483648,\"i64\":-9223372036854775808,"
        "\"s32\":-2147483648,\"s64\":-9223372036854775808,\"sx32\":-2147483648,\"sx64\":-9223372036854775808,"
        "\"u32\":0,\"u64\":0,\"x32\":0,\"x64\":0}");
  VALUE("\x19\x00\x00\x00\x00\x00\x00)@", "price", "12.5");
  VALUE("\x82}\x06\x18\x81\x80\x80\x80\x10", "numbers.i32", "1"); /* 2^32 + 1: too long for 32 bits */
  VALUE("p\x80\x01", "is_available", "true");                     /* by hand: 128 */
}

static void texts_bytes_and_enums_are_read(void **state)
{
  (void)state;
  VALUE("\x0a\x12\x0a\x05\x61lien\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "sku",
        "{\"code\":\"alien\",\"version\":-2}");
  VALUE("j\x08\x00\x00\x80\x3f\x00\x00\x00@", "packed_embedding", "\"AACAPwAAAEA=\"");
  VALUE("8\x01", "genre", "\"DRAMA\""); /* and SERIOUS: the first name counts */
  VALUE("8\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "genre", "\"LOSS\"");
  VALUE("8\x09", "genre", "9");
}

static void lists_are_read_packed_or_not(void **state)
{
  (void)state;
  VALUE("\x12\x0c\x00\x00\xc0\x3f\x00\x00\x00\xc0\x00\x00\x00\x00", "embedding", "[1.5,-2.0,0.0]");
  /* by hand: one by one, then packed */
  VALUE("\x15\x00\x00\xc0\x3f\x15\x00\x00\x00\xc0\x12\x04\x00\x00\x00\x00", "embedding", "[1.5,-2.0,0.0]");
  VALUE("\x12\x0c\x00\x00\xc0\x7f\x00\x00\x80\x7f\x00\x00\x80\xff", "embedding", "[\"NaN\",\"Infinity\",\"-Infinity\"]");
  VALUE("\x12\x00", "embedding", "[]");
  VALUE("\x88}\x00\x88}\x01\x88}\x02\x88}\x03\x88}\xfe\xff\xff\xff\x0f", "deltas", "[0,-1,1,-2,2147483647]");
  VALUE("\x8a}\x02\x01\x02", "deltas", "[-1,1]"); /* by hand: packed, against the schema */
  VALUE("*\x01\x61*\x00*\x02\xc3\xa9", "tags", "[\"a\",\"\",\"\xc3\xa9\"]");
  VALUE("\x9a\x01\x0d\x00\x01\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "genres",
        "[\"UNKNOWN\",\"DRAMA\",5,\"LOSS\"]");
  VALUE("\x8a\x01\x09\x19\x00\x00\x00\x00\x00\x00\xf0\x3f\x8a\x01\x05\x8a\x01\x02\x30\x03", "sequels.0.price", "1.0");
  VALUE("\x8a\x01\x09\x19\x00\x00\x00\x00\x00\x00\xf0\x3f\x8a\x01\x05\x8a\x01\x02\x30\x03", "sequels.1.sequels.0.year",
        "3");
}

static void maps_are_objects(void **state)
{
  (void)state;
  VALUE("B\x04\x0a\x00\x10\x00\x42\x05\x0a\x01\x61\x10\x01\x42\x0e\x0a\x01\x62\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\x01",
        "stock", "{\"\":0,\"a\":1,\"b\":-1}");
  VALUE("J\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x00J\x07\x08\x07\x12\x03\x0a\x01x", "editions",
        "{\"-1\":{\"code\":\"\",\"version\":0},\"7\":{\"code\":\"x\",\"version\":0}}");
  VALUE("\xa2\x01\x04\x08\x00\x12\x00\xa2\x01\x06\x08\x01\x12\x02\x08\x05", "flags", "{\"false\":0,\"true\":5}");
  /* by hand: an entry without anything, one of an unknown field, and a key that comes again */
  VALUE("B\x00", "stock", "{\"\":0}");
  VALUE("J\x00", "editions", "{\"0\":{\"code\":\"\",\"version\":0}}");
  VALUE("B\x07\x18\x05\x0a\x01\x61\x10\x01\x42\x05\x10\x02\x0a\x01\x61", "stock", "{\"a\":2}");
}

static void times_and_wrappers_are_what_they_stand_for(void **state)
{
  (void)state;
  VALUE("\x22\x0c\x08\xc0\xb2\x8b\xd8\x06\x10\xff\x93\xeb\xdc\x03", "published_at", "1795348800999");
  VALUE("\x22\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\xa0\xc2\x1e", "published_at", "-1000");
  VALUE("\x22\x00", "published_at", "0");
  VALUE("\x92\x01\x02\x08\x01\x92\x01\x07\x08\x02\x10\xc0\x96\xb1\x02", "shown_at", "[1000,2005]");
  VALUE("z\x09\x09\x00\x00\x00\x00\x00\x00\x12@", "rating", "4.5");
  VALUE("z\x00", "rating", "0.0");
  VALUE("\x82\x01\x00", "title", "\"\"");
  VALUE("", "rating", NULL);
  VALUE("", "published_at", NULL);
  BAD("\x22\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "published_at: a time of 9223372036854775807 seconds");
}

static void what_is_absent_has_its_default_or_is_not_there(void **state)
{
  (void)state;
  check_value(shop, NULL, 0, "price", "0.0");
  VALUE("", "price", "0.0");
  VALUE("", "genre", "\"UNKNOWN\"");
  VALUE("", "packed_embedding", "\"\"");
  VALUE("", "is_available", "false");
  VALUE("", "embedding", "[]");
  VALUE("", "stock", "{}");
  VALUE("", "sku", NULL);
  VALUE("\x0a\x00", "sku", "{\"code\":\"\",\"version\":0}");
  VALUE("", "year", NULL); /* proto3 optional */
  VALUE("0\x00", "year", "0");
  VALUE("", "coupon", NULL); /* of a oneof */
  VALUE("R\x00", "coupon", "\"\"");
}

static void defaults_of_the_older_syntax_are_those_of_the_schema(void **state)
{
  (void)state;
  LEGACY("\x0a\x01x", "price", "9.5");
  LEGACY("\x0a\x01x", "year", NULL);
  LEGACY("\x0a\x01x", "country", "\"de\"");
  LEGACY("\x0a\x01x", "mark", "\"AP8iYQo=\""); /* 00 ff " a \n */
  LEGACY("\x0a\x01x", "size", "\"LARGE\"");
  LEGACY("\x0a\x01x", "is_available", "true");
  LEGACY("\x0a\x01x", "balance", "-7");
  LEGACY("\x0a\x01x", "share", "\"-Infinity\"");
  LEGACY("\x0a\x01x", "views", "\"18446744073709551615\"");
  LEGACY("\x0a\x01x", "rebate", NULL); /* of a oneof: another field may be meant */
  LEGACY("", "code", NULL);
}

static const char written[] = /* all fields, most of them as zero, also groups */
    "\x0a\x01x\x11\x00\x00\x00\x00\x00\x00\x00\x00\x18\x00\x22\x00*\x00\x30\x01\x38\x00@\x00M\x00\x00\x80\x3fU\x00\x00"
    "\x80\x3fU\x00\x00\x00@[\x0a\x06weaver\x13\x0a\x01\x61\x14\x13\x14\x5cj\x01\x63p\x03";

static void groups_are_messages(void **state)
{
  (void)state;
  LEGACY(written, "cast", "{\"actor\":[{\"name\":\"a\"},{}],\"lead\":\"weaver\"}");
  LEGACY(written, "price", "0.0");
  LEGACY(written, "country", "\"\"");
  LEGACY(written, "size", "\"SMALL\"");
  LEGACY(written, "embedding", "[1.0,2.0]");
  LEGACY(written, "coupon", "\"c\"");
  LEGACY(written, "views", "3");
  /* by hand: cast begins and does not end, ends as another group, or is ended without a beginning */
  check_bad(legacy, "[\x0a\x01x", 4, "cast: the bytes end in the middle of it");
  check_bad(legacy, "[l", 2, "cast: byte 2: a group ends that has not begun");
  check_bad(legacy, "\x5c", 1, "cast: byte 1: it is written as the end of a group");
}

/* All by hand. */
static void the_last_value_counts_and_messages_are_merged(void **state)
{
  (void)state;
  VALUE("8\x01\x38\x00", "genre", "\"UNKNOWN\"");
  VALUE("\x0a\x03\x0a\x01x\x0a\x02\x10\x05", "sku", "{\"code\":\"x\",\"version\":5}");
  VALUE("\x22\x02\x08\x05\x22\x05\x10\xc0\x96\xb1\x02", "published_at", "5005"); /* seconds, then nanos */
  VALUE("R\x01xY\x00\x00\x00\x00\x00\x00\x00\x00", "coupon", NULL);
  VALUE("R\x01xY\x00\x00\x00\x00\x00\x00\x00\x00", "rebate", "0.0");
  VALUE("b\x03\x0a\x01xR\x00\x62\x02\x10\x01", "bundle", "{\"code\":\"\",\"version\":1}"); /* coupon came between */
  VALUE("b\x03\x0a\x01x\x62\x02\x10\x01", "bundle", "{\"code\":\"x\",\"version\":1}");
}

/* All by hand: field 100 in each wire type, and a group with a group in it. */
static void unknown_fields_are_skipped(void **state)
{
  (void)state;
  VALUE("\xa0\x06\x05\xa1\x06" "12345678" "\xa2\x06\x02hi\xa5\x06" "1234" "8\x01", "genre", "\"DRAMA\"");
  VALUE("\xa3\x06\xab\x06\x0a\x01x\xac\x06\x08\x01\xa4\x06" "8\x01", "genre", "\"DRAMA\"");
  BAD("\xa3\x06\xab\x06\xa4\x06", "the value: byte 6: a group ends that has not begun");
}

static void bytes_that_are_no_message_are_refused(void **state)
{
  (void)state;
  BAD("\x00", "the value: byte 1: a field of number 0");
  BAD("\x0e", "the value: byte 1: a field of wire type 6");
  BAD("\x80", "the value: byte 0: the bytes end in the middle of a number");
  BAD("8\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "genre: byte 1: a number of more than 10 bytes");
  BAD("\xf8\xff\xff\xff\x7f\x01", "a field of number 4294967295, which no message has");
  BAD("\x19\x00\x00\x00", "price: byte 1: the bytes end in the middle of a value");
  BAD("\x0a\x05\x0a\x01", "sku: byte 2: a length of 5, but 2 bytes follow");
  BAD("\x0a\x02\x0a\x05", "sku.code: byte 4: a length of 5, but 0 bytes follow");
  BAD("\x12\x05\x00\x00\xc0\x3f\x00", "embedding[1]: byte 6: the bytes end in the middle of a value");
  BAD("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "embedding: byte 11: a length of 18446744073709551615");
  BAD("\x18\x05", "price: byte 1: it is written as a varint, but the schema says 8 bytes: is this the message");
  BAD("\x08\x05", "sku: byte 1: it is written as a varint, but the schema says a length");
  BAD("(\x05", "tags: byte 1: it is written as a varint, but the schema says a length");
  BAD("@\x05", "stock: byte 1: it is written as a varint, but the schema says a length");
  BAD("B\x02\x08\x01", "stock[0]: byte 3: it is written as a varint, but the schema says a length");
  BAD("*\x02\xc3\x28", "tags[0]: byte 4: the text is not UTF-8");
  BAD("*\x01\x00", "tags[0]: byte 3: the text is not UTF-8, or has a zero character");
}

/* Sequels of sequels: each is three bytes longer than the one in it, while lengths have one byte. */
static void messages_in_each_other_are_bounded(void **state)
{
  uint8_t bytes[1024], *at = bytes + sizeof bytes;
  size_t n = 0;

  (void)state;
  for (int depth = 0; depth < 100; depth++) {
    uint8_t length[2] = { (uint8_t)(n < 128 ? n : (n & 127) | 128), (uint8_t)(n >> 7) };
    size_t n_length = n < 128 ? 1 : 2;
    at -= n_length;
    memcpy(at, length, n_length);
    at -= 2;
    memcpy(at, "\x8a\x01", 2);
    n += 2 + n_length;
    json_t *json = read_exact(shop, at, n);
    assert_true((json != NULL) == (depth < 64)); /* a list and its element are two */
    json_decref(json);
  }
  assert_non_null(strstr(err_message(), "values are nested more than 128 deep"));
}

static void values_are_bounded(void **state)
{
  const size_t n = 4 << 20;
  uint8_t *bytes = malloc(n);

  (void)state;
  assert_non_null(bytes);
  memset(bytes, 0, n); /* a list of as many zeros */
  memcpy(bytes, "\x9a\x01\xfa\xff\xff\x01", 6);
  check_bad(shop, bytes, n, "more than 1048576 values");
  for (size_t i = 0; i + 3 <= n; i += 3)
    memcpy(bytes + i, "\x8a\x01\x00", 3); /* empty messages in a list */
  check_bad(shop, bytes, n / 3 * 3, "more than 1048576 values");
  free(bytes);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_kind_of_number_is_read),
    cmocka_unit_test(texts_bytes_and_enums_are_read),
    cmocka_unit_test(lists_are_read_packed_or_not),
    cmocka_unit_test(maps_are_objects),
    cmocka_unit_test(times_and_wrappers_are_what_they_stand_for),
    cmocka_unit_test(what_is_absent_has_its_default_or_is_not_there),
    cmocka_unit_test(defaults_of_the_older_syntax_are_those_of_the_schema),
    cmocka_unit_test(groups_are_messages),
    cmocka_unit_test(the_last_value_counts_and_messages_are_merged),
    cmocka_unit_test(unknown_fields_are_skipped),
    cmocka_unit_test(bytes_that_are_no_message_are_refused),
    cmocka_unit_test(messages_in_each_other_are_bounded),
    cmocka_unit_test(values_are_bounded),
  };

  return cmocka_run_group_tests(tests, begin, end);
}
