/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of the configuration: names, types, limits and comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/config/config.h"
#include "tests/support/assert_ok.h"
#include "tests/support/temp_dir.h"

#define REST "kafka: {bootstrap.servers: 'h:1'}\nstore: {path: s}\nspaces: {books: {model: m.safetensors}}\n"

enum { TEXT_BYTES = 16384 };

static struct temp_dir dir;
static char path[PATH_MAX];

static err_code_t read_text(const char *text, struct config **out)
{
  FILE *file = fopen(path, "w");

  assert_non_null(file);
  fputs(text, file);
  fputs(REST, file);
  fclose(file);
  return config_open(path, out);
}

static void assert_refused(const char *text, int line, const char *words)
{
  struct config *c = NULL;
  char prefix[PATH_MAX + 32];

  assert_fails(read_text(text, &c), ERR_CONFIG, words);
  snprintf(prefix, sizeof prefix, "%s:%d: ", path, line);
  if (strncmp(err_message(), prefix, strlen(prefix)) != 0)
    fail_msg("not in line %d: %s", line, err_message());
}

static void attributes_have_names_and_types(void **state)
{
  struct config *c = NULL;

  (void)state;
  assert_ok(read_text("attributes:\n  country: keyword\n  tags: keywords\n  available: bool\n  year: integer\n"
                      "  price: number\n  _expires2: time\n",
                      &c));
  assert_int_equal(c->attributes.n, 6);
  assert_true(span_equal(c->attributes.v[0].name, span_of_str("country")));
  assert_int_equal(c->attributes.v[0].type, ATTRIBUTE_KEYWORD);
  assert_true(span_equal(c->attributes.v[5].name, span_of_str("_expires2")));
  assert_int_equal(c->attributes.v[5].type, ATTRIBUTE_TIME);
  config_close(&c);
  assert_ok(read_text("attributes: {}\n", &c));
  assert_int_equal(c->attributes.n, 0);
  config_close(&c);
  assert_ok(read_text("attributes:\n", &c));
  config_close(&c);
}

static void mistakes_name_their_line_and_the_remedy(void **state)
{
  (void)state;
  assert_refused("attributes:\n  price: numbre\n", 2,
                 "attributes.price: there is no type \"numbre\"; the nearest is number, of bool, keyword, keywords, "
                 "integer, number, time");
  assert_refused("attributes:\n  year: int\n", 2, "there is no type \"int\"; the nearest is integer, of ");
  assert_refused("attributes:\n  price: float\n", 2, "there is no type \"float\"");
  assert_refused("attributes:\n  a: bool\n  in stock: bool\n", 3,
                 "attributes.\"in stock\": the name of an attribute is a letter or _, then letters, digits and _");
  assert_refused("attributes:\n  a: bool\n  Between: time\n", 3,
                 "attributes.\"Between\" is a keyword of filters, in upper or lower case: give the attribute another");
  assert_refused("attributes:\n  a: bool\n  a: time\n", 3, "\"a\" is given twice, first in line 2");
  assert_refused("attributes:\n  a:\n", 2, "attributes.\"a\" expects a type");
  assert_refused("attributes:\n  a: [bool]\n", 2, "attributes.\"a\" expects a type");
  assert_refused("attributes: [a, b]\n", 1, "attributes expects a map of names and types");
  assert_refused("attributes: bool\n", 1, "attributes expects a map of names and types");
  assert_refused("attribute: {a: bool}\n", 1, "the nearest is attributes");
}

static char *print_attributes(size_t n)
{
  static char text[TEXT_BYTES];
  int at = snprintf(text, sizeof text, "attributes:\n");

  for (size_t i = 0; i < n; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "  a%zu: bool\n", i);
  return text;
}

static void limits_are_exact(void **state)
{
  struct config *c = NULL;
  char text[200];

  (void)state;
  assert_ok(read_text(print_attributes(ATTRIBUTES_MAX), &c));
  config_close(&c);
  assert_refused(print_attributes(ATTRIBUTES_MAX + 1), 2, "there are 65 attributes; at most 64 are allowed");
  snprintf(text, sizeof text, "attributes: {a%0*d: bool}\n", ATTRIBUTE_NAME_MAX - 1, 0);
  assert_ok(read_text(text, &c));
  config_close(&c);
  snprintf(text, sizeof text, "attributes: {a%0*d: bool}\n", ATTRIBUTE_NAME_MAX, 0);
  assert_refused(text, 1, "at most 64 bytes");
}

static void note_name(void *context, const char *setting)
{
  strcat(strcat((char *)context, setting), " ");
}

static void a_difference_is_noticed(void **state)
{
  static const char *const others[] = { "attributes: {a: time, b: bool}\n", "attributes: {b: bool, a: bool}\n",
                                        "attributes: {a: bool}\n", "" };
  struct config *a = NULL;

  (void)state;
  assert_ok(read_text("attributes: {a: bool, b: bool}\n", &a));
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    struct config *b = NULL;
    char names[100] = "";
    assert_ok(read_text(others[i], &b));
    config_compare(a, b, note_name, names);
    assert_string_equal(names, "attributes ");
    config_close(&b);
  }
  char names[100] = "";
  config_compare(a, a, note_name, names);
  assert_string_equal(names, "");
  config_close(&a);
}

static void lifetimes_name_attributes_of_type_time(void **state)
{
  struct config *c = NULL;

  (void)state;
  assert_ok(read_text("catalogue: {not_before: begins, expires: ends}\nattributes: {begins: time, ends: time}\n", &c));
  assert_string_equal(c->catalogue.not_before, "begins");
  assert_string_equal(c->catalogue.expires, "ends");
  config_close(&c);
  assert_ok(read_text("catalogue: {expires: \"\"}\n", &c));
  assert_string_equal(c->catalogue.expires, "");
  config_close(&c);
  assert_refused("attributes: {ends: time}\ncatalogue:\n  expires: end\n", 3,
                 "catalogue.expires: there is no attribute \"end\": add it to `attributes`, with the type time");
  assert_refused("attributes: {ends: time}\ncatalogue:\n  not_before: ends\n  expires: ends\n", 4,
                 "catalogue.not_before and catalogue.expires are the same attribute, ends");
  assert_refused("attributes: {year: integer}\ncatalogue:\n  not_before: year\n", 3,
                 "catalogue.not_before: the attribute year has the type integer: name one of the type time");
}

static void deleting_what_has_expired_needs_the_attribute_that_says_it(void **state)
{
  struct config *c = NULL;

  (void)state;
  assert_refused("catalogue:\n  delete_expired_after_s: 60\n", 2,
                 "catalogue.delete_expired_after_s is set, but catalogue.expires, which names the attribute");
  assert_refused("catalogue:\n  expires: ''\n  delete_expired_after_s: 1\n", 3, "catalogue.expires");
  assert_ok(read_text("catalogue: {delete_expired_after_s: 0}\n", &c));
  config_close(&c);
  assert_ok(read_text("attributes: {ends: time}\ncatalogue: {expires: ends, delete_expired_after_s: 1}\n", &c));
  config_close(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(attributes_have_names_and_types),
    cmocka_unit_test(mistakes_name_their_line_and_the_remedy),
    cmocka_unit_test(limits_are_exact),
    cmocka_unit_test(a_difference_is_noticed),
    cmocka_unit_test(lifetimes_name_attributes_of_type_time),
    cmocka_unit_test(deleting_what_has_expired_needs_the_attribute_that_says_it),
  };
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/sluice.yaml", dir.path);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
