/* SPDX-License-Identifier: Apache-2.0 */
/* The example file and the documentation show the settings as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/config_fixture.h"

static void the_example_file_shows_every_default(void **state)
{
  struct config *example = NULL;
  struct config *least;

  (void)state;
  if (config_open(SLUICE_SOURCE_DIR "/systemd/sluice.example.yaml", &example) != ERR_OK)
    fail_msg("%s", err_message());
  least = open_text(REST);
  for (size_t i = 0; i < n_settings; i++) {
    const struct setting *s = &settings[i];
    if (!example->lines[i])
      fail_msg("systemd/sluice.example.yaml does not have %s", s->path);
    if (!s->default_text)
      continue;
    if (s->type == SETTING_NUMBER)
      assert_int_equal(*(uint64_t *)field_of(example, s), *(uint64_t *)field_of(least, s));
    else if (s->type == SETTING_TEXT || s->type == SETTING_TOPIC || s->type == SETTING_ADDRESS ||
             s->type == SETTING_URL || s->type == SETTING_SECRET)
      assert_string_equal(*(char **)field_of(example, s), *(char **)field_of(least, s));
  }
  assert_int_equal(example->isa, N_ISAS); /* auto */
  assert_false(example->embedded_broker.is_enabled);
  assert_false(example->catalogue.stops_on_discontinuity);
  assert_int_equal(example->log_level, LOG_LEVEL_INFO);
  assert_string_equal(example->store_path, "/var/lib/sluice");
  config_close(&example);
  config_close(&least);
}

/* Return what config_print_reference() prints to standard output. */
static char *printed_reference(void)
{
  char *text;
  size_t n;
  FILE *kept = stdout;

  stdout = open_memstream(&text, &n);
  config_print_reference();
  fclose(stdout);
  stdout = kept;
  return text;
}

static void the_documentation_holds_the_reference(void **state)
{
  static const char begin[] = "<!-- settings -->\n";
  size_t n;
  char *docs = read_all(SLUICE_SOURCE_DIR "/docs/configuration.md", &n);
  char *reference = printed_reference();
  char *from = strstr(docs, begin);
  char *to = from ? strstr(from + strlen(begin), begin) : NULL;

  (void)state;
  if (!to)
    fail_msg("docs/configuration.md needs two marker lines: %s", begin);
  *to = '\0';
  if (strcmp(from + strlen(begin), reference) != 0)
    fail_msg("docs/configuration.md is out of date: copy the output of `sluicectl settings` between its markers");
  free(docs);
  free(reference);
}

/* The credential that an example refers to. */
static void write_credential(void)
{
  char at[128];

  snprintf(at, sizeof at, "%s/kafka-password", directory);
  FILE *file = fopen(at, "w");
  assert_non_null(file);
  fputs("x\n", file);
  fclose(file);
  setenv("CREDENTIALS_DIRECTORY", directory, 1);
}

static int remove_files(void **state)
{
  char at[128];

  snprintf(at, sizeof at, "%s/kafka-password", directory);
  unlink(at);
  return remove_directory(state);
}

static void the_example_in_the_documentation_loads(void **state)
{
  size_t n;
  char *docs = read_all(SLUICE_SOURCE_DIR "/docs/configuration.md", &n);
  char *at = docs;
  int n_examples = 0;

  (void)state;
  write_credential();
  while ((at = strstr(at, "```yaml\n"))) {
    char *end = strstr(at + 8, "```");
    assert_non_null(end);
    *end = '\0';
    struct config *c = open_text(at + 8);
    config_close(&c);
    at = end + 1;
    n_examples++;
  }
  assert_true(n_examples > 0);
  free(docs);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_example_file_shows_every_default),
    cmocka_unit_test(the_documentation_holds_the_reference),
    cmocka_unit_test(the_example_in_the_documentation_loads),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_files);
}
