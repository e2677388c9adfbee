/* SPDX-License-Identifier: Apache-2.0 */
/* Where the partitions of a group that starts at the end begin: at their end only if the group starts in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/readers/query_start.h"
#include "tests/support/kafka_fixture.h"

enum { PARTITIONS = 4, RECORDS = 3 };

static struct kafka_fixture kafka;
static rd_kafka_t *rk; /* a consumer of the group that is tested */

static int begin(void **state)
{
  struct kafka_layers layers;
  struct sender *s;

  (void)state;
  kafka_fixture_init(&kafka);
  assert_ok(embedded_broker_create_topic(kafka.broker, "queries", PARTITIONS));
  layers = kafka_fixture_layers(&kafka, false);
  assert_ok(sender_open(&layers, NULL, NULL, &s));
  for (int i = 0; i < PARTITIONS * RECORDS; i++) {
    struct sender_message message = {
      .topic = "queries", .has_partition = true, .partition = i % PARTITIONS, .has_value = true
    };
    assert_ok(sender_send(s, &message));
  }
  assert_ok(sender_flush(s, KAFKA_TIMEOUT_MS));
  sender_close(&s);
  return 0;
}

static int end(void **state)
{
  (void)state;
  kafka_fixture_fini(&kafka);
  return 0;
}

static void open_group(const char *group)
{
  const struct kafka_property own[] = { { "group.id", group } };
  struct kafka_layers layers = kafka_fixture_layers_with(&kafka, true, own, 1);
  rd_kafka_conf_t *conf;

  assert_ok(kafka_conf_make(&layers, &conf));
  assert_ok(kafka_client_new(RD_KAFKA_CONSUMER, conf, &rk));
}

/* What another member has committed in partition 0. */
static void commit_first(int n_at_start)
{
  const struct position position = { 0, 1 };
  rd_kafka_topic_partition_list_t *list = kafka_group_offsets("queries", &position, 1);

  query_start_mark(list, n_at_start);
  assert_int_equal(kafka_group_commit(rk, list, KAFKA_TIMEOUT_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_topic_partition_list_destroy(list);
}

/* Prepare the partitions from `first` on, and verify where they begin: those below `n_ends` at their end. */
static void check(int first, bool may_start, int n_at_start, int n_ends)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
  rd_kafka_topic_partition_list_t *stored = rd_kafka_topic_partition_list_new(PARTITIONS);

  rd_kafka_topic_partition_list_add_range(list, "queries", first, PARTITIONS - 1);
  rd_kafka_topic_partition_list_add_range(stored, "queries", first, PARTITIONS - 1);
  assert_int_equal(query_start_prepare(rk, list, may_start), n_at_start);
  assert_int_equal(rd_kafka_committed(rk, stored, KAFKA_TIMEOUT_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
  for (int i = 0; i < list->cnt; i++) {
    bool is_end = list->elems[i].partition < n_ends;
    assert_int_equal(stored->elems[i].offset, is_end ? RECORDS : RD_KAFKA_OFFSET_INVALID);
    assert_int_equal(list->elems[i].offset, is_end ? RD_KAFKA_OFFSET_INVALID : RD_KAFKA_OFFSET_BEGINNING);
  }
  rd_kafka_topic_partition_list_destroy(list);
  rd_kafka_topic_partition_list_destroy(stored);
  kafka_client_destroy(rk, 0);
}

static void a_new_group_starts_at_all_ends(void **state)
{
  (void)state;
  open_group("new");
  check(0, true, PARTITIONS, PARTITIONS);
}

static void members_that_start_together_skip_the_same_queries(void **state)
{
  (void)state;
  open_group("together");
  commit_first(PARTITIONS);
  check(1, true, PARTITIONS, PARTITIONS);
}

static void partitions_that_were_added_are_read_from_their_beginning(void **state)
{
  (void)state;
  open_group("grown");
  commit_first(2);
  check(1, true, 2, 2);
}

static void a_group_that_does_not_say_when_it_started_skips_nothing(void **state)
{
  (void)state;
  open_group("old");
  commit_first(0);
  check(1, true, 0, 0);
}

static void nothing_is_skipped_in_a_topic_that_came_back(void **state)
{
  (void)state;
  open_group("back");
  check(0, false, 0, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_new_group_starts_at_all_ends),
    cmocka_unit_test(members_that_start_together_skip_the_same_queries),
    cmocka_unit_test(partitions_that_were_added_are_read_from_their_beginning),
    cmocka_unit_test(a_group_that_does_not_say_when_it_started_skips_nothing),
    cmocka_unit_test(nothing_is_skipped_in_a_topic_that_came_back),
  };

  return cmocka_run_group_tests(tests, begin, end);
}
