/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: the scale, gaps, places of the values, and a chart of nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/http/pages/chart.h"

static const struct chart rates = { "Rates", { { "", offsetof(struct moment, queries_per_s), false } }, 1 };
static const struct chart times = { "Times", { { "p50", offsetof(struct moment, answer_p50_ms), true } }, 1 };

static char *draw(const struct chart *chart, const struct moment *moments, size_t n)
{
  char *text;
  size_t n_text;
  FILE *out = open_memstream(&text, &n_text);

  assert_non_null(out);
  chart_print(out, chart, moments, n);
  assert_int_equal(fclose(out), 0);
  return text;
}

static void expect(const struct chart *chart, const struct moment *moments, size_t n, const char *wanted)
{
  char *text = draw(chart, moments, n);

  if (!strstr(text, wanted))
    fail_msg("%s is not in %s", wanted, text);
  free(text);
}

static void test_nothing(void **state)
{
  (void)state;
  expect(&rates, NULL, 0, "d=\"\"");
  expect(&rates, NULL, 0, "top: 1<");
}

static void test_the_newest_is_at_the_right_and_the_scale_is_round(void **state)
{
  const struct moment moments[] = { { .queries_per_s = 0 }, { .queries_per_s = 130 }, { .queries_per_s = 200 } };

  (void)state;
  expect(&rates, moments, 3, "top: 200<");
  expect(&rates, moments, 3, "d=\"M468.1 90.0h0L472.0 35.4L476.0 6.0\"");
  expect(&rates, moments, 3, "<span class=\"now line-0\">200</span>");
}

static void test_a_full_chart_begins_at_the_left(void **state)
{
  static struct moment moments[HISTORY_MAX];

  (void)state;
  moments[0].queries_per_s = 1;
  expect(&rates, moments, HISTORY_MAX, "d=\"M4.0 6.0h0L8.0 90.0");
}

static void test_where_nothing_was_measured_is_a_gap(void **state)
{
  const struct moment none = { .answer_p50_ms = 0 };
  const struct moment moments[] = { { .answer_p50_ms = 5 }, none, { .answer_p50_ms = 3 }, none };

  (void)state;
  expect(&times, moments, 4, "top: 5<");
  expect(&times, moments, 4, "d=\"M464.1 6.0h0M472.0 39.6h0\"");
  expect(&times, moments, 4, "<span class=\"now line-0\">p50 -</span>");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nothing),
    cmocka_unit_test(test_the_newest_is_at_the_right_and_the_scale_is_round),
    cmocka_unit_test(test_a_full_chart_begins_at_the_left),
    cmocka_unit_test(test_where_nothing_was_measured_is_a_gap),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
