/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in protobuf and JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "ingest/wire/wire_client.h"
#include "tests/support/assert_ok.h"
#include "tests/support/wire_fixture.h"

static struct answer sample_answer(void)
{
  static struct hit hits[] = { { .key = { (const uint8_t *)"gimp", 4 }, .score = 0.1f },
                               { .key = { (const uint8_t *)"\xff\x00", 2 }, .score = 0.0f },
                               { .key = { (const uint8_t *)"\xc3\xbc", 2 }, .score = -3.4028235e38f } };
  static const struct position watermark[] = { { 0, 17 }, { 1, 0 } };

  return (struct answer){
    .id = span_of_str("q1"),
    .space = span_of_str("books"),
    .method = { .name = "average", .args = { 4000 }, .n_args = 1 },
    .hits = hits,
    .n_hits = 3,
    .receipt = { .is_exact = false, .has_bound = true, .bound = 0.25f },
    .epoch = 12,
    .watermark = watermark,
    .n_watermark = 2,
    .counts = { .items = 63000, .scored = 4000, .candidates = 4000 },
    .queued_us = 512,
    .searched_us = 0,
  };
}

static void answers_look_like_this(void **state)
{
  struct answer answer = sample_answer();
  struct span text;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_string_equal((const char *)text.p,
                      "{\"id\":\"q1\",\"space\":\"books\",\"method\":\"average(4000)\",\"hits\":["
                      "{\"key\":\"gimp\",\"score\":0.100000001},{\"key\":{\"base64\":\"/wA=\"},\"score\":0.0},"
                      "{\"key\":\"\xc3\xbc\",\"score\":-3.40282347e38}],"
                      "\"receipt\":{\"exact\":false,\"bound\":0.25},\"epoch\":12,"
                      "\"watermark\":[{\"partition\":0,\"next\":17},{\"partition\":1,\"next\":0}],"
                      "\"counts\":{\"items\":63000,\"scored\":4000,\"candidates\":4000},"
                      "\"times\":{\"queued_us\":512,\"searched_us\":0}}");

  answer.has_time = true;
  answer.time_unix_ms = 1790000000250;
  answer.n_hits = answer.n_watermark = 0;
  answer.receipt = (struct receipt){ .is_exact = true };
  answer.method = (struct method){ .name = "two", .args = { 1, 2 }, .n_args = 2 };
  answer.id = span_of_str("");
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_string_equal((const char *)text.p,
                      "{\"space\":\"books\",\"method\":\"two(1,2)\",\"hits\":[],\"receipt\":{\"exact\":true},"
                      "\"epoch\":12,"
                      "\"counts\":{\"items\":63000,\"scored\":4000,\"candidates\":4000},"
                      "\"times\":{\"queued_us\":512,\"searched_us\":0},\"time_unix_ms\":1790000000250}");
}

static void explanations_look_like_this(void **state)
{
  struct explanation explanations[] = {
    { .key = span_of_str("gimp"), .verdict = VERDICT_HIT, .has_score = true, .score = 0, .rank = 1 },
    { .key = span_of("\xff", 1), .verdict = VERDICT_NO_ITEM },
    { .key = span_of_str("b"), .verdict = VERDICT_OUTRANKED, .has_score = true, .score = -2, .below_last_hit = 0 },
    { .key = span_of_str("c"), .verdict = VERDICT_UNKNOWN },
  };
  struct answer answer = sample_answer();
  struct span text;
  (void)state;

  region_reset(&region);
  answer.explanations = explanations;
  answer.n_explanations = 4;
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_non_null(strstr((const char *)text.p,
                         ",\"explanations\":[{\"key\":\"gimp\",\"verdict\":\"HIT\",\"score\":0.0,\"rank\":1},"
                         "{\"key\":{\"base64\":\"/w==\"},\"verdict\":\"NO_ITEM\"},"
                         "{\"key\":\"b\",\"verdict\":\"OUTRANKED\",\"score\":-2.0,\"below_last_hit\":0.0},"
                         "{\"key\":\"c\",\"verdict\":\"UNKNOWN\"}]}"));
}

