/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of command lines: options, and the numbers and times that they have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/text/ctl_option.h"
#include "tests/support/assert_ok.h"

static void numbers_on_the_command_line_are_checked(void **state)
{
  uint64_t n = 77;
  const char *bad[] = { "", "-1", "+1", " 1", "1x", "0", "11", "99999999999999999999", "0x1" };

  (void)state;
  assert_int_equal(ctl_option_number("--n", "10", 1, 10, &n), ERR_OK);
  assert_int_equal(n, 10);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(ctl_option_number("--n", bad[i], 1, 10, &n), ERR_USAGE);
    assert_non_null(strstr(err_message(), "--n expects a whole number from 1 to 10"));
  }
  assert_int_equal(n, 10);
}

static void times_on_the_command_line_are_moments_or_spans(void **state)
{
  const struct {
    const char *text;
    int64_t unix_ms;
  } rows[] = {
    { "90s", 1000000000 - 90000 },    { "10m", 1000000000 - 600000 },       { "2h", 1000000000 - 7200000 },
    { "7d", 1000000000 - 604800000 }, { "1970-01-02T00:00:00Z", 86400000 }, { "0s", 1000000000 },
  };
  const char *bad[] = { "", "s", "10", "10w", "10mm", "-5m", "1.5h", "9999999999s", "yesterday" };
  int64_t unix_ms = 7;

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(ctl_option_time("--since", bad[i], 1000000000, &unix_ms), ERR_USAGE);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(ctl_option_time("--since", rows[i].text, 1000000000, &unix_ms), ERR_OK);
    assert_true(unix_ms == rows[i].unix_ms);
  }
}

enum { WORDS_MAX = 16 };

/* What the command lines of these tests are read into. */
struct given {
  bool is_forced, has_seed, is_derived;
  const char *path, *prefix;
  uint64_t seed, base, k;
  char taken[64]; /* the values of --take, one after the other */
};

static err_t take(void *context, const char *value)
{
  struct given *g = context;

  if (strcmp(value, "bad") == 0)
    FAIL(ERR_USAGE, "--take expects another value");
  strncat(g->taken, value, sizeof g->taken - strlen(g->taken) - 1);
  return ERR_OK;
}

/* Read a command line of words with a blank between them. optind is where the words begin that are no options. */
static err_code_t read_line(const char *line, const char *word, bool has_no_words, struct given *g)
{
  static char text[128];
  static char *argv[WORDS_MAX + 1];
  const struct ctl_option options[] = {
    { "force", .is_given = &g->is_forced },
    { "path", .text = &g->path },
    { "prefix", .text = &g->prefix, .may_be_empty = true },
    { "seed", .is_given = &g->has_seed, .number = &g->seed, .max = 9 },
    { "derive", .is_given = &g->is_derived, .number = &g->base, .min = 1, .max = 9, .may_be_bare = true },
    { "k", .number = &g->k, .min = 1, .max = 9 },
    { "take", .take = take, .context = g },
    { 0 },
  };
  int argc = 0;

  *g = (struct given){ 0 };
  snprintf(text, sizeof text, "test %s", line);
  for (char *at = strtok(text, " "); at; at = strtok(NULL, " ")) {
    assert_true(argc < WORDS_MAX);
    argv[argc++] = at;
  }
  argv[argc] = NULL;
  opterr = 0;
  optind = 0;
  return has_no_words ? ctl_option_take_only(options, argc, argv) : ctl_option_take(options, word, argc, argv);
}

static void the_value_of_an_option_goes_where_its_row_says(void **state)
{
  struct given g;

  (void)state;
  assert_ok(read_line("--path a --force --seed 7 --take x --take=y", NULL, true, &g));
  assert_true(g.is_forced && g.has_seed && !g.is_derived);
  assert_string_equal(g.path, "a");
  assert_int_equal(g.seed, 7);
  assert_string_equal(g.taken, "xy");
  assert_ok(read_line("--prefix= -k 3", NULL, true, &g));
  assert_string_equal(g.prefix, "");
  assert_int_equal(g.k, 3);
  assert_ok(read_line("--k=4 --derive", NULL, true, &g));
  assert_int_equal(g.k, 4);
  assert_true(g.is_derived && g.base == 0);
  assert_ok(read_line("--derive=2", NULL, true, &g));
  assert_true(g.is_derived && g.base == 2);
}

static void wrong_options_are_refused_with_the_name_of_the_command(void **state)
{
  struct given g;

  (void)state;
  assert_fails(read_line("--no", NULL, false, &g), ERR_USAGE, "--no: unknown option of test");
  assert_fails(read_line("--path", NULL, false, &g), ERR_USAGE, "--path needs a value");
  assert_fails(read_line("--path=", NULL, false, &g), ERR_USAGE, "--path is empty: is a variable not set?");
  assert_fails(read_line("--force=1", NULL, false, &g), ERR_USAGE, "--force=1: the option takes no value");
  assert_fails(read_line("--seed 10", NULL, false, &g), ERR_USAGE, "--seed expects a whole number from 0 to 9");
  assert_fails(read_line("--derive=0", NULL, false, &g), ERR_USAGE, "--derive expects a whole number from 1 to 9");
  assert_fails(read_line("--take bad", NULL, false, &g), ERR_USAGE, "--take expects another value");
  assert_fails(read_line("--force word", NULL, true, &g), ERR_USAGE, "word: test expects options only");
}

/* A new option must not change what an abbreviation in a script means. */
static void options_are_spelt_out(void **state)
{
  struct given g;

  (void)state;
  assert_fails(read_line("--forc", NULL, false, &g), ERR_USAGE, "--forc: unknown option of test; is --force meant?");
  assert_false(g.is_forced);
  assert_fails(read_line("word --pa x", NULL, false, &g), ERR_USAGE, "--pa: unknown option of test; is --path meant?");
  assert_fails(read_line("--see=3", NULL, false, &g), ERR_USAGE, "--see: unknown option of test; is --seed meant?");
  assert_fails(read_line("--d=2", NULL, false, &g), ERR_USAGE, "--d: unknown option of test; is --derive meant?");
  assert_ok(read_line("word --path x --seed=3 --derive=2 --derive --force -k4 --k 5 y", NULL, false, &g));
  assert_true(g.is_forced && g.seed == 3 && g.k == 5);
}

static void words_may_look_like_options(void **state)
{
  struct given g;

  (void)state;
  assert_ok(read_line("word --force other", NULL, false, &g));
  assert_true(g.is_forced);
  assert_int_equal(optind, 2);
  assert_ok(read_line("word --force", "a key", false, &g));
  assert_false(g.is_forced);
  assert_int_equal(optind, 1);
  assert_ok(read_line("-- -x", "a key", false, &g));
  assert_int_equal(optind, 2);
  assert_fails(read_line("-gimp", "a key", false, &g), ERR_USAGE,
               "-g: unknown option of test; a key that begins with - needs -- before it");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_on_the_command_line_are_checked),
    cmocka_unit_test(times_on_the_command_line_are_moments_or_spans),
    cmocka_unit_test(the_value_of_an_option_goes_where_its_row_says),
    cmocka_unit_test(wrong_options_are_refused_with_the_name_of_the_command),
    cmocka_unit_test(options_are_spelt_out),
    cmocka_unit_test(words_may_look_like_options),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
