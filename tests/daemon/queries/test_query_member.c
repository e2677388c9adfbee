/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the member's id: what one process keeps, the next one reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/queries/query_member.h"

static char folder[] = "/tmp/sluice-member-XXXXXX";

static void assert_reads(const char *want)
{
  char id[QUERY_MEMBER_MAX + 1];

  memset(id, 'x', sizeof id);
  query_member_read(folder, id);
  assert_string_equal(id, want);
}

static void the_next_process_reads_the_id_unless_the_group_was_left(void **state)
{
  (void)state;
  assert_reads("");
  query_member_keep(folder, "rdkafka-0123");
  assert_reads("rdkafka-0123");
  query_member_keep(folder, "short");
  assert_reads("short");
  query_member_keep(folder, "");
  assert_reads("");
}

static void an_id_as_long_as_possible_is_kept_whole(void **state)
{
  char id[QUERY_MEMBER_MAX + 1];

  (void)state;
  memset(id, 'm', QUERY_MEMBER_MAX);
  id[QUERY_MEMBER_MAX] = '\0';
  query_member_keep(folder, id);
  assert_reads(id);
}

static void a_folder_that_is_away_is_no_error(void **state)
{
  char id[QUERY_MEMBER_MAX + 1] = "x";

  (void)state;
  query_member_keep("/nowhere", "id");
  query_member_read("/nowhere", id);
  assert_string_equal(id, "");
}

static int make_folder(void **state)
{
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
  char path[64];

  (void)state;
  snprintf(path, sizeof path, "%s/query-member", folder);
  unlink(path);
  return rmdir(folder);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_next_process_reads_the_id_unless_the_group_was_left),
    cmocka_unit_test(an_id_as_long_as_possible_is_kept_whole),
    cmocka_unit_test(a_folder_that_is_away_is_no_error),
  };

  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