static void the_values_of_hits_look_like_this(void **state)
{
  struct hit hits[] = {
    { .key = span_of_str("a"), .score = 2, .value = { .kind = VALUE_TEXT, .text = span_of_str("Björk") } },
    { .key = span_of_str("b"), .score = 1, .value = { .kind = VALUE_INTEGER, .integer = -7 } },
    { .key = span_of_str("c"), .score = 1, .value = { .kind = VALUE_BOOL } },
    { .key = span_of_str("d") },
  };
  struct answer answer = sample_answer();
  struct span text;
  (void)state;

  region_reset(&region);
  answer.hits = hits;
  answer.n_hits = 4;
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_non_null(strstr((const char *)text.p, "\"hits\":[{\"key\":\"a\",\"score\":2.0,\"value\":\"Björk\"},"
                                               "{\"key\":\"b\",\"score\":1.0,\"value\":-7},"
                                               "{\"key\":\"c\",\"score\":1.0,\"value\":false},"
                                               "{\"key\":\"d\",\"score\":0.0}]"));
}

static void the_similarities_of_hits_look_like_this(void **state)
{
  struct hit hits[] = {
    { .key = span_of_str("a"), .score = 2.5f, .similarity = 2 },
    { .key = span_of_str("b"), .score = 1 }, /* even a similarity of 0 is shown */
  };
  struct answer answer = sample_answer();
  struct span text;
  (void)state;

  region_reset(&region);
  answer.hits = hits;
  answer.n_hits = 2;
  answer.is_boosted = true;
  answer.now_unix_ms = 1790000000250;
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_non_null(strstr((const char *)text.p, "\"hits\":[{\"key\":\"a\",\"score\":2.5,\"similarity\":2.0},"
                                               "{\"key\":\"b\",\"score\":1.0,\"similarity\":0.0}]"));
  assert_non_null(strstr((const char *)text.p, ",\"now_unix_ms\":1790000000250}"));
  answer.is_boosted = false;
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_null(strstr((const char *)text.p, "similarity"));
  assert_null(strstr((const char *)text.p, "now_unix_ms"));
}

static void the_attributes_of_hits_look_like_this(void **state)
{
  struct value texts[] = { { VALUE_TEXT, .text = span_of_str("a\"b") }, { VALUE_TEXT, .text = span_of_str("ü") } };
  struct attribute_value all[] = {
    { span_of_str("title"), { .kind = VALUE_TEXT, .text = span_of_str("Björk") } },
    { span_of_str("price"), { .kind = VALUE_NUMBER, .number = 9 } },
    { span_of_str("year"), { .kind = VALUE_INTEGER, .integer = 9007199254740993 } },
    { span_of_str("adult"), { .kind = VALUE_BOOL } },
    { span_of_str("tags"), { .kind = VALUE_LIST, .list = { texts, 2 } } },
    { span_of_str("none"), { .kind = VALUE_LIST } },
  };
  struct hit hits[] = { { .key = span_of_str("a"), .score = 2, .attributes = all, .n_attributes = 6 },
                        { .key = span_of_str("b"), .score = 1 } };
  struct answer answer = sample_answer();
  struct span text;
  (void)state;

  region_reset(&region);
  answer.hits = hits;
  answer.n_hits = 2;
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_non_null(strstr((const char *)text.p,
                         "\"hits\":[{\"key\":\"a\",\"score\":2.0,\"attributes\":{\"title\":\"Björk\",\"price\":9.0,"
                         "\"year\":9007199254740993,\"adult\":false,\"tags\":[\"a\\\"b\",\"ü\"],\"none\":[]}},"
                         "{\"key\":\"b\",\"score\":1.0}]"));
}

static void assert_numbers(double number, const char *expected)
{
  struct attribute_value price = { span_of_str("price"), { .kind = VALUE_NUMBER, .number = number } };
  struct hit hit = { .key = span_of_str("a"), .score = 0.93f, .attributes = &price, .n_attributes = 1 };
  struct answer answer = sample_answer();
  struct span text;

  region_reset(&region);
  answer.hits = &hit;
  answer.n_hits = 1;
  assert_ok(wire_encode_answer(&answer, WIRE_JSON, &region, &text));
  assert_non_null(strstr((const char *)text.p, expected));
}

