/* SPDX-License-Identifier: Apache-2.0 */
/* Which lag lets a daemon read its first query. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/catalogue/catalogue_report.h"
#include "tests/support/assert_ok.h"

/* A report with two partitions. */
static void open_report(struct catalogue_report *r, struct report_partition first, struct report_partition second)
{
  catalogue_report_init(r);
  assert_ok(catalogue_report_resize(r, 2));
  r->partitions[0] = first;
  r->partitions[1] = second;
}

static void the_lag_is_that_of_all_partitions(void **state)
{
  struct catalogue_report r;

  (void)state;
  open_report(&r, (struct report_partition){ .next = 1, .read = 7, .end = 10 }, /* records from 1 on wait for room */
              (struct report_partition){ .next = 0, .end = 2 });
  assert_true(catalogue_report_is_near(&r, 5));
  assert_false(catalogue_report_is_near(&r, 4));
  r.partitions[1].is_foreign = true; /* of another shard */
  assert_true(catalogue_report_is_near(&r, 3));
  catalogue_report_fini(&r);
}

static void an_end_that_nobody_knows_is_not_near(void **state)
{
  struct catalogue_report r, none;

  (void)state;
  open_report(&r, (struct report_partition){ .next = 7, .read = 7, .end = 7 }, (struct report_partition){ .next = 0, .end = -1 });
  assert_false(catalogue_report_is_near(&r, 1000));
  r.partitions[1].end = 0;
  assert_true(catalogue_report_is_near(&r, 1000));
  r.is_away = true;
  assert_false(catalogue_report_is_near(&r, 1000));
  catalogue_report_fini(&r);
  catalogue_report_init(&none);
  assert_false(catalogue_report_is_near(&none, 1000));
  catalogue_report_fini(&none);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_lag_is_that_of_all_partitions),
    cmocka_unit_test(an_end_that_nobody_knows_is_not_near),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
