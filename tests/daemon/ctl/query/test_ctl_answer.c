/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of answers as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/query/ctl_answer.h"

static char *printed(const char *answer)
{
  json_t *json = json_loads(answer, 0, NULL);
  char *text;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  assert_non_null(json);
  ctl_answer_print(json, out);
  fclose(out);
  json_decref(json);
  return text;
}

static void an_answer_is_a_table_with_its_receipt(void **state)
{
  char *text = printed("{\"id\":\"q1\",\"space\":\"books\",\"method\":\"average(4000)\",\"hits\":["
                       "{\"key\":\"g\\u00e4mp\",\"score\":0.93215},{\"key\":{\"base64\":\"/w==\"},\"score\":-2}],"
                       "\"receipt\":{\"exact\":false,\"bound\":0.5},\"epoch\":12,"
                       "\"counts\":{\"items\":63000,\"scored\":4000,\"candidates\":5000},"
                       "\"times\":{\"queued_us\":210,\"searched_us\":1300}}");

  (void)state;
  assert_string_equal(text, "q1: 2 hits in books\n"
                            "  rank  key                 score\n"
                            "     1  g\xc3\xa4mp              0.93215\n"
                            "     2  base64:/w==            -2\n"
                            "  method average(4000): approximate, nothing that was missed scores above 0.5; scored 4,000 of "
                            "63,000 items (5,000 candidates); queued 0.21 ms, searched 1.3 ms; epoch 12\n");
  free(text);
  text = printed("{\"id\":\"q\",\"space\":\"s\",\"method\":\"exact\",\"receipt\":{\"exact\":true}}");
  assert_string_equal(text, "q: 0 hits in s\n"
                            "  method exact: exact; scored 0 of 0 items; queued 0.00 ms, searched 0.00 ms; epoch 0\n");
  free(text);
}

static void the_values_of_hits_are_a_column(void **state)
{
  char *text = printed("{\"id\":\"q\",\"space\":\"s\",\"hits\":[{\"key\":\"a\",\"score\":2,\"value\":\"Bj\\u00f6rk\\u001b\"},"
                       "{\"key\":\"b\",\"score\":1.5,\"value\":-7},{\"key\":\"c\",\"score\":1,\"value\":false},"
                       "{\"key\":\"d\",\"score\":0}]}");

  (void)state;
  assert_non_null(strstr(text, "q: 4 hits in s\n"
                               "  rank  key         score  value\n"
                               "     1  a               2  Bj\xc3\xb6rk\\x1b\n"
                               "     2  b             1.5  -7\n"
                               "     3  c               1  false\n"
                               "     4  d               0\n"));
  free(text);
}

static void the_similarities_of_hits_are_a_column(void **state)
{
  char *text = printed("{\"id\":\"q\",\"space\":\"s\",\"hits\":[{\"key\":\"a\",\"score\":2.5,\"similarity\":2,"
                       "\"value\":7},{\"key\":\"b\",\"score\":1.5,\"similarity\":0.0}],\"now_unix_ms\":1}");

  (void)state;
  assert_non_null(strstr(text, "q: 2 hits in s\n"
                               "  rank  key         score    similarity  value\n"
                               "     1  a             2.5             2  7\n"
                               "     2  b             1.5             0\n"));
  free(text);
}

static void the_attributes_of_hits_are_the_last_column(void **state)
{
  char *text = printed("{\"id\":\"q\",\"space\":\"s\",\"hits\":[{\"key\":\"a\",\"score\":2,\"value\":7,\"attributes\":"
                       "{\"title\":\"Bj\\u00f6rk\\u001b\",\"price\":9.99,\"tags\":[\"x\",\"y\"]}},{\"key\":\"b\",\"score\":1}]}");

  (void)state;
  assert_non_null(strstr(text, "q: 2 hits in s\n"
                               "  rank  key         score  value  attributes\n"
                               "     1  a               2  7  {\"title\": \"Bj\xc3\xb6rk\\u001B\", \"price\": 9.99, "
                               "\"tags\": [\"x\", \"y\"]}\n"
                               "     2  b               1\n"));
  free(text);
  text = printed("{\"hits\":[{\"key\":\"a\",\"attributes\":{\"t\":\"\\u009b\\u202e\\u007f\"}}]}");
  assert_non_null(strstr(text, "{\"t\": \"\\u009b\\u202e\\u007f\"}\n"));
  free(text);
}

static void a_partial_answer_says_so_in_its_table(void **state)
{
  char *text = printed("{\"id\":\"q\",\"space\":\"s\",\"method\":\"exact\",\"receipt\":{\"exact\":false,"
                       "\"bound\":3.40282347e+38},\"parts\":{\"answered\":1,\"of\":2}}");

  (void)state;
  assert_non_null(strstr(text, "\n  1 of 2 shards have answered: items may be missing\n"));
  assert_non_null(strstr(text, "  method exact: approximate; scored 0"));
  free(text);
  text = printed("{\"id\":\"q\",\"parts\":{\"answered\":2,\"of\":2}}");
  assert_null(strstr(text, "shards"));
  free(text);
}

static void keys_cannot_control_the_terminal(void **state)
{
  char *text = printed("{\"id\":\"a\\u001b\",\"hits\":[{\"key\":\"\\u001b[31m\\u009b\\n\",\"score\":1}]}");

  (void)state;
  assert_null(strchr(text, '\x1b'));
  assert_non_null(strstr(text, "\\x1b[31m\\x9b\\x0a"));
  assert_non_null(strstr(text, "a\\x1b: 1 hit in"));
  free(text);
  text = printed("{\"id\":\"a\",\"hits\":[{\"key\":\"\\u202ea\\u202f\\u2066\\u2070\\u007f\",\"score\":1}]}");
  assert_non_null(strstr(text, "1  \\u202ea\xe2\x80\xaf\\u2066\xe2\x81\xb0\\x7f "));
  free(text);
}

static void an_error_is_printed_with_its_code(void **state)
{
  json_t *bad = json_loads("{\"error\":{\"code\":\"BAD_QUERY\",\"message\":\"k: at least 1\"}}", 0, NULL);
  json_t *good = json_loads("{\"id\":\"x\"}", 0, NULL);
  char *text = ctl_asking_error(bad);

  (void)state;
  assert_string_equal(text, "BAD_QUERY: k: at least 1");
  assert_null(ctl_asking_error(good));
  free(text);
  json_decref(bad);
  json_decref(good);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_is_a_table_with_its_receipt),
    cmocka_unit_test(the_values_of_hits_are_a_column),
    cmocka_unit_test(the_similarities_of_hits_are_a_column),
    cmocka_unit_test(the_attributes_of_hits_are_the_last_column),
    cmocka_unit_test(a_partial_answer_says_so_in_its_table),
    cmocka_unit_test(keys_cannot_control_the_terminal),
    cmocka_unit_test(an_error_is_printed_with_its_code),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
