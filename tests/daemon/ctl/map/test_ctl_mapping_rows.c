/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping that was suggested for random rows is a configuration without mistakes, and refuses none of these rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/catalogue/catalogue_format.h"
#include "daemon/ctl/map/ctl_mapping.h"
#include "tests/support/assert_ok.h"
#include "tests/support/config_fixture.h"
#include "tests/support/dice.h"

enum { ROUNDS = 400, ROWS_MAX = 12, KINDS_OF_FIELD = 2 };

/* Values as JSON. A field has those of one line or of two. */
static const char *const kinds[][3] = {
  { "null", "null", "null" },
  { "true", "false", "true" },
  { "0", "1", "1" },
  { "7", "-3", "9007199254740993" },
  { "1.5", "2e300", "-0.25" },
  { "1795348800000", "978307200000", "1700000000123" },
  { "\"2026-11-22T12:00:00Z\"", "\"2026-11-22 12:00:00+01:00\"", "\"1999-01-01T00:00:00Z\"" },
  { "\"12.50\"", "\"-3.1\"", "\"7\"" },
  { "\"dark\"", "\"\"", "\"x\\u007f\\u2028\\u0085y: #\"" },
  { "[3,1]", "[0.5,-1]", "\"[1, 2]\"" },
  { "[1,2,3]", "[255,0,7]", "\"AQID\"" },
  { "\"AACAPwAAIMA=\"", "\"AACAPwAAgD8=\"", "\"AAAAAAAAAAA=\"" },
  { "[\"a\",\"b\"]", "[]", "\"[\\\"c\\\"]\"" },
  { "{\"x\":1}", "{\"x\":\"text\",\"deleted\":true}", "{\"x.y\":[1,2],\"/z\":null}" },
  { "[{\"x\":1}]", "[[1]]", "[null]" },
};

static const char *const names[] = { "id",  "price", "a.b",  "deleted", "removed", "embedding", "codes", "tags",
                                     "\u00e9", "on",    "x\ty", "n\u2028", "in",      "films" };

enum { N_KINDS = sizeof kinds / sizeof kinds[0], N_NAMES = sizeof names / sizeof names[0] };

/* The kinds of each field in a round. */
static size_t draws[N_NAMES][KINDS_OF_FIELD];

static void draw_fields(struct dice *dice)
{
  for (size_t i = 0; i < N_NAMES; i++) {
    draws[i][0] = draws[i][1] = dice_below(dice, N_KINDS);
    if (dice_below(dice, 4) == 0)
      draws[i][1] = dice_below(dice, N_KINDS);
  }
}

static char *make_row(struct dice *dice)
{
  json_t *row = json_object();

  for (size_t i = 0; i < N_NAMES; i++) {
    const char *text = kinds[draws[i][dice_below(dice, KINDS_OF_FIELD)]][dice_below(dice, 3)];
    assert_int_equal(json_object_set_new(row, names[i], json_loads(text, JSON_DECODE_ANY, NULL)), 0);
  }
  char *out = json_dumps(row, JSON_COMPACT);
  json_decref(row);
  return out;
}

/* Return the suggestion within a configuration. The caller frees it. */
static char *suggest(const struct mapping_census *census)
{
  static const struct ctl_mapping_space spaces[] = { { "books", true, { .item_vector = 2 } },
                                                     { "films", true, { .item_codes = 3 } } };
  static const char begin[] = "catalogue:\n", format[] = "catalogue:\n  format: json\n";
  char *text = NULL, *all = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  assert_ok(ctl_mapping_write(census, spaces, 2, out));
  assert_int_equal(fclose(out), 0);
  char *at = strstr(text, begin);
  assert_non_null(at);
  assert_true(asprintf(&all, "%.*s%s%s" KAFKA STORE "spaces: {books: {model: m}, films: {model: n}}\n", (int)(at - text), text, format, at + strlen(begin)) > 0);
  free(text);
  return all;
}

static void check_rows(const struct item_format *format, const struct topic_record *rows, size_t n, const char *config)
{
  for (size_t i = 0; i < n; i++) {
    struct region region = { 0 };
    struct item_change item;
    err_code_t err = item_format_decode(format, &rows[i], &region, &item);
    if (err != ERR_OK)
      fail_msg("%.*s\nis refused: %s\n%s", (int)rows[i].value.n, (const char *)rows[i].value.p, err_message(), config);
    assert_true(span_equal(item.key, rows[i].key));
    region_fini(&region);
  }
}

static void check_round(struct dice *dice)
{
  const struct mapping json = { 0 };
  struct mapping_census census = { 0 };
  struct topic_record rows[ROWS_MAX];
  struct item_format format = { 0 };
  struct region scratch = { 0 };
  size_t n = 1 + dice_below(dice, ROWS_MAX);

  draw_fields(dice);
  for (size_t i = 0; i < n; i++) {
    rows[i] = (struct topic_record){ .has_key = true, .key = span_of_str("k1"), .has_value = true };
    rows[i].value = span_of_str(make_row(dice));
    assert_ok(mapping_census_add(&census, &json, false, &rows[i], &scratch));
  }
  char *text = suggest(&census);
  if (strstr(text, "    vectors:\n") || strstr(text, "    codes:\n") || strstr(text, "    attributes:\n")) {
    struct config *config = open_text(text);
    assert_ok(catalogue_format_init(config, &format));
    check_rows(&format, rows, n, text);
    mapping_fini(&format.mapping);
    config_close(&config);
  }
  for (size_t i = 0; i < n; i++)
    free((char *)(uintptr_t)rows[i].value.p);
  free(text);
  mapping_census_fini(&census);
  region_fini(&scratch);
}

static void what_is_suggested_refuses_no_row(void **state)
{
  struct dice dice = { dice_seed() };

  (void)state;
  for (int round = 0; round < ROUNDS; round++)
    check_round(&dice);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_suggested_refuses_no_row),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
