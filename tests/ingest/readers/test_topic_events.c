/* SPDX-License-Identifier: Apache-2.0 */
/* The errors that events of a topic mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/readers/topic_events.h"
#include "tests/support/assert_ok.h"

static const struct topic_events none = { 0 }, denied = { .is_denied = true }, away = { .is_away = true },
                                 out_of_range = { .is_out_of_range = true, .out_of_range_partition = 3 },
                                 damaged = { .is_damaged = true, .damaged_partition = 2, .damaged_offset = 17 };

static void each_event_is_an_error_of_its_own(void **state)
{
  (void)state;
  assert_ok(topic_events_verify(&none, "t"));
  assert_fails(topic_events_verify(&denied, "t"), ERR_KAFKA_DENIED, "this user may describe topic t, but not read it");
  assert_fails(topic_events_verify(&away, "t"), ERR_KAFKA_RETRY, "topic t or its brokers are away");
  assert_fails(topic_events_verify(&out_of_range, "t"), ERR_DISCONTINUITY, "outside partition 3 of topic t");
  assert_fails(topic_events_verify(&damaged, "t"), ERR_KAFKA_DAMAGED,
               "partition 2 of topic t cannot be read at offset 17");
}

static void a_topic_with_a_damaged_partition_can_be_accessed(void **state)
{
  (void)state;
  assert_ok(topic_events_verify_access(&none, "t"));
  assert_ok(topic_events_verify_access(&out_of_range, "t"));
  assert_ok(topic_events_verify_access(&damaged, "t"));
  assert_fails(topic_events_verify_access(&denied, "t"), ERR_KAFKA_DENIED, "allow it to read the topic");
  assert_fails(topic_events_verify_access(&away, "t"), ERR_KAFKA_RETRY, "away");
}

/* A topic that is back may have other offsets. */
static void what_concerns_the_whole_topic_comes_first(void **state)
{
  struct topic_events all = { .is_denied = true, .is_away = true, .is_out_of_range = true, .is_damaged = true };

  (void)state;
  assert_fails(topic_events_verify(&all, "t"), ERR_KAFKA_DENIED, "");
  all.is_denied = false;
  assert_fails(topic_events_verify(&all, "t"), ERR_KAFKA_RETRY, "");
  all.is_away = false;
  assert_fails(topic_events_verify(&all, "t"), ERR_DISCONTINUITY, "");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_event_is_an_error_of_its_own),
    cmocka_unit_test(a_topic_with_a_damaged_partition_can_be_accessed),
    cmocka_unit_test(what_concerns_the_whole_topic_comes_first),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
