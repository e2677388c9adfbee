/* SPDX-License-Identifier: Apache-2.0 */
/* What is suggested for rows of many kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/ctl/map/ctl_mapping.h"
#include "tests/support/assert_ok.h"

static struct mapping_census census;
static struct region scratch;

static int begin(void **state)
{
  (void)state;
  census = (struct mapping_census){ 0 };
  return 0;
}

static int end(void **state)
{
  (void)state;
  mapping_census_fini(&census);
  region_fini(&scratch);
  return 0;
}

/* key: NULL: the record has none. value: NULL: it is a tombstone. */
static void add(const char *key, const char *value)
{
  const struct mapping json = { 0 };
  const struct topic_record record = {
    .has_key = key, .key = span_of_str(key ? key : ""), .has_value = value, .value = span_of_str(value ? value : "")
  };

  assert_ok(mapping_census_add(&census, &json, false, &record, &scratch));
}

static const struct ctl_mapping_space films = { "films", true, { .item_vector = 2 } };

static void assert_suggests(const struct ctl_mapping_space *spaces, size_t n_spaces, const char *due)
{
  char *text = NULL;
  size_t n_bytes;
  FILE *out = open_memstream(&text, &n_bytes);

  assert_non_null(out);
  assert_ok(ctl_mapping_write(&census, spaces, n_spaces, out));
  assert_int_equal(fclose(out), 0);
  assert_string_equal(text, due);
  free(text);
}

static void each_field_gets_the_narrowest_type(void **state)
{
  (void)state;
  add("alien", "{\"embedding\":[3,1],\"price\":{\"amount\":9},\"tags\":[\"dark\"],\"year\":1979,\"new\":false,"
               "\"seen\":\"2026-11-22T12:00:00Z\",\"made\":1795348800000,\"cost\":\"12.50\",\"sku\":\"a-1\",\"isbn\":17}");
  add("heat", "{\"embedding\":[1,0],\"price\":{\"amount\":12.5},\"tags\":null,\"year\":1995,\"new\":true,"
              "\"seen\":\"2026-11-23T12:00:00Z\",\"made\":1795348900000,\"cost\":\"3.10\",\"sku\":\"\",\"isbn\":\"x\"}");
  add("ran", NULL);
  assert_suggests(&films, 1,
                  "attributes:\n"
                  "  amount: number  # in 2 of 2 rows, such as 9\n"
                  "  tags: keywords  # in 1 of 2 rows, such as [\"dark\"]\n"
                  "  year: integer  # in 2 of 2 rows, such as 1979\n"
                  "  new: bool  # in 2 of 2 rows, such as false\n"
                  "  seen: time  # in 2 of 2 rows, such as \"2026-11-22T12:00:00Z\"\n"
                  "  made: time  # in 2 of 2 rows, such as 1795348800000\n"
                  "  cost: number  # in 2 of 2 rows, such as \"12.50\"\n"
                  "  sku: keyword  # in 2 of 2 rows, such as \"a-1\"\n"
                  "  isbn: keyword  # in 2 of 2 rows, such as 17\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    vectors:\n"
                  "      films: embedding  # 2 numbers, in 2 of 2 rows, such as [3,1]\n"
                  "    attributes:\n"
                  "      amount: price.amount\n"
                  "      tags: tags\n"
                  "      year: year\n"
                  "      new: new\n"
                  "      seen: seen\n"
                  "      made: made\n"
                  "      cost: cost\n"
                  "      sku: sku\n"
                  "      isbn: isbn\n");
  assert_int_equal(census.n_deletes, 1);
}

