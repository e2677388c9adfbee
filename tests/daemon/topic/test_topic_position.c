/* SPDX-License-Identifier: Apache-2.0 */
/* Positions in the catalogue topic, and the check that the topic is still the one that filled the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/topic/topic_position.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

static uint64_t seed;

static struct topic_record record_at(int32_t partition, int64_t offset, const char *value, int64_t timestamp_ms)
{
  return (struct topic_record){
    .has_key = true,
    .key = span_of_str("key"),
    .has_value = true,
    .value = span_of_str(value),
    .partition = partition,
    .offset = offset,
    .timestamp_ms = timestamp_ms,
  };
}

static bool take(struct topic_positions *t, struct topic_record record)
{
  bool is_new;

  assert_ok(topic_positions_advance(t, &record, &is_new));
  return is_new;
}

/* The stored position after records up to `last` were applied and the partition was read up to `next`. */
static struct store_position stored_at(int32_t partition, int64_t last, int64_t next, const char *value,
                                       int64_t timestamp_ms)
{
  struct topic_record record = record_at(partition, last, value, timestamp_ms);

  return (struct store_position){ { partition, next }, last, topic_record_digest(&record), timestamp_ms, 0 };
}

static void a_new_partition_is_read_from_its_first_record(void **state)
{
  struct topic_positions t = { 0 };
  int64_t from, begin = clock_unix_ms();

  (void)state;
  assert_false(topic_positions_have_caught_up(&t)); /* no partition is known yet */
  assert_ok(topic_positions_add(&t, NULL, 5, 8, &from));
  assert_int_equal(from, 5);
  assert_in_range(t.items[0].position.complete_unix_ms, begin, clock_unix_ms());
  assert_false(topic_positions_have_caught_up(&t));
  for (int64_t offset = 5; offset < 8; offset++) {
    assert_false(topic_positions_have_caught_up(&t));
    assert_true(take(&t, record_at(0, offset, "v", 100)));
  }
  assert_true(topic_positions_have_caught_up(&t));
  topic_positions_fini(&t);
}

static void an_empty_partition_has_caught_up_at_once(void **state)
{
  struct topic_positions t = { 0 };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, NULL, 0, 0, &from));
  assert_int_equal(from, 0);
  assert_true(topic_positions_have_caught_up(&t));
  assert_false(topic_positions_any_changed(&t));
  topic_positions_fini(&t);
}

static void after_a_restart_the_last_record_is_read_again_and_is_not_new(void **state)
{
  struct topic_positions t = { 0 };
  struct store_position stored = stored_at(0, 41, 42, "v41", 500);
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, &stored, 0, 44, &from));
  assert_int_equal(from, 41);
  assert_false(take(&t, record_at(0, 41, "v41", 500)));
  assert_false(topic_positions_any_changed(&t));
  assert_true(take(&t, record_at(0, 42, "v42", 400))); /* producers' clocks differ */
  assert_true(take(&t, record_at(0, 43, "v43", 600)));
  assert_true(topic_positions_have_caught_up(&t));
  topic_positions_fini(&t);
}

static int64_t complete_of(const struct topic_positions *t)
{
  return t->items[0].position.complete_unix_ms;
}

/* A daemon that lags behind has not read what came since then, however often it stores its position. */
static void a_partition_is_complete_as_of_the_end_that_was_reached(void **state)
{
  struct topic_positions t = { 0 };
  struct store_position stored = stored_at(0, 41, 42, "last", 100), listed[1];
  int64_t from, begin = clock_unix_ms();

  (void)state;
  stored.complete_unix_ms = begin - 3600000;
  assert_ok(topic_positions_add(&t, &stored, 0, 44, &from));
  assert_false(take(&t, record_at(0, 41, "last", 100)));
  assert_true(take(&t, record_at(0, 42, "v", 100)));
  topic_positions_touch(&t);
  assert_int_equal(topic_positions_list_changed(&t, listed), 1);
  assert_in_range(listed[0].complete_unix_ms, begin - 3600001, begin - 3600000 + 60000);
  assert_int_equal(t.longest_read_ns, 0);
  assert_true(take(&t, record_at(0, 43, "v", 100))); /* the end that it had at the start */
  assert_in_range(complete_of(&t), begin - 1, clock_unix_ms());
  assert_in_range(t.longest_read_ns, 1, 60 * CLOCK_NS_PER_S); /* in this run */
  topic_positions_fini(&t);
}

