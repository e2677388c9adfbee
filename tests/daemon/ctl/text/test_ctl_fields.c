/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that options give to queries: which ones they become, and which queries have them already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ctl/text/ctl_fields.h"
#include "tests/support/assert_ok.h"

/* Do the options make these fields? */
static void assert_made(const struct ctl_fields *f, const char *expected)
{
  json_t *fields;

  assert_ok(ctl_fields_make(f, &fields));
  char *text = json_dumps(fields, JSON_COMPACT);
  assert_string_equal(text, expected);
  free(text);
  json_decref(fields);
}

static void assert_refused(const struct ctl_fields *f, const char *message)
{
  json_t *fields;

  assert_int_equal(ctl_fields_make(f, &fields), ERR_USAGE);
  assert_non_null(strstr(err_message(), message));
}

static void options_become_fields(void **state)
{
  struct ctl_fields f = { .filter = "price < $1", .parameters = "[9.5]", .shown = "title,price" }, one = { 0 };

  (void)state;
  assert_ok(ctl_mmr_take(&f.mmr, "0.5:1000"));
  assert_ok(ctl_mmr_take(&one.mmr, "1"));
  assert_made(&(struct ctl_fields){ 0 }, "{}");
  assert_made(&f, "{\"filter\":\"price < $1\",\"parameters\":[9.5],\"mmr\":{\"diversity\":0.5,\"candidates\":1000},"
                  "\"attributes\":[\"title\",\"price\"]}");
  assert_made(&(struct ctl_fields){ .filter = "true" }, "{\"filter\":\"true\"}");
  assert_made(&one, "{\"mmr\":{\"diversity\":1.0}}");
  assert_made(&(struct ctl_fields){ .min_score = { true, -0.25 } }, "{\"min_score\":-0.25}");
  assert_made(&(struct ctl_fields){ .shown = "year" }, "{\"attributes\":[\"year\"]}");
}

static void a_limit_on_the_hits_of_a_value_becomes_a_field(void **state)
{
  static const char *const wrong[] = { "", "artist", ":2", "artist:", "artist:0", "artist:-1", "artist:4294967296" };
  struct ctl_fields f = { 0 };

  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_equal(ctl_max_per_take(&f.max_per, wrong[i]), ERR_USAGE);
  assert_ok(ctl_max_per_take(&f.max_per, "artist:2"));
  assert_made(&f, "{\"max_per\":{\"attribute\":\"artist\",\"n\":2}}");
}

static void boosts_become_fields(void **state)
{
  struct ctl_fields f = { 0 };

  (void)state;
  assert_ok(ctl_boosts_take(&f.boosts, "-0.5:price"));
  assert_ok(ctl_boosts_take_if(&f.boosts, "3:section = 'a:b'"));
  assert_ok(ctl_boosts_take(&f.boosts, "0.25:published:2d"));
  assert_made(&f, "{\"boosts\":[{\"weight\":-0.5,\"attribute\":\"price\"},{\"weight\":3.0,\"filter\":\"section = 'a:b'\"},"
                  "{\"weight\":0.25,\"attribute\":\"published\",\"half_life_ms\":172800000}]}");
  f = (struct ctl_fields){ 0 };
  assert_ok(ctl_boosts_take_now(&f.boosts, "0"));
  assert_made(&f, "{\"now_unix_ms\":0}");
}

