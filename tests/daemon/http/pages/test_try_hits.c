/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the table of hits: which attributes have a column, and how their values look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/pages/try_hits.h"
#include "tests/support/filter_attributes.h"

static char *printed(const char *text, struct attributes attributes)
{
  json_t *hits = json_loads(text, 0, NULL);
  char *page;
  size_t n;
  FILE *out = open_memstream(&page, &n);

  assert_non_null(hits);
  try_hits_print(out, hits, &attributes);
  fclose(out);
  json_decref(hits);
  return page;
}

static void hits_without_attributes_have_a_key_and_a_score(void **state)
{
  char *page = printed("[{\"key\":\"<a>\",\"score\":0.5},{\"key\":{\"base64\":\"/w==\"},\"score\":-2}]", filter_attributes());

  (void)state;
  assert_string_equal(page, "<div class=\"wide\"><table><thead><tr><th class=\"number\">rank</th><th>key</th>"
                            "<th class=\"number\">score</th></tr></thead><tbody>\n"
                            "<tr><td class=\"number\">1</td><td>&lt;a&gt;</td><td class=\"number\">0.5</td></tr>\n"
                            "<tr><td class=\"number\">2</td><td>base64 /w==</td><td class=\"number\">-2</td></tr>\n"
                            "</tbody></table></div>\n");
  free(page);
}

static void attributes_that_a_hit_has_are_columns(void **state)
{
  char *page = printed("[{\"key\":\"a\",\"score\":2,\"attributes\":{\"price\":9.99,\"country\":\"<b>&\\u001b\"}},"
                       "{\"key\":\"b\",\"score\":1,\"attributes\":{\"available\":true,\"tags\":[\"<x>\",\"y\"],\"year\":-7,"
                       "\"expires\":1790000000000}}]",
                       filter_attributes());

  (void)state;
  assert_non_null(strstr(page, "score</th><th>available</th><th>country</th><th>tags</th><th class=\"number\">year</th>"
                               "<th class=\"number\">price</th><th>expires</th></tr>"));
  assert_non_null(strstr(page, "2</td><td></td><td>&lt;b&gt;&amp; </td><td></td><td class=\"number\"></td>"
                               "<td class=\"number\">9.99</td><td></td></tr>"));
  assert_non_null(strstr(page, "1</td><td>true</td><td></td><td>&lt;x&gt;, y</td><td class=\"number\">-7</td>"
                               "<td class=\"number\"></td><td>2026-09-21 14:13:20 UTC</td></tr>"));
  free(page);
}

static void the_first_eight_are_shown(void **state)
{
  enum { ALL = 10 };
  static const char names[ALL][3] = { "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9" };
  struct attribute list[ALL];
  char *page;

  (void)state;
  for (size_t i = 0; i < ALL; i++)
    list[i] = (struct attribute){ span_of_str(names[i]), ATTRIBUTE_INTEGER };
  page = printed("[{\"key\":\"a\",\"score\":2,\"attributes\":{\"a9\":9,\"a8\":8,\"a7\":7,\"a6\":6,\"a5\":5,\"a4\":4,\"a3\":3,"
                 "\"a1\":1,\"a0\":0}}]",
                 (struct attributes){ list, ALL });
  assert_null(strstr(page, "a2"));
  assert_non_null(strstr(page, "<th class=\"number\">a0</th><th class=\"number\">a1</th><th class=\"number\">a3</th>"));
  assert_non_null(strstr(page, "<th class=\"number\">a8</th></tr>"));
  free(page);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_without_attributes_have_a_key_and_a_score),
    cmocka_unit_test(attributes_that_a_hit_has_are_columns),
    cmocka_unit_test(the_first_eight_are_shown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