static void a_partition_that_is_always_written_to_reaches_former_ends(void **state)
{
  struct topic_positions t = { 0 };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, NULL, 0, 1, &from));
  assert_true(take(&t, record_at(0, 0, "v", 100)));
  int64_t begun = complete_of(&t);
  clock_sleep_ns(20 * CLOCK_NS_PER_MS);
  topic_positions_note_log_end(&t, 0, -1);
  topic_positions_note_log_end(&t, 0, 1); /* it may be old */
  assert_int_equal(complete_of(&t), begun);
  topic_positions_note_log_end(&t, 0, 3);
  int64_t noted = clock_unix_ms();
  clock_sleep_ns(20 * CLOCK_NS_PER_MS);
  topic_positions_note_log_end(&t, 0, 9); /* the former one is not reached yet: it counts */
  assert_true(take(&t, record_at(0, 1, "v", 100)));
  assert_in_range(complete_of(&t), begun - 1, begun + 1);
  assert_true(take(&t, record_at(0, 2, "v", 100)));
  assert_in_range(complete_of(&t), begun + 15, noted + 1);
  assert_in_range(t.longest_read_ns, 15 * CLOCK_NS_PER_MS, 60 * CLOCK_NS_PER_S);
  topic_positions_fini(&t);
}

static void a_position_that_is_held_back_stays_complete(void **state)
{
  struct store_position position = stored_at(0, 41, 42, "last", 100), hold = stored_at(0, 7, 7, "bad", 50);

  (void)state;
  position.complete_unix_ms = 1234;
  store_position_hold_back(&position, &hold);
  hold.complete_unix_ms = 1234;
  assert_memory_equal(&position, &hold, sizeof hold);
}

static void at_its_end_a_partition_is_complete_as_of_now(void **state)
{
  struct topic_positions t = { 0 };
  struct store_position stored = stored_at(0, 41, 42, "last", 100);
  int64_t from, begin = clock_unix_ms();

  (void)state;
  stored.complete_unix_ms = begin - 3600000;
  assert_ok(topic_positions_add(&t, &stored, 0, 42, &from));
  int64_t read = complete_of(&t);
  assert_in_range(read, begin - 1, clock_unix_ms()); /* nothing has come since */
  assert_false(take(&t, record_at(0, 41, "last", 100)));
  clock_sleep_ns(20 * CLOCK_NS_PER_MS);
  topic_positions_note_end(&t, 0, 42);
  assert_in_range(complete_of(&t), read + 15, clock_unix_ms());
  clock_sleep_ns(20 * CLOCK_NS_PER_MS);
  topic_positions_touch(&t);
  assert_in_range(complete_of(&t), read + 35, clock_unix_ms());
  assert_true(take(&t, record_at(0, 42, "v", 100)));
  read = complete_of(&t);
  clock_sleep_ns(20 * CLOCK_NS_PER_MS);
  topic_positions_touch(&t); /* more may follow the record */
  assert_int_equal(complete_of(&t), read);
  topic_positions_note_end(&t, 0, 43);
  assert_in_range(complete_of(&t), read + 15, clock_unix_ms());
  assert_int_equal(t.longest_read_ns, 0); /* being away is not reading */
  topic_positions_fini(&t);
}

static void without_new_records_it_has_caught_up_once_the_last_one_was_read_again(void **state)
{
  struct topic_positions t = { 0 };
  struct store_position stored = stored_at(0, 41, 42, "v41", 500);
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, &stored, 0, 42, &from));
  assert_false(topic_positions_have_caught_up(&t));
  assert_false(take(&t, record_at(0, 41, "v41", 500)));
  assert_true(topic_positions_have_caught_up(&t));

  topic_positions_clear(&t); /* compaction has removed it, and no record follows */
  assert_ok(topic_positions_add(&t, &stored, 0, 42, &from));
  assert_false(topic_positions_have_caught_up(&t));
  topic_positions_note_end(&t, 0, 42);
  assert_true(topic_positions_have_caught_up(&t));
  assert_false(topic_positions_any_changed(&t));
  topic_positions_fini(&t);
}

