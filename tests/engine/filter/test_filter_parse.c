/* SPDX-License-Identifier: Apache-2.0 */
/* The language of filters, by tables: each text with the tree that it means, printed; each mistake with its error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "base/query.h"
#include "engine/filter/filter.h"
#include "tests/support/assert_ok.h"
#include "tests/support/filter_attributes.h"

#define LEAST    "-9223372036854775808"
#define GREATEST "9223372036854775807"

static struct region region;

/* Parse a text that is alone in its memory, so that the sanitizer sees a read past its end. */
static err_code_t parse(struct span text, const struct value *parameters, size_t n, const struct filter_node **out)
{
  struct attributes attributes = filter_attributes();
  uint8_t *alone = malloc(text.n ? text.n : 1);

  assert_non_null(alone);
  if (text.n)
    memcpy(alone, text.p, text.n);
  err_code_t err = filter_parse(span_of(alone, text.n), parameters, n, &attributes, &region, out);
  if (err == ERR_OK && filter_parse(text, parameters, n, &attributes, &region, out) != ERR_OK)
    fail_msg("parsed once, but not twice");
  free(alone);
  return err;
}

static const char *print(const struct filter_node *node)
{
  struct attributes attributes = filter_attributes();
  struct span printed, copy;

  assert_ok(filter_print(node, &attributes, &region, &printed));
  assert_ok(region_copy(&region, printed, &copy));
  return (const char *)copy.p;
}

struct row {
  const char *text, *expected;
};

static void check_trees(const struct row *rows, size_t n, const struct value *parameters, size_t n_parameters)
{
  const struct filter_node *root;

  for (size_t i = 0; i < n; i++) {
    region_reset(&region);
    if (parse(span_of_str(rows[i].text), parameters, n_parameters, &root) != ERR_OK)
      fail_msg("%s: %s", rows[i].text, err_message());
    if (strcmp(print(root), rows[i].expected) != 0)
      fail_msg("%s: is \"%s\", not \"%s\"", rows[i].text, print(root), rows[i].expected);
  }
}

static void check_errors(const struct row *rows, size_t n, const struct value *parameters, size_t n_parameters)
{
  const struct filter_node *root = NULL;
  char expected[256];

  for (size_t i = 0; i < n; i++) {
    region_reset(&region);
    snprintf(expected, sizeof expected, "filter: %s", rows[i].expected);
    if (parse(span_of_str(rows[i].text), parameters, n_parameters, &root) != ERR_QUERY)
      fail_msg("%s: is taken as \"%s\", not as an error", rows[i].text, root ? print(root) : "");
    if (strcmp(err_message(), expected) != 0)
      fail_msg("%s:\n%s, not\n%s", rows[i].text, err_message(), expected);
    assert_null(root);
  }
}

#define CHECK_TREES(rows, ...)  check_trees(rows, sizeof(rows) / sizeof(rows)[0], __VA_ARGS__)
#define CHECK_ERRORS(rows, ...) check_errors(rows, sizeof(rows) / sizeof(rows)[0], __VA_ARGS__)

