/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the records of the partials topic: what is written is read again, and nonsense is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "ingest/wire/wire.h"
#include "ingest/wire/wire_partial.h"
#include "tests/support/assert_ok.h"

static struct region region;

static int end(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

static struct answer whole_answer(void)
{
  static const struct value texts[] = { { VALUE_TEXT, .text = { (const uint8_t *)"x", 1 } },
                                        { VALUE_TEXT, .text = { (const uint8_t *)"y", 1 } } };
  static struct attribute_value shown[] = {
    { { (const uint8_t *)"tags", 4 }, { VALUE_LIST, .list = { texts, 2 } } },
    { { (const uint8_t *)"price", 5 }, { VALUE_NUMBER, .number = -0.5 } },
    { { (const uint8_t *)"adult", 5 }, { VALUE_BOOL, .is_true = false } },
    { { (const uint8_t *)"none", 4 }, { .kind = VALUE_LIST } },
  };
  static const float vector[] = { 0.25f, -3, 0 };
  static struct hit hits[] = {
    { .key = { (const uint8_t *)"a", 1 },
      .vector = { vector, 3 },
      .score = 1.5f,
      .similarity = 1.25f,
      .attributes = shown,
      .n_attributes = 4,
      .value = { .kind = VALUE_TEXT, .text = { (const uint8_t *)"de", 2 } } },
    { .key = { (const uint8_t *)"bb", 2 }, .score = -0.25f, .value = { .kind = VALUE_INTEGER, .integer = -7 } },
  };
  static struct explanation explanations[] = {
    { .key = { (const uint8_t *)"a", 1 }, .verdict = VERDICT_HIT, .has_score = true, .score = 1.5f, .rank = 1 },
    { .key = { (const uint8_t *)"x", 1 }, .verdict = VERDICT_NO_ITEM },
  };
  static const struct position watermark[] = { { 0, 7 }, { 4, 9 } };

  return (struct answer){
    .id = span_of_str("id"),
    .space = span_of_str("books"),
    .generation = 2,
    .model = "0123456789abcdef",
    .method = { .name = "combined", .args = { 40, 7 }, .n_args = 2 },
    .hits = hits,
    .n_hits = 2,
    .explanations = explanations,
    .n_explanations = 2,
    .receipt = { .has_bound = true, .bound = 2.0f },
    .epoch = 12,
    .has_time = true,
    .time_unix_ms = 1234,
    .is_boosted = true,
    .now_unix_ms = 0, /* even 0 is a time */
    .watermark = watermark,
    .n_watermark = 2,
    .counts = { .items = 10, .scored = 5, .candidates = 6, .has_admitted = true, .admitted = 0 },
    .queued_us = 3,
    .searched_us = 4,
  };
}

/* The largest answer that can be asked for is above the limit of what clients may send. */
static void the_largest_answer_is_read_again(void **state)
{
  enum { HITS = 100000 };
  static uint8_t keys[HITS + ITEM_KEY_MAX], text[ATTRIBUTE_TEXT_MAX];
  static struct hit hits[HITS];
  static struct attribute_value shown[4]; /* as many as those of all hits may be, with the longest names */
  struct answer answer = whole_answer(), back;
  struct span head, encoded, value;
  struct partial read;

  (void)state;
  memset(text, 'x', sizeof text);
  for (size_t i = 0; i < 4; i++)
    shown[i] = (struct attribute_value){ span_of(text, ATTRIBUTE_NAME_MAX), { .kind = VALUE_INTEGER, .integer = -1 } };
  for (size_t i = 0; i < HITS; i++)
    hits[i] = (struct hit){ .key = span_of(keys + i, ITEM_KEY_MAX),
                            .score = (float)i,
                            .value = { .kind = VALUE_TEXT, .text = span_of(text, ATTRIBUTE_TEXT_MAX) },
                            .attributes = shown,
                            .n_attributes = 4 };
  answer.hits = hits;
  answer.n_hits = HITS;
  assert_ok(wire_encode_partial(&(struct partial){ .n_shards = 1 }, &region, &head));
  assert_ok(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &encoded));
  assert_ok(wire_complete_partial(head, encoded, &region, &value));
  assert_in_range(value.n, (uint64_t)HITS * (ITEM_KEY_MAX + ATTRIBUTE_TEXT_MAX + 4 * ATTRIBUTE_NAME_MAX), 96 << 20);
  assert_ok(wire_decode_partial(value, &region, &read));
  assert_ok(wire_decode_answer(read.answer, &region, &back));
  assert_int_equal(back.n_hits, HITS);
  assert_true(back.hits[HITS - 1].score == (float)(HITS - 1));
}

