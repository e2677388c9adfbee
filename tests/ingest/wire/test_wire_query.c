/* SPDX-License-Identifier: Apache-2.0 */
/* Queries in protobuf and JSON, and wrong fields of queries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/wire_fixture.h"

static void assert_same_query(const struct query *a, const struct query *b)
{
  assert_same_span(a->id, b->id);
  assert_same_span(a->space, b->space);
  assert_same_span(a->method, b->method);
  assert_int_equal(a->k, b->k);
  assert_same_floats(a->vector, b->vector);
  assert_same_floats(a->components, b->components);
  assert_same_floats(a->query_gate, b->query_gate);
  assert_int_equal(a->has_user_id, b->has_user_id);
  assert_true(a->user_id == b->user_id);
  assert_int_equal(a->n_exclude, b->n_exclude);
  for (size_t i = 0; i < a->n_exclude; i++)
    assert_same_span(a->exclude[i], b->exclude[i]);
  assert_int_equal(a->n_at_least, b->n_at_least);
  for (size_t i = 0; i < a->n_at_least; i++)
    assert_true(a->at_least[i].partition == b->at_least[i].partition && a->at_least[i].next == b->at_least[i].next);
  assert_same_span(a->exclude_seen_by, b->exclude_seen_by);
  assert_int_equal(a->n_at_least_seen, b->n_at_least_seen);
  for (size_t i = 0; i < a->n_at_least_seen; i++) {
    assert_int_equal(a->at_least_seen[i].partition, b->at_least_seen[i].partition);
    assert_true(a->at_least_seen[i].next == b->at_least_seen[i].next);
  }
  assert_int_equal(a->no_wait, b->no_wait);
  assert_int_equal(a->has_deadline, b->has_deadline);
  assert_true(a->deadline_unix_ms == b->deadline_unix_ms);
  assert_same_span(a->reply_topic, b->reply_topic);
}

static void queries_mean_the_same_in_both_formats(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < ROUNDS; round++) {
    region_reset(&region);
    region_reset(&scratch);
    struct query q = roll_query(&d), back;
    for (int as_data = 0; as_data < 2; as_data++) {
      assert_int_equal(decode_query(pack(&query_message(&q, as_data)->base), WIRE_PROTOBUF, &back), ERR_OK);
      assert_same_query(&q, &back);

      struct span text; /* the JSON that our own writer makes, including exclude */
      const ProtobufCMessage *message = &query_message(&q, as_data)->base;
      assert_int_equal(wire_message_write(message, WIRE_JSON, NULL, &region, &text), ERR_OK);
      assert_int_equal(decode_query(text, WIRE_JSON, &back), ERR_OK);
      assert_same_query(&q, &back);
    }
    q.n_exclude = 0;
    for (int is_camel = 0; is_camel < 2; is_camel++) {
      assert_int_equal(decode_query(print_json_query(&q, is_camel), WIRE_JSON, &back), ERR_OK);
      assert_same_query(&q, &back);
    }
  }
}

static void an_empty_query_has_nothing(void **state)
{
  struct query q, empty = { 0 };
  (void)state;

  memset(&q, 0xff, sizeof q);
  region_reset(&region);
  assert_int_equal(wire_decode_query((struct span){ 0 }, WIRE_PROTOBUF, &region, &q), ERR_OK);
  assert_same_query(&q, &empty);
  memset(&q, 0xff, sizeof q);
  assert_int_equal(decode_query(span_of_str("{}"), WIRE_JSON, &q), ERR_OK);
  assert_same_query(&q, &empty);
}

/* Assert that the query is refused with this message, and that its id, space and reply topic are still known. */
static void assert_bad_query(struct span value, enum wire_format format, const char *sentence, const char *id,
                             const char *reply_topic)
{
  struct query q;

  memset(&q, 0xff, sizeof q);
  region_reset(&region);
  assert_int_equal(decode_query(value, format, &q), ERR_QUERY);
  assert_string_equal(err_message(), sentence);
  assert_same_span(q.id, span_of_str(id));
  assert_same_span(q.reply_topic, span_of_str(reply_topic));
  assert_int_equal(q.k + q.vector.n + q.n_exclude + q.n_at_least + q.method.n, 0);
}

