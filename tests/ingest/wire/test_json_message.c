/* SPDX-License-Identifier: Apache-2.0 */
/* Converting between JSON and messages, including UTF-8 and Base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ingest/json/base64.h"
#include "ingest/wire/json_message.h"
#include "ingest/wire/message_field.h"
#include "proto/sluice.pb-c.h"
#include "tests/support/dice.h"

static struct region region;

static const char *const text_fields[] = { "key", "exclude", NULL };
static const struct json_rules rules = {
  .list_type = &sluice__v1__vector__descriptor,
  .list_field = "values",
  .text_fields = text_fields,
};

static err_code_t read_as(const char *text, const ProtobufCMessageDescriptor *type, ProtobufCMessage **out)
{
  region_reset(&region);
  *out = NULL;
  return json_message_read(span_of_str(text), type, &rules, ERR_QUERY, &region, out);
}

static Sluice__V1__Query *read_query(const char *text)
{
  ProtobufCMessage *message;

  assert_int_equal(read_as(text, &sluice__v1__query__descriptor, &message), ERR_OK);
  assert_int_equal(protobuf_c_message_check(message), 1);
  return (Sluice__V1__Query *)message;
}

/* Assert that the text is refused with this code and this message. */
static void assert_refused(const ProtobufCMessageDescriptor *type, const char *text, err_code_t code,
                           const char *sentence)
{
  ProtobufCMessage *message;

  assert_int_equal(read_as(text, type, &message), code);
  assert_string_equal(err_message(), sentence);
}

static void assert_bad_query(const char *text, const char *sentence)
{
  assert_refused(&sluice__v1__query__descriptor, text, ERR_QUERY, sentence);
}

static void fields_of_all_kinds_are_read(void **state)
{
  Sluice__V1__Query *q = read_query(
      "{\"id\":\"q1\",\"space\":\"\\u00fcb\",\"k\":4294967295,\"method\":\"average(5)\",\"vector\":[1,-2.5,3e-3],"
      "\"components\":{\"type\":\"F16\",\"data\":\"ADw=\"},\"query_gate\":{\"values\":[0.1]},"
      "\"user_id\":-9223372036854775808,\"exclude\":[\"gimp\",{\"base64\":\"/wA=\"},\"\"],"
      "\"at_least\":[{\"partition\":2,\"next\":9223372036854775807},{}],\"deadline_unix_ms\":\"1700000000000\"}");
  (void)state;

  assert_string_equal(q->id, "q1");
  assert_string_equal(q->space, "\xc3\xbc"
                                "b");
  assert_true(q->k == UINT32_MAX);
  assert_string_equal(q->method, "average(5)");
  assert_int_equal(q->vector->n_values, 3);
  assert_true(q->vector->values[1] == -2.5f && q->vector->values[2] == 3e-3f);
  assert_int_equal(q->components->type, SLUICE__V1__VECTOR__TYPE__F16);
  assert_int_equal(q->components->data.len, 2);
  assert_memory_equal(q->components->data.data, "\x00\x3c", 2);
  assert_true(q->query_gate->values[0] == 0.1f);
  assert_true(message_has(&q->base, "user_id") && q->user_id == INT64_MIN);
  assert_int_equal(q->n_exclude, 3);
  assert_memory_equal(q->exclude[0].data, "gimp", 4);
  assert_int_equal(q->exclude[1].len, 2);
  assert_memory_equal(q->exclude[1].data, "\xff\x00", 2);
  assert_int_equal(q->exclude[2].len, 0);
  assert_int_equal(q->n_at_least, 2);
  assert_int_equal(q->at_least[0]->partition, 2);
  assert_true(q->at_least[0]->next == INT64_MAX && q->at_least[1]->next == 0);
  assert_true(message_has(&q->base, "deadline_unix_ms") && q->deadline_unix_ms == 1700000000000);
  assert_string_equal(q->reply_topic, "");
}

