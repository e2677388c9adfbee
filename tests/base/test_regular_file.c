/* SPDX-License-Identifier: Apache-2.0 */
/* Regular files are opened; a pipe is refused at once, even if nobody will ever write to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/regular_file.h"

enum { SECONDS_TO_HANG = 60 };

static char directory[] = "/tmp/sluice-file-XXXXXX";
static char path[64];

static void assert_refused(const char *file, const char *words)
{
  struct stat status;
  int fd;

  assert_int_equal(regular_file_open(file, &status, &fd), ERR_CONFIG);
  assert_non_null(strstr(err_message(), file));
  assert_non_null(strstr(err_message(), words));
}

static void a_regular_file_is_read(void **state)
{
  struct stat status;
  char text[8];
  int fd;

  (void)state;
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs("text", file) >= 0);
  fclose(file);
  assert_int_equal(regular_file_open(path, &status, &fd), ERR_OK);
  assert_int_equal(status.st_size, 4);
  assert_int_equal(read(fd, text, sizeof text), 4);
  close(fd);
  unlink(path);
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
  (void)state;
  alarm(SECONDS_TO_HANG);
  assert_refused(path, "cannot be opened: No such file");
  assert_refused(directory, "not a regular file");
  assert_refused("/dev/zero", "not a regular file");
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_refused(path, "not a regular file");
  unlink(path);
  alarm(0);
}

static int make_directory(void **state)
{
  (void)state;
  snprintf(path, sizeof path, "%s/file", mkdtemp(directory) ? directory : "");
  return 0;
}

static int remove_directory(void **state)
{
  (void)state;
  return rmdir(directory);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_regular_file_is_read),
    cmocka_unit_test(what_is_no_file_is_refused_without_waiting),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