static void wrong_values_are_refused_by_the_name_of_their_option(void **state)
{
  static const char *const wrong[] = { "", "much", "0", "1.5", "-1", "nan", "0.5,4", "0.5:", "0.5:0", "0.5:-3", "0.5:4x",
                                       "0.5:1001", ":40" };
  static const char *const low[] = { "", "low", "0.7x", "nan", "inf", "1e39" };
  struct ctl_min_score least;
  struct ctl_fields f = { 0 };

  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_fails(ctl_mmr_take(&f.mmr, wrong[i]), ERR_USAGE, "--mmr expects a number above 0, at most 1");
  for (size_t i = 0; i < sizeof low / sizeof low[0]; i++)
    assert_fails(ctl_min_score_take(&least, low[i]), ERR_USAGE, "--min-score expects a number, such as 0.7");
  assert_refused(&(struct ctl_fields){ .parameters = "[]" }, "--parameters are for a filter");
  assert_refused(&(struct ctl_fields){ .filter = "a", .parameters = "{}" }, "--parameters expects a JSON list");
  assert_refused(&(struct ctl_fields){ .filter = "a", .parameters = "[" }, "--parameters expects a JSON list");
  assert_refused(&(struct ctl_fields){ .filter = "\xff" }, "--filter: it is not UTF-8");
  assert_refused(&(struct ctl_fields){ .shown = "title,\xff" }, "--show: it is not UTF-8");
  assert_refused(&(struct ctl_fields){ .shown = "" }, "--show needs names of attributes");
  assert_refused(&(struct ctl_fields){ .filter = "" }, "--filter expects a condition");
  assert_refused(&(struct ctl_fields){ .filter = "a = $1", .parameters = "[1e999]" }, "a number is beyond 64 bits");
  assert_ok(ctl_max_per_take(&f.max_per, "\xff:2"));
  assert_refused(&f, "--max-per: it is not UTF-8");
  f = (struct ctl_fields){ 0 };
  assert_ok(ctl_boosts_take_if(&f.boosts, "1:a = '\xff'"));
  assert_refused(&f, "--boost and --boost-if: it is not UTF-8");
}

static void a_vector_is_numbers_with_commas_between_them(void **state)
{
  static const char *const wrong[] = { "", ",", "1,", "1,,2", "1;2", "1 ,2", "x", "nan", "1e999", "[1]" };
  json_t *fields = json_object();

  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(ctl_fields_add_vector(fields, wrong[i]), ERR_USAGE);
    assert_non_null(strstr(err_message(), "--vector expects numbers with commas between them"));
  }
  assert_int_equal(json_object_size(fields), 0);
  assert_ok(ctl_fields_add_vector(fields, "-0.5,2"));
  assert_true(json_real_value(json_array_get(json_object_get(fields, "vector"), 0)) == -0.5);
  assert_int_equal(json_array_size(json_object_get(fields, "vector")), 2);
  json_decref(fields);
}

/* Give a query fields. Returns it as text, which lives until the next call. */
static const char *give(const char *fields_text, const char *query_text, err_code_t expected)
{
  static char out[256];
  json_t *fields = json_loads(fields_text, 0, NULL), *query = json_loads(query_text, 0, NULL);

  assert_non_null(fields);
  assert_non_null(query);
  assert_int_equal(ctl_fields_give(fields, "query a", query), expected);
  char *text = json_dumps(query, JSON_COMPACT);
  snprintf(out, sizeof out, "%s", text);
  free(text);
  json_decref(fields);
  json_decref(query);
  return out;
}

static void a_query_gets_fields_that_it_does_not_have(void **state)
{
  (void)state;
  assert_string_equal(give("{\"k\":3,\"mmr\":{}}", "{\"id\":\"a\"}", ERR_OK), "{\"id\":\"a\",\"k\":3,\"mmr\":{}}");
  assert_string_equal(give("{\"now_unix_ms\":0}", "{\"boosts\":[],\"nowUnixMs\":null,\"now_unix_ms\":null}", ERR_OK),
                      "{\"boosts\":[],\"now_unix_ms\":0}");
  assert_string_equal(give("{\"k\":4}", "{\"k\":3}", ERR_USAGE), "{\"k\":3}");
  assert_non_null(strstr(err_message(), "query a has a field k of its own: leave out --k"));
  assert_string_equal(give("{\"space\":\"a\",\"max_per\":{}}", "{\"maxPer\":{}}", ERR_USAGE), "{\"maxPer\":{}}");
  assert_non_null(strstr(err_message(), "a field max_per of its own: leave out --max-per"));
  give("{\"attributes\":[]}", "{\"attributes\":[\"a\"]}", ERR_USAGE);
  assert_non_null(strstr(err_message(), "leave out --show"));
  give("{\"filter\":\"a\"}", "{\"parameters\":[1]}", ERR_USAGE);
  assert_non_null(strstr(err_message(), "query a has parameters of its own: leave out --filter"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_become_fields),
    cmocka_unit_test(a_limit_on_the_hits_of_a_value_becomes_a_field),
    cmocka_unit_test(boosts_become_fields),
    cmocka_unit_test(wrong_values_are_refused_by_the_name_of_their_option),
    cmocka_unit_test(a_vector_is_numbers_with_commas_between_them),
    cmocka_unit_test(a_query_gets_fields_that_it_does_not_have),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