static void both_spellings_of_a_name_are_read(void **state)
{
  Sluice__V1__Query *q = read_query("{\"userId\":\"7\",\"atLeast\":[],\"deadlineUnixMs\":8,\"replyTopic\":\"t\","
                                    "\"queryGate\":[1]}");
  (void)state;

  assert_true(q->user_id == 7 && q->deadline_unix_ms == 8 && q->query_gate->n_values == 1);
  assert_string_equal(q->reply_topic, "t");
  assert_bad_query("{\"UserId\":7}", "unknown field \"UserId\"; the nearest is \"user_id\"");
  assert_bad_query("{\"userid\":7}", "unknown field \"userid\"; the nearest is \"user_id\"");
  assert_bad_query("{\"user_idx\":7}", "unknown field \"user_idx\"; the nearest is \"user_id\"");
  assert_bad_query("{\"user_\":7}", "unknown field \"user_\"; the nearest is \"user_id\"");
  assert_bad_query("{\"top_k\":7}", "unknown field \"top_k\"; the nearest is \"k\"");
  assert_bad_query("{\"\":7}", "unknown field \"\"; the nearest is \"k\"");
}

static void null_is_absent(void **state)
{
  Sluice__V1__Query *q = read_query("{\"id\":null,\"user_id\":null,\"vector\":null,\"exclude\":null,\"k\":null}");
  (void)state;

  assert_string_equal(q->id, "");
  assert_false(message_has(&q->base, "user_id"));
  assert_null(q->vector);
  assert_int_equal(q->n_exclude, 0);
}

static void of_two_equal_members_the_last_counts(void **state)
{
  Sluice__V1__Query *q = read_query("{\"k\":1,\"k\":2,\"user_id\":3,\"userId\":4,\"at_least\":[{}],"
                                    "\"atLeast\":[{},{}]}");
  (void)state;

  assert_int_equal(q->k, 2);
  assert_true(q->user_id == 4);
  assert_int_equal(q->n_at_least, 2);
}

static void presence_is_told_from_zero(void **state)
{
  Sluice__V1__Query *q = read_query("{\"user_id\":0}");
  (void)state;

  assert_true(message_has(&q->base, "user_id"));
  assert_false(message_has(&q->base, "deadline_unix_ms"));
}

static void maps_are_objects(void **state)
{
  ProtobufCMessage *message;
  (void)state;

  assert_int_equal(read_as("{\"parts\":{\"books\":{\"vector\":[1]},\"b\":{\"codes\":[0,255]},"
                           "\"c\":{\"codes\":\"AQI=\"}}}",
                           &sluice__v1__item__descriptor, &message),
                   ERR_OK);
  Sluice__V1__Item *item = (Sluice__V1__Item *)message;
  assert_int_equal(item->n_parts, 3);
  assert_string_equal(item->parts[0]->key, "books");
  assert_true(item->parts[0]->value->vector->values[0] == 1.0f);
  assert_int_equal(item->parts[1]->value->codes.data[1], 255);
  assert_memory_equal(item->parts[2]->value->codes.data, "\x01\x02", 2);
}

