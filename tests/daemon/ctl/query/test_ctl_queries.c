/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of queries before they are sent, and of the answers that are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/ctl/query/ctl_queries.h"
#include "daemon/ctl/text/ctl_max_per.h"

static err_code_t add(struct ctl_queries *q, const char *text)
{
  return ctl_queries_add(q, span_of_str(text), "answers");
}

static void a_query_without_an_id_gets_one_of_its_own(void **state)
{
  struct ctl_queries q;
  json_t *sent;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"k\":3,\"vector\":[0.1]}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"\",\"k\":3}\n"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":null,\"user_id\":9223372036854775807,\"reply_topic\":\"answers\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"mine\"}"), ERR_OK);
  assert_int_equal(q.n_open, 4);
  assert_string_not_equal(q.items[0].id, q.items[1].id);
  assert_string_equal(q.items[3].id, "mine");
  assert_string_equal(q.items[3].text, "{\"id\":\"mine\"}");
  sent = json_loads(q.items[0].text, 0, NULL);
  assert_string_equal(json_string_value(json_object_get(sent, "id")), q.items[0].id);
  assert_true(json_real_value(json_array_get(json_object_get(sent, "vector"), 0)) == 0.1);
  json_decref(sent);
  assert_non_null(strstr(q.items[2].text, "9223372036854775807"));
  ctl_queries_fini(&q);
}

static void unusable_queries_are_refused(void **state)
{
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  const char *bad[] = { "",
                        "[]",
                        "3",
                        "{",
                        "{} {}",
                        "{\"id\":3}",
                        "{\"id\":\"a\"}",
                        "{\"k\":1,\"k\":2}",
                        "{\"reply_topic\":\"other\"}",
                        "{\"replyTopic\":\"other\"}" };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(add(&q, bad[i]), ERR_QUERY);
  assert_int_equal(add(&q, "\"x\""), ERR_QUERY);
  assert_non_null(strstr(err_message(), "a query must be an object"));
  assert_int_equal(q.n, 1);
  ctl_queries_fini(&q);
}

static void a_space_a_k_and_a_vector_go_to_all_queries_that_have_none(void **state)
{
  const char *wrong[] = { "", ",", "1,", "1,,2", "1;2", "1 ,2", "x", "nan", "1e999", "[1]" };
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(ctl_queries_vector(&q, wrong[i]), ERR_USAGE);
    assert_non_null(strstr(err_message(), "--vector expects numbers with commas between them"));
  }
  assert_int_equal(ctl_queries_space(&q, "\xff"), ERR_USAGE);
  assert_int_equal(ctl_queries_space(&q, "films"), ERR_OK);
  assert_int_equal(ctl_queries_k(&q, 3), ERR_OK);
  assert_int_equal(ctl_queries_vector(&q, "-0.5,2"), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"space\":\"films\",\"k\":3,\"vector\":[-0.5,2.0]}");
  assert_int_equal(ctl_queries_k(&q, 4), ERR_USAGE);
  assert_non_null(strstr(err_message(), "query a has a field k of its own: leave out --k"));
  assert_int_equal(ctl_queries_vector(&q, "1"), ERR_USAGE);
  assert_int_equal(ctl_queries_space(&q, "films"), ERR_USAGE);
  ctl_queries_fini(&q);
}

static void a_filter_goes_to_all_queries_that_have_none(void **state)
{
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\",\"k\":1}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"b\"}"), ERR_OK);
  assert_int_equal(ctl_queries_set_filter(&q, "price < $1", "{}"), ERR_USAGE);
  assert_int_equal(ctl_queries_set_filter(&q, "price < $1", "["), ERR_USAGE);
  assert_int_equal(ctl_queries_set_filter(&q, "\xff", NULL), ERR_USAGE);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"k\":1}");
  assert_int_equal(ctl_queries_set_filter(&q, "price < $1", "[9.5]"), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"k\":1,\"filter\":\"price < $1\",\"parameters\":[9.5]}");
  assert_string_equal(q.items[1].text, "{\"id\":\"b\",\"filter\":\"price < $1\",\"parameters\":[9.5]}");
  assert_int_equal(ctl_queries_set_filter(&q, "true", NULL), ERR_USAGE);
  ctl_queries_fini(&q);
}

static void a_limit_on_the_hits_of_a_value_goes_to_all_queries_that_have_none(void **state)
{
  static const char *const wrong[] = { "", "artist", ":2", "artist:", "artist:0", "artist:-1", "artist:4294967296" };
  struct max_per limit;
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_equal(ctl_max_per_take(&limit, wrong[i]), ERR_USAGE);
  assert_int_equal(ctl_max_per_take(&limit, "artist:2"), ERR_OK);
  assert_int_equal(ctl_queries_max_per(&q, &limit), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"max_per\":{\"attribute\":\"artist\",\"n\":2}}");
  assert_int_equal(ctl_queries_max_per(&q, &limit), ERR_USAGE);
  ctl_queries_fini(&q);
}

static void mmr_goes_to_all_queries_that_have_none(void **state)
{
  static const char *const wrong[] = { "", "much", "0", "1.5", "-1", "nan", "0.5,4", "0.5:", "0.5:0", "0.5:-3", "0.5:4x",
                                       "0.5:1001", ":40" };
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"b\"}"), ERR_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(ctl_queries_mmr(&q, wrong[i]), ERR_USAGE);
    assert_non_null(strstr(err_message(), "--mmr expects a number above 0, at most 1"));
  }
  assert_int_equal(ctl_queries_mmr(&q, "0.5:1000"), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"mmr\":{\"diversity\":0.5,\"candidates\":1000}}");
  assert_string_equal(q.items[1].text, "{\"id\":\"b\",\"mmr\":{\"diversity\":0.5,\"candidates\":1000}}");
  assert_int_equal(ctl_queries_mmr(&q, "1"), ERR_USAGE);
  assert_non_null(strstr(err_message(), "mmr"));
  ctl_queries_fini(&q);
}