/* Hits with the most that attributes may have, and many hits with small ones, which take the most memory. */
static void attributes_of_hits_are_read_again(void **state)
{
  enum { HITS = 20000 };
  static struct value texts[ATTRIBUTE_SET_MAX];
  static struct attribute_value large[ATTRIBUTES_MAX], small[ATTRIBUTES_MAX];
  static uint8_t text[ATTRIBUTE_TEXT_MAX];
  static struct hit hits[HITS];
  struct answer answer = whole_answer(), back;
  struct span encoded;

  (void)state;
  memset(text, 'x', sizeof text);
  for (size_t i = 0; i < ATTRIBUTE_SET_MAX; i++)
    texts[i] = (struct value){ VALUE_TEXT, .text = span_of(text, ATTRIBUTE_TEXT_MAX) };
  for (size_t i = 0; i < ATTRIBUTES_MAX; i++) {
    large[i] = (struct attribute_value){ span_of(text, i + 1), { VALUE_LIST, .list = { texts, ATTRIBUTE_SET_MAX } } };
    small[i] = (struct attribute_value){ span_of(text, i + 1), { VALUE_BOOL, .is_true = true } };
  }
  for (size_t i = 0; i < HITS; i++)
    hits[i] = (struct hit){ .key = span_of_str("a"), .attributes = i < 3 ? large : small,
                            .n_attributes = i < 3 ? ATTRIBUTES_MAX : 5 };
  answer.hits = hits;
  answer.n_hits = HITS;
  assert_ok(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &encoded));
  assert_ok(wire_decode_answer(encoded, &region, &back));
  assert_int_equal(back.n_hits, HITS);
  assert_int_equal(back.hits[2].n_attributes, ATTRIBUTES_MAX);
  assert_int_equal(back.hits[2].attributes[63].value.list.n, ATTRIBUTE_SET_MAX);
  assert_int_equal(back.hits[HITS - 1].n_attributes, 5);
}

static void an_answer_in_a_part_is_the_one_that_was_put_in(void **state)
{
  static const struct span trace[] = { { (const uint8_t *)"00-1", 4 }, { 0 }, { (const uint8_t *)"k=v", 3 } };
  struct answer answer = whole_answer(), back;
  struct span head, encoded, value, again;
  struct partial partial = { .shard = 2,
                             .n_shards = 3,
                             .model = span_of_str("digest"),
                             .has_key = true,
                             .is_json = true,
                             .reply_topic = span_of_str("replies"),
                             .k = 10,
                             .max_per = 3,
                             .candidates = 4,
                             .diversity = 0.3,
                             .boosts = 8,
                             .attributes = 2,
                             .has_deadline = true,
                             .left_us = 0,
                             .allow_partial = true,
                             .trace = trace,
                             .n_trace = 3,
                             .asked_unix_ms = -1 };
  struct partial read;

  (void)state;
  assert_ok(wire_encode_partial(&partial, &region, &head));
  assert_ok(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &encoded));
  assert_ok(wire_complete_partial(head, encoded, &region, &value));
  assert_ok(wire_decode_partial(value, &region, &read));
  assert_int_equal(read.shard, 2);
  assert_int_equal(read.n_shards, 3);
  assert_true(span_equal(read.model, partial.model));
  assert_true(read.has_key && read.key.n == 0);
  assert_true(read.is_json && read.allow_partial);
  assert_true(span_equal(read.reply_topic, partial.reply_topic));
  assert_int_equal(read.k, 10);
  assert_int_equal(read.max_per, 3);
  assert_int_equal(read.candidates, 4);
  assert_true(read.diversity == 0.3);
  assert_int_equal(read.boosts, 8);
  assert_int_equal(read.attributes, 2);
  assert_true(read.has_deadline && read.left_us == 0);
  assert_int_equal(read.n_trace, 3);
  assert_true(span_equal(read.trace[2], trace[2]));
  assert_int_equal(read.asked_unix_ms, -1);
  assert_ok(wire_decode_answer(read.answer, &region, &back));
  assert_true(back.is_boosted && back.hits[0].similarity == 1.25f);
  assert_int_equal(back.hits[0].n_attributes, 4);
  assert_true(span_equal(back.hits[0].attributes[1].name, span_of_str("price")));
  assert_true(back.hits[0].attributes[1].value.number == -0.5);
  assert_int_equal(back.hits[1].n_attributes, 0);
  assert_ok(wire_encode_answer(&back, WIRE_PROTOBUF, &region, &again));
  /* below_last_hit is computed by the merge, so this is all that an answer has */
  assert_true(span_equal(again, encoded));
}

