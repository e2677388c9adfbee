/* SPDX-License-Identifier: Apache-2.0 */
/* Queries in protobuf and JSON, and wrong fields of queries. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"
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
  assert_int_equal(a->is_background, b->is_background);
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
    { "\"likes\":[{\"key\":\"a\"},{\"weight\":1}]", "likes[1].key: a key has 1 to 256 bytes, not 0" },
    { "\"likes\":[{\"key\":\"a\",\"weight\":0}]", "likes[0].weight: 0; it must be from 1e-09 to 1e+09 in magnitude" },
    { "\"likes\":[{\"key\":\"a\",\"weight\":-2e9}]",
      "likes[0].weight: -2000000000; it must be from 1e-09 to 1e+09 in magnitude" },
    { "\"likes\":[\"a\"]", "likes[0]: expected an object, not text" },
    { "\"likes\":[{\"key\":\"a\"}],\"like\":\"b\"", "likes: there is `like` as well: put its item among these" },
    { "\"max_per\":{\"n\":2}", "max_per.attribute: name an attribute of type keyword, integer or bool" },
    { "\"max_per\":{\"attribute\":\"artist\"}", "max_per.n is missing, or 0; it must be at least 1" },
    { "\"max_per\":2", "max_per: expected an object, not an integer" },
    { "\"mmr\":{\"diversity\":1.0000001}", "mmr.diversity: 1.0000001; it must be above 0, and at most 1" },
    { "\"mmr\":{\"candidates\":20}", "mmr.diversity is missing, or 0; it must be above 0, and at most 1" },
    { "\"mmr\":{\"diversity\":-0.5}", "mmr.diversity: -0.5; it must be above 0, and at most 1" },
    { "\"mmr\":{\"diversity\":1.5}", "mmr.diversity: 1.5; it must be above 0, and at most 1" },
    { "\"mmr\":0.5", "mmr: expected an object, not a fraction" },
    { "\"min_score\":\"0.5\"", "min_score: expected a number, not text" },
    { "\"min_score\":1e39", "min_score: 1e+39 does not fit in 32 bits" },
    { "\"boosts\":[{\"weight\":1}]", "boosts[0].attribute: name one, or give a filter" },
    { "\"boosts\":[{\"attribute\":\"a\"},{\"attribute\":\"a\",\"filter\":\"b\"}]",
      "boosts[1].filter: there is an attribute too; give one of them" },
    { "\"boosts\":[{\"weight\":1.5e9,\"attribute\":\"a\"}]",
      "boosts[0].weight: 1500000000; it must be from -1e+09 to 1e+09" },
    { "\"boosts\":[{\"weight\":\"1\",\"attribute\":\"a\"}]", "boosts[0].weight: expected a number, not text" },
    { "\"boosts\":[{\"attribute\":\"a\",\"half_life_ms\":-1}]", "boosts[0].half_life_ms: -1; it must be at least 1" },
    { "\"boosts\":[{\"attribute\":\"a\",\"parameters\":[1]}]", "boosts[0].parameters: there is no filter that uses them" },
    { "\"boosts\":[{\"filter\":\"b\"},{\"filter\":\"b\",\"parameters\":[1,[null]]}]",
      "boosts[1].parameters[1][0]: expected text, a number, true or false, not null" },
    { "\"boosts\":[{\"filter\":\"b\",\"colour\":1}]", "boosts[0]: unknown field \"colour\"; the nearest is \"filter\"" },
    { "\"boosts\":[{},{},{},{},{},{},{},{},{}]", "boosts: 9 elements, at most 8" },
    { "\"boosts\":{}", "boosts: expected a list, not an object" },
    { "\"now_unix_ms\":5", "now_unix_ms: there are no boosts that use it" },
    { "\"boosts\":[{\"filter\":\"b\"}],\"now_unix_ms\":-5", "now_unix_ms: -5 is negative" },
    { "\"attributes\":\"title\"", "attributes: expected a list, not text" },
    { "\"attributes\":{\"title\":1}", "attributes: expected a list, not an object" },
    { "\"attributes\":[\"title\",7]", "attributes[1]: expected text, not an integer" },
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

static void hits_can_be_chosen_among_candidates(void **state)
{
  Sluice__V1__Query q = SLUICE__V1__QUERY__INIT;
  Sluice__V1__Mmr mmr = SLUICE__V1__MMR__INIT;
  struct query back;

  (void)state;
  region_reset(&region);
  assert_ok(decode_query(span_of_str("{\"k\":7,\"mmr\":{\"diversity\":0.25,\"candidates\":30}}"), WIRE_JSON, &back));
  assert_true(back.mmr.diversity == 0.25 && !back.mmr.is_left_open);
  assert_int_equal(back.mmr.candidates, 30);
  assert_ok(decode_query(span_of_str("{\"k\":7,\"mmr\":{\"diversity\":1}}"), WIRE_JSON, &back));
  assert_true(back.mmr.diversity == 1);
  assert_int_equal(back.mmr.candidates, 0);
  assert_ok(decode_query(span_of_str("{\"k\":7}"), WIRE_JSON, &back));
  assert_true(back.mmr.diversity == 0);
  q.mmr = &mmr;
  mmr.diversity = 0.5;
  assert_ok(decode_query(pack(&q.base), WIRE_PROTOBUF, &back));
  assert_true(back.mmr.diversity == 0.5);
  mmr.diversity = NAN;
  assert_int_equal(decode_query(pack(&q.base), WIRE_PROTOBUF, &back), ERR_QUERY);
  assert_non_null(strstr(err_message(), "mmr.diversity: nan; it must be above 0"));
}

static void hits_can_need_a_score(void **state)
{
  Sluice__V1__Query q = SLUICE__V1__QUERY__INIT;
  struct query back;

  (void)state;
  region_reset(&region);
  assert_ok(decode_query(span_of_str("{\"min_score\":-0.1}"), WIRE_JSON, &back));
  assert_true(back.has_min_score && back.min_score == -0.1f);
  assert_ok(decode_query(span_of_str("{\"minScore\":0}"), WIRE_JSON, &back));
  assert_true(back.has_min_score && back.min_score == 0.0f);
  assert_ok(decode_query(span_of_str("{\"k\":7}"), WIRE_JSON, &back));
  assert_false(back.has_min_score);
  message_mark(&q.base, "min_score");
  q.min_score = 0.5f;
  assert_ok(decode_query(pack(&q.base), WIRE_PROTOBUF, &back));
  assert_true(back.has_min_score && back.min_score == 0.5f);
  q.min_score = INFINITY;
  assert_int_equal(decode_query(pack(&q.base), WIRE_PROTOBUF, &back), ERR_QUERY);
  assert_non_null(strstr(err_message(), "min_score: it must be a number, and not infinite"));
}

static void assert_names(const struct query *query)
{
  assert_int_equal(query->n_attributes, 2);
  assert_same_span(query->attributes[0], span_of_str("title"));
  assert_same_span(query->attributes[1], span_of_str("price"));
}

static void hits_can_show_attributes(void **state)
{
  char *names[ATTRIBUTES_MAX + 1] = { (char *)"title", (char *)"price" };
  Sluice__V1__Query q = SLUICE__V1__QUERY__INIT;
  struct query back;

  (void)state;
  region_reset(&region);
  assert_ok(decode_query(span_of_str("{\"attributes\":[\"title\",\"price\"]}"), WIRE_JSON, &back));
  assert_names(&back);
  q.attributes = names;
  q.n_attributes = 2;
  assert_ok(decode_query(pack(&q.base), WIRE_PROTOBUF, &back));
  assert_names(&back);
  assert_ok(decode_query(span_of_str("{\"attributes\":[]}"), WIRE_JSON, &back));
  assert_int_equal(back.n_attributes, 0);
  for (size_t i = 0; i <= ATTRIBUTES_MAX; i++)
    names[i] = (char *)"x";
  q.n_attributes = ATTRIBUTES_MAX;
  assert_ok(decode_query(pack(&q.base), WIRE_PROTOBUF, &back));
  assert_int_equal(back.n_attributes, ATTRIBUTES_MAX);
  q.n_attributes++;
  assert_bad_query(pack(&q.base), WIRE_PROTOBUF, "attributes: 65 elements, at most 64", "", "");
}

static void assert_boosts(const struct query *query)
{
  const struct boost *b = query->boosts;

  assert_int_equal(query->n_boosts, 3);
  assert_true(b[0].weight == -0.2 && b[0].half_life_ms == 0 && b[0].filter.n == 0 && !b[0].tree);
  assert_same_span(b[0].attribute, span_of_str("popularity"));
  assert_true(b[1].weight == 1e9 && b[1].half_life_ms == 86400000 && b[1].n_parameters == 0);
  assert_same_span(b[1].attribute, span_of_str("published"));
  assert_true(b[2].weight == 0 && b[2].half_life_ms == 0 && b[2].attribute.n == 0);
  assert_same_span(b[2].filter, span_of_str("section = $1 or price < $2"));
  assert_int_equal(b[2].n_parameters, 2);
  assert_same_span(b[2].parameters[0].text, span_of_str("graphics"));
  assert_true(b[2].parameters[1].kind == VALUE_INTEGER && b[2].parameters[1].integer == 3);
}

static void boosts_are_read_from_json(void **state)
{
  static const char *const texts[] = {
    "{\"boosts\":[{\"weight\":-0.2,\"attribute\":\"popularity\"},{\"weight\":1e9,\"attribute\":\"published\","
    "\"half_life_ms\":86400000},{\"filter\":\"section = $1 or price < $2\",\"parameters\":[\"graphics\",3]}],"
    "\"now_unix_ms\":1790000000250}",
    "{\"nowUnixMs\":1790000000250,\"boosts\":[{\"attribute\":\"popularity\",\"weight\":-0.2},{\"halfLifeMs\":86400000,"
    "\"weight\":1000000000,\"attribute\":\"published\"},{\"weight\":0,\"filter\":\"section = $1 or price < $2\","
    "\"parameters\":[\"graphics\",3]}]}",
  };
  struct query back;

  (void)state;
  for (size_t i = 0; i < 2; i++) {
    region_reset(&region);
    assert_int_equal(decode_query(span_of_str(texts[i]), WIRE_JSON, &back), ERR_OK);
    assert_boosts(&back);
    assert_true(back.has_now && back.now_unix_ms == 1790000000250);
  }
  assert_int_equal(decode_query(span_of_str("{\"boosts\":[],\"now_unix_ms\":null}"), WIRE_JSON, &back), ERR_OK);
  assert_true(back.n_boosts == 0 && !back.has_now && back.now_unix_ms == 0);
}

/* Boosts in protobuf, with what they point to. */
struct boosted {
  Sluice__V1__Query query;
  Sluice__V1__Boost boosts[3];
  Sluice__V1__Boost *list[QUERY_BOOSTS_MAX + 1];
  Sluice__V1__Value values[2];
  Sluice__V1__Value *parameters[2];
};

