/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, types and YAML: mistakes are refused with their line, and any bytes are safe to read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/config_fixture.h"

static void an_unknown_key_is_refused_with_the_nearest_one(void **state)
{
  (void)state;
  assert_refused("query:\n  batch_sise: 3\n" REST, 2, "query.batch_sise", "query.batch_size");
  assert_refused("query:\n  batch_items: 3\n" REST, 2, "query.batch_items", "catalogue.batch_items");
  assert_refused("max_k: 3\n" REST, 1, "\"max_k\"", "query.max_k");
  assert_refused(REST "catalog:\n  topic: x\n", 4, "\"catalog\"", "nearest is catalogue");
  assert_refused(REST "spaces2: {}\n", 4, "spaces2", "nearest is spaces");
  assert_refused(KAFKA STORE "spaces:\n  books:\n    model: m\n    modle: x\n", 6, "spaces.books.modle",
                 "spaces.NAME.model");
  assert_refused("<<: {query: {max_k: 1}}\n" REST, 1, "<<", "nearest");
}

static void a_long_key_is_refused_like_any_other(void **state)
{
  static char text[200000];
  size_t n = 0;

  (void)state;
  n += (size_t)sprintf(text, "query:\n  ");
  memset(text + n, 'k', 900);
  strcpy(text + n + 900, ": 1\n" REST);
  assert_refused(text, 2, "query.kkkk", "nearest is");
}

static void a_key_given_twice_is_refused_with_both_lines(void **state)
{
  (void)state;
  assert_refused("query:\n  max_k: 1\n  batch_size: 2\n  max_k: 1\n" REST, 4, "max_k", "line 2");
  assert_refused("query: {}\n" REST "query: {}\n", 5, "query", "line 1");
  assert_refused("kafka:\n  bootstrap.servers: a\n  bootstrap.servers: a\n" STORE SPACES, 3, "bootstrap.servers",
                 "line 2");
  assert_refused(KAFKA STORE "spaces:\n  a: {model: x}\n  a: {model: x}\n", 5, "\"a\"", "line 4");
}

static void wrong_types_are_refused(void **state)
{
  (void)state;
  assert_refused("query: 3\n" REST, 1, "query", "section");
  assert_refused("query: [1]\n" REST, 1, "query", "section");
  assert_refused("query:\n  max_k: [1]\n" REST, 2, "query.max_k", "not a list");
  assert_refused("query:\n  max_k: {a: 1}\n" REST, 2, "query.max_k", "not a map");
  assert_refused("query:\n  max_k:\n" REST, 2, "query.max_k", "no value");
  assert_refused("query:\n  kafka: 3\n" REST, 2, "query.kafka", "map of properties");
  assert_refused("query:\n  [a, b]: 3\n" REST, 2, "query", "not a string");
  assert_refused("? {a: b}\n: 3\n" REST, 1, "the file", "not a string");
  assert_refused("- a\n- b\n", 1, "map of sections", "");
  assert_refused("just text\n", 1, "map of sections", "");
  assert_refused(KAFKA STORE "spaces: books\n", 3, "spaces", "section");
  assert_refused(KAFKA STORE "spaces:\n  books: m.safetensors\n", 4, "spaces.books", "section");
  assert_refused("query: {\"\": 3}\n" REST, 1, "query", "empty");
  assert_refused("query: {\"a\\0b\": 3}\n" REST, 1, "query", "zero byte");
}

static void a_file_that_is_not_yaml_is_refused_with_its_line(void **state)
{
  (void)state;
  assert_refused(REST "query: {\n", 5, "not YAML", "");
  assert_refused("query:\n\tmax_k: 1\n" REST, 2, "not YAML", "Indent with blanks");
  assert_refused(REST "query: *nobody\n", 4, "not YAML", "alias");
  assert_refused(REST "---\n" REST, 5, "second YAML document", "");
  assert_refused("\xff\xff\xff", 1, "not YAML", "");
  assert_refused("query:\n  max_k: \xff\n" REST, 2, "not YAML", "UTF-8");
  assert_refused(REST "query:\n  max_k: 1\x01\n", 5, "not YAML", "control characters are not allowed at byte");
}

/* Verify that a file of any bytes is either read or refused. */
static void try_bytes(const uint8_t *bytes, size_t n, int *n_read)
{
  struct config *c = NULL;

  write_bytes(bytes, n);
  err_code_t result = config_open(path, &c);
  assert_true(result == ERR_OK || result == ERR_CONFIG);
  assert_true((result == ERR_OK) == (c != NULL));
  *n_read += result == ERR_OK;
  config_close(&c);
}

static void any_bytes_are_read_or_refused(void **state)
{
  struct dice dice = { dice_seed() };
  static const char alphabet[] = "{}[]:,-#&*!|>'\"%@`? \n\tabkafkqueryspaces.0\\~<";
  size_t n_valid;
  char *valid = read_all(SLUICE_SOURCE_DIR "/systemd/sluice.example.yaml", &n_valid);
  uint8_t *bytes = malloc(n_valid + 64);
  int n_read = 0;

  (void)state;
  for (int round = 0; round < FUZZ_ROUNDS; round++) {
    size_t n = n_valid;
    memcpy(bytes, valid, n);
    if (round % 4 == 0) { /* random bytes only */
      n = dice_below(&dice, 200);
      for (size_t i = 0; i < n; i++)
        bytes[i] = round % 8 ? (uint8_t)dice_u64(&dice) : (uint8_t)alphabet[dice_below(&dice, sizeof alphabet - 1)];
    } else if (round % 4 == 1) { /* a piece cut out */
      size_t from = dice_below(&dice, n), length = dice_below(&dice, n - from) / 4;
      memmove(bytes + from, bytes + from + length, n - from - length);
      n -= length;
    } else { /* a few bytes changed */
      for (size_t i = 0, n_changes = 1 + dice_below(&dice, 4); i < n_changes; i++)
        bytes[dice_below(&dice, n)] = (uint8_t)alphabet[dice_below(&dice, sizeof alphabet - 1)];
    }
    try_bytes(bytes, n, &n_read);
  }
  assert_in_range(n_read, 1, FUZZ_ROUNDS - 1); /* a change within a comment is harmless */
  free(valid);
  free(bytes);
}

static void deep_nesting_is_refused(void **state)
{
  static char text[20000];
  const char *pieces[] = { "[", "{", "- ", "? ", "a:\n " };

  (void)state;
  for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
    size_t n = strlen(pieces[i]);
    int n_read = 0;
    for (size_t j = 0; j + n <= sizeof text; j += n)
      memcpy(text + j, pieces[i], n);
    try_bytes((const uint8_t *)text, sizeof text, &n_read);
    assert_int_equal(n_read, 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_unknown_key_is_refused_with_the_nearest_one),
    cmocka_unit_test(a_long_key_is_refused_like_any_other),
    cmocka_unit_test(a_key_given_twice_is_refused_with_both_lines),
    cmocka_unit_test(wrong_types_are_refused),
    cmocka_unit_test(a_file_that_is_not_yaml_is_refused_with_its_line),
    cmocka_unit_test(any_bytes_are_read_or_refused),
    cmocka_unit_test(deep_nesting_is_refused),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
