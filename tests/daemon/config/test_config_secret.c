/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka properties whose values are in credentials, files and the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "base/secrets.h"
#include "daemon/config/config_secret.h"
#include "tests/support/config_fixture.h"

/* Write a file into the configuration's directory. */
static void write_secret(const char *name, const void *bytes, size_t n)
{
  char at[128];
  FILE *file;

  snprintf(at, sizeof at, "%s/%s", directory, name);
  file = fopen(at, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  fclose(file);
  assert_int_equal(chmod(at, 0600), 0);
}

static void write_secret_text(const char *name, const char *text)
{
  write_secret(name, text, strlen(text));
}

/* Verify that a property with this value gets the expected one. */
static void assert_value(const char *value, const char *expected)
{
  char text[TEXT_BYTES];

  snprintf(text, sizeof text, "kafka:\n  bootstrap.servers: h:1\n  sasl.password: \"%s\"\n" STORE SPACES, value);
  struct config *c = open_text(text);
  assert_string_equal(c->kafka.items[1].value, expected);
  config_close(&c);
}

static void assert_value_refused(const char *value, const char *word, const char *other_word)
{
  char text[TEXT_BYTES];

  snprintf(text, sizeof text, "kafka:\n  bootstrap.servers: h:1\n  sasl.password: \"%s\"\n" STORE SPACES, value);
  assert_refused(text, 3, word, other_word);
  assert_non_null(strstr(err_message(), "kafka.sasl.password"));
}

static void a_value_comes_from_a_file(void **state)
{
  char absolute[TEXT_BYTES];

  (void)state;
  write_secret_text("one", "first-secret\n");
  assert_value("file:one", "first-secret");
  snprintf(absolute, sizeof absolute, "file:%s/one", directory);
  assert_value(absolute, "first-secret");
}

static void only_the_line_break_at_the_end_is_removed(void **state)
{
  (void)state;
  write_secret_text("windows", "with-return\r\n");
  assert_value("file:windows", "with-return");
  write_secret_text("spaces", "  two words \n");
  assert_value("file:spaces", "  two words ");
  write_secret_text("lines", "line1\nline2\n\n");
  assert_value("file:lines", "line1\nline2\n");
}

static void a_value_comes_from_a_credential(void **state)
{
  (void)state;
  write_secret_text("broker-password", "second-secret\n");
  assert_int_equal(setenv("CREDENTIALS_DIRECTORY", directory, 1), 0);
  assert_value("credential:broker-password", "second-secret");
  assert_value_refused("credential:other", "cannot be opened", "LoadCredential=other:PATH");
  assert_value_refused("credential:../one", "not the name", "credential");
  assert_value_refused("credential:", "not the name", "credential");
  unsetenv("CREDENTIALS_DIRECTORY");
  assert_value_refused("credential:broker-password", "CREDENTIALS_DIRECTORY", "LoadCredential=broker-password:PATH");
}

static void a_value_comes_from_the_environment(void **state)
{
  (void)state;
  assert_int_equal(setenv("TEST_BROKER_PASSWORD", "third-secret", 1), 0);
  assert_value("env:TEST_BROKER_PASSWORD", "third-secret");
  unsetenv("TEST_BROKER_PASSWORD");
  assert_value_refused("env:TEST_BROKER_PASSWORD", "TEST_BROKER_PASSWORD", "set it");
}

static void a_literal_may_begin_like_a_reference(void **state)
{
  (void)state;
  assert_value("literal:file:one", "file:one");
  assert_value("literal:literal:x", "literal:x");
  assert_value("literal:", "");
  assert_value("files:one", "files:one");
}

static void unusable_files_are_refused_with_a_remedy(void **state)
{
  static char large[CONFIG_SECRET_BYTES_MAX + 1];

  (void)state;
  assert_value_refused("file:missing", "cannot be opened: No such file", "write the value to it");
  assert_value_refused("file:", "needs the path", "file");
  assert_value_refused("file:/dev/null", "not a regular file", "/dev/null");
  assert_value_refused("file:.", "not a regular file", "file");
  write_secret_text("empty", "\n");
  assert_value_refused("file:empty", "is empty", "file");
  write_secret("zero", "a\0b", 3);
  assert_value_refused("file:zero", "zero byte", "file");
  memset(large, 'x', sizeof large);
  write_secret("large", large, sizeof large);
  assert_value_refused("file:large", "more than 65536 bytes", "file");
  write_secret("largest", large, sizeof large - 1);
  large[sizeof large - 1] = '\0';
  assert_value("file:largest", large);
}

static void no_message_has_a_secret(void **state)
{
  char text[64] = "it says planted-in-file and planted-in-yaml at broker-host:9092";

  (void)state;
  write_secret_text("planted", "planted-in-file");
  write_secret_text("hosts", "broker-host:9092");
  struct config *c = open_text("kafka:\n  bootstrap.servers: file:hosts\n  sasl.username: file:planted\n"
                               "  sasl.password: planted-in-yaml\n" STORE SPACES);
  secrets_hide(text, sizeof text);
  assert_string_equal(text, "it says *** and *** at broker-host:9092");
  config_close(&c);
  write_secret_text("number", "planted-number");
  assert_refused("kafka:\n  bootstrap.servers: h:1\n  socket.timeout.ms: file:number\n" STORE SPACES, 3,
                 "socket.timeout.ms", "kafka");
  assert_null(strstr(err_message(), "planted-number"));
}

static void without_secrets_nothing_is_read(void **state)
{
  const char *text = "kafka:\n  bootstrap.servers: h:1\n  sasl.password: credential:missing\n"
                     "  socket.timeout.ms: file:missing\n" STORE SPACES;
  struct config *c = NULL;

  (void)state;
  write_bytes(text, strlen(text));
  assert_int_equal(config_open(path, &c), ERR_CONFIG);
  assert_int_equal(config_open_without_secrets(path, &c), ERR_OK);
  assert_string_equal(c->kafka.items[1].value, "credential:missing");
  config_close(&c);
}

static int remove_files(void **state)
{
  static const char *const names[] = { "one",  "windows", "spaces",  "lines",   "broker-password", "empty",
                                       "zero", "large",   "largest", "planted", "hosts",           "number" };
  char at[128];

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(at, sizeof at, "%s/%s", directory, names[i]);
    unlink(at);
  }
  return remove_directory(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_value_comes_from_a_file),
    cmocka_unit_test(only_the_line_break_at_the_end_is_removed),
    cmocka_unit_test(a_value_comes_from_a_credential),
    cmocka_unit_test(a_value_comes_from_the_environment),
    cmocka_unit_test(a_literal_may_begin_like_a_reference),
    cmocka_unit_test(unusable_files_are_refused_with_a_remedy),
    cmocka_unit_test(no_message_has_a_secret),
    cmocka_unit_test(without_secrets_nothing_is_read),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_files);
}