static void another_record_at_the_last_offset_is_another_topic(void **state)
{
  static const struct {
    const char *key, *value;
    bool has_value;
  } others[] = {
    { "key", "x", true }, { "kez", "v41", true }, { "key", "", false }, { "key", "", true }, { "", "v41", true },
  };

  (void)state;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    struct topic_positions t = { 0 };
    struct store_position stored = stored_at(0, 41, 42, "v41", 500);
    struct topic_record record = record_at(0, 41, others[i].value, 500);
    int64_t from;
    bool is_new;
    record.key = span_of_str(others[i].key);
    record.has_value = others[i].has_value;
    assert_ok(topic_positions_add(&t, &stored, 0, 100, &from));
    assert_fails(topic_positions_advance(&t, &record, &is_new), ERR_DISCONTINUITY, "offset 41");
    topic_positions_fini(&t);
  }
}

/* A backfill writes old timestamps, so they prove nothing. */
static void after_compaction_the_next_record_may_have_any_timestamp(void **state)
{
  enum { DAY_MS = 24 * 3600 * 1000 };
  struct store_position stored = stored_at(0, 41, 42, "v41", DAY_MS);
  struct topic_positions t = { .has_holes = true };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, &stored, 0, 100, &from));
  assert_true(take(&t, record_at(0, 45, "w", 5)));
  assert_true(take(&t, record_at(0, 46, "w", 2 * (int64_t)DAY_MS)));
  topic_positions_fini(&t);
}

static void without_compaction_a_missing_record_is_another_topic(void **state)
{
  struct store_position stored = stored_at(0, 41, 42, "v41", 500);
  struct topic_record record = record_at(0, 45, "w", 900);
  struct topic_positions t = { .has_holes = false };
  int64_t from;
  bool is_new;

  (void)state;
  assert_ok(topic_positions_add(&t, &stored, 0, 100, &from));
  assert_fails(topic_positions_advance(&t, &record, &is_new), ERR_DISCONTINUITY, "offset 41");
  topic_positions_clear(&t); /* of the next topic it is not known yet */
  assert_ok(topic_positions_add(&t, &stored, 0, 100, &from));
  assert_true(take(&t, record));
  topic_positions_fini(&t);
}

static void a_partition_truncated_at_either_end_is_a_discontinuity(void **state)
{
  struct store_position stored = stored_at(0, 41, 42, "v41", 500);
  struct topic_positions t = { 0 };
  int64_t from = -7;

  (void)state;
  assert_fails(topic_positions_add(&t, &stored, 43, 100, &from), ERR_DISCONTINUITY, "begins at 43");
  assert_fails(topic_positions_add(&t, &stored, 0, 41, &from), ERR_DISCONTINUITY, "ends at 41");
  assert_fails(topic_positions_add(&t, &stored, 0, 0, &from), ERR_DISCONTINUITY, "ends at 0");
  assert_int_equal(from, -7);
  assert_int_equal(t.n, 0);
  assert_ok(topic_positions_add(&t, &stored, 42, 42, &from)); /* all that was read is gone, but nothing between */
  assert_int_equal(from, 42);
  assert_true(topic_positions_have_caught_up(&t));
  topic_positions_clear(&t);
  assert_ok(topic_positions_add(&t, &stored, 41, 42, &from));
  assert_int_equal(from, 41);
  topic_positions_fini(&t);
}

static void a_partition_with_only_markers_goes_on_after_them(void **state)
{
  struct store_position stored = { .at = { 0, 9 }, .last_offset = -1 };
  struct topic_positions t = { 0 };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, &stored, 0, 9, &from));
  assert_int_equal(from, 9);
  assert_true(topic_positions_have_caught_up(&t));
  assert_true(take(&t, record_at(0, 9, "v", 1)));
  topic_positions_fini(&t);
}

