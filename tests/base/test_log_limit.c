/* SPDX-License-Identifier: Apache-2.0 */
/* The log limit: a flood of events is logged up to the limit, then as a count. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log_limit.h"

static void a_flood_is_logged_up_to_the_limit_and_then_as_a_count(void **state)
{
  struct log_limit limit = { 0 };
  size_t n_allowed = 0;
  char text[4096];
  FILE *file = tmpfile();

  (void)state;
  fflush(stderr);
  int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  while (clock_now_ns() / CLOCK_NS_PER_S % 2) /* begin at the start of a second */
    clock_sleep_ns(CLOCK_NS_PER_MS);
  while (!(clock_now_ns() / CLOCK_NS_PER_S % 2))
    clock_sleep_ns(CLOCK_NS_PER_MS);
  for (int i = 0; i < 500; i++)
    n_allowed += log_limit_allows(&limit, "flood");
  clock_sleep_ns(CLOCK_NS_PER_S);
  n_allowed += log_limit_allows(&limit, "flood");
  dup2(saved, STDERR_FILENO);
  close(saved);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_in_range(n_allowed, LOG_LIMIT_PER_S + 1, 2 * LOG_LIMIT_PER_S + 1); /* it may span two seconds */
  assert_non_null(strstr(text, "event=flood"));
  assert_non_null(strstr(text, "more="));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_flood_is_logged_up_to_the_limit_and_then_as_a_count),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
