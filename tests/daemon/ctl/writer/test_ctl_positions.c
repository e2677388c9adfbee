/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the wait for the daemon's watermark. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/writer/ctl_positions.h"

static void the_watermark_is_waited_for_in_every_partition(void **state)
{
  struct ctl_positions p = { 0 };
  json_t *watermark = json_loads("[{\"partition\":7,\"next\":12},{\"partition\":0,\"next\":5}]", 0, NULL);

  (void)state;
  assert_int_equal(ctl_positions_behind(&p, watermark), 0);
  assert_int_equal(ctl_positions_add(&p, 0, 4), ERR_OK);
  assert_int_equal(ctl_positions_behind(&p, watermark), 0); /* offset 4 is below next 5 */
  assert_int_equal(ctl_positions_add(&p, 7, 13), ERR_OK);
  assert_int_equal(ctl_positions_add(&p, 7, 11), ERR_OK); /* an earlier offset changes nothing */
  assert_int_equal(ctl_positions_behind(&p, watermark), 2);
  assert_int_equal(ctl_positions_add(&p, 3, 0), ERR_OK);
  assert_int_equal(ctl_positions_behind(&p, watermark), 3);
  assert_int_equal(ctl_positions_behind(&p, NULL), 5 + 14 + 1);
  ctl_positions_fini(&p);
  json_decref(watermark);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_watermark_is_waited_for_in_every_partition),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
