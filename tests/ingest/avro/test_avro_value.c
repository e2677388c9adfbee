/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and values of Avro: the examples of its specification, every type, and bytes that are no value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ingest/avro/avro_value.h"
#include "tests/support/assert_ok.h"

#define RECORD(fields) "{\"type\":\"record\",\"name\":\"R\",\"fields\":[" fields "]}"
#define FIELD(name, type) "{\"name\":\"" name "\",\"type\":" type "}"

static struct region region;

static int end(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

static err_code_t make(const char *schema, const struct avro_type **out)
{
  json_error_t error;
  json_t *json = json_loads(schema, JSON_DECODE_ANY, &error);

  assert_non_null(json);
  err_code_t err = avro_schema_make(NULL, json, &region, out);
  json_decref(json);
  return err;
}

/* Read bytes from a block of exactly their size, and return the value as text. */
static char *read_text(const char *schema, const void *bytes, size_t n)
{
  const struct avro_type *type;
  uint8_t *exact = malloc(n ? n : 1);
  json_t *json = NULL;

  assert_ok(make(schema, &type));
  assert_non_null(exact);
  memcpy(exact, bytes, n);
  err_code_t err = avro_value_read(type, span_of(exact, n), &json);
  free(exact);
  if (err != ERR_OK) {
    assert_int_equal(err, ERR_WIRE);
    return NULL;
  }
  char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT);
  json_decref(json);
  return text;
}

static void check_value(const char *schema, const void *bytes, size_t n, const char *due)
{
  char *text = read_text(schema, bytes, n);

  if (!text)
    fail_msg("%s: %s", schema, err_message());
  assert_string_equal(text, due);
  free(text);
}

static void check_bad(const char *schema, const void *bytes, size_t n, const char *due)
{
  char *text = read_text(schema, bytes, n);

  assert_null(text);
  if (!strstr(err_message(), due))
    fail_msg("\"%s\" is not in: %s", due, err_message());
}

/* The bytes of a literal, without its final zero. */
#define VALUE(schema, bytes, due) check_value(schema, bytes, sizeof(bytes) - 1, due)
#define BAD(schema, bytes, due)   check_bad(schema, bytes, sizeof(bytes) - 1, due)

static void the_examples_of_the_specification_are_read(void **state)
{
  (void)state;
  VALUE("\"long\"", "\x00", "0");
  VALUE("\"long\"", "\x01", "-1");
  VALUE("\"long\"", "\x02", "1");
  VALUE("\"long\"", "\x7f", "-64");
  VALUE("\"long\"", "\x80\x01", "64");
  VALUE("\"string\"", "\x06\x66\x6f\x6f", "\"foo\"");
  VALUE(RECORD(FIELD("a", "\"long\"") "," FIELD("b", "\"string\"")), "\x36\x06\x66\x6f\x6f",
        "{\"a\":27,\"b\":\"foo\"}");
  VALUE("{\"type\":\"array\",\"items\":\"long\"}", "\x04\x06\x36\x00", "[3,27]");
  VALUE("[\"null\",\"string\"]", "\x00", "null");
  VALUE("[\"null\",\"string\"]", "\x02\x02\x61", "\"a\"");
}

