/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of changes: their memory after they were emptied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/catalogue/item_batch.h"
#include "tests/support/assert_ok.h"

enum { ROOM = 100 };

/* Two batches take turns in a bulk read. The second one is emptied at its end, and a rebuild uses it again. */
static void an_emptied_batch_can_be_filled_again(void **state)
{
  struct item_batch batch = { 0 }, other = { 0 };

  (void)state;
  for (int round = 0; round < 3; round++) {
    assert_ok(item_batch_reserve(&batch, ROOM));
    assert_non_null(batch.changes);
    batch.changes[ROOM - 1] = (struct item_change){ .offset = round };
    item_batch_swap(&batch, &other);
    assert_int_equal(other.changes[ROOM - 1].offset, round);
    item_batch_fini(&other);
    item_batch_fini(&batch);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(an_emptied_batch_can_be_filled_again) };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