static void integers_are_checked(void **state)
{
  (void)state;
  assert_bad_query("{\"k\":-3}", "k: -3 is not between 0 and 4294967295");
  assert_bad_query("{\"k\":4294967296}", "k: 4294967296 is not between 0 and 4294967295");
  assert_bad_query("{\"k\":\"-1\"}", "k: -1 is not between 0 and 4294967295");
  assert_bad_query("{\"k\":1.5}", "k: expected an integer, not a fraction");
  assert_bad_query("{\"k\":5.0}", "k: expected an integer, not a number with a decimal point or an exponent");
  assert_bad_query("{\"k\":1e2}", "k: expected an integer, not a number with a decimal point or an exponent");
  assert_bad_query("{\"k\":1e-400}", "k: expected an integer, not a number with a decimal point or an exponent");
  assert_bad_query("{\"k\":true}", "k: expected an integer, not true");
  assert_bad_query("{\"k\":[1]}", "k: expected an integer, not a list");
  assert_bad_query("{\"k\":\"\"}", "k: expected an integer of at most 64 bits, not \"\"");
  assert_bad_query("{\"k\":\"-\"}", "k: expected an integer of at most 64 bits, not \"-\"");
  assert_bad_query("{\"k\":\" 1\"}", "k: expected an integer of at most 64 bits, not \" 1\"");
  assert_bad_query("{\"k\":\"1x\"}", "k: expected an integer of at most 64 bits, not \"1x\"");
  assert_bad_query("{\"k\":\"18446744073709551616\"}",
                   "k: expected an integer of at most 64 bits, not \"18446744073709551616\"");
  assert_bad_query("{\"user_id\":\"9223372036854775808\"}",
                   "user_id: 9223372036854775808 is not between -9223372036854775808 and 9223372036854775807");
  assert_bad_query("{\"user_id\":\"-9223372036854775809\"}",
                   "user_id: -9223372036854775809 is not between -9223372036854775808 and 9223372036854775807");
  assert_bad_query("{\"at_least\":[{},{\"partition\":2147483648}]}",
                   "at_least[1].partition: 2147483648 is not between -2147483648 and 2147483647");
  assert_true(read_query("{\"user_id\":\"-9223372036854775808\"}")->user_id == INT64_MIN);
  assert_true(read_query("{\"k\":\"0012\"}")->k == 12);
}

static void other_values_are_checked(void **state)
{
  (void)state;
  assert_bad_query("{\"id\":7}", "id: expected text, not an integer");
  assert_bad_query("{\"vector\":7}", "vector: expected a list or an object, not an integer");
  assert_bad_query("{\"vector\":[1,\"2\"]}", "vector[1]: expected a number, not text");
  assert_bad_query("{\"vector\":[1,null]}", "vector[1]: expected a number, not null");
  assert_bad_query("{\"vector\":[1e39]}", "vector[0]: 1e+39 does not fit in 32 bits");
  assert_bad_query("{\"vector\":{\"values\":[0,0,[]]}}", "vector.values[2]: expected a number, not a list");
  assert_bad_query("{\"vector\":{\"type\":\"F64\"}}", "vector.type: expected one of F32, F16, BF16");
  assert_bad_query("{\"vector\":{\"type\":3}}", "vector.type: expected one of F32, F16, BF16");
  assert_bad_query("{\"vector\":{\"type\":4294967296}}", "vector.type: expected one of F32, F16, BF16");
  assert_bad_query("{\"vector\":{\"data\":\"A\"}}", "vector.data: not Base64");
  assert_bad_query("{\"vector\":{\"data\":[1,256]}}", "vector.data[1]: 256 is not between 0 and 255");
  assert_bad_query("{\"vector\":{\"data\":1}}",
                   "vector.data: expected a list of 0..255 or Base64 text, not an integer");
  assert_bad_query("{\"vector\":{\"dat\":[]}}", "vector: unknown field \"dat\"; the nearest is \"data\"");
  assert_bad_query("{\"exclude\":\"gimp\"}", "exclude: expected a list, not text");
  assert_bad_query("{\"exclude\":[7]}", "exclude[0]: expected text or {\"base64\": ...}, not an integer");
  assert_bad_query("{\"exclude\":[\"a\",{\"base64\":\"*\"}]}", "exclude[1]: not Base64");
  assert_bad_query("{\"exclude\":[{\"base64\":1}]}", "exclude[0]: expected text or {\"base64\": ...}, not an object");
  assert_bad_query("{\"exclude\":[{\"base64\":\"\",\"x\":1}]}",
                   "exclude[0]: expected text or {\"base64\": ...}, not an object");
  assert_bad_query("{\"at_least\":{}}", "at_least: expected a list, not an object");
  assert_bad_query("{\"at_least\":[[]]}", "at_least[0]: expected an object, not a list");
  assert_bad_query("{\"at_least\":[null]}", "at_least[0]: expected an object, not null");
  assert_bad_query("{\"a\\nb\":1}", "unknown field \"a\\x0ab\"; the nearest is \"id\"");
  assert_refused(&sluice__v1__item__descriptor, "{\"parts\":[]}", ERR_QUERY, "parts: expected an object, not a list");
  assert_refused(&sluice__v1__item__descriptor, "{\"parts\":{\"a\":null}}", ERR_QUERY,
                 "parts[\"a\"]: expected an object, not null");
  assert_refused(&sluice__v1__item__descriptor, "{\"parts\":{\"a\\\"b\":{\"codes\":[1,-1]}}}", ERR_QUERY,
                 "parts[\"a\\x22b\"].codes[1]: -1 is not between 0 and 255");
  assert_refused(&sluice__v1__query__descriptor, "{\"id\":\"a\\u0000b\"}", ERR_QUERY, "id: text with a zero character");
  assert_refused(&sluice__v1__receipt__descriptor, "{\"exact\":1}", ERR_QUERY,
                 "exact: expected true or false, not an integer");
}

