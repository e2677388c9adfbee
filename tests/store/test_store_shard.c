/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of which shard a store has: it is remembered, and another one is refused once there are items. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"
#include "tests/support/store_fixture.h"

/* Give the store a position, as a daemon does that has read something. */
static void make_progress(struct store *store)
{
  const struct store_position position = { .at = { 1, 7 }, .last_offset = 6 };
  struct store_effects effects;

  assert_ok(store_apply(store, NULL, 0, &position, 1, &effects));
}

static void an_empty_store_becomes_any_shard(void **state)
{
  struct fixture *f = *state;

  assert_ok(store_set_shard(f->store, 1, 4));
  reopen(f);
  assert_ok(store_set_shard(f->store, 1, 4));
  assert_ok(store_set_shard(f->store, 0, 0));
  assert_ok(store_set_shard(f->store, 2, 3));
}

static void a_filled_store_stays_the_shard_that_it_is(void **state)
{
  struct fixture *f = *state;

  assert_ok(store_set_shard(f->store, 1, 4));
  make_progress(f->store);
  reopen(f);
  assert_ok(store_set_shard(f->store, 1, 4));
  assert_fails(store_set_shard(f->store, 1, 8), ERR_CONFIG,
               "has shard 1 of 4, and the configuration wants shard 1 of 8");
  assert_fails(store_set_shard(f->store, 0, 0), ERR_CONFIG, "wants the whole catalogue");
  assert_ok(store_set_shard(f->store, 1, 4));
}

static void a_store_of_the_whole_catalogue_is_no_shard(void **state)
{
  struct fixture *f = *state;

  make_progress(f->store);
  assert_fails(store_set_shard(f->store, 0, 2), ERR_CONFIG,
               "has the whole catalogue, and the configuration wants shard 0");
  assert_ok(store_set_shard(f->store, 0, 0));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(an_empty_store_becomes_any_shard, setup, teardown),
    cmocka_unit_test_setup_teardown(a_filled_store_stays_the_shard_that_it_is, setup, teardown),
    cmocka_unit_test_setup_teardown(a_store_of_the_whole_catalogue_is_no_shard, setup, teardown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
