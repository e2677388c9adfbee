/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the queries that wait for parts. Times are inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/merge/answered_queries.h"
#include "daemon/merge/open_joins.h"
#include "tests/support/assert_ok.h"

enum { WAIT_NS = 1000000, MAX_BYTES = 4096 };

static struct open_joins *joins;

static int open_all(void **state)
{
  (void)state;
  assert_ok(open_joins_open(MAX_BYTES, WAIT_NS, &joins));
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  open_joins_close(&joins);
  return 0;
}

struct where {
  int32_t partition;
  int64_t offset;
};

static enum open_joins_added add_within(const char *key, uint32_t shard, uint32_t n_shards, struct where at,
                                        int64_t now_ns, bool has_deadline, uint64_t left_us)
{
  struct partial partial = { .shard = shard, .n_shards = n_shards, .has_deadline = has_deadline, .left_us = left_us };
  struct open_joins_part part = { span_of_str(key), span_of_str("value"), at.partition, at.offset, &partial };
  enum open_joins_added added;

  assert_ok(open_joins_add(joins, &part, now_ns, &added));
  return added;
}

static enum open_joins_added add(const char *key, uint32_t shard, uint32_t n_shards, struct where at)
{
  return add_within(key, shard, n_shards, at, 0, false, 0);
}

/* Take a query that is ready, and return how many parts it has; 0: none is. */
static size_t take(const char *key)
{
  struct open_join *join = open_joins_take_ready(joins);
  size_t n = join ? join->n_parts : 0;

  if (join)
    assert_true(span_equal(join->key, span_of_str(key)));
  open_join_close(&join);
  return n;
}

static void a_query_is_ready_when_every_shard_has_answered(void **state)
{
  (void)state;
  add("q", 1, 3, (struct where){ 0, 10 });
  add("other", 1, 3, (struct where){ 0, 11 });
  add("q", 0, 3, (struct where){ 0, 12 });
  assert_int_equal(take("q"), 0);
  add("q", 2, 3, (struct where){ 0, 13 });
  assert_int_equal(take("q"), 3);
  assert_int_equal(open_joins_count(joins), 1);
}

static void a_shards_second_part_is_a_duplicate(void **state)
{
  (void)state;
  assert_int_equal(add("q", 0, 2, (struct where){ 0, 1 }), OPEN_JOINS_ADDED);
  assert_int_equal(add("q", 0, 2, (struct where){ 0, 2 }), OPEN_JOINS_DUPLICATE);
  assert_int_equal(take("q"), 0);
  assert_int_equal(add("q", 1, 2, (struct where){ 0, 3 }), OPEN_JOINS_ADDED);
  assert_int_equal(take("q"), 2);
}

/* So many that some lie in one bucket. */
static void many_open_queries_are_told_apart(void **state)
{
  enum { N = 2000 };
  char key[16];

  (void)state;
  for (uint32_t shard = 0; shard < 2; shard++) {
    for (int i = 0; i < N; i++) {
      snprintf(key, sizeof key, "%d", i);
      assert_int_equal(add(key, shard, 2, (struct where){ 0, i }), OPEN_JOINS_ADDED);
      assert_int_equal(take(key), shard ? 2 : 0);
    }
  }
  assert_int_equal(open_joins_count(joins), 0);
}

static void parts_of_another_layout_do_not_complete_a_query(void **state)
{
  (void)state;
  add("q", 0, 2, (struct where){ 0, 1 });
  add("q", 1, 3, (struct where){ 0, 2 });
  assert_int_equal(take("q"), 0);
  add("q", 1, 2, (struct where){ 0, 3 });
  assert_int_equal(take("q"), 3); /* merge_decide() chooses */
}

static void a_query_waits_from_its_first_part_on(void **state)
{
  (void)state;
  add_within("q", 0, 3, (struct where){ 0, 1 }, 100, false, 0);
  add_within("q", 1, 3, (struct where){ 0, 2 }, WAIT_NS, false, 0);
  assert_int_equal(open_joins_due_ns(joins), 100 + WAIT_NS);
  open_joins_note_time(joins, 99 + WAIT_NS, NULL, 0);
  assert_int_equal(take("q"), 0);
  open_joins_note_time(joins, 100 + WAIT_NS, NULL, 0);
  assert_int_equal(take("q"), 2);
  assert_int_equal(open_joins_due_ns(joins), INT64_MAX);
}

static void a_deadline_ends_the_wait_and_the_latest_of_the_shards_counts(void **state)
{
  (void)state;
  add_within("q", 0, 3, (struct where){ 0, 1 }, 0, true, 100);
  assert_int_equal(open_joins_due_ns(joins), 100000);
  add_within("q", 1, 3, (struct where){ 0, 1 }, 0, true, 500); /* this shard's clock is behind */
  open_joins_note_time(joins, 100000, NULL, 0);
  assert_int_equal(take("q"), 0);
  assert_int_equal(open_joins_due_ns(joins), 500000);
  open_joins_note_time(joins, 500000, NULL, 0);
  assert_int_equal(take("q"), 2);
  add_within("far", 0, 3, (struct where){ 0, 2 }, 0, true, UINT64_MAX);
  assert_int_equal(open_joins_due_ns(joins), WAIT_NS);
}

