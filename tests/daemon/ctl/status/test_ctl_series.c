/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the small charts of watch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/status/ctl_series.h"

static void assert_series(const struct ctl_series *s, size_t n, const char *due)
{
  char text[CTL_SERIES_MAX + 1] = "";
  FILE *file = fmemopen(text, sizeof text, "w");

  ctl_series_print(s, n, true, file);
  fclose(file);
  assert_string_equal(text, due);
}

static void a_series_has_eight_heights(void **state)
{
  struct ctl_series s = { 0 };

  (void)state;
  assert_series(&s, 5, "");
  ctl_series_add(&s, 0);
  assert_series(&s, 5, " ");
  for (int i = 0; i <= 8; i++)
    ctl_series_add(&s, i);
  assert_series(&s, 20, "  _.-:=+*#");
  assert_series(&s, 3, "+*#");
  ctl_series_add(&s, 1e9); /* smaller values are not lost beside a large one */
  assert_series(&s, 3, "__#");
  for (int i = 0; i < 3 * CTL_SERIES_MAX; i++)
    ctl_series_add(&s, 2);
  assert_series(&s, 4, "####");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_series_has_eight_heights),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
