/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of which space of a daemon is meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/ctl_space.h"

static void a_space_is_listed_once_and_its_current_generation_counts(void **state)
{
  json_t *spaces = json_loads("[{\"name\":\"pq\",\"current\":false,\"item_codes\":4,\"query_vector\":8},"
                              "{\"name\":\"pq\",\"current\":true,\"item_codes\":2,\"query_vector\":16},"
                              "{\"name\":\"mol\",\"current\":true,\"query_vector\":7}]",
                              0, NULL);
  struct ctl_space space;

  (void)state;
  assert_int_equal(ctl_space_choose(spaces, "pq", &space), ERR_OK);
  assert_true(space.is_known);
  assert_int_equal(space.lengths.item_codes, 2);
  assert_int_equal(space.lengths.query_vector, 16);
  assert_int_equal(ctl_space_choose(spaces, NULL, &space), ERR_USAGE);
  assert_non_null(strstr(err_message(), "--space NAME, of pq, mol"));
  assert_int_equal(ctl_space_choose(spaces, "no", &space), ERR_USAGE);
  assert_non_null(strstr(err_message(), "no space \"no\", but pq, mol"));
  json_array_remove(spaces, 2);
  assert_int_equal(ctl_space_choose(spaces, NULL, &space), ERR_OK);
  assert_string_equal(space.name, "pq");
  json_array_clear(spaces);
  assert_int_equal(ctl_space_choose(spaces, NULL, &space), ERR_USAGE);
  assert_non_null(strstr(err_message(), "give a shard's configuration as --config FILE"));
  json_decref(spaces);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_space_is_listed_once_and_its_current_generation_counts),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