static void and_binds_tighter_than_or_and_not_tightest(void **state)
{
  static const struct row rows[] = {
    { "available or adult and has(year)", "available = true or adult = true and has(year)" },
    { "(available or adult) and has(year)", "(available = true or adult = true) and has(year)" },
    { "not available and adult", "not available = true and adult = true" },
    { "not (available and adult)", "not (available = true and adult = true)" },
    { "not available or not (adult or has(tags))", "not available = true or not (adult = true or has(tags))" },
    { "not country = 'de'", "not country in ('de')" },
    { "year between 1 and 2 and available", "year between 1 and 2 and available = true" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void groups_are_flattened_and_constants_folded(void **state)
{
  static const struct row rows[] = {
    { "available and (adult and (has(year) and has(tags)))",
      "available = true and adult = true and has(year) and has(tags)" },
    { "available or (adult or has(year))", "available = true or adult = true or has(year)" },
    { "((((available))))", "available = true" },
    { "not not available", "available = true" },
    { "not not not available", "not available = true" },
    { "available and year between 2 and 1", "none" },
    { "available or year between 2 and 1", "available = true" },
    { "not year between 2 and 1", "all" },
    { "available and not year between 2 and 1", "available = true" },
    { "available or not year between 2 and 1", "all" },
    { "not (adult and year between 2 and 1) and available", "available = true" },
    { "year = 1.5 or price between 2 and 1", "none" },
    { "(available or adult and year = 1.5) and (adult or not year = 1.5)", "available = true" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void an_and_speaks_once_of_a_range_and_of_presence(void **state)
{
  static const struct row rows[] = {
    { "year >= 1990 and year <= 1999", "year between 1990 and 1999" },
    { "year > 1 and available and year < 9 and year != 5",
      "year between 2 and 8 and available = true and not year between 5 and 5" },
    { "year >= 5 and (year <= 7 and year >= 3)", "year between 5 and 7" },
    { "year = 1 and year = 2", "none" },
    { "available or year = 1 and year = 2", "available = true" },
    { "price > 1 and price >= 1 and price < 2 and price <= 2", "price between 1.0000000000000002 and "
                                                              "1.9999999999999998" },
    { "price >= 1 and price <= 1", "price between 1.0 and 1.0" },
    { "price > 1 and price < 1", "none" },
    { "price <= 5 and price < 4", "price <= 3.9999999999999996" },
    { "expires > 5 and expires < 10 and year < 10 and year > 5",
      "expires between 6 and 9 and year between 6 and 9" },
    { "year < 5 or year > 7", "year between " LEAST " and 4 or year between 8 and " GREATEST },
    { "not year < 5 and not year > 7", "not year between " LEAST " and 4 and not year between 8 and " GREATEST },
    { "has(year) and has(year)", "has(year)" },
    { "has(year) and year > 5 and has(price)", "year between 6 and " GREATEST " and has(price)" },
    { "year in (1, 2) and has(year)", "year in (1, 2)" },
    { "country = 'a' and has(country) and has(tags) and tags has 'a'", "country in ('a') and tags has ('a')" },
    { "available and has(available) and has(adult)", "available = true and has(adult)" },
    { "has(year) or year > 5", "has(year) or year between 6 and " GREATEST },
    { "has(year) and not year > 5", "has(year) and not year between 6 and " GREATEST },
    { "year != 5 and year != 6", "has(year) and not year between 5 and 5 and not year between 6 and 6" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void keywords_have_any_case_and_names_one(void **state)
{
  static const struct row rows[] = {
    { "available AND NOT adult Or HAS(year)", "available = true and not adult = true or has(year)" },
    { "available = TRUE and adult = False", "available = true and adult = false" },
    { "country IN ('de') and tags Has 'a' and year BETWEEN 1 aNd 2",
      "country in ('de') and tags has ('a') and year between 1 and 2" },
    { "\t\r\n available\nand(adult)and\thas ( year ) ", "available = true and adult = true and has(year)" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void an_unequal_value_must_be_present(void **state)
{
  static const struct row rows[] = {
    { "country != 'de'", "has(country) and not country in ('de')" },
    { "not country != 'de'", "not (has(country) and not country in ('de'))" },
    { "year != 3", "has(year) and not year between 3 and 3" },
    { "year != 3.5", "has(year)" },
    { "price != 0.5 and available", "has(price) and not price between 0.5 and 0.5 and available = true" },
    { "available != true", "available = false" },
    { "available != false", "available = true" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void bounds_of_integers_are_inclusive_and_exact(void **state)
{
  static const struct row rows[] = {
    { "year < 1990", "year between " LEAST " and 1989" },
    { "year <= 1990", "year between " LEAST " and 1990" },
    { "year > 1990", "year between 1991 and " GREATEST },
    { "year >= 1990", "year between 1990 and " GREATEST },
    { "year < 1990.5", "year between " LEAST " and 1990" },
    { "year <= 1990.5", "year between " LEAST " and 1990" },
    { "year > 1990.5", "year between 1991 and " GREATEST },
    { "year >= 1990.5", "year between 1991 and " GREATEST },
    { "year < -1990.5", "year between " LEAST " and -1991" },
    { "year > -1990.5", "year between -1990 and " GREATEST },
    { "year < 1990.0", "year between " LEAST " and 1989" },
    { "year = 1.99e3", "year between 1990 and 1990" },
    { "year = 1990.5", "none" },
    { "year between -1.5 and 1.5", "year between -1 and 1" },
    { "year between 1.2 and 1.8", "none" },
    { "year between 5 and 4", "none" },
    { "year < " GREATEST, "year between " LEAST " and 9223372036854775806" },
    { "year <= " GREATEST, "has(year)" },
    { "year > " GREATEST, "none" },
    { "year >= " GREATEST, "year between " GREATEST " and " GREATEST },
    { "year < " LEAST, "none" },
    { "year <= " LEAST, "year between " LEAST " and " LEAST },
    { "year > " LEAST, "year between -9223372036854775807 and " GREATEST },
    { "year >= " LEAST, "has(year)" },
    { "year < 9223372036854775808.0", "has(year)" },
    { "year >= 9223372036854775808.0", "none" },
    { "year > -9223372036854775809.0", "year between -9223372036854775807 and " GREATEST }, /* it is -2^63 */
    { "year < 1e300 and year > -1e300", "has(year)" },
    { "year between -1e300 and 1e300", "has(year)" },
    { "year = 1e300 or year = -1e300", "none" },
    { "year in (3, 1, 2.0, 1.5, 1, 1e300, -1e300)", "year in (1, 2, 3)" },
    { "year in (1.5, 2)", "year between 2 and 2" },
    { "year in (1.5)", "none" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void bounds_of_numbers_are_inclusive_and_exact(void **state)
{
  static const struct row rows[] = {
    { "price < 20", "price <= 19.999999999999996" },
    { "price <= 20", "price <= 20.0" },
    { "price > 20", "price >= 20.000000000000004" },
    { "price >= 20", "price >= 20.0" },
    { "price < 0", "price <= -4.9406564584124654e-324" },
    { "price > -0.0", "price >= 4.9406564584124654e-324" },
    { "price > -4.9406564584124654e-324", "price >= 0.0" },
    { "price = -0.0", "price between 0.0 and 0.0" },
    { "price = 0.1", "price between 0.10000000000000001 and 0.10000000000000001" },
    { "price between 1 and 1e3", "price between 1.0 and 1000.0" },
    { "price between 2 and 1", "none" },
    { "price <= 1.7976931348623157e308", "has(price)" },
    { "price > 1.7976931348623157e308", "none" },
    { "price < -1.7976931348623157e308", "none" },
    { "price in (2, -0.0, 0, 1e2, 2.0)", "price in (0.0, 2.0, 100.0)" },
    { "price in (2, 2.0)", "price between 2.0 and 2.0" },
    { "price in (5E-1, 2e+1)", "price in (0.5, 20.0)" },
    { "price = 9007199254740992", "price between 9007199254740992.0 and 9007199254740992.0" },
    { "price = -9223372036854775808", "price between -9.2233720368547758e+18 and -9.2233720368547758e+18" },
    { "price = 1e-400", "price between 0.0 and 0.0" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void times_are_milliseconds_or_rfc_3339(void **state)
{
  static const struct row rows[] = {
    { "expires = 0", "expires between 0 and 0" },
    { "expires >= 0", "has(expires)" },
    { "expires < 0", "none" },
    { "expires < 1000", "expires between 0 and 999" },
    { "expires < 1000.5", "expires between 0 and 1000" },
    { "expires = '1970-01-01T00:00:00Z'", "expires between 0 and 0" },
    { "expires = '2026-11-22T12:00:00Z'", "expires between 1795348800000 and 1795348800000" },
    { "expires = '2026-11-22t13:30:00+01:30'", "expires between 1795348800000 and 1795348800000" },
    { "expires = '2026-11-22T06:00:00.000-06:00'", "expires between 1795348800000 and 1795348800000" },
    { "expires = '2024-02-29T23:59:59.999Z'", "expires between 1709251199999 and 1709251199999" },
    { "expires = '2026-11-22T12:00:00.123000Z'", "expires between 1795348800123 and 1795348800123" },
    { "expires = '2026-11-22T12:00:00.123456Z'", "none" },
    { "expires <= '2026-11-22T12:00:00.123456Z'", "expires between 0 and 1795348800123" },
    { "expires < '2026-11-22T12:00:00.123456Z'", "expires between 0 and 1795348800123" },
    { "expires >= '2026-11-22T12:00:00.123456Z'", "expires between 1795348800124 and " GREATEST },
    { "expires in ('1970-01-01T00:00:01Z', 5)", "expires in (5, 1000)" },
    { "expires between '1969-12-31T19:00:00-05:00' and '9999-12-31T23:59:59Z'",
      "expires between 0 and 253402300799000" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void texts_are_sorted_and_each_is_there_once(void **state)
{
  static const struct row rows[] = {
    { "country = ''", "country in ('')" },
    { "country = 'it''s'", "country in ('it''s')" },
    { "country = ''''", "country in ('''')" },
    { "country in ('b', 'a', 'ab', 'a', '')", "country in ('', 'a', 'ab', 'b')" },
    { "country = 'K\xc3\xb6ln \xe2\x82\xac and (or)'", "country in ('K\xc3\xb6ln \xe2\x82\xac and (or)')" },
    { "tags has 'a'", "tags has ('a')" },
    { "tags has ('b', 'a''b', 'a')", "tags has ('a', 'a''b', 'b')" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

static void bools_stand_alone_or_are_compared(void **state)
{
  static const struct row rows[] = {
    { "available", "available = true" },
    { "available = true", "available = true" },
    { "available = false", "available = false" },
    { "available in (true)", "available = true" },
    { "available in (false, true)", "has(available)" },
  };

  (void)state;
  CHECK_TREES(rows, NULL, 0);
}

#define TEXT(literal)   { VALUE_TEXT, .text = { (const uint8_t *)(literal), sizeof(literal) - 1 } }
#define INTEGER(i)      { VALUE_INTEGER, .integer = (i) }
#define NUMBER(x)       { VALUE_NUMBER, .number = (x) }
#define LIST(array)     { VALUE_LIST, .list = { (array), sizeof(array) / sizeof(array)[0] } }

static void parameters_stand_for_values(void **state)
{
  static const struct value list[] = { TEXT("de"), TEXT("a''t"), TEXT("de") }, years[] = { INTEGER(2), NUMBER(1) };
  static const struct value parameters[] = {
    LIST(list), NUMBER(20.5), TEXT("it's"), INTEGER(1990), { VALUE_BOOL, .is_true = true }, LIST(years),
    TEXT("1970-01-01T00:00:01Z"), { VALUE_LIST, .list = { NULL, 0 } },
  };
  static const struct row rows[] = {
    { "country in $1 and price < $2 and (tags has $3 or tags has $1) and year between $4 and 1999.5 and adult = $5 "
      "and year in $6 and expires > $7 and not country in $8",
      "country in ('a''''t', 'de') and price <= 20.499999999999996 and "
      "(tags has ('it''s') or tags has ('a''''t', 'de')) and "
      "year between 1990 and 1999 and adult = true and year in (1, 2) and expires between 1001 and " GREATEST },
    { "country in ($3, 'x') and year in ($4, 3) and tags has ($3) and adult in ($5) and country in $1 and "
      "year in $6 and price = $2 and expires in ($7)",
      "country in ('it''s', 'x') and year in (3, 1990) and tags has ('it''s') and adult = true and "
      "country in ('a''''t', 'de') and year in (1, 2) and price between 20.5 and 20.5 and "
      "expires between 1000 and 1000" },
  };

  (void)state;
  check_trees(rows, 1, parameters, 8);
  check_trees(rows + 1, 1, parameters, 7);
}

static void an_empty_list_admits_nothing(void **state)
{
  static const struct value parameters[] = { { VALUE_LIST, .list = { NULL, 0 } } };
  static const struct row rows[] = {
    { "country in $1", "none" },  { "tags has $1", "none" },  { "year in $1", "none" },
    { "price in $1", "none" },    { "expires in $1", "none" }, { "available in $1", "none" },
    { "not year in $1", "all" },
  };

  (void)state;
  CHECK_TREES(rows, parameters, 1);
}

static void a_mistake_is_named_with_its_place_and_the_remedy(void **state)
{
  static const struct row rows[] = {
    /* The text ends, or goes on, where it should not. */
    { "", "it is empty" },
    { " \t\n", "it is empty" },
    { "price <", "at character 8: expected a number after '<', not the end" },
    { "year between and 3", "at character 14: expected a number after 'between', not 'and'" },
    { "year between 1, 3", "at character 15: expected 'and' after 1, not ','" },
    { "year between 1 or 3", "at character 16: expected 'and' after 1, not 'or'" },
    { "not", "at character 4: expected an attribute, 'has', 'not' or '(' after 'not', not the end" },
    { "available and", "at character 14: expected an attribute, 'has', 'not' or '(' after 'and', not the end" },
    { "available and or adult",
      "at character 15: expected an attribute, 'has', 'not' or '(' after 'and', not 'or'" },
    { "and available", "at character 1: expected an attribute, 'has', 'not' or '(', not 'and'" },
    { "5 < price", "at character 1: expected an attribute, 'has', 'not' or '(', not 5" },
    { "true", "at character 1: expected an attribute, 'has', 'not' or '(', not 'true'" },
    { "()", "at character 2: expected an attribute, 'has', 'not' or '(' after '(', not ')'" },
    { "((year = 1)", "at character 12: expected 'and', 'or' or ')' after ')', not the end" },
    { "(year = 1))", "at character 11: expected 'and', 'or' or the end after ')', not ')'" },
    { "year = 5 year = 6", "at character 10: expected 'and', 'or' or the end after 5, not 'year'" },
    { "year = 5 -3", "at character 10: expected 'and', 'or' or the end after 5, not -3" },
    { "available banana", "at character 11: expected 'and', 'or' or the end after 'available', not 'banana'" },
    { "has year", "at character 5: expected '(' after 'has', not 'year'" },
    { "has('year')", "at character 5: expected an attribute after '(', not 'year'" },
    { "has(year", "at character 9: expected ')' after 'year', not the end" },
    { "year in 5", "at character 9: expected '(' or a parameter after 'in', not 5" },
    { "year in ()", "at character 10: expected a number after '(', not ')'" },
    { "year in (1, 2,, 3)", "at character 15: expected a number after ',', not ','" },
    { "year in (1 2)", "at character 12: expected ',' or ')' after 1, not 2" },
    { "year in (1, 2", "at character 14: expected ',' or ')' after 2, not the end" },
    { "year = country", "at character 8: expected a number after '=', not 'country'" },
    { "country = de", "at character 11: expected a text in single quotes after '=', not 'de'" },
    { "tags has", "at character 9: expected a text in single quotes after 'has', not the end" },
    { "available = yes", "at character 13: expected true or false after '=', not 'yes'" },
    { "expires > now", "at character 11: expected a time after '>', not 'now'" },
    /* Operators that the type does not take. */
    { "price", "at character 6: price is a number: expected =, !=, <, <=, >, >=, in or between after it, not the end" },
    { "year not in (5)",
      "at character 6: year is an integer: expected =, !=, <, <=, >, >=, in or between after it, not 'not'" },
    { "country < 'a'", "at character 9: country is a keyword: expected =, != or in after it, not '<'" },
    { "country has 'a'", "at character 9: country is a keyword: expected =, != or in after it, not 'has'" },
    { "tags = 'a'", "at character 6: tags is a set of keywords: expected has after it, not '='" },
    { "available > false", "at character 11: available is a bool: expected =, != or in after it, not '>'" },
    { "expires has 5",
      "at character 9: expires is a time: expected =, !=, <, <=, >, >=, in or between after it, not 'has'" },
    /* Values that do not fit. */
    { "price < 'cheap'", "at character 9: price is a number, and 'cheap' is text" },
    { "price in (1, true)", "at character 14: price is a number, and true is a bool" },
    { "year = 'x'", "at character 8: year is an integer, and 'x' is text" },
    { "year between 1 and false", "at character 20: year is an integer, and false is a bool" },
    { "country in ('de', -5)", "at character 19: country is a keyword, and -5 is an integer" },
    { "country = 2.5", "at character 11: country is a keyword, and 2.5 is a number" },
    { "tags has ('a', true)", "at character 16: tags is a set of keywords, and true is a bool" },
    { "available = 1", "at character 13: available is a bool, and 1 is an integer" },
    { "price = 9007199254740993", "at character 9: price is a number, and 9007199254740993 has more digits than a "
                                  "number keeps: write it as a decimal, which is rounded" },
    { "price = 9223372036854775807", "at character 9: price is a number, and 9223372036854775807 has more digits than "
                                     "a number keeps: write it as a decimal, which is rounded" },
    { "expires < -5", "at character 11: expires is a time, and -5 is before 1970" },
    { "expires < -0.5", "at character 11: expires is a time, and -0.5 is before 1970" },
    { "expires < '1969-12-31T23:59:59.9999Z'",
      "at character 11: expires is a time, and '1969-12-31T23:59:59.9999Z' is before 1970" },
    { "expires = 'tomorrow'",
      "at character 11: expires is a time, and 'tomorrow' is not a time such as '2026-11-22T12:00:00Z'" },
    { "expires = true", "at character 11: expires is a time, and true is a bool" },
    /* Names. */
    { "contry = 'de'", "at character 1: 'contry' is not an attribute; the nearest is 'country'" },
    { "COUNTRY = 'de'", "at character 1: 'COUNTRY' is not an attribute; the nearest is 'country'" },
    { "has(tag)", "at character 5: 'tag' is not an attribute; the nearest is 'tags'" },
    { "gr\xc3\xb6\xc3\x9f" "e = 5", "at character 1: 'gr\xc3\xb6\xc3\x9f" "e' is not an attribute; the nearest is "
                                    "'price'" },
    /* Words and signs. */
    { "country == 'a'", "at character 9: write =, not ==" },
    { "country <> 'a'", "at character 9: write !=, not <>" },
    { "year =< 5", "at character 6: write <=, not =<" },
    { "year => 5", "at character 6: write >=, not =>" },
    { "available && adult", "at character 11: write and, not &&" },
    { "available || adult", "at character 11: write or, not ||" },
    { "country = \"de\"", "at character 11: write a text as 'text', not \"" },
    { "country = 'de", "at character 11: the text that begins here has no closing '" },
    { "country = 'de''", "at character 11: the text that begins here has no closing '" },
    { "country = '\xc3\xbc\xc3\xbc' ; adult", "at character 16: ';' has no meaning outside a text" },
    { "price < 5MB", "at character 9: 5MB is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < .5", "at character 9: .5 is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < 5.", "at character 9: 5. is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < +5", "at character 9: +5 is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < - 5", "at character 9: - is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < 1e", "at character 9: 1e is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < 0x10", "at character 9: 0x10 is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < 1.2.3", "at character 9: 1.2.3 is not a number: write it as 17, -2.5, 0.5 or 1e6" },
    { "price < nan", "at character 9: expected a number after '<', not 'nan'" },
    { "price < 1e999", "at character 9: 1e999 is larger than any number that can be kept" },
    { "year = 9223372036854775808", "at character 8: 9223372036854775808 does not fit an integer of 64 bits; a "
                                    "decimal such as 1e19 may be larger" },
    { "year = 00000000000000000000000000000000000000000000000000000000000000001",
      "at character 8: a number has at most 64 characters" },
    /* Parameters. */
    { "year = $", "at character 8: expected a parameter from $1 to $64" },
    { "year = $0", "at character 8: expected a parameter from $1 to $64" },
    { "year = $01", "at character 8: expected a parameter from $1 to $64" },
    { "year = $65", "at character 8: expected a parameter from $1 to $64" },
    { "year = $99999999999999999999", "at character 8: expected a parameter from $1 to $64" },
    { "year = $year", "at character 8: expected a parameter from $1 to $64" },
    { "year = $1", "at character 8: $1 has no value: the filter has 0 parameters" },
    { "year in $1", "at character 9: $1 has no value: the filter has 0 parameters" },
    { "tags has $64", "at character 10: $64 has no value: the filter has 0 parameters" },
  };

  (void)state;
  CHECK_ERRORS(rows, NULL, 0);
}

static void parameters_must_fit_and_be_used(void **state)
{
  static const struct value bad_in_list[] = { TEXT("a"), { .kind = VALUE_NULL } }, inner[] = { TEXT("a") };
  static const struct value nested[] = { LIST(inner) }, numbers[] = { NUMBER(1), NUMBER(NAN) };
  static const struct {
    struct value parameter;
    struct row row;
  } rows[] = {
    { INTEGER(5), { "available", "the parameter $1 is not used" } },
    { INTEGER(5), { "year = $2", "at character 8: $2 has no value: the filter has 1 parameter" } },
    { INTEGER(5), { "$1 = year", "at character 1: expected an attribute, 'has', 'not' or '(', not $1" } },
    { INTEGER(5), { "year in $1", "at character 9: expected a list, and $1 is a single value" } },
    { LIST(inner), { "country = $1", "at character 11: country is a keyword, and $1 is a list" } },
    { LIST(inner), { "country in ('b', $1)", "at character 18: country is a keyword, and $1 is a list" } },
    { LIST(nested), { "country in $1", "at character 12: country is a keyword, and value 1 of $1 is a list" } },
    { LIST(bad_in_list), { "country in $1", "at character 12: country is a keyword, and value 2 of $1 is null" } },
    { LIST(bad_in_list), { "tags has $1", "at character 10: tags is a set of keywords, and value 2 of $1 is null" } },
    { LIST(numbers), { "price in $1", "at character 10: price is a number, and value 2 of $1 is not finite" } },
    { LIST(numbers), { "year in $1", "at character 9: year is an integer, and value 2 of $1 is not finite" } },
    { { .kind = VALUE_NULL }, { "year = $1", "at character 8: year is an integer, and $1 is null" } },
    { NUMBER(INFINITY), { "price < $1", "at character 9: price is a number, and $1 is not finite" } },
    { NUMBER(-INFINITY), { "expires < $1", "at character 11: expires is a time, and $1 is not finite" } },
    { NUMBER(-1), { "expires < $1", "at character 11: expires is a time, and $1 is before 1970" } },
    { INTEGER(INT64_MIN), { "expires < $1", "at character 11: expires is a time, and $1 is before 1970" } },
    { INTEGER(INT64_MAX), { "price < $1", "at character 9: price is a number, and $1 has more digits than a number "
                                          "keeps: write it as a decimal, which is rounded" } },
    { TEXT("now"), { "expires < $1", "at character 11: expires is a time, and $1 is not a time such as "
                                     "'2026-11-22T12:00:00Z'" } },
    { TEXT("a\xff"), { "country = $1", "at character 11: country is a keyword, and $1 is not UTF-8, or has a zero "
                                       "byte" } },
    { TEXT("a\0b"), { "tags has $1", "at character 10: tags is a set of keywords, and $1 is not UTF-8, or has a zero "
                                     "byte" } },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    check_errors(&rows[i].row, 1, &rows[i].parameter, 1);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
  const struct filter_node *root;

  (void)state;
  assert_fails(parse(span_of("country = '\xc3\xbc\xff'", 15), NULL, 0, &root), ERR_QUERY,
               "filter: at character 13: bytes that are not UTF-8");
  assert_fails(parse(span_of("available\0", 10), NULL, 0, &root), ERR_QUERY, "at character 10: a zero byte");
  assert_fails(parse(span_of("country = 'a\0'", 14), NULL, 0, &root), ERR_QUERY, "at character 13: a zero byte");
  assert_fails(parse(span_of("country = '\xc3", 12), NULL, 0, &root), ERR_QUERY, "at character 12: bytes");
  assert_fails(parse(span_of(NULL, 0), NULL, 0, &root), ERR_QUERY, "filter: it is empty");
}

/* A text that is made of pieces. */
struct builder {
  char *text;
  size_t n;
};

static void append(struct builder *b, const char *piece, size_t times)
{
  size_t length = strlen(piece);

  b->text = realloc(b->text, b->n + times * length + 1);
  assert_non_null(b->text);
  for (; times > 0; times--) {
    memcpy(b->text + b->n, piece, length + 1);
    b->n += length;
  }
}

/* Parse what was made, and forget it. */
static err_code_t parse_built(struct builder *b, const struct filter_node **out)
{
  region_reset(&region);
  err_code_t err = parse(span_of(b->text, b->n), NULL, 0, out);

  free(b->text);
  *b = (struct builder){ 0 };
  return err;
}

static size_t depth_of(const struct filter_node *node)
{
  size_t deepest = 0;

  if (node->kind == FILTER_AND || node->kind == FILTER_OR || node->kind == FILTER_NOT) {
    for (size_t i = 0; i < node->operands.n; i++) {
      size_t depth = depth_of(node->operands.v[i]);
      deepest = depth > deepest ? depth : deepest;
    }
  }
  return deepest + 1;
}

static void nesting_has_a_limit(void **state)
{
  const struct filter_node *root;
  struct builder b = { 0 };

  (void)state;
  append(&b, "(", FILTER_NESTING_MAX);
  append(&b, "adult", 1);
  append(&b, ")", FILTER_NESTING_MAX);
  assert_ok(parse_built(&b, &root));
  append(&b, "(", FILTER_NESTING_MAX + 1);
  append(&b, "adult", 1);
  append(&b, ")", FILTER_NESTING_MAX + 1);
  assert_fails(parse_built(&b, &root), ERR_QUERY,
               "filter: at character 31: more than 30 parentheses and nots inside one another");
  append(&b, "not ", FILTER_NESTING_MAX + 1);
  assert_fails(parse_built(&b, &root), ERR_QUERY, "at character 121: more than 30 parentheses");
  append(&b, "(", 10000);
  assert_fails(parse_built(&b, &root), ERR_QUERY, "at character 31: more than 30 parentheses");
  append(&b, "((adult)) and ", 100);
  append(&b, "adult", 1);
  assert_ok(parse_built(&b, &root)); /* only what is open counts */
}

static void no_tree_is_deeper_than_the_limit(void **state)
{
  const struct filter_node *root;
  struct builder b = { 0 };

  (void)state;
  append(&b, "adult or adult and (", FILTER_NESTING_MAX);
  append(&b, "adult or adult and year != 5", 1);
  append(&b, ")", FILTER_NESTING_MAX);
  assert_ok(parse_built(&b, &root));
  assert_int_equal(depth_of(root), FILTER_DEPTH_MAX);
  append(&b, "adult or adult and (", FILTER_NESTING_MAX - 1);
  append(&b, "adult or adult and not year != 5", 1);
  append(&b, ")", FILTER_NESTING_MAX - 1);
  assert_ok(parse_built(&b, &root));
  assert_true(depth_of(root) <= FILTER_DEPTH_MAX);
}

static void nodes_have_a_limit(void **state)
{
  const struct filter_node *root;
  struct builder b = { 0 };

  (void)state;
  append(&b, "adult or ", FILTER_NODES_MAX - 2);
  append(&b, "adult", 1);
  assert_ok(parse_built(&b, &root));
  assert_int_equal(root->operands.n, FILTER_NODES_MAX - 1);
  append(&b, "adult or ", FILTER_NODES_MAX - 1);
  append(&b, "adult", 1);
  assert_fails(parse_built(&b, &root), ERR_QUERY,
               "the filter has more than 1024 comparisons, ands, ors and nots");
  append(&b, "year!=1 or ", 1000);
  append(&b, "adult", 1);
  assert_fails(parse_built(&b, &root), ERR_QUERY, "more than 1024 comparisons");
  append(&b, "adult and adult and adult and adult and year=1.5 or ", 300); /* of each `and` nothing is left */
  append(&b, "adult", 1);
  assert_ok(parse_built(&b, &root));
  assert_string_equal(print(root), "adult = true");
}

static size_t n_nodes_of(const struct filter_node *node)
{
  size_t n = 1;

  if (node->kind == FILTER_AND || node->kind == FILTER_OR || node->kind == FILTER_NOT) {
    for (size_t i = 0; i < node->operands.n; i++)
      n += n_nodes_of(node->operands.v[i]);
  }
  return n;
}

static void nodes_that_the_filter_does_not_have_do_not_count(void **state)
{
  static const struct {
    const char *piece;
    size_t n, n_nodes; /* how many pieces stand before `adult`, and the nodes of that filter */
    bool is_most;
  } cases[] = {
    { "year != 1 or ", 255, 4 * 255 + 2, true },
    { "((year != 1)) or ", 255, 4 * 255 + 2, true },
    { "year != 1 and ", 341, 2 * 341 + 3, true }, /* one has(year) is kept at the end */
    { "((adult or adult)) or ", 511, 2 * 511 + 2, true },
    { "((adult and adult)) or ", 340, 3 * 340 + 2, true },
    { "not not adult or ", 900, 900 + 2, false },
    { "(year>1 and year<9) or ", 700, 700 + 2, false },
    { "(year<1 and year>9) or ", 700, 1, false },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct filter_node *root;
    struct builder b = { 0 };
    append(&b, cases[i].piece, cases[i].n);
    append(&b, "adult", 1);
    assert_ok(parse_built(&b, &root));
    assert_int_equal(n_nodes_of(root), cases[i].n_nodes);
    append(&b, cases[i].piece, cases[i].n + 1);
    append(&b, "adult", 1);
    assert_int_equal(parse_built(&b, &root), cases[i].is_most ? ERR_QUERY : ERR_OK);
  }
}

static void text_and_literals_have_limits(void **state)
{
  const struct filter_node *root;
  struct builder b = { 0 };

  (void)state;
  append(&b, "adult", 1);
  append(&b, " ", QUERY_FILTER_MAX - 5);
  assert_ok(parse_built(&b, &root));
  append(&b, " ", QUERY_FILTER_MAX + 1);
  assert_fails(parse_built(&b, &root), ERR_QUERY, "filter: 16385 bytes are more than the limit of 16384");
  append(&b, "(", 1 << 20);
  assert_fails(parse_built(&b, &root), ERR_QUERY, "filter: 1048576 bytes are more than the limit of 16384");
  append(&b, "country = '", 1);
  append(&b, "x", ATTRIBUTE_TEXT_MAX);
  append(&b, "'", 1);
  assert_ok(parse_built(&b, &root));
  append(&b, "country = '", 1);
  append(&b, "\xc3\xbc", ATTRIBUTE_TEXT_MAX / 2);
  append(&b, "x'", 1);
  assert_fails(parse_built(&b, &root), ERR_QUERY, "...' has more than 256 bytes");
  append(&b, "x", 16000);
  assert_fails(parse_built(&b, &root), ERR_QUERY, "xxx...' is not an attribute; the nearest is '");
}

static void values_and_parameters_have_limits(void **state)
{
  static struct value many[QUERY_PARAMETER_VALUES_MAX + 1], parameters[QUERY_PARAMETERS_MAX + 1];
  const struct filter_node *root;

  (void)state;
  for (size_t i = 0; i <= QUERY_PARAMETER_VALUES_MAX; i++)
    many[i] = (struct value){ VALUE_INTEGER, .integer = (int64_t)(i * 7919 % 10007) };
  parameters[0] = (struct value)LIST(many);
  assert_fails(parse(span_of_str("year in $1"), parameters, 1, &root), ERR_QUERY,
               "parameters: 10001 values, at most 10000");
  parameters[0].list.n = QUERY_PARAMETER_VALUES_MAX;
  region_reset(&region);
  assert_ok(parse(span_of_str("year in $1 or price in $1"), parameters, 1, &root));
  assert_int_equal(root->operands.v[1]->number_values.n, QUERY_PARAMETER_VALUES_MAX);
  assert_fails(parse(span_of_str("year in $1 or year in $1 or year in $1"), parameters, 1, &root), ERR_QUERY,
               "at character 37: the lists have more than 20000 values together; a parameter counts at each use");
  assert_fails(parse(span_of_str("year in $1"), parameters, QUERY_PARAMETERS_MAX + 1, &root), ERR_QUERY,
               "filter: 65 parameters are more than the limit of 64");
}

static void all_64_parameters_can_be_used(void **state)
{
  static struct value parameters[QUERY_PARAMETERS_MAX];
  const struct filter_node *root;
  struct builder b = { 0 };
  char piece[32];

  (void)state;
  region_reset(&region);
  for (int i = 1; i <= QUERY_PARAMETERS_MAX; i++) {
    parameters[i - 1] = (struct value){ VALUE_INTEGER, .integer = i };
    snprintf(piece, sizeof piece, "%syear = $%d", i == 1 ? "" : " or ", i);
    append(&b, piece, 1);
  }
  assert_ok(parse(span_of(b.text, b.n), parameters, QUERY_PARAMETERS_MAX, &root));
  assert_int_equal(root->operands.v[63]->integers.low, 64);
  free(b.text);
}

static void without_attributes_the_error_says_so(void **state)
{
  struct attributes none = { 0 };
  const struct filter_node *root;

  (void)state;
  assert_fails(filter_parse(span_of_str("year = 5"), NULL, 0, &none, &region, &root), ERR_QUERY,
               "filter: at character 1: 'year' is not an attribute: the configuration has none");
}

static void the_memory_of_the_region_is_a_limit(void **state)
{
  struct attributes attributes = filter_attributes();
  struct region small = { .limit_bytes = 256 };
  const struct filter_node *root;

  (void)state;
  assert_int_equal(filter_parse(span_of_str("year = 5 or year = 6 or year = 7"), NULL, 0, &attributes, &small, &root),
                   ERR_TOO_LARGE);
  region_fini(&small);
}

static void keywords_are_known(void **state)
{
  (void)state;
  assert_true(filter_is_keyword(span_of_str("and")));
  assert_true(filter_is_keyword(span_of_str("Between")));
  assert_true(filter_is_keyword(span_of_str("TRUE")));
  assert_false(filter_is_keyword(span_of_str("an")));
  assert_false(filter_is_keyword(span_of_str("andy")));
  assert_false(filter_is_keyword(span_of_str("")));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(and_binds_tighter_than_or_and_not_tightest),
    cmocka_unit_test(groups_are_flattened_and_constants_folded),
    cmocka_unit_test(an_and_speaks_once_of_a_range_and_of_presence),
    cmocka_unit_test(keywords_have_any_case_and_names_one),
    cmocka_unit_test(an_unequal_value_must_be_present),
    cmocka_unit_test(bounds_of_integers_are_inclusive_and_exact),
    cmocka_unit_test(bounds_of_numbers_are_inclusive_and_exact),
    cmocka_unit_test(times_are_milliseconds_or_rfc_3339),
    cmocka_unit_test(texts_are_sorted_and_each_is_there_once),
    cmocka_unit_test(bools_stand_alone_or_are_compared),
    cmocka_unit_test(parameters_stand_for_values),
    cmocka_unit_test(an_empty_list_admits_nothing),
    cmocka_unit_test(a_mistake_is_named_with_its_place_and_the_remedy),
    cmocka_unit_test(parameters_must_fit_and_be_used),
    cmocka_unit_test(bytes_that_are_no_text_are_refused),
    cmocka_unit_test(nesting_has_a_limit),
    cmocka_unit_test(no_tree_is_deeper_than_the_limit),
    cmocka_unit_test(nodes_have_a_limit),
    cmocka_unit_test(nodes_that_the_filter_does_not_have_do_not_count),
    cmocka_unit_test(text_and_literals_have_limits),
    cmocka_unit_test(values_and_parameters_have_limits),
    cmocka_unit_test(all_64_parameters_can_be_used),
    cmocka_unit_test(without_attributes_the_error_says_so),
    cmocka_unit_test(the_memory_of_the_region_is_a_limit),
    cmocka_unit_test(keywords_are_known),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);

  region_fini(&region);
  return failed;
}
