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
  json_t *spaces = json_loads("[{\"name\":\"pq\",\"generation\":2,\"current\":false,\"item_codes\":4,\"query_vector\":8},"
                              "{\"name\":\"pq\",\"generation\":1,\"current\":true,\"item_codes\":2,\"query_vector\":16},"
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

static void a_generation_that_is_named_counts(void **state)
{
  json_t *spaces = json_loads("[{\"name\":\"pq\",\"generation\":1,\"current\":true,\"item_codes\":2},"
                              "{\"name\":\"pq\",\"generation\":2,\"current\":false,\"item_codes\":4},"
                              "{\"name\":\"old\"}]",
                              0, NULL);
  static const char *const none[] = { "pq@3", "pq@0", "pq@", "@1", "old@1", "qp@2" };
  struct ctl_space space;

  (void)state;
  assert_int_equal(ctl_space_choose(spaces, "pq@2", &space), ERR_OK);
  assert_int_equal(space.lengths.item_codes, 4);
  assert_string_equal(space.name, "pq@2");
  assert_int_equal(ctl_space_choose(spaces, "pq@1", &space), ERR_OK);
  assert_int_equal(space.lengths.item_codes, 2);
  assert_string_equal(space.name, "pq@1"); /* a plain name means another one after a switch */
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    assert_int_equal(ctl_space_choose(spaces, none[i], &space), ERR_USAGE);
  json_decref(spaces);
}

static void a_name_that_no_part_can_have_is_none(void **state)
{
  char name[SPACE_NAME_MAX + 3] = { 0 };
  struct ctl_space space;

  (void)state;
  memset(name, 's', SPACE_NAME_MAX);
  json_t *spaces = json_pack("[{s:s,s:i,s:b}]", "name", name, "generation", 1, "current", true);
  assert_int_equal(ctl_space_choose(spaces, name, &space), ERR_OK);
  assert_string_equal(space.name, name);
  memcpy(name + SPACE_NAME_MAX, "@1", 2);
  assert_int_equal(ctl_space_choose(spaces, name, &space), ERR_USAGE);
  json_decref(spaces);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_space_is_listed_once_and_its_current_generation_counts),
    cmocka_unit_test(a_generation_that_is_named_counts),
    cmocka_unit_test(a_name_that_no_part_can_have_is_none),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
