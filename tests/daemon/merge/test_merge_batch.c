/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a batch of answers on their way: what is sent again, what replaces it, and what is given up. The producer is
 * a stand-in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/merge/merge_batch.h"
#include "ingest/wire/wire_partial.h"
#include "tests/support/assert_ok.h"

static struct config config;
static struct counters counters;
static struct merge_counters merge_counters;
static struct merge_batch batch;
static struct region scratch;
static struct open_joins *joins;
static enum sender_fate fate; /* of all answers */

/* ---- The producer ---- */

err_t transaction_send(struct transaction *t, struct transaction_message *messages, size_t n, struct partial_reader *r,
                       const struct position *positions, size_t n_positions)
{
  (void)t;
  (void)r;
  (void)positions;
  (void)n_positions;
  for (size_t i = 0; i < n; i++) {
    messages[i].fate = i < n / 2 ? fate : SENDER_CLOSED;
    messages[i].reason = "not wanted";
  }
  if (fate != SENDER_DELIVERED)
    FAIL(ERR_KAFKA_RETRY, "a message was refused");
  return ERR_OK;
}

bool transaction_has_topic(struct transaction *t, const char *topic, int timeout_ms)
{
  (void)t;
  (void)topic;
  (void)timeout_ms;
  return true;
}

/* ---- The tests ---- */

static int begin(void **state)
{
  struct merge_batch_context context = { &config, &counters, &merge_counters, NULL };

  (void)state;
  config.query.answer_topic = "answers";
  config.query.partials_topic = "partials";
  config.merge.is_exactly_once = true;
  atomic_store(&counters.undeliverable, 0);
  assert_ok(open_joins_open(1 << 30, CLOCK_NS_PER_S, &joins));
  assert_ok(merge_batch_init(&context, &batch));
  return 0;
}

static int end(void **state)
{
  (void)state;
  merge_batch_fini(&batch);
  open_joins_close(&joins);
  region_fini(&scratch);
  return 0;
}

/* Add the answer of a layout with one shard to the batch. Its id has so many bytes. */
static void add(const char *key, size_t n_id)
{
  AUTO(open_join_close) struct open_join *join = NULL;
  struct span head, encoded, value;
  struct partial partial = { .n_shards = 1, .k = 1, .model = span_of_str("m") };
  enum open_joins_added added;
  char *id;

  assert_ok(region_array(&scratch, n_id, 1, &id));
  memset(id, 'i', n_id);
  struct answer answer = { .id = span_of(id, n_id), .space = span_of_str("books"), .generation = 1 };
  assert_ok(wire_encode_answer(&answer, WIRE_PROTOBUF, &scratch, &encoded));
  assert_ok(wire_encode_partial(&partial, &scratch, &head));
  assert_ok(wire_complete_partial(head, encoded, &scratch, &value));
  struct open_joins_part part = { span_of_str(key), value, 0, 0, &partial };
  assert_ok(open_joins_add(joins, &part, 0, &added));
  join = open_joins_take_ready(joins);
  assert_non_null(join);
  assert_ok(merge_batch_add(&batch, join));
  region_reset(&scratch);
}

static void a_refused_answer_becomes_an_error_and_is_then_given_up(void **state)
{
  (void)state;
  fate = SENDER_REFUSED;
  add("a", 10);
  add("b", 10);
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.n, 2);
  assert_int_equal(batch.replies[0].error, ANSWER_INTERNAL);
  assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
  assert_int_equal(batch.n, 0);
  assert_int_equal(counters_get(&counters.undeliverable), 2);
}

static void a_batch_that_was_given_up_leaves_room_for_the_next(void **state)
{
  (void)state;
  fate = SENDER_REFUSED;
  for (size_t n_bytes = 0; n_bytes < 2 * MERGE_BATCH_BYTES; n_bytes += 1 << 20) {
    assert_true(merge_batch_has_room(&batch));
    add("a", 1 << 20);
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
    assert_int_equal(merge_batch_send(&batch, NULL, NULL, 0), ERR_KAFKA_RETRY);
    assert_int_equal(batch.n, 0);
  }
  fate = SENDER_DELIVERED;
  add("b", 10);
  assert_ok(merge_batch_send(&batch, NULL, NULL, 0));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_refused_answer_becomes_an_error_and_is_then_given_up, begin, end),
    cmocka_unit_test_setup_teardown(a_batch_that_was_given_up_leaves_room_for_the_next, begin, end),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