static void an_end_moves_the_position_forward_and_never_back(void **state)
{
  struct store_position positions[2];
  struct topic_positions t = { 0 };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, NULL, 0, 12, &from));
  assert_ok(topic_positions_add(&t, NULL, 0, 0, &from));
  assert_true(take(&t, record_at(0, 9, "v", 1)));
  topic_positions_note_end(&t, 0, 12); /* after the markers of a transaction */
  assert_true(topic_positions_have_caught_up(&t));
  assert_int_not_equal(t.longest_read_ns, 0); /* the end that was known is reached */
  assert_int_equal(topic_positions_list_changed(&t, positions), 1);
  assert_int_equal(positions[0].at.next, 12);
  assert_int_equal(positions[0].last_offset, 9);
  topic_positions_note_end(&t, 0, 10);
  topic_positions_note_end(&t, 0, 12);
  topic_positions_note_end(&t, INT32_MAX, 12); /* partitions that are not read */
  topic_positions_note_end(&t, -1, 12);
  topic_positions_note_log_end(&t, INT32_MAX, 12);
  topic_positions_note_log_end(&t, -1, 12);
  assert_false(topic_positions_any_changed(&t));
  topic_positions_fini(&t);
}

static void added_partitions_come_after_those_that_are_read(void **state)
{
  struct store_position positions[3];
  struct topic_positions t = { 0 };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, NULL, 0, 1, &from));
  assert_true(take(&t, record_at(0, 0, "v", 1)));
  assert_true(topic_positions_have_caught_up(&t));
  assert_ok(topic_positions_add(&t, NULL, 0, 2, &from));
  assert_ok(topic_positions_add(&t, NULL, 0, 0, &from));
  assert_false(topic_positions_have_caught_up(&t));
  assert_true(take(&t, record_at(1, 0, "v", 1)));
  assert_true(take(&t, record_at(2, 0, "v", 1)));
  assert_int_equal(topic_positions_list_changed(&t, positions), 3);
  for (int32_t p = 0; p < 3; p++)
    assert_int_equal(positions[p].at.partition, p);
  assert_int_equal(topic_positions_list_changed(&t, positions), 0);
  topic_positions_fini(&t);
}

/* Otherwise a daemon that is killed before it stores a later position has no record to compare. */
static void the_position_at_the_first_record_is_listed_until_it_is_stored(void **state)
{
  struct store_position stored = stored_at(1, 41, 42, "v41", 500), positions[2];
  struct topic_record first = record_at(0, 0, "v", 100);
  struct topic_positions t = { 0 };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add(&t, NULL, 0, 9, &from));
  assert_ok(topic_positions_add(&t, &stored, 0, 50, &from));
  assert_int_equal(topic_positions_list_first(&t, positions), 0);
  assert_true(take(&t, first));
  assert_true(take(&t, record_at(0, 1, "w", 200)));
  assert_false(take(&t, record_at(1, 41, "v41", 500)));
  assert_true(take(&t, record_at(1, 42, "v", 500))); /* the store has a record of this partition */
  assert_int_equal(topic_positions_list_first(&t, positions), 1);
  assert_int_equal(positions[0].at.partition, 0);
  assert_int_equal(positions[0].at.next, 0);
  assert_int_equal(positions[0].last_offset, 0);
  assert_true(topic_position_matches(&positions[0], &first));
  topic_positions_mark_first_stored(&t);
  assert_true(take(&t, record_at(0, 2, "x", 300)));
  assert_int_equal(topic_positions_list_first(&t, positions), 0);
  topic_positions_fini(&t);
}

static void partitions_of_other_shards_and_paused_ones_are_not_waited_for_and_not_stored(void **state)
{
  struct store_position positions[3];
  struct topic_positions t = { 0 };
  int64_t from;

  (void)state;
  assert_ok(topic_positions_add_foreign(&t));
  assert_true(topic_positions_have_caught_up(&t));
  assert_ok(topic_positions_add(&t, NULL, 0, 9, &from));
  assert_false(topic_positions_have_caught_up(&t));
  t.items[1].is_paused = true;
  assert_true(topic_positions_have_caught_up(&t));
  assert_ok(topic_positions_add(&t, NULL, 0, 0, &from));
  topic_positions_touch(&t);
  assert_int_equal(topic_positions_list_changed(&t, positions), 1);
  assert_int_equal(positions[0].at.partition, 2);
  topic_positions_fini(&t);
}