static void what_cannot_be_mapped_is_said(void **state)
{
  char row[1024];

  (void)state;
  snprintf(row, sizeof row, "{\"id\":7,\"a\":null,\"b\":[1,2,3],\"c\":[{\"x\":1}],\"d\":\"%0300d\",\"e\":true,\"f\":[4]}", 0);
  add("7", row);
  add("8", "{\"id\":8,\"e\":\"maybe\",\"b\":[1,2,4],\"f\":[1,2]}");
  assert_suggests(&films, 1,
                  "attributes:\n"
                  "  f: keywords  # in 2 of 2 rows, such as [4]\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    attributes:\n"
                  "      f: f\n"
                  "# Space films: no field has 2 numbers in each value.\n"
                  "# Not mapped: id: the key of the record, and of the item; in 2 of 2 rows, such as 7\n"
                  "# Not mapped: a: no value in these rows; in 0 of 2 rows\n"
                  "# Not mapped: b: a list of numbers that no space needs; in 2 of 2 rows, such as [1,2,3]\n"
                  "# Not mapped: c: a list; in 1 of 2 rows, such as [{\"x\":1}]\n"
                  "# Not mapped: d: text that is too long for an attribute; in 1 of 2 rows, such as "
                  "\"00000000000000000000000000000000000...\n"
                  "# Not mapped: e: values of several types; in 2 of 2 rows, such as true\n");
}

static void a_key_is_found_in_the_row(void **state)
{
  (void)state;
  add(NULL, "{\"user_id\":1,\"sku\":{\"code\":\"a\"},\"embedding\":[3,1],\"deleted_at\":null}");
  add("", "{\"user_id\":1,\"sku\":{\"code\":\"b\"},\"embedding\":[3,1],\"deleted_at\":\"2026-11-22T12:00:00Z\"}");
  assert_suggests(&films, 1,
                  "attributes:\n"
                  "  user_id: integer  # in 2 of 2 rows, such as 1\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    key: sku.code  # must be different for each item; in 2 of 2 rows, such as \"a\"\n"
                  "    vectors:\n"
                  "      films: embedding  # 2 numbers, in 2 of 2 rows, such as [3,1]\n"
                  "    attributes:\n"
                  "      user_id: user_id\n"
                  "    deleted: deleted_at  # in 1 of 2 rows, such as \"2026-11-22T12:00:00Z\"\n");
}

static void a_key_that_is_not_found_is_left_open(void **state)
{
  (void)state;
  add(NULL, "{\"embedding\":[3,1]}");
  assert_suggests(&films, 1,
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # key: ?  # 0 of 1 rows have a record's key, and no field looks like the item's key\n"
                  "    vectors:\n"
                  "      films: embedding  # 2 numbers, in 1 of 1 rows, such as [3,1]\n");
}

/* Names with dots, words of YAML and of filters, equal names, and what is no name. */
static void names_are_made_valid(void **state)
{
  (void)state;
  add("k", "{\"a.b\":{\"c/d\":1,\"~\":2},\"in\":3,\"no\":4,\"x\":{\"n\":5},\"y\":{\"n\":6},\"7up\":7,\"\\u00e9\":8}");
  assert_suggests(NULL, 0,
                  "attributes:\n"
                  "  c_1d: integer  # in 1 of 1 rows, such as 1\n"
                  "  _0: integer  # in 1 of 1 rows, such as 2\n"
                  "  \"no\": integer  # in 1 of 1 rows, such as 4\n"
                  "  \"n\": integer  # in 1 of 1 rows, such as 5\n"
                  "  y_n: integer  # in 1 of 1 rows, such as 6\n"
                  "  _7up: integer  # in 1 of 1 rows, such as 7\n"
                  "  __: integer  # in 1 of 1 rows, such as 8\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    attributes:\n"
                  "      c_1d: \"/a.b/c~1d\"\n"
                  "      _0: \"/a.b/~0\"\n"
                  "      \"no\": \"no\"\n"
                  "      \"n\": x.n\n"
                  "      y_n: y.n\n"
                  "      _7up: \"7up\"\n"
                  "      __: \"\u00e9\"\n"
                  "# Not mapped: in: its name is taken, reserved or not valid: choose another; in 1 of 1 rows, such as 3\n");
}

