/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the line that shows how far a command is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/ctl/text/ctl_progress.h"

#define S CLOCK_NS_PER_S

static void progress_shows_share_rate_and_time_left(void **state)
{
  struct ctl_progress p = { .label = "loading", .total = 1000 };
  char line[256];

  (void)state;
  ctl_progress_print(&p, 500, 20000, 10 * S, line, sizeof line);
  assert_string_equal(line, "loading [############            ]  50 %  20,000 items  2,000 items/s  10 s left");
  ctl_progress_print(&p, 0, 0, S, line, sizeof line);
  assert_string_equal(line, "loading [                        ]   0 %  0 items  0 items/s");
  ctl_progress_print(&p, 1200, 7, S, line, sizeof line);
  assert_string_equal(line, "loading [########################] 100 %  7 items  7 items/s  0.00 ms left");
  p.total = 0;
  ctl_progress_print(&p, 500, 20000, 10 * S, line, sizeof line);
  assert_string_equal(line, "loading  20,000 items  2,000 items/s");
  p.unit = "queries";
  ctl_progress_print(&p, 500, 20000, 10 * S, line, sizeof line);
  assert_string_equal(line, "loading  20,000 queries  2,000 queries/s");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(progress_shows_share_rate_and_time_left),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