static void what_is_not_a_json_object_is_not_a_message(void **state)
{
  const char *texts[] = { "",
                          " ",
                          "{",
                          "}",
                          "{]",
                          "nul",
                          "{\"k\":}",
                          "{\"k\":1}x",
                          "{\"k\":1e999",
                          "{'k':1}",
                          "{\"k\":1,}",
                          "{\"id\":\"\\ud800\"}",
                          "{\"id\":\"\xff\"}",
                          "{\"id\":\"\xc3\"}",
                          "{\"\\u0000\":1}",
                          "{\"k\":123456789012345678901234567890" };
  ProtobufCMessage *message;
  (void)state;

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_int_equal(read_as(texts[i], &sluice__v1__query__descriptor, &message), ERR_WIRE);
    assert_null(message);
    assert_memory_equal(err_message(), "not JSON: ", 10);
  }
  assert_refused(&sluice__v1__query__descriptor, "[1]", ERR_WIRE, "JSON, but a list where an object is expected");
  assert_refused(&sluice__v1__query__descriptor, " \"x\"", ERR_WIRE, "JSON, but text where an object is expected");
  assert_refused(&sluice__v1__query__descriptor, "null", ERR_WIRE, "JSON, but null where an object is expected");
}

/* Numbers beyond 64 bits, which the parser cannot hold. */
static void large_numbers_are_refused_by_the_name_of_their_field(void **state)
{
  static const char *const cases[][2] = {
    { "\"k\":9223372036854775808", "k: 9223372036854775808 is not between 0 and 4294967295" },
    { "\"user_id\":9223372036854775808",
      "user_id: 9223372036854775808 is not between -9223372036854775808 and 9223372036854775807" },
    { "\"user_id\":-9223372036854775809",
      "user_id: -9223372036854775809 is not between -9223372036854775808 and 9223372036854775807" },
    { "\"k\":-123456789012345678901234567890",
      "k: expected an integer of at most 64 bits, not -123456789012345678901234567890" },
    { "\"k\":1e400", "k: expected an integer of at most 64 bits, not 1e400" },
    { "\"vector\":[1,-1e400]", "vector[1]: -1e400 does not fit in 32 bits" },
    { "\"vector\":[1000000000000000000000000000000000000000]", "vector[0]: 1e+39 does not fit in 32 bits" },
    { "\"space\":1e999", "space: expected text, not a number beyond 64 bits" },
    { "\"exclude\":[1e999]", "exclude[0]: expected bytes, not a number beyond 64 bits" },
    { "\"at_least\":1e999", "at_least: expected a list, not a number beyond 64 bits" },
    { "\"vector\":1e999", "vector: expected a list or an object, not a number beyond 64 bits" },
    { "\"vector\":{\"type\":1e999}", "vector.type: expected one of F32, F16, BF16" },
    { "\"vector\":{\"data\":[9223372036854775808]}",
      "vector.data[0]: expected an integer, not a number beyond 64 bits" },
    { "\"nonsense\":[{\"a\":1e999}]", "unknown field \"nonsense\"; the nearest is \"boosts\"" },
  };
  char text[256];
  ProtobufCMessage *message;
  (void)state;

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    snprintf(text, sizeof text, "{\"id\":\"1e999 \\\" 1e999\",%s,\"reply_topic\":\"t\"}", cases[i][0]);
    assert_int_equal(read_as(text, &sluice__v1__query__descriptor, &message), ERR_QUERY);
    assert_string_equal(err_message(), cases[i][1]);
    Sluice__V1__Query *q = (Sluice__V1__Query *)message;
    assert_string_equal(q->id, "1e999 \" 1e999");
    assert_string_equal(q->reply_topic, "t");
  }
}