static void spaces_take_what_fits(void **state)
{
  const struct ctl_mapping_space spaces[] = {
    { "books", true, { .item_codes = 3 } },
    { "text", true, { .item_vector = 8 } },
    { "image", true, { .item_vector = 2 } },
    { "large", false, { 0 } },
  };

  (void)state;
  add("k", "{\"rating\":[5,1],\"image\":[3,1],\"codes\":[1,2,255],"
           "\"v\":\"AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8=\",\"name\":\"abcd\"}");
  assert_suggests(spaces, 4,
                  "attributes:\n"
                  "  name: keyword  # in 1 of 1 rows, such as \"abcd\"\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    vectors:\n"
                  "      text: v  # 8 numbers, in 1 of 1 rows, such as \"AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AAC...\n"
                  "      image: image  # 2 numbers, in 1 of 1 rows, such as [3,1]\n"
                  "      large: codes  # 3 numbers, in 1 of 1 rows, such as [1,2,255]\n"
                  "    codes:\n"
                  "      books: codes  # 3 numbers, in 1 of 1 rows, such as [1,2,255]\n"
                  "    attributes:\n"
                  "      name: name\n"
                  "# Not mapped: rating: a list of numbers that no space needs; in 1 of 1 rows, such as [5,1]\n");
}

static void an_envelope_is_recognised(void **state)
{
  (void)state;
  add("{\"id\":1}", "{\"before\":null,\"after\":{\"id\":1,\"embedding\":\"[3,1]\",\"price\":9},\"op\":\"c\"}");
  add("{\"id\":1}", "{\"before\":null,\"after\":{\"id\":1,\"embedding\":\"__debezium_unavailable_value\"},\"op\":\"u\"}");
  add("{\"id\":1}", "{\"before\":{\"id\":1},\"after\":null,\"op\":\"d\"}");
  assert_suggests(&films, 1,
                  "attributes:\n"
                  "  price: integer  # in 1 of 2 rows, such as 9\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    vectors:\n"
                  "      films: embedding  # 2 numbers, in 1 of 2 rows, such as \"[3,1]\"\n"
                  "    attributes:\n"
                  "      price: price\n"
                  "    envelope: debezium  # 3 records are in one\n"
                  "# Not mapped: id: the key of the record, and of the item; in 2 of 2 rows, such as 1\n");
}

/* Neither a flag of something in the row nor a number that counts says that the row is deleted. */
static void only_a_flag_of_the_row_deletes_it(void **state)
{
  (void)state;
  add("k1", "{\"author\":{\"deleted\":true},\"removed\":3,\"deleted\":0}");
  add("k2", "{\"author\":{\"deleted\":false},\"removed\":1,\"deleted\":1}");
  assert_suggests(NULL, 0,
                  "attributes:\n"
                  "  deleted: bool  # in 2 of 2 rows, such as true\n"
                  "  removed: integer  # in 2 of 2 rows, such as 3\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    attributes:\n"
                  "      deleted: author.deleted\n"
                  "      removed: removed\n"
                  "    deleted: deleted  # in 2 of 2 rows, such as 0\n");
}

static void what_is_also_an_object_is_not_mapped(void **state)
{
  (void)state;
  add("k1", "{\"embedding\":[1,2],\"price\":5,\"size\":{\"x\":1}}");
  add("k2", "{\"embedding\":{\"v\":[1,2]},\"price\":{\"amount\":5},\"size\":{\"x\":2}}");
  assert_suggests(&films, 1,
                  "attributes:\n"
                  "  x: integer  # in 2 of 2 rows, such as 1\n"
                  "  amount: integer  # in 1 of 2 rows, such as 5\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    vectors:\n"
                  "      films: embedding.v  # 2 numbers, in 1 of 2 rows, such as [1,2]\n"
                  "    attributes:\n"
                  "      x: size.x\n"
                  "      amount: price.amount\n"
                  "# Not mapped: embedding: values of several types; in 1 of 2 rows, such as [1,2]\n"
                  "# Not mapped: price: values of several types; in 1 of 2 rows, such as 5\n");
}

/* What YAML forbids, or takes for the end of a line. */
static void text_of_rows_does_not_leave_its_place(void **state)
{
  (void)state;
  add("k1", "{\"a\\u2028b\":[{}],\"c\\u0085d\":1,\"e\":\"x\\u007fy\\u2028z\",\"f\\u00e9\\ud83d\\ude00\\ufeff\":2}");
  assert_suggests(NULL, 0,
                  "attributes:\n"
                  "  c__d: integer  # in 1 of 1 rows, such as 1\n"
                  "  e: keyword  # in 1 of 1 rows, such as \"x?y\\u2028z\"\n"
                  "  f_________: integer  # in 1 of 1 rows, such as 2\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    attributes:\n"
                  "      c__d: \"c\\u0085d\"\n"
                  "      e: e\n"
                  "      f_________: \"f\u00e9\U0001f600\\ufeff\"\n"
                  "# Not mapped: \"a\\u2028b\": a list; in 1 of 1 rows, such as [{}]\n");
}