static void make_boosted(struct boosted *b)
{
  sluice__v1__query__init(&b->query);
  for (size_t i = 0; i < 3; i++)
    sluice__v1__boost__init(&b->boosts[i]);
  for (size_t i = 0; i <= QUERY_BOOSTS_MAX; i++)
    b->list[i] = &b->boosts[i < 3 ? i : 2];
  for (size_t i = 0; i < 2; i++) {
    sluice__v1__value__init(&b->values[i]);
    b->parameters[i] = &b->values[i];
  }
  b->boosts[0].weight = -0.2;
  b->boosts[0].attribute = (char *)"popularity";
  b->boosts[1].weight = 1e9;
  b->boosts[1].attribute = (char *)"published";
  b->boosts[1].half_life_ms = 86400000;
  b->boosts[2].filter = (char *)"section = $1 or price < $2";
  b->boosts[2].parameters = b->parameters;
  b->boosts[2].n_parameters = 2;
  b->values[0].text = (char *)"graphics";
  message_mark(&b->values[0].base, "text");
  b->values[1].integer = 3;
  message_mark(&b->values[1].base, "integer");
  b->query.boosts = b->list;
  b->query.n_boosts = 3;
}

static void boosts_are_read_from_protobuf(void **state)
{
  struct boosted b;
  struct query back;

  (void)state;
  region_reset(&region);
  make_boosted(&b);
  assert_int_equal(decode_query(pack(&b.query.base), WIRE_PROTOBUF, &back), ERR_OK);
  assert_boosts(&back);
  assert_false(back.has_now);
  message_mark(&b.query.base, "now_unix_ms"); /* even 0 is a time */
  b.query.n_boosts = QUERY_BOOSTS_MAX;
  assert_int_equal(decode_query(pack(&b.query.base), WIRE_PROTOBUF, &back), ERR_OK);
  assert_true(back.n_boosts == QUERY_BOOSTS_MAX && back.has_now && back.now_unix_ms == 0);
}