static void a_record_of_a_partition_that_is_not_read_is_an_error(void **state)
{
  struct topic_positions t = { 0 };
  struct topic_record record = record_at(1, 0, "v", 1);
  int64_t from;
  bool is_new;

  (void)state;
  assert_ok(topic_positions_add(&t, NULL, 0, 1, &from));
  assert_fails(topic_positions_advance(&t, &record, &is_new), ERR_KAFKA, "partition 1");
  record.partition = -1;
  assert_fails(topic_positions_advance(&t, &record, &is_new), ERR_KAFKA, "partition -1");
  topic_positions_fini(&t);
}

/* Partitions with gaps, read with restarts in between. */
static void over_restarts_each_record_is_new_exactly_once(void **state)
{
  enum { END = 300 };
  struct dice dice = { seed };

  (void)state;
  for (int round = 0; round < 200; round++) {
    struct store_position stored = { 0 };
    struct topic_positions t = { 0 };
    bool is_record[END], was_new[END] = { 0 }, has_stored = false;
    for (size_t i = 0; i < END; i++)
      is_record[i] = dice_below(&dice, 5);
    for (int64_t end = 0; end < END;) {
      int64_t from;
      end += (int64_t)dice_below(&dice, 60);
      end = end < END ? end : END;
      topic_positions_clear(&t);
      assert_ok(topic_positions_add(&t, has_stored ? &stored : NULL, 0, end, &from));
      for (int64_t offset = from; offset < end; offset++) {
        char value[32];
        snprintf(value, sizeof value, "v%lld", (long long)offset);
        if (is_record[offset] && take(&t, record_at(0, offset, value, offset))) {
          assert_false(was_new[offset]);
          was_new[offset] = true;
        }
      }
      topic_positions_note_end(&t, 0, end);
      assert_true(topic_positions_have_caught_up(&t));
      has_stored |= topic_positions_list_changed(&t, &stored) > 0;
      if (has_stored)
        assert_int_equal(stored.at.next, end);
    }
    assert_memory_equal(was_new, is_record, sizeof was_new);
    topic_positions_fini(&t);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_new_partition_is_read_from_its_first_record),
    cmocka_unit_test(an_empty_partition_has_caught_up_at_once),
    cmocka_unit_test(after_a_restart_the_last_record_is_read_again_and_is_not_new),
    cmocka_unit_test(a_partition_is_complete_as_of_the_end_that_was_reached),
    cmocka_unit_test(a_partition_that_is_always_written_to_reaches_former_ends),
    cmocka_unit_test(a_position_that_is_held_back_stays_complete),
    cmocka_unit_test(at_its_end_a_partition_is_complete_as_of_now),
    cmocka_unit_test(without_new_records_it_has_caught_up_once_the_last_one_was_read_again),
    cmocka_unit_test(another_record_at_the_last_offset_is_another_topic),
    cmocka_unit_test(after_compaction_the_next_record_may_have_any_timestamp),
    cmocka_unit_test(without_compaction_a_missing_record_is_another_topic),
    cmocka_unit_test(a_partition_truncated_at_either_end_is_a_discontinuity),
    cmocka_unit_test(a_partition_with_only_markers_goes_on_after_them),
    cmocka_unit_test(an_end_moves_the_position_forward_and_never_back),
    cmocka_unit_test(added_partitions_come_after_those_that_are_read),
    cmocka_unit_test(the_position_at_the_first_record_is_listed_until_it_is_stored),
    cmocka_unit_test(partitions_of_other_shards_and_paused_ones_are_not_waited_for_and_not_stored),
    cmocka_unit_test(a_record_of_a_partition_that_is_not_read_is_an_error),
    cmocka_unit_test(over_restarts_each_record_is_new_exactly_once),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