static void every_type_is_read(void **state)
{
  (void)state;
  VALUE("\"null\"", "", "null");
  VALUE("\"boolean\"", "\1", "true");
  VALUE("{\"type\":\"boolean\"}", "\0", "false");
  VALUE("\"int\"", "\xff\xff\xff\xff\x0f", "-2147483648");
  VALUE("\"long\"", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "9223372036854775807");
  VALUE("\"long\"", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "-9223372036854775808");
  VALUE("\"float\"", "\x00\x00\x20\xc0", "-2.5");
  VALUE("\"float\"", "\x00\x00\xc0\x7f", "\"NaN\"");
  VALUE("\"double\"", "\x00\x00\x00\x00\x00\x00\xf0\xff", "\"-Infinity\"");
  VALUE("\"double\"", "\x00\x00\x00\x00\x00\x00\xf8\x3f", "1.5");
  VALUE("\"bytes\"", "\x06\x00\xff\x01", "\"AP8B\"");
  VALUE("{\"type\":\"fixed\",\"name\":\"F\",\"size\":3}", "\x00\xff\x01", "\"AP8B\"");
  VALUE("{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"]}", "\x02", "\"B\"");
  VALUE("{\"type\":\"map\",\"values\":\"int\"}", "\x02\x02x\x04\x02\x02y\x06\x00", "{\"x\":2,\"y\":3}");
  /* a block whose size in bytes is given */
  VALUE("{\"type\":\"array\",\"items\":\"long\"}", "\x03\x04\x06\x36\x02\x02\x00", "[3,27,1]");
  VALUE("{\"type\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}", "\x02\x02\x61\x00", "[\"a\"]");
}

static void decimals_and_times_are_read(void **state)
{
  (void)state;
  VALUE("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}", "\x04\x04\xe2", "\"12.50\"");
  VALUE("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}", "\x02\xff", "\"-0.01\"");
  VALUE("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9}", "\x02\x7f", "\"127\"");
  VALUE("{\"type\":\"fixed\",\"name\":\"D\",\"size\":2,\"logicalType\":\"decimal\",\"precision\":4,\"scale\":1}",
        "\xff\xf6", "\"-1.0\"");
  VALUE("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":18,\"scale\":18}",
        "\x10\x80\x00\x00\x00\x00\x00\x00\x00", "\"-9.223372036854775808\"");
  VALUE("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":30,\"scale\":2}",
        "\x12\x01\x00\x00\x00\x00\x00\x00\x00\x00", "\"AQAAAAAAAAAA\"");
  VALUE("{\"type\":\"fixed\",\"name\":\"D\",\"size\":12,\"logicalType\":\"decimal\",\"precision\":28,\"scale\":1}",
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xf6", "\"-1.0\"");
  VALUE("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":\"2\"}", "\x02\x7f", "\"fw==\"");
  VALUE("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}", "\x00", "\"0.00\"");
  VALUE("{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}", "\x02", "1");
  VALUE("{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}", "\xa0\x1f", "2");
  VALUE("{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}", "\x01", "-1");
  VALUE("{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\"}", "\x80\x89\x7a", "1");
  VALUE("{\"type\":\"int\",\"logicalType\":\"date\"}", "\x01", "-86400000");
  /* One that does not fit, or that nobody knows, is none. */
  VALUE("{\"type\":\"string\",\"logicalType\":\"timestamp-micros\"}", "\x02\x61", "\"a\"");
  VALUE("{\"type\":\"long\",\"logicalType\":\"age\"}", "\x02", "1");
}

static void types_with_names_are_found(void **state)
{
  (void)state;
  VALUE(RECORD(FIELD("v", "\"int\"") "," FIELD("next", "[\"null\",\"R\"]")), "\x02\x02\x04\x00",
        "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}");
  VALUE("{\"type\":\"record\",\"name\":\"a.b.R\",\"fields\":[" FIELD(
            "e", "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"X\"]}") "," FIELD("f", "\"a.b.E\"") "," FIELD("g", "\"E\"") "]}",
        "\x00\x00\x00", "{\"e\":\"X\",\"f\":\"X\",\"g\":\"X\"}");
  VALUE("{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"n\",\"fields\":[" FIELD(
            "e", "{\"type\":\"fixed\",\"name\":\"m.F\",\"size\":1}") "," FIELD("f", "\"m.F\"") "]}",
        "aa", "{\"e\":\"YQ==\",\"f\":\"YQ==\"}");
}

