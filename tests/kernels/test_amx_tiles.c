/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the machine's AMX tiles at start (kernels/x86/amx_tile_check.h), over tiles in plain C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/amx_tiles_model.h"

#include "kernels/x86/amx_tile_check.h"

static void tiles_that_are_right_pass(void **state)
{
  (void)state;
  tile_fault = FAULT_NONE;
  assert_true(tiles_work());
}

static void tiles_that_are_wrong_are_found_out(void **state)
{
  (void)state;
  for (int fault = FAULT_NONE + 1; fault < N_FAULTS; fault++) {
    tile_fault = (enum tile_fault)fault;
    if (tiles_work())
      fail_msg("fault %d was not found", fault);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(tiles_that_are_right_pass),
    cmocka_unit_test(tiles_that_are_wrong_are_found_out),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