/* A score looks as it does without them, but for one number that needs all 17 digits. */
static void numbers_have_the_digits_that_they_need(void **state)
{
  (void)state;
  assert_numbers(9.99, "\"score\":0.930000007,\"attributes\":{\"price\":9.99}}");
  assert_numbers(1234567.8901, "\"score\":0.930000007,\"attributes\":{\"price\":1234567.8901}}");
  assert_numbers(0.1 + 0.2, "\"score\":0.93000000699999996,\"attributes\":{\"price\":0.30000000000000004}}");
  assert_true(strtof("0.93000000699999996", NULL) == 0.93f);
}

static void error_answers_look_like_this(void **state)
{
  struct answer answer = { .id = span_of_str("q1"), .space = span_of_str("books"), .error = ANSWER_NOT_SEEN,
                           .error_message = "partition 0: \xff seen" };
  struct span text;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_string_equal((const char *)text.p, "{\"id\":\"q1\",\"space\":\"books\","
                                            "\"error\":{\"code\":\"NOT_SEEN\",\"message\":\"partition 0: ? seen\"}}");

  assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &text), ERR_OK);
  Sluice__V1__Answer *back = sluice__v1__answer__unpack(NULL, text.n, text.p);
  assert_non_null(back);
  assert_string_equal(back->id, "q1");
  assert_int_equal(back->error->code, SLUICE__V1__ERROR__CODE__NOT_SEEN);
  assert_string_equal(back->error->message, "partition 0: ? seen");
  assert_null(back->receipt);
  assert_int_equal(back->n_hits, 0);
  sluice__v1__answer__free_unpacked(back, NULL);
}

static void answers_in_protobuf_unpack_to_the_same(void **state)
{
  struct answer answer = sample_answer();
  struct span bytes;
  (void)state;

  answer.has_time = true; /* even 0 is a time */
  answer.is_boosted = true;
  answer.hits[0].similarity = -1.5f;

  region_reset(&region);
  assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes), ERR_OK);
  Sluice__V1__Answer *back = sluice__v1__answer__unpack(NULL, bytes.n, bytes.p);
  assert_non_null(back);
  assert_string_equal(back->method, "average(4000)");
  assert_int_equal(back->n_hits, 3);
  assert_int_equal(back->hits[1]->key.len, 2);
  assert_memory_equal(back->hits[1]->key.data, "\xff\x00", 2);
  for (size_t i = 0; i < 3; i++)
    assert_memory_equal(&back->hits[i]->score, &answer.hits[i].score, 4);
  assert_false(back->receipt->exact);
  assert_true(message_has(&back->receipt->base, "bound") && back->receipt->bound == 0.25f);
  assert_true(back->epoch == 12 && back->n_watermark == 2 && back->watermark[0]->next == 17);
  assert_true(back->counts->items == 63000 && back->counts->candidates == 4000 && back->times->queued_us == 512);
  assert_true(message_has(&back->base, "time_unix_ms") && back->time_unix_ms == 0);
  assert_true(message_has(&back->base, "now_unix_ms") && back->now_unix_ms == 0);
  assert_true(message_has(&back->hits[0]->base, "similarity") && back->hits[0]->similarity == -1.5f);
  assert_true(message_has(&back->hits[1]->base, "similarity") && back->hits[1]->similarity == 0);
  assert_null(back->error);
  sluice__v1__answer__free_unpacked(back, NULL);
}

static void a_bound_without_end_is_the_largest_number_and_no_bound_is_none(void **state)
{
  struct answer answer = sample_answer();
  struct span bytes;
  (void)state;

  region_reset(&region);
  for (int round = 0; round < 3; round++) {
    answer.receipt.has_bound = round < 2;
    answer.receipt.bound = round ? -INFINITY : INFINITY;
    assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes), ERR_OK);
    Sluice__V1__Answer *back = sluice__v1__answer__unpack(NULL, bytes.n, bytes.p);
    assert_non_null(back);
    assert_int_equal(message_has(&back->receipt->base, "bound"), round < 2);
    if (round < 2)
      assert_true(back->receipt->bound == (round ? -FLT_MAX : FLT_MAX));
    sluice__v1__answer__free_unpacked(back, NULL);
  }
  answer.receipt.has_bound = true;
  answer.receipt.bound = NAN;
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &bytes), ERR_WIRE);
}