static void bytes_that_are_no_value_are_refused(void **state)
{
  static const char record[] = RECORD(FIELD("a", "{\"type\":\"array\",\"items\":\"float\"}") "," FIELD("b", "\"string\""));

  (void)state;
  BAD("\"long\"", "", "the value: the bytes end in the middle of it");
  BAD("\"long\"", "\x80", "the bytes end in the middle");
  BAD("\"long\"", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "a number of more than 10 bytes");
  BAD("\"int\"", "\x80\x80\x80\x80\x10", "2147483648 is beyond an int");
  BAD("\"boolean\"", "\2", "a boolean is a byte 0 or 1, not 2");
  BAD("\"string\"", "\x01", "a length of -1");
  BAD("\"string\"", "\x06\x61", "the bytes end in the middle");
  BAD("\"string\"", "\x02\xff", "the text is not UTF-8");
  BAD("\"bytes\"", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "the bytes end in the middle");
  BAD("[\"null\"]", "\x02", "number 1 of the 1 in the schema");
  BAD("[\"null\"]", "\x01", "number -1 of the 1 in the schema");
  BAD("{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]}", "\x04", "number 2 of the 1");
  BAD("\"int\"", "\x02\x02", "1 bytes follow the value");
  BAD(record, "\x04\x00\x00\x80\x3f\x00\x00", "a[1]: the bytes end in the middle");
  BAD(record, "\x02\x00\x00\x80\x3f\x00\x02", "b: the bytes end in the middle");
  BAD("{\"type\":\"map\",\"values\":{\"type\":\"array\",\"items\":\"boolean\"}}", "\x02\x02k\x02\x07", "k[0]: a boolean");
}

/* A few bytes may say that there are very many values, or deeply nested ones. */
static void small_values_do_not_become_large(void **state)
{
  (void)state;
  BAD("{\"type\":\"array\",\"items\":\"null\"}", "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than 1048576 values");
  BAD("{\"type\":\"array\",\"items\":\"long\"}", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "the bytes end");
  BAD(RECORD(FIELD("r", "\"R\"")), "", "values are nested more than 64 deep");
  BAD(RECORD(FIELD("r", "{\"type\":\"array\",\"items\":\"R\"}")),
      "\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02"
      "\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02"
      "\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02",
      "values are nested more than 64 deep");
}

static void check_schema(const char *schema, const char *due)
{
  const struct avro_type *type;

  assert_int_equal(make(schema, &type), ERR_CONFIG);
  if (!strstr(err_message(), due))
    fail_msg("\"%s\" is not in: %s", due, err_message());
}

static void schemas_that_are_wrong_are_refused(void **state)
{
  char deep[400] = "";

  (void)state;
  check_schema("\"flaot\"", "the schema: there is no type \"flaot\"");
  check_schema("7", "the schema: expected a type");
  check_schema("{}", "expected a type");
  check_schema("[]", "a union of 0 types");
  check_schema("{\"type\":\"record\",\"name\":\"R\"}", "expected a list of at most 4096 in \"fields\"");
  check_schema("{\"type\":\"record\",\"fields\":[]}", "its record has no name");
  check_schema(RECORD("{\"type\":\"int\"}"), "field 0 of its record has no name");
  check_schema(RECORD(FIELD("embedding", "{\"type\":\"array\"}")), "embedding: expected a type");
  check_schema(RECORD(FIELD("embedding", "\"S\"")), "embedding: there is no type \"S\"");
  check_schema("{\"type\":\"fixed\",\"name\":\"F\",\"size\":-1}", "the size of its fixed is 0 to 1048576");
  check_schema("{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[1]}", "symbol 0 of its enum is no text");
  for (int i = 0; i < 70; i++)
    strcat(deep, "[");
  strcat(deep, "\"int\"");
  for (int i = 0; i < 70; i++)
    strcat(deep, "]");
  check_schema(deep, "types are nested more than 64 deep");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_examples_of_the_specification_are_read),
    cmocka_unit_test(every_type_is_read),
    cmocka_unit_test(decimals_and_times_are_read),
    cmocka_unit_test(types_with_names_are_found),
    cmocka_unit_test(bytes_that_are_no_value_are_refused),
    cmocka_unit_test(small_values_do_not_become_large),
    cmocka_unit_test(schemas_that_are_wrong_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, end);
}
