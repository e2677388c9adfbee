/* SPDX-License-Identifier: Apache-2.0 */
/* A mapped file that is cut while it is read: the process says why it ends. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapped_read.h"

enum { STATUS = 7, BYTES = 1 << 16 };

/* Read the last byte of a file that is cut after it was mapped. */
static int read_what_was_cut(void)
{
  char path[] = "/tmp/sluice-mapped-XXXXXX";
  int fd = mkstemp(path);

  if (fd < 0 || unlink(path) != 0 || ftruncate(fd, BYTES) != 0)
    return -1;
  const volatile uint8_t *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED || ftruncate(fd, 0) != 0)
    return -1;
  return map[BYTES - 1];
}

static void a_mapped_file_that_is_cut_ends_the_process_with_a_reason(void **state)
{
  char said[512] = { 0 };
  int ends[2], status;

  (void)state;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    mapped_read_explain(STATUS);
    _exit(read_what_was_cut() == 0 ? 0 : 1);
  }
  close(ends[1]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
  assert_true(read(ends[0], said, sizeof said - 1) > 0);
  assert_non_null(strstr(said, "event=mapped_read_failed"));
  assert_int_equal(said[strlen(said) - 1], '\n');
  close(ends[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_mapped_file_that_is_cut_ends_the_process_with_a_reason),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
