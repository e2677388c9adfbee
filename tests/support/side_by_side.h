/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests of a program in processes of their own, several at a time: for tests that mostly wait for a broker or
 * for time to pass. Each process has its own statics, so each test begins with those of the program. To be included
 * after cmocka.h. */
#ifndef TESTS_SUPPORT_SIDE_BY_SIDE_H
#define TESTS_SUPPORT_SIDE_BY_SIDE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE_BY_SIDE_MAX = 6 }; /* they start at the same time, and sanitizers are slow */

struct side_by_side {
  FILE *said;
  pid_t pid; /* 0: it has ended */
  bool has_passed;
};

/* Run the test in another process. What it says is kept. */
static inline void side_by_side_begin(const struct CMUnitTest *test, CMFixtureFunction setup,
                                      CMFixtureFunction teardown, struct side_by_side *out)
{
  out->said = tmpfile();
  if (!out->said)
    abort();
  fflush(NULL);
  out->pid = fork();
  if (out->pid < 0)
    abort();
  if (out->pid > 0)
    return;
  const struct CMUnitTest alone[] = { *test };
  if (dup2(fileno(out->said), STDOUT_FILENO) < 0 || dup2(fileno(out->said), STDERR_FILENO) < 0)
    abort();
  exit(cmocka_run_group_tests(alone, setup, teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Wait for the end of one. */
static inline void side_by_side_wait(struct side_by_side *running, size_t n)
{
  int status;
  pid_t pid = wait(&status);

  for (size_t i = 0; i < n; i++) {
    if (pid <= 0 || running[i].pid != pid)
      continue;
    running[i].pid = 0;
    running[i].has_passed = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
  }
}

static inline void side_by_side_print(FILE *said)
{
  char part[4096];
  size_t n;

  rewind(said);
  while ((n = fread(part, 1, sizeof part, said)) > 0)
    fwrite(part, 1, n, stdout);
  fclose(said);
}

/* Run the tests, and then say in their order what they said. Returns how many failed. */
static inline int side_by_side_run(const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown)
{
  struct side_by_side *all = calloc(n, sizeof *all);
  int n_failed = 0;

  if (!all)
    abort();
  for (size_t i = 0; i < n; i++) {
    if (i >= SIDE_BY_SIDE_MAX)
      side_by_side_wait(all, i);
    side_by_side_begin(&tests[i], setup, teardown, &all[i]);
  }
  for (size_t i = 0; i < n && i < SIDE_BY_SIDE_MAX; i++)
    side_by_side_wait(all, n);
  for (size_t i = 0; i < n; i++) {
    side_by_side_print(all[i].said);
    if (!all[i].has_passed)
      printf("FAILED: %s\n", tests[i].name);
    n_failed += !all[i].has_passed;
  }
  free(all);
  return n_failed;
}

/* As cmocka_run_group_tests(). `setup` and `teardown` run before and after each test. */
#define SIDE_BY_SIDE(tests, setup, teardown) side_by_side_run(tests, sizeof(tests) / sizeof *(tests), setup, teardown)

#endif