/* An integer beyond 64 bits is a valid float. */
static void large_integers_are_floats_where_floats_are_expected(void **state)
{
  ProtobufCMessage *message;
  (void)state;

  assert_int_equal(read_as("{\"vector\":[100000000000000000000,-9223372036854775809,1e-400]}",
                           &sluice__v1__query__descriptor, &message),
                   ERR_OK);
  Sluice__V1__Query *q = (Sluice__V1__Query *)message;
  assert_int_equal(q->vector->n_values, 3);
  assert_true(q->vector->values[0] == 1e20f && q->vector->values[1] == -9223372036854775808.0f);
  assert_true(q->vector->values[2] == 0);
}

/* The memory for parsing is estimated first. Empty objects take the most. */
static void text_that_takes_too_much_to_parse_is_refused(void **state)
{
  static const char *const elements[] = { "{},", "[],", "0,", "\"\",", "{\"\":0}," };
  enum { N = 4 << 20 };
  char *text = malloc(N + 64);
  ProtobufCMessage *message;
  (void)state;

  assert_non_null(text);
  for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
    size_t n = (size_t)sprintf(text, "{\"vector\":["), size = strlen(elements[i]);
    for (; n + size + 3 < N; n += size)
      memcpy(text + n, elements[i], size);
    strcpy(text + n, "0]}");
    assert_int_equal(read_as(text, &sluice__v1__query__descriptor, &message), ERR_WIRE);
    assert_memory_equal(err_message(), "the JSON takes more than 67108864 bytes", 39);
  }
  free(text);
}

static void nesting_without_end_is_refused(void **state)
{
  enum { N = 200000 };
  char *text = malloc(N + 16);
  ProtobufCMessage *message;
  (void)state;

  assert_non_null(text);
  memcpy(text, "{\"vector\":", 10);
  memset(text + 10, '[', N);
  text[10 + N] = '\0';
  assert_int_equal(read_as(text, &sluice__v1__query__descriptor, &message), ERR_WIRE);
  free(text);
}

static void after_a_wrong_field_the_others_are_read_and_the_first_is_named(void **state)
{
  ProtobufCMessage *message;
  (void)state;

  assert_int_equal(read_as("{\"nonsense\":1,\"id\":\"q\",\"k\":-1,\"space\":\"s\",\"reply_topic\":\"t\"}",
                           &sluice__v1__query__descriptor, &message),
                   ERR_QUERY);
  assert_string_equal(err_message(), "unknown field \"nonsense\"; the nearest is \"boosts\"");
  Sluice__V1__Query *q = (Sluice__V1__Query *)message;
  assert_string_equal(q->id, "q");
  assert_string_equal(q->space, "s");
  assert_string_equal(q->reply_topic, "t");
  assert_int_equal(q->k, 0);
}