/* The clock of a shard may be ahead of the deadline. Its part may come first, between or last. */
static void a_shard_for_which_no_time_is_left_does_not_end_the_wait(void **state)
{
  (void)state;
  for (uint32_t place = 0; place < 3; place++) {
    for (uint32_t shard = 0; shard < 3; shard++)
      add_within("q", shard, 4, (struct where){ 0, 1 + shard }, 0, true, shard == place ? 0 : 300 + 100 * shard);
    int64_t end_ns = place == 2 ? 400000 : 500000; /* the latest of the others */
    open_joins_note_time(joins, end_ns - 1, NULL, 0);
    assert_int_equal(take("q"), 0);
    open_joins_note_time(joins, end_ns, NULL, 0);
    assert_int_equal(take("q"), 3);
  }
  add_within("q", 0, 2, (struct where){ 0, 9 }, 0, true, 0); /* the other one may have time, or be away */
  assert_int_equal(open_joins_due_ns(joins), WAIT_NS);
  add_within("q", 1, 2, (struct where){ 0, 10 }, 0, true, 0);
  assert_int_equal(take("q"), 2);
}

static void no_deadline_prolongs_the_wait(void **state)
{
  (void)state;
  add_within("q", 0, 3, (struct where){ 0, 1 }, 0, true, 500);
  add_within("q", 1, 3, (struct where){ 0, 2 }, 800000, true, 500);
  open_joins_note_time(joins, 800000, NULL, 0);
  assert_int_equal(open_joins_due_ns(joins), WAIT_NS);
  open_joins_note_time(joins, WAIT_NS, NULL, 0);
  assert_int_equal(take("q"), 2);
}

/* Note a time, when the query's partition 1 is read to an offset. */
static void note_reach(int64_t now_ns, int64_t next, int64_t end)
{
  const struct partial_reach reach[] = { { 0, 3, 900 }, { 1, next, end } };

  open_joins_note_time(joins, now_ns, reach, 2);
}

static void a_query_is_kept_until_its_partition_is_read_to_the_end_that_it_had(void **state)
{
  (void)state;
  add("q", 0, 2, (struct where){ 1, 10 });
  note_reach(WAIT_NS, 11, 13);
  assert_int_equal(take("q"), 0);
  assert_in_range(open_joins_due_ns(joins), WAIT_NS + 1, INT64_MAX - 1);
  note_reach(open_joins_due_ns(joins), 12, 20);
  assert_int_equal(take("q"), 0);
  note_reach(open_joins_due_ns(joins), 13, 20); /* what came later does not matter */
  assert_int_equal(take("q"), 1);
  assert_int_equal(open_joins_due_ns(joins), INT64_MAX);
}

static void a_query_that_is_kept_is_ready_with_its_last_part(void **state)
{
  (void)state;
  add("q", 0, 2, (struct where){ 1, 10 });
  note_reach(WAIT_NS, 11, 13);
  add("q", 1, 2, (struct where){ 1, 12 });
  assert_int_equal(take("q"), 2);
}

static void a_deadline_does_not_wait_for_the_end(void **state)
{
  (void)state;
  add_within("q", 0, 2, (struct where){ 1, 10 }, 0, true, 100);
  note_reach(100000, 11, 13);
  assert_int_equal(take("q"), 1);
}

/* Nothing is read without room: the partition would never be read to its end. */
static void without_room_no_query_is_kept(void **state)
{
  char key[16];

  (void)state;
  for (int i = 0; open_joins_have_room(joins); i++) {
    snprintf(key, sizeof key, "q%d", i);
    add(key, 0, 2, (struct where){ 1, 10 + i });
  }
  note_reach(WAIT_NS, 11, 1000);
  assert_int_equal(take("q0"), 1);
}

static void the_oldest_part_of_each_partition_is_known(void **state)
{
  (void)state;
  assert_int_equal(open_joins_oldest(joins, 5), INT64_MAX);
  add("a", 0, 2, (struct where){ 0, 10 });
  add("b", 0, 2, (struct where){ 3, 5 });
  add("c", 0, 2, (struct where){ 0, 20 });
  add("a", 1, 2, (struct where){ 0, 30 });
  assert_int_equal(open_joins_oldest(joins, 0), 10);
  assert_int_equal(open_joins_oldest(joins, 3), 5);
  assert_int_equal(take("a"), 2);
  assert_int_equal(open_joins_oldest(joins, 0), 20);
}