static void scores_that_are_no_numbers_are_never_sent(void **state)
{
  const float bad[] = { INFINITY, -INFINITY, NAN };
  struct hit hit = { .key = span_of_str("a") };
  struct answer answer = sample_answer();
  struct span bytes;
  (void)state;

  answer.hits = &hit;
  answer.n_hits = 1;
  region_reset(&region);
  for (size_t i = 0; i < 3; i++) {
    hit.score = bad[i];
    assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &bytes), ERR_WIRE);
    assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes), ERR_WIRE);
    assert_string_equal(err_message(), "the score of hit 0 is not finite");
  }
}

static void a_client_reads_what_it_needs_of_an_answer(void **state)
{
  struct answer answer = sample_answer(),
                refused = { .id = span_of_str("q2"), .error = ANSWER_BAD_QUERY, .error_message = "why" };
  struct wire_reply reply;
  struct span bytes;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes), ERR_OK);
  assert_int_equal(wire_decode_reply(bytes, &region, &reply), ERR_OK);
  assert_true(span_equal(reply.id, span_of_str("q1")));
  assert_int_equal(reply.error, ANSWER_OK);
  assert_int_equal(reply.queued_us, 512);
  assert_int_equal(wire_encode_answer(&refused, WIRE_PROTOBUF, &region, &bytes), ERR_OK);
  assert_int_equal(wire_decode_reply(bytes, &region, &reply), ERR_OK);
  assert_string_equal(wire_error_name(reply.error), "BAD_QUERY");
  assert_string_equal(reply.message, "why");
  assert_int_equal(wire_decode_reply(span_of_str("{\"id\":1}"), &region, &reply), ERR_WIRE);
  assert_string_equal(wire_error_name((enum answer_error)99), "UNKNOWN");
}

static void a_client_reads_the_largest_answer_that_a_daemon_writes(void **state)
{
  enum { HITS = 100000, KEY_BYTES = 256 };
  struct answer answer = sample_answer();
  struct wire_reply reply;
  struct span bytes, shown;
  char *key;
  (void)state;

  region_reset(&region);
  assert_ok(region_array(&region, KEY_BYTES, 1, &key));
  memset(key, 'k', KEY_BYTES);
  assert_ok(region_array(&region, HITS, sizeof *answer.hits, &answer.hits));
  for (size_t i = 0; i < HITS; i++)
    answer.hits[i] = (struct hit){ .key = span_of(key, KEY_BYTES), .score = 1.5f };
  answer.n_hits = HITS;
  assert_ok(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes));
  assert_true(bytes.n > 25 << 20);
  assert_ok(wire_decode_reply(bytes, &scratch, &reply));
  assert_true(span_equal(reply.id, span_of_str("q1")));
  assert_ok(wire_show(bytes, WIRE_PROTOBUF, WIRE_ANSWER, &scratch, &shown));
  assert_non_null(strstr((const char *)shown.p, "\"score\":1.5"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(answers_look_like_this),
    cmocka_unit_test(a_client_reads_what_it_needs_of_an_answer),
    cmocka_unit_test(a_client_reads_the_largest_answer_that_a_daemon_writes),
    cmocka_unit_test(explanations_look_like_this),
    cmocka_unit_test(the_values_of_hits_look_like_this),
    cmocka_unit_test(the_similarities_of_hits_look_like_this),
    cmocka_unit_test(the_attributes_of_hits_look_like_this),
    cmocka_unit_test(numbers_have_the_digits_that_they_need),
    cmocka_unit_test(error_answers_look_like_this),
    cmocka_unit_test(answers_in_protobuf_unpack_to_the_same),
    cmocka_unit_test(a_bound_without_end_is_the_largest_number_and_no_bound_is_none),
    cmocka_unit_test(scores_that_are_no_numbers_are_never_sent),
  };

  return cmocka_run_group_tests(tests, NULL, free_regions);
}