static void wrong_boosts_in_protobuf_are_refused_by_name(void **state)
{
  const double weights[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, -1.0001e9 };
  const char *const texts[] = { "nan", "inf", "-inf", "-1000100000" };
  char sentence[128];
  struct boosted b;

  (void)state;
  for (size_t i = 0; i < 4; i++) {
    make_boosted(&b);
    b.boosts[1].weight = weights[i];
    snprintf(sentence, sizeof sentence, "boosts[1].weight: %s; it must be from -1e+09 to 1e+09", texts[i]);
    assert_bad_query(pack(&b.query.base), WIRE_PROTOBUF, sentence, "", "");
  }
  make_boosted(&b);
  b.query.n_boosts = QUERY_BOOSTS_MAX + 1;
  assert_bad_query(pack(&b.query.base), WIRE_PROTOBUF, "boosts: 9 elements, at most 8", "", "");
  b.query.n_boosts = 3;
  b.boosts[1].attribute = (char *)"\xff";
  assert_bad_query(pack(&b.query.base), WIRE_PROTOBUF, "boosts[1].attribute: \"\\xff\" is not UTF-8", "", "");
  make_boosted(&b);
  b.boosts[2].filter = zeros(QUERY_FILTER_MAX + 2);
  memset(b.boosts[2].filter, 'x', QUERY_FILTER_MAX + 1);
  assert_bad_query(pack(&b.query.base), WIRE_PROTOBUF, "boosts[2].filter: 16385 bytes, at most 16384", "", "");
  make_boosted(&b);
  message_mark(&b.values[1].base, "number");
  b.values[1].number = (double)INFINITY;
  assert_bad_query(pack(&b.query.base), WIRE_PROTOBUF, "boosts[2].parameters[1]: expected a finite number, not inf", "",
                   "");
}