/* Offsets begin again when the topic is deleted and created again. */
static void the_oldest_part_of_a_partition_that_begins_again_is_known(void **state)
{
  (void)state;
  add("former", 0, 2, (struct where){ 1, 1000 });
  add("a", 0, 2, (struct where){ 1, 3 });
  add("b", 0, 2, (struct where){ 1, 4 });
  assert_int_equal(open_joins_oldest(joins, 1), 3);
  open_joins_drop(joins, query_digest_of(span_of_str("a")));
  assert_int_equal(open_joins_oldest(joins, 1), 4);
  open_joins_drop(joins, query_digest_of(span_of_str("b")));
  assert_int_equal(open_joins_oldest(joins, 1), 1000);
}

static void an_end_that_the_partition_has_not_any_more_is_not_waited_for(void **state)
{
  (void)state;
  add("q", 0, 2, (struct where){ 1, 1000 });
  note_reach(WAIT_NS, 1001, 1003);
  assert_int_equal(take("q"), 0);
  note_reach(open_joins_due_ns(joins), 4, 5);
  assert_int_equal(take("q"), 0);
  note_reach(open_joins_due_ns(joins), 5, 9);
  assert_int_equal(take("q"), 1);
}

static void an_answered_query_is_dropped(void **state)
{
  (void)state;
  add("q", 0, 1, (struct where){ 0, 1 });
  open_joins_drop(joins, query_digest_of(span_of_str("q")));
  open_joins_drop(joins, query_digest_of(span_of_str("unknown")));
  assert_int_equal(take("q"), 0);
  assert_int_equal(open_joins_count(joins), 0);
  assert_int_equal(open_joins_bytes(joins), 0);
}

static void memory_is_bounded_and_freed(void **state)
{
  char key[32];
  int n = 0;

  (void)state;
  for (; open_joins_have_room(joins); n++) {
    snprintf(key, sizeof key, "query %d", n);
    add(key, 0, 2, (struct where){ n % 3, n });
  }
  assert_in_range(n, 5, MAX_BYTES / 32);
  open_joins_clear(joins);
  assert_true(open_joins_have_room(joins));
  assert_int_equal(open_joins_bytes(joins), 0);
  assert_int_equal(open_joins_due_ns(joins), INT64_MAX);
}

static void answered_queries_are_kept_for_a_while(void **state)
{
  struct answered_queries *answered;
  char key[32];

  (void)state;
  assert_ok(answered_queries_open(1000, &answered));
  for (int i = 0; i < 5000; i++) {
    snprintf(key, sizeof key, "%d", i);
    assert_ok(answered_queries_add(answered, query_digest_of(span_of_str(key)), 10));
  }
  assert_int_equal(answered_queries_count(answered), 5000);
  assert_true(answered_queries_have(answered, query_digest_of(span_of_str("4999"))));
  assert_false(answered_queries_have(answered, query_digest_of(span_of_str("5000"))));
  assert_ok(answered_queries_add(answered, query_digest_of(span_of_str("later")), 1010));
  assert_true(answered_queries_have(answered, query_digest_of(span_of_str("0"))));
  assert_int_equal(answered_queries_count(answered), 5001);
  assert_ok(answered_queries_add(answered, query_digest_of(span_of_str("latest")), 2010));
  assert_false(answered_queries_have(answered, query_digest_of(span_of_str("0"))));
  assert_true(answered_queries_have(answered, query_digest_of(span_of_str("later"))));
  answered_queries_clear(answered);
  assert_int_equal(answered_queries_count(answered), 0);
  answered_queries_close(&answered);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_query_is_ready_when_every_shard_has_answered, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_shards_second_part_is_a_duplicate, open_all, close_all),
    cmocka_unit_test_setup_teardown(many_open_queries_are_told_apart, open_all, close_all),
    cmocka_unit_test_setup_teardown(parts_of_another_layout_do_not_complete_a_query, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_query_waits_from_its_first_part_on, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_deadline_ends_the_wait_and_the_latest_of_the_shards_counts, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_shard_for_which_no_time_is_left_does_not_end_the_wait, open_all, close_all),
    cmocka_unit_test_setup_teardown(no_deadline_prolongs_the_wait, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_query_is_kept_until_its_partition_is_read_to_the_end_that_it_had, open_all,
                                    close_all),
    cmocka_unit_test_setup_teardown(a_query_that_is_kept_is_ready_with_its_last_part, open_all, close_all),
    cmocka_unit_test_setup_teardown(a_deadline_does_not_wait_for_the_end, open_all, close_all),
    cmocka_unit_test_setup_teardown(without_room_no_query_is_kept, open_all, close_all),
    cmocka_unit_test_setup_teardown(the_oldest_part_of_each_partition_is_known, open_all, close_all),
    cmocka_unit_test_setup_teardown(the_oldest_part_of_a_partition_that_begins_again_is_known, open_all, close_all),
    cmocka_unit_test_setup_teardown(an_end_that_the_partition_has_not_any_more_is_not_waited_for, open_all, close_all),
    cmocka_unit_test_setup_teardown(an_answered_query_is_dropped, open_all, close_all),
    cmocka_unit_test_setup_teardown(memory_is_bounded_and_freed, open_all, close_all),
    cmocka_unit_test(answered_queries_are_kept_for_a_while),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