static void the_key_of_the_query_and_its_time_left_are_those_that_were_put_in(void **state)
{
  struct partial partial = { .shard = PARTIAL_SHARDS_MAX - 1, .n_shards = PARTIAL_SHARDS_MAX, .answer = span_of_str("x") };
  struct partial read;
  struct span value;

  (void)state;
  assert_ok(wire_encode_partial(&partial, &region, &value));
  assert_ok(wire_decode_partial(value, &region, &read));
  assert_false(read.has_key || read.has_deadline);
  partial.has_key = partial.has_deadline = true;
  partial.key = span_of_str("user");
  partial.left_us = UINT64_MAX;
  assert_ok(wire_encode_partial(&partial, &region, &value));
  assert_ok(wire_decode_partial(value, &region, &read));
  assert_true(read.has_key && span_equal(read.key, partial.key));
  assert_true(read.has_deadline && read.left_us == UINT64_MAX);
  assert_true(span_equal(read.answer, partial.answer));
}

static void an_error_in_a_part_is_the_one_that_was_put_in(void **state)
{
  struct answer error = { .id = span_of_str("id"), .error = ANSWER_NOT_SEEN, .error_message = "not yet" }, back;
  struct span encoded;

  (void)state;
  assert_ok(wire_encode_answer(&error, WIRE_PROTOBUF, &region, &encoded));
  assert_ok(wire_decode_answer(encoded, &region, &back));
  assert_int_equal(back.error, ANSWER_NOT_SEEN);
  assert_string_equal(back.error_message, "not yet");
}

/* Encode an answer, exchange a number in its bytes, and verify that what comes out is refused. */
static void assert_refused(const struct answer *answer, float from, float to, const char *message)
{
  struct answer back;
  struct span encoded;

  assert_ok(wire_encode_answer(answer, WIRE_PROTOBUF, &region, &encoded));
  uint8_t *number = memmem(encoded.p, encoded.n, &from, sizeof from);
  assert_non_null(number);
  memcpy(number, &to, sizeof to);
  assert_int_equal(wire_decode_answer(encoded, &region, &back), ERR_WIRE);
  assert_string_equal(err_message(), message);
}

static void an_answer_whose_numbers_have_no_order_is_refused(void **state)
{
  static const float not_finite[] = { NAN, INFINITY, -INFINITY }, vector[] = { 1, 7.25f };
  struct hit hits[] = { { .score = 3.5f }, { .score = 1.5f, .similarity = 2.5f, .vector = { vector, 2 } } };
  const struct answer answer = {
    .hits = hits, .n_hits = 2, .is_boosted = true, .receipt = { .has_bound = true, .bound = 9.5f }
  };

  (void)state;
  for (size_t i = 0; i < sizeof not_finite / sizeof not_finite[0]; i++) {
    assert_refused(&answer, 1.5f, not_finite[i], "the score of hit 1 is not finite");
    assert_refused(&answer, 2.5f, not_finite[i], "the score of hit 1 is not finite");
    assert_refused(&answer, 7.25f, not_finite[i], "the vector of hit 1 is not finite");
  }
  assert_refused(&answer, 9.5f, NAN, "the bound is not a number");
}

static void records_that_cannot_be_are_refused(void **state)
{
  static const struct span trace[4];
  const struct partial bad[] = { { .shard = 3, .n_shards = 3, .answer = span_of_str("x") },
                                 { .shard = 0, .n_shards = 0, .answer = span_of_str("x") },
                                 { .shard = 0, .n_shards = PARTIAL_SHARDS_MAX + 1, .answer = span_of_str("x") },
                                 { .shard = 0, .n_shards = 1 },
                                 { .n_shards = 1, .answer = span_of_str("x"), .trace = trace, .n_trace = 4 },
                                 { .kind = PARTIAL_HEARTBEAT },
                                 { .kind = 7, .n_shards = 1 } };
  struct partial out;
  struct span value;

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_ok(wire_encode_partial(&bad[i], &region, &value));
    assert_int_equal(wire_decode_partial(value, &region, &out), ERR_WIRE);
  }
  assert_int_equal(wire_decode_partial(span_of_str("\xff\xff"), &region, &out), ERR_WIRE);
  assert_ok(wire_encode_partial(&(struct partial){ .kind = PARTIAL_ANSWERED }, &region, &value));
  assert_ok(wire_decode_partial(value, &region, &out));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_largest_answer_is_read_again),
    cmocka_unit_test(attributes_of_hits_are_read_again),
    cmocka_unit_test(an_answer_in_a_part_is_the_one_that_was_put_in),
    cmocka_unit_test(the_key_of_the_query_and_its_time_left_are_those_that_were_put_in),
    cmocka_unit_test(an_error_in_a_part_is_the_one_that_was_put_in),
    cmocka_unit_test(an_answer_whose_numbers_have_no_order_is_refused),
    cmocka_unit_test(records_that_cannot_be_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, end);
}