static void attributes_to_show_go_to_all_queries_that_have_none(void **state)
{
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"b\"}"), ERR_OK);
  assert_int_equal(ctl_queries_show(&q, "title,\xff"), ERR_USAGE);
  assert_non_null(strstr(err_message(), "--show: it is not UTF-8"));
  assert_int_equal(ctl_queries_show(&q, "title,price"), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"attributes\":[\"title\",\"price\"]}");
  assert_string_equal(q.items[1].text, "{\"id\":\"b\",\"attributes\":[\"title\",\"price\"]}");
  assert_int_equal(ctl_queries_show(&q, "year"), ERR_USAGE);
  assert_non_null(strstr(err_message(), "a field attributes of its own: leave out --show"));
  ctl_queries_fini(&q);
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  assert_int_equal(ctl_queries_show(&q, "year"), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"attributes\":[\"year\"]}");
  ctl_queries_fini(&q);
}

static void boosts_go_to_all_queries_that_have_none(void **state)
{
  struct ctl_boosts boosts = { 0 };
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  assert_int_equal(ctl_queries_set_boosts(&q, &boosts), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\"}");
  assert_int_equal(ctl_boosts_take(&boosts, "-0.5:price"), ERR_OK);
  assert_int_equal(ctl_boosts_take_if(&boosts, "3:section = 'a:b'"), ERR_OK);
  assert_int_equal(ctl_boosts_take(&boosts, "0.25:published:2d"), ERR_OK);
  assert_int_equal(ctl_queries_set_boosts(&q, &boosts), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"boosts\":[{\"weight\":-0.5,\"attribute\":\"price\"},"
                                       "{\"weight\":3.0,\"filter\":\"section = 'a:b'\"},"
                                       "{\"weight\":0.25,\"attribute\":\"published\",\"half_life_ms\":172800000}]}");
  assert_int_equal(ctl_queries_set_boosts(&q, &boosts), ERR_USAGE);
  ctl_queries_fini(&q);
}

static void the_time_of_boosts_goes_to_queries_that_have_boosts_of_their_own_too(void **state)
{
  struct ctl_boosts boosts = { 0 }, bad = { 0 };
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\",\"boosts\":[]}"), ERR_OK);
  assert_int_equal(ctl_boosts_take_if(&bad, "1:a = '\xff'"), ERR_OK);
  assert_int_equal(ctl_queries_set_boosts(&q, &bad), ERR_USAGE);
  assert_non_null(strstr(err_message(), "--boost and --boost-if: it is not UTF-8"));
  assert_int_equal(ctl_boosts_take_now(&boosts, "0"), ERR_OK);
  assert_int_equal(ctl_queries_set_boosts(&q, &boosts), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"boosts\":[],\"now_unix_ms\":0}");
  assert_int_equal(ctl_queries_set_boosts(&q, &boosts), ERR_USAGE);
  ctl_queries_fini(&q);
}

static void only_the_first_answer_to_an_open_query_is_taken(void **state)
{
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"b\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"c\"}"), ERR_OK);
  const char *others[] = {
    "", "\x0a\x01", "{\"id\":\"z\"}", "{\"id\":3}", "[\"a\"]", "{\"hits\":[]}", "{\"id\":\"a\""
  };
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    assert_int_equal(ctl_queries_take(&q, span_of_str(others[i])), ERR_OK);
  assert_int_equal(q.n_open, 3);
  assert_int_equal(ctl_queries_take(&q, span_of_str("{\"id\":\"b\",\"epoch\":1}")), ERR_OK);
  assert_int_equal(ctl_queries_take(&q, span_of_str("{\"id\":\"b\",\"epoch\":2}")), ERR_OK);
  assert_string_equal(q.items[1].answer, "{\"id\":\"b\",\"epoch\":1}");
  assert_int_equal(q.n_open, 2);
  assert_int_equal(ctl_queries_fail(&q, 0, "gone"), ERR_OK);
  assert_int_equal(ctl_queries_fail(&q, 0, "gone again"), ERR_OK);
  assert_int_equal(ctl_queries_fail(&q, 1, "too late"), ERR_OK);
  assert_string_equal(q.items[0].failure, "gone");
  assert_null(q.items[1].failure);
  assert_int_equal(ctl_queries_take(&q, span_of_str("{\"id\":\"a\"}")), ERR_OK);
  assert_null(q.items[0].answer);
  assert_int_equal(q.n_open, 1);
  ctl_queries_fini(&q);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_query_without_an_id_gets_one_of_its_own),
    cmocka_unit_test(unusable_queries_are_refused),
    cmocka_unit_test(a_space_a_k_and_a_vector_go_to_all_queries_that_have_none),
    cmocka_unit_test(a_filter_goes_to_all_queries_that_have_none),
    cmocka_unit_test(a_limit_on_the_hits_of_a_value_goes_to_all_queries_that_have_none),
    cmocka_unit_test(mmr_goes_to_all_queries_that_have_none),
    cmocka_unit_test(attributes_to_show_go_to_all_queries_that_have_none),
    cmocka_unit_test(boosts_go_to_all_queries_that_have_none),
    cmocka_unit_test(the_time_of_boosts_goes_to_queries_that_have_boosts_of_their_own_too),
    cmocka_unit_test(only_the_first_answer_to_an_open_query_is_taken),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