static void short_text_is_not_taken_for_codes(void **state)
{
  const struct ctl_mapping_space books = { "books", true, { .item_codes = 3 } };

  (void)state;
  add("k1", "{\"genre\":\"dark\",\"item_pq\":[1,2,3]}");
  add("k2", "{\"genre\":\"crim\",\"item_pq\":[4,5,6]}");
  assert_suggests(&books, 1,
                  "attributes:\n"
                  "  genre: keyword  # in 2 of 2 rows, such as \"dark\"\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    codes:\n"
                  "      books: item_pq  # 3 numbers, in 2 of 2 rows, such as [1,2,3]\n"
                  "    attributes:\n"
                  "      genre: genre\n");
}

static void types_may_be_written_in_two_ways(void **state)
{
  (void)state;
  add("k1", "{\"a\":\"1.50\",\"b\":true,\"c\":\"7\"}");
  add("k2", "{\"a\":2,\"b\":0,\"c\":7}");
  assert_suggests(NULL, 0,
                  "attributes:\n"
                  "  a: number  # in 2 of 2 rows, such as \"1.50\"\n"
                  "  b: bool  # in 2 of 2 rows, such as true\n"
                  "  c: keyword  # in 2 of 2 rows, such as \"7\"\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    attributes:\n"
                  "      a: a\n"
                  "      b: b\n"
                  "      c: c\n");
}

static void a_single_envelope_is_none(void **state)
{
  (void)state;
  add("k1", "{\"op\":\"c\",\"before\":null,\"after\":{\"x\":1}}");
  add("k2", "{\"op\":\"r\",\"after\":\"noon\",\"x\":1}");
  add("k3", "{\"x\":1}");
  assert_suggests(NULL, 0,
                  "attributes:\n"
                  "  x: integer  # in 3 of 3 rows, such as 1\n"
                  "  op: keyword  # in 1 of 3 rows, such as \"r\"\n"
                  "  after: keyword  # in 1 of 3 rows, such as \"noon\"\n"
                  "catalogue:\n"
                  "  mapping:\n"
                  "    # an item's key is that of its record\n"
                  "    attributes:\n"
                  "      x: x\n"
                  "      op: op\n"
                  "      after: after\n"
                  "    # envelope: debezium  # 1 records are in one, and will be refused\n");
}

static void records_that_are_no_rows_are_counted(void **state)
{
  (void)state;
  add("k", "{");
  add("k", "[1]");
  assert_int_equal(census.n_unread, 2);
  assert_int_equal(census.n_rows, 0);
  assert_string_equal(census.first_unread.message, "not JSON: string or '}' expected near end of file (line 1, column 1)");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(each_field_gets_the_narrowest_type, begin, end),
    cmocka_unit_test_setup_teardown(what_cannot_be_mapped_is_said, begin, end),
    cmocka_unit_test_setup_teardown(a_key_is_found_in_the_row, begin, end),
    cmocka_unit_test_setup_teardown(a_key_that_is_not_found_is_left_open, begin, end),
    cmocka_unit_test_setup_teardown(names_are_made_valid, begin, end),
    cmocka_unit_test_setup_teardown(spaces_take_what_fits, begin, end),
    cmocka_unit_test_setup_teardown(an_envelope_is_recognised, begin, end),
    cmocka_unit_test_setup_teardown(only_a_flag_of_the_row_deletes_it, begin, end),
    cmocka_unit_test_setup_teardown(what_is_also_an_object_is_not_mapped, begin, end),
    cmocka_unit_test_setup_teardown(text_of_rows_does_not_leave_its_place, begin, end),
    cmocka_unit_test_setup_teardown(short_text_is_not_taken_for_codes, begin, end),
    cmocka_unit_test_setup_teardown(types_may_be_written_in_two_ways, begin, end),
    cmocka_unit_test_setup_teardown(a_single_envelope_is_none, begin, end),
    cmocka_unit_test_setup_teardown(records_that_are_no_rows_are_counted, begin, end),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
