/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of queries before they are sent, and of the answers that are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/ctl/query/ctl_queries.h"

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

static void fields_go_to_all_queries(void **state)
{
  json_t *fields = json_pack("{s:s, s:i}", "space", "films", "k", 3);
  struct ctl_queries q;

  (void)state;
  assert_int_equal(ctl_queries_init(&q), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"b\"}"), ERR_OK);
  assert_int_equal(ctl_queries_give(&q, fields), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"space\":\"films\",\"k\":3}");
  assert_string_equal(q.items[1].text, "{\"id\":\"b\",\"space\":\"films\",\"k\":3}");
  assert_int_equal(ctl_queries_give(&q, fields), ERR_USAGE);
  assert_non_null(strstr(err_message(), "query a has a field space of its own: leave out --space"));
  ctl_queries_fini(&q);
  json_decref(fields);
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
    cmocka_unit_test(fields_go_to_all_queries),
    cmocka_unit_test(only_the_first_answer_to_an_open_query_is_taken),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