static void wrong_json_queries_are_refused_by_name_and_identified(void **state)
{
  static const char *const cases[][2] = {
    { "\"k\":-3", "k: -3 is not between 0 and 4294967295" },
    { "\"vector\":{\"data\":\"AAAAAAAA\"}", "vector.data has 6 bytes, not a multiple of 4 (F32)" },
    { "\"vector\":[1,\"x\"]", "vector[1]: expected a number, not text" },
    { "\"components\":{\"type\":1,\"data\":\"AH4=\"}", "components: number 0 is not finite" },
    { "\"query_gate\":{\"values\":[1],\"data\":\"AAAAAA==\"}", "query_gate has both data and values" },
    { "\"colour\":{}", "unknown field \"colour\"; the nearest is \"filter\"" },
    { "\"exclude\":[\"a\",\"\"]", "exclude[1]: a key has 1 to 256 bytes, not 0" },
    { "\"explain\":[\"\"]", "explain[0]: a key has 1 to 256 bytes, not 0" },
    { "\"max_per\":{\"n\":2}", "max_per.attribute: name an attribute of type keyword, integer or bool" },
    { "\"max_per\":{\"attribute\":\"artist\"}", "max_per.n is missing, or 0; it must be at least 1" },
    { "\"max_per\":2", "max_per: expected an object, not an integer" },
    { "\"at_least\":[{\"partition\":-1}]", "at_least[0].partition: -1 is negative" },
    { "\"at_least\":[{},{\"next\":-5}]", "at_least[1].next: -5 is negative" },
    { "\"user_id\":\"x\"", "user_id: expected an integer of at most 64 bits, not \"x\"" },
    { "\"method\":[]", "method: expected text, not a list" },
  };
  char text[256];
  (void)state;

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    snprintf(text, sizeof text, "{\"id\":\"q-\\u00fc\",%s,\"reply_topic\":\"team.answers\",\"space\":\"s\"}",
             cases[i][0]);
    assert_bad_query(span_of_str(text), WIRE_JSON, cases[i][1], "q-\xc3\xbc", "team.answers");
  }
  assert_bad_query(span_of_str("{\"id\":7,\"reply_topic\":\"t\"}"), WIRE_JSON,
                   "id: expected text, not an integer", "", "t");
  assert_bad_query(span_of_str("{\"id\":\"a\",\"reply_topic\":\"a b\"}"), WIRE_JSON,
                   "reply_topic: \"a b\" is not a topic name (1 to 249 of a-z A-Z 0-9 . _ -)", "a", "");
  assert_bad_query(span_of_str("{\"id\":\"a\",\"reply_topic\":\"..\"}"), WIRE_JSON,
                   "reply_topic: \"..\" is not a topic name (1 to 249 of a-z A-Z 0-9 . _ -)", "a", "");
}

static void topic_names_have_a_length(void **state)
{
  char text[300] = "{\"reply_topic\":\"";
  struct query q;
  (void)state;

  memset(text + 16, 't', 249);
  strcpy(text + 16 + 249, "\"}");
  region_reset(&region);
  assert_int_equal(decode_query(span_of_str(text), WIRE_JSON, &q), ERR_OK);
  assert_int_equal(q.reply_topic.n, 249);
  strcpy(text + 16 + 249, "t\"}");
  assert_int_equal(decode_query(span_of_str(text), WIRE_JSON, &q), ERR_QUERY);
}

static void wrong_protobuf_queries_are_refused_by_name_and_identified(void **state)
{
  float v[] = { 1.0f, INFINITY };
  struct query good = { .id = span_of_str("q"), .reply_topic = span_of_str("t") };
  (void)state;

  region_reset(&scratch);
  Sluice__V1__Query *q = query_message(&good, true);
  q->vector = vector_message((struct floats){ v, 2 }, true);
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "vector: number 1 is not finite", "q", "t");
  q->vector = NULL;
  q->method = (char *)"\xc3(";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "method: \"\\xc3(\" is not UTF-8", "q", "t");
  q->method = (char *)"";
  q->space = (char *)"\xff";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "space: \"\\xff\" is not UTF-8", "q", "t");
  q->space = (char *)"";
  q->id = (char *)"\xed\xa0\x80";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "id: \"\\xed\\xa0\\x80\" is not UTF-8", "", "t");
  q->id = (char *)"q";
  q->reply_topic = (char *)"t/u";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF,
                   "reply_topic: \"t/u\" is not a topic name (1 to 249 of a-z A-Z 0-9 . _ -)", "q", "");
  q->reply_topic = (char *)"t";
  ProtobufCBinaryData key = { 257, zeros(257) };
  q->exclude = &key;
  q->n_exclude = 1;
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "exclude[0]: a key has 1 to 256 bytes, not 257", "q", "t");
  q->n_exclude = 0;
  q->like = key;
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "like: a key has at most 256 bytes, not 257", "q", "t");
}