/* A boost's filter has as many parameters as that of a query. */
static void the_values_of_a_boosts_parameters_are_counted(void **state)
{
  char *text = zeros(3 * QUERY_PARAMETER_VALUES_MAX);
  int at = sprintf(text, "{\"boosts\":[{\"filter\":\"b\"},{\"filter\":\"b\",\"parameters\":[1,[2");

  (void)state;
  for (int i = 1; i < QUERY_PARAMETER_VALUES_MAX; i++)
    at += sprintf(text + at, ",2");
  strcpy(text + at, "]]}]}");
  assert_bad_query(span_of_str(text), WIRE_JSON, "boosts[1].parameters: 10001 values, at most 10000", "", "");
}

static void assert_like(const struct query *query, size_t i, struct span key, double weight)
{
  assert_true(i < query->n_likes);
  assert_true(span_equal(query->likes[i].key, key));
  assert_true(query->likes[i].weight == weight);
}

static void items_to_be_like_have_weights(void **state)
{
  struct query back;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_query(span_of_str("{\"likes\":[{\"key\":\"gimp\"},{\"key\":{\"base64\":\"/wA=\"},\"weight\":-0.5}]}"),
                                WIRE_JSON, &back),
                   ERR_OK);
  assert_int_equal(back.n_likes, 2);
  assert_like(&back, 0, span_of_str("gimp"), 1);
  assert_like(&back, 1, span_of("\xff\0", 2), -0.5);
  char *text = zeros(40 * QUERY_LIKES_MAX + 40);
  int at = sprintf(text, "{\"likes\":[{\"key\":\"k\"}");
  for (int i = 1; i < QUERY_LIKES_MAX; i++)
    at += sprintf(text + at, ",{\"key\":\"k\",\"weight\":%d}", i);
  sprintf(text + at, "]}");
  assert_int_equal(decode_query(span_of_str(text), WIRE_JSON, &back), ERR_OK);
  assert_int_equal(back.n_likes, QUERY_LIKES_MAX);
  sprintf(text + at, ",{\"key\":\"k\"}]}");
  assert_int_equal(decode_query(span_of_str(text), WIRE_JSON, &back), ERR_QUERY);
}

static void keys_to_compare_and_explain_are_any_bytes(void **state)
{
  struct query back;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_query(span_of_str("{\"like\":\"gimp\",\"explain\":[\"a\",{\"base64\":\"/wA=\"}]}"), WIRE_JSON,
                                &back),
                   ERR_OK);
  assert_int_equal(back.n_likes, 1);
  assert_like(&back, 0, span_of_str("gimp"), 1);
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
  assert_like(&back, 0, span_of("\xff\0", 2), 1);
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
    cmocka_unit_test(hits_can_be_chosen_among_candidates),
    cmocka_unit_test(hits_can_need_a_score),
    cmocka_unit_test(hits_can_show_attributes),
    cmocka_unit_test(boosts_are_read_from_json),
    cmocka_unit_test(boosts_are_read_from_protobuf),
    cmocka_unit_test(wrong_boosts_in_protobuf_are_refused_by_name),
    cmocka_unit_test(the_values_of_a_boosts_parameters_are_counted),
    cmocka_unit_test(items_to_be_like_have_weights),
    cmocka_unit_test(keys_to_compare_and_explain_are_any_bytes),
    cmocka_unit_test(bytes_that_are_no_query_leave_the_output_unchanged),
  };

  return cmocka_run_group_tests(tests, NULL, free_regions);
}
