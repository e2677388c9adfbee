/* SPDX-License-Identifier: Apache-2.0 */
/* Files of certificates that a client cannot read are named when it is opened. No broker is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ingest/kafka/kafka_client.h"

enum { SECONDS_TO_HANG = 60 };

static char directory[] = "/tmp/sluice-files-XXXXXX";

static err_code_t check(const char *protocol, const char *name, const char *value)
{
  const struct kafka_property own[] = { { "security.protocol", protocol }, { name, value } };
  struct kafka_layers layers = { .layer = { { own, sizeof own / sizeof own[0] } }, .n = 1 };

  return kafka_client_check(true, &layers);
}

static void assert_refused(const char *name, const char *file, const char *reason)
{
  char expected[256];

  snprintf(expected, sizeof expected, "%s: %s %s", name, file, reason);
  assert_int_equal(check("ssl", name, file), ERR_CONFIG);
  if (strncmp(err_message(), expected, strlen(expected)) != 0)
    fail_msg("expected %s..., got: %s", expected, err_message());
  assert_non_null(strstr(err_message(), "readable for this process"));
  assert_int_equal(check("sasl_ssl", name, file), ERR_CONFIG);
}

static void a_file_that_is_missing_is_named(void **state)
{
  (void)state;
  assert_refused("ssl.ca.location", "/nowhere/ca.pem", "cannot be opened: No such file");
  assert_refused("ssl.certificate.location", "/nowhere/c.pem", "cannot be opened: No such file");
  assert_refused("ssl.key.location", "/nowhere/k.pem", "cannot be opened: No such file");
  assert_refused("ssl.crl.location", "/nowhere/crl.pem", "cannot be opened: No such file");
  assert_refused("ssl.keystore.location", "/nowhere/k.p12", "cannot be opened: No such file");
}

static void a_pipe_is_not_waited_for(void **state)
{
  char path[64];

  (void)state;
  snprintf(path, sizeof path, "%s/ca.pem", directory);
  alarm(SECONDS_TO_HANG);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_refused("ssl.ca.location", path, "is not a regular file");
  assert_refused("ssl.key.location", path, "is not a regular file");
  unlink(path);
  alarm(0);
}

static void a_folder_may_have_authorities_only(void **state)
{
  (void)state;
  assert_int_equal(check("ssl", "ssl.ca.location", directory), ERR_OK);
  assert_refused("ssl.certificate.location", directory, "is not a regular file");
}

static void what_is_not_read_is_not_looked_for(void **state)
{
  (void)state;
  assert_int_equal(check("plaintext", "ssl.ca.location", "/nowhere/ca.pem"), ERR_OK);
  assert_int_equal(check("ssl", "ssl.ca.location", "probe"), ERR_OK);
}

static int make_directory(void **state)
{
  (void)state;
  return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
  (void)state;
  return rmdir(directory);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_that_is_missing_is_named),
    cmocka_unit_test(a_pipe_is_not_waited_for),
    cmocka_unit_test(a_folder_may_have_authorities_only),
    cmocka_unit_test(what_is_not_read_is_not_looked_for),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