static void hits_of_a_value_can_be_limited(void **state)
{
  struct query back;

  (void)state;
  region_reset(&region);
  assert_int_equal(decode_query(span_of_str("{\"maxPer\":{\"attribute\":\"artist\",\"n\":2}}"), WIRE_JSON, &back),
                   ERR_OK);
  assert_true(span_equal(back.max_per.attribute, span_of_str("artist")));
  assert_int_equal(back.max_per.n, 2);
  assert_int_equal(decode_query(span_of_str("{\"max_per\":null}"), WIRE_JSON, &back), ERR_OK);
  assert_int_equal(back.max_per.n, 0);
}

static void keys_to_compare_and_explain_are_any_bytes(void **state)
{
  struct query back;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_query(span_of_str("{\"like\":\"gimp\",\"explain\":[\"a\",{\"base64\":\"/wA=\"}]}"), WIRE_JSON,
                                &back),
                   ERR_OK);
  assert_true(span_equal(back.like, span_of_str("gimp")));
  assert_int_equal(back.n_explain, 2);
  assert_true(span_equal(back.explain[0], span_of_str("a")));
  assert_true(span_equal(back.explain[1], span_of("\xff\0", 2)));
  Sluice__V1__Query query;
  sluice__v1__query__init(&query);
  ProtobufCBinaryData keys[QUERY_EXPLAIN_MAX + 1];
  for (size_t i = 0; i < QUERY_EXPLAIN_MAX + 1; i++)
    keys[i] = (ProtobufCBinaryData){ 2, (uint8_t *)(uintptr_t)"\xff" };
  query.like = keys[0];
  query.explain = keys;
  query.n_explain = QUERY_EXPLAIN_MAX;
  assert_int_equal(decode_query(pack(&query.base), WIRE_PROTOBUF, &back), ERR_OK);
  assert_true(span_equal(back.like, span_of("\xff\0", 2)));
  assert_int_equal(back.n_explain, QUERY_EXPLAIN_MAX);
  query.n_explain++;
  assert_int_equal(decode_query(pack(&query.base), WIRE_PROTOBUF, &back), ERR_QUERY);
}

static void bytes_that_are_no_query_leave_the_output_unchanged(void **state)
{
  static const char *const texts[] = { "{", "[]", "{\"id\":\"\\ud800\"}", "" };
  struct query q, before;
  (void)state;

  memset(&q, 0x5a, sizeof q);
  memcpy(&before, &q, sizeof q);
  region_reset(&region);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    assert_int_equal(decode_query(span_of_str(texts[i]), WIRE_JSON, &q), ERR_WIRE);
  assert_int_equal(decode_query(span_of("\x0a\x03" "a", 3), WIRE_PROTOBUF, &q), ERR_WIRE);
  assert_memory_equal(&q, &before, sizeof q);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(queries_mean_the_same_in_both_formats),
    cmocka_unit_test(an_empty_query_has_nothing),
    cmocka_unit_test(wrong_json_queries_are_refused_by_name_and_identified),
    cmocka_unit_test(topic_names_have_a_length),
    cmocka_unit_test(wrong_protobuf_queries_are_refused_by_name_and_identified),
    cmocka_unit_test(hits_of_a_value_can_be_limited),
    cmocka_unit_test(keys_to_compare_and_explain_are_any_bytes),
    cmocka_unit_test(bytes_that_are_no_query_leave_the_output_unchanged),
  };

  return cmocka_run_group_tests(tests, NULL, free_regions);
}