static void long_names_are_cut_in_the_error(void **state)
{
  char text[4200] = "{\"";
  ProtobufCMessage *message;
  (void)state;

  memset(text + 2, 'x', 4000);
  strcpy(text + 4002, "\":1}");
  assert_int_equal(read_as(text, &sluice__v1__query__descriptor, &message), ERR_QUERY);
  assert_true(strlen(err_message()) < 600);

  strcpy(text, "{\"parts\":{\"");
  memset(text + 11, 'y', 4000);
  strcpy(text + 4011, "\":{\"codes\":1}}}");
  assert_int_equal(read_as(text, &sluice__v1__item__descriptor, &message), ERR_QUERY);
  assert_true(strlen(err_message()) < 600);
}

static const char *write_with(const ProtobufCMessage *message, const struct json_rules *with)
{
  struct span text;

  assert_int_equal(json_message_write(message, with, &region, &text), ERR_OK);
  assert_int_equal(strlen((const char *)text.p), text.n);
  return (const char *)text.p;
}

static void what_is_written_reads_back(void **state)
{
  static const char *const texts[] = {
    "{}",
    ("{\"id\":\"q\",\"k\":4294967295,\"vector\":[1.0,-2.5],\"user_id\":0,\"exclude\":[\"a\",{\"base64\":\"/wA=\"}],"
     "\"at_least\":[{\"partition\":1,\"next\":9223372036854775807}],\"deadline_unix_ms\":-1,\"reply_topic\":\"t\"}"),
    "{\"components\":{\"type\":\"F16\",\"data\":[0,60]},\"query_gate\":{\"type\":\"BF16\",\"values\":[0.5]}}",
    "{\"vector\":[]}",
  };
  (void)state;

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    /* Fields are written in the order of their numbers, as in the texts above. */
    assert_string_equal(write_with(&read_query(texts[i])->base, &rules), texts[i]);
  }
}

static void fields_of_always_are_written_though_empty(void **state)
{
  static const char *const always[] = { "hits", "epoch", "exact", "bound", "error", "id", NULL };
  struct json_rules with = rules;
  Sluice__V1__Answer answer = SLUICE__V1__ANSWER__INIT;
  Sluice__V1__Receipt receipt = SLUICE__V1__RECEIPT__INIT;
  (void)state;

  region_reset(&region);
  with.always = always;
  assert_string_equal(write_with(&answer.base, &rules), "{}");
  answer.receipt = &receipt;
  assert_string_equal(write_with(&answer.base, &with),
                      "{\"id\":\"\",\"hits\":[],\"receipt\":{\"exact\":false},\"epoch\":0}");
}

static void integers_over_int64_are_written_as_text(void **state)
{
  Sluice__V1__Counts counts = SLUICE__V1__COUNTS__INIT;
  ProtobufCMessage *back;
  (void)state;

  region_reset(&region);
  counts.items = UINT64_MAX;
  counts.scored = INT64_MAX;
  const char *text = write_with(&counts.base, &rules);
  assert_string_equal(text, "{\"items\":\"18446744073709551615\",\"scored\":9223372036854775807}");
  assert_int_equal(json_message_read(span_of_str(text), counts.base.descriptor, &rules, ERR_ITEM, &region, &back),
                   ERR_OK);
  assert_true(((Sluice__V1__Counts *)back)->items == UINT64_MAX);
}

static void floats_read_back_bit_for_bit(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < 200; round++) {
    Sluice__V1__Vector vector = SLUICE__V1__VECTOR__INIT;
    Sluice__V1__Query query = SLUICE__V1__QUERY__INIT;
    float v[64];
    for (size_t i = 0; i < 64; i++) {
      uint32_t bits = (uint32_t)dice_u64(&d);
      bits = (bits & 0x7f800000) == 0x7f800000 ? bits & ~0x40000000u : bits; /* make it finite */
      memcpy(&v[i], &bits, 4);
    }
    vector.values = v;
    vector.n_values = 64;
    query.vector = &vector;
    region_reset(&region);
    char *text = strdup(write_with(&query.base, &rules)); /* read_query() resets the region */
    assert_non_null(text);
    Sluice__V1__Query *back = read_query(text);
    free(text);
    assert_int_equal(back->vector->n_values, 64);
    assert_memory_equal(back->vector->values, v, sizeof v);
  }
}

static void what_json_cannot_say_is_not_written(void **state)
{
  Sluice__V1__Hit hit = SLUICE__V1__HIT__INIT;
  Sluice__V1__Query query = SLUICE__V1__QUERY__INIT;
  struct span text;
  (void)state;

  region_reset(&region);
  hit.score = 1.0f / 0.0f;
  assert_int_equal(json_message_write(&hit.base, &rules, &region, &text), ERR_WIRE);
  assert_string_equal(err_message(), "score: not finite");
  query.id = (char *)"\xff";
  assert_int_equal(json_message_write(&query.base, &rules, &region, &text), ERR_WIRE);
  assert_string_equal(err_message(), "id: not UTF-8");
}

static void base64_reads_back_and_refuses_the_rest(void **state)
{
  static const char *const bad[] = { "A",        "AAAAA", "AA=A", "AA=",  "A===",  "====", "=",
                                     "AA==AAAA", "AB==",  "AAB=", "A A=", "AA\n=", "AAA*" };
  struct dice d = { dice_seed() };
  uint8_t bytes[67], back[80];
  char *text;
  size_t n;
  (void)state;

  region_reset(&region);
  for (size_t size = 0; size <= sizeof bytes; size++) {
    for (size_t i = 0; i < size; i++)
      bytes[i] = (uint8_t)dice_u64(&d);
    assert_int_equal(base64_encode(&region, span_of(bytes, size), &text), ERR_OK);
    assert_int_equal(strlen(text), (size + 2) / 3 * 4);
    assert_true(base64_decode(span_of_str(text), back, &n) && n == size);
    assert_memory_equal(bytes, back, size);
    text[strcspn(text, "=")] = '\0';
    assert_true(base64_decode(span_of_str(text), back, &n) && n == size);
    assert_memory_equal(bytes, back, size);
  }
  assert_true(base64_decode(span_of_str("-_-_"), back, &n) && n == 3);
  assert_memory_equal(back, "\xfb\xff\xbf", 3);
  assert_int_equal(base64_encode(&region, span_of_str("Man"), &text), ERR_OK);
  assert_string_equal(text, "TWFu");
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_false(base64_decode(span_of_str(bad[i]), back, &n));
}

static int free_region(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(fields_of_all_kinds_are_read),
    cmocka_unit_test(both_spellings_of_a_name_are_read),
    cmocka_unit_test(null_is_absent),
    cmocka_unit_test(of_two_equal_members_the_last_counts),
    cmocka_unit_test(presence_is_told_from_zero),
    cmocka_unit_test(maps_are_objects),
    cmocka_unit_test(integers_are_checked),
    cmocka_unit_test(other_values_are_checked),
    cmocka_unit_test(what_is_not_a_json_object_is_not_a_message),
    cmocka_unit_test(large_numbers_are_refused_by_the_name_of_their_field),
    cmocka_unit_test(large_integers_are_floats_where_floats_are_expected),
    cmocka_unit_test(text_that_takes_too_much_to_parse_is_refused),
    cmocka_unit_test(nesting_without_end_is_refused),
    cmocka_unit_test(after_a_wrong_field_the_others_are_read_and_the_first_is_named),
    cmocka_unit_test(long_names_are_cut_in_the_error),
    cmocka_unit_test(what_is_written_reads_back),
    cmocka_unit_test(fields_of_always_are_written_though_empty),
    cmocka_unit_test(integers_over_int64_are_written_as_text),
    cmocka_unit_test(floats_read_back_bit_for_bit),
    cmocka_unit_test(what_json_cannot_say_is_not_written),
    cmocka_unit_test(base64_reads_back_and_refuses_the_rest),
  };

  return cmocka_run_group_tests(tests, NULL, free_region);
}
