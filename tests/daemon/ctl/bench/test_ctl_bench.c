/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the parts of sluicectl bench: percentiles, the histogram, doubts, and the pool of queries.
 * tests/e2e/test_bench.py runs the command. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/mem.h"
#include "daemon/ctl/bench/ctl_bench_report.h"
#include "daemon/ctl/bench/ctl_bench_svg.h"
#include "daemon/ctl/text/ctl_json.h"
#include "ingest/wire/wire.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"

static uint64_t seed;

/* Make a result whose answers took 1 to n microseconds, in a random order. */
static struct ctl_bench_result make_result(struct ctl_bench_sample *samples, uint64_t n)
{
  struct dice dice = { seed };

  for (uint64_t i = 0; i < n; i++)
    samples[i] = (struct ctl_bench_sample){ .latency_ns = (int64_t)(i + 1) * 1000,
                                            .queued_us = (uint32_t)(i + 1),
                                            .searched_us = 7,
                                            .fate = CTL_BENCH_ANSWERED };
  for (uint64_t i = n - 1; i > 0; i--) {
    uint64_t other = dice_below(&dice, i + 1);
    struct ctl_bench_sample kept = samples[i];
    samples[i] = samples[other];
    samples[other] = kept;
  }
  return (struct ctl_bench_result){ .samples = samples, .n_sent = n, .took_ns = 1000000000 };
}

static void percentiles_are_exact(void **state)
{
  enum { N = 1000 };
  static const int64_t expected_us[CTL_BENCH_PERCENTILES] = { 500, 900, 990, 999, 1000 };
  struct ctl_bench_sample samples[N];
  struct ctl_bench_result result = make_result(samples, N);
  struct ctl_bench_report report;

  (void)state;
  assert_ok(ctl_bench_report_make(&result, &report));
  for (size_t i = 0; i < CTL_BENCH_PERCENTILES; i++) {
    assert_int_equal(report.latency_ns[i], expected_us[i] * 1000);
    assert_int_equal(report.queued_ns[i], expected_us[i] * 1000);
    assert_int_equal(report.searched_ns[i], 7000);
  }
  result.n_sent = 1;
  assert_ok(ctl_bench_report_make(&result, &report));
  for (size_t i = 0; i < CTL_BENCH_PERCENTILES; i++)
    assert_int_equal(report.latency_ns[i], samples[0].latency_ns);
}

static void errors_and_missing_answers_are_not_in_the_percentiles(void **state)
{
  enum { N = 10 };
  struct ctl_bench_sample samples[N];
  struct ctl_bench_result result = make_result(samples, N);
  struct ctl_bench_report report;

  (void)state;
  for (size_t i = 0; i < N; i++) {
    if (samples[i].latency_ns > 6000)
      samples[i].fate = samples[i].latency_ns > 9000 ? CTL_BENCH_OPEN : CTL_BENCH_FAILED;
  }
  result.n_errors[ANSWER_DEADLINE_PASSED] = 3;
  assert_ok(ctl_bench_report_make(&result, &report));
  assert_int_equal(report.n_answered, 6);
  assert_int_equal(report.n_errors, 3);
  assert_int_equal(report.n_missing, 1);
  assert_int_equal(report.latency_ns[CTL_BENCH_PERCENTILES - 1], 6000);
  result.n_sent = 0;
  memset(result.n_errors, 0, sizeof result.n_errors);
  assert_ok(ctl_bench_report_make(&result, &report));
  assert_int_equal(report.latency_ns[0], 0);
  assert_int_equal(report.histogram.n_bins, 0);
}

static void every_answer_is_in_the_bin_of_its_latency(void **state)
{
  enum { N = 500 };
  struct dice dice = { seed };
  struct ctl_bench_sample samples[N];
  struct ctl_bench_result result = { .samples = samples, .n_sent = N };
  struct ctl_bench_report report;

  (void)state;
  for (int round = 0; round < 100; round++) {
    uint64_t counts[CTL_BENCH_BINS] = { 0 };
    for (size_t i = 0; i < N; i++)
      samples[i] = (struct ctl_bench_sample){ .latency_ns = (int64_t)(1 + (dice_u64(&dice) >> dice_below(&dice, 63)) %
                                                                              10000000000),
                                              .fate = CTL_BENCH_ANSWERED };
    if (round == 0)
      for (size_t i = 0; i < N; i++)
        samples[i].latency_ns = 5; /* all in one bin */
    assert_ok(ctl_bench_report_make(&result, &report));
    const struct ctl_bench_histogram *h = &report.histogram;
    for (size_t i = 0; i < N; i++) {
      size_t bin = 0;
      while (bin + 1 < h->n_bins &&
             (double)samples[i].latency_ns >= h->least_ns * pow(h->factor, (double)bin + 1) * (1 - 1e-12))
        bin++;
      counts[bin]++;
    }
    for (size_t i = 0; i < h->n_bins; i++)
      assert_int_equal(h->counts[i], counts[i]);
  }
}

static void a_load_that_was_not_made_is_doubted(void **state)
{
  struct ctl_bench_result result = { .n_sent = 1000, .n_late = 10, .reader_share = 0.5 };
  char text[256];

  (void)state;
  assert_null(ctl_bench_report_doubt(&result, text, sizeof text));
  result.n_late = 11;
  assert_non_null(strstr(ctl_bench_report_doubt(&result, text, sizeof text), "1.1 % of the queries were sent late"));
  result.n_late = 0;
  result.reader_share = 0.9;
  assert_non_null(strstr(ctl_bench_report_doubt(&result, text, sizeof text), "needed 90 % of a core"));
}

static void a_report_without_answers_is_printed(void **state)
{
  const struct ctl_bench_setting setting = { .space = "films", .k = 10, .n_queries = 3, .seed = 9, .per_s = 5 };
  const struct ctl_bench_result result = { .n_undelivered = 2,
                                      .n_errors[ANSWER_BAD_QUERY] = 1,
                                      .n_unreadable = 4,
                                      .message = "why" };
  const struct ctl_bench_report report = { .n_sent = 3, .n_errors = 1, .n_missing = 2 };
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  (void)state;
  ctl_bench_report_print(&report, &result, &setting, out);
  fclose(out);
  assert_string_equal(text, "bench     5 queries/s to films, k 10, method exact\n"
                            "queries   3 random ones of --seed 9, again and again\n"
                            "sent      3 in 0.00 ms (0/s); 0 late by more than 1 ms, at most by 0.00 ms\n"
                            "answered  0; 1 with an error; 2 missing\n"
                            "          1 BAD_QUERY\n"
                            "          Kafka did not take 2\n"
                            "          4 values in the answer topic that are no answers\n"
                            "          the first: why\n");
  free(text);
}

static void a_plot_that_cannot_be_written_is_named(void **state)
{
  const struct ctl_bench_report report = { 0 };

  (void)state;
  assert_fails(ctl_bench_svg_write("/absent/plot.svg", &report), ERR_SYSTEM, "/absent/plot.svg");
}

static struct query decode(const struct ctl_bench_pool *pool, uint64_t i, struct region *region)
{
  AUTO(mem_free) uint8_t *buffer = NULL;
  struct query query = { 0 };
  struct span bytes;
  size_t capacity = 0;

  assert_ok(ctl_bench_pool_name(pool, i, "id-17", &buffer, &capacity, &bytes));
  assert_ok(wire_decode_query(bytes, WIRE_PROTOBUF, region, &query));
  assert_true(span_equal(query.id, span_of_str("id-17")));
  return query;
}

static void random_queries_follow_from_their_seed(void **state)
{
  struct ctl_bench_pool_options options = {
    .space = "films", .k = 3, .n_random = 200, .seed = seed, .query_vector = 8
  };
  AUTO(region_fini) struct region region = { 0 };
  double sum = 0, squares = 0;

  (void)state;
  AUTO(ctl_bench_pool_fini) struct ctl_bench_pool a, b, other;
  assert_ok(ctl_bench_pool_open(&options, &a));
  assert_ok(ctl_bench_pool_open(&options, &b));
  options.seed++;
  assert_ok(ctl_bench_pool_open(&options, &other));
  assert_int_equal(a.n, 200);
  for (uint64_t i = 0; i < a.n; i++) {
    assert_true(span_equal(a.queries[i], b.queries[i]));
    assert_false(span_equal(a.queries[i], other.queries[i]));
    struct query query = decode(&a, i + a.n, &region); /* they come again and again */
    assert_int_equal(query.k, 3);
    assert_int_equal(query.vector.n, 8);
    for (size_t d = 0; d < 8; d++) {
      sum += (double)query.vector.v[d];
      squares += (double)query.vector.v[d] * (double)query.vector.v[d];
    }
  }
  assert_true(fabs(sum / 1600) < 0.15); /* six standard deviations */
  assert_true(fabs(squares / 1600 - 1) < 0.22);
}

static void lines_keep_their_fields_and_get_those_that_they_lack(void **state)
{
  static const char text[] = "{\"id\":\"x\",\"space\":\"songs\",\"k\":4,\"like\":\"a\"}\n \n{\"vector\":[1,2]}\n";
  struct ctl_bench_pool_options options = { .space = "films", .method = "exact", .k = 3, .answer_topic = "answers" };
  AUTO(region_fini) struct region region = { 0 };
  AUTO(ctl_bench_pool_fini) struct ctl_bench_pool pool, bad;
  struct temp_dir dir;
  char path[PATH_MAX];

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/q.jsonl", dir.path);
  options.path = path;
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
  assert_ok(ctl_bench_pool_open(&options, &pool));
  assert_int_equal(pool.n, 2);
  struct query first = decode(&pool, 0, &region), second = decode(&pool, 1, &region);
  assert_true(span_equal(first.space, span_of_str("songs")) && span_equal(second.space, span_of_str("films")));
  assert_true(first.k == 4 && second.k == 3 && second.vector.n == 2);
  file = fopen(path, "w");
  fputs("{\"reply_topic\": \"elsewhere\"}\n", file);
  fclose(file);
  assert_fails(ctl_bench_pool_open(&options, &bad), ERR_QUERY, "line 1: reply_topic: the answer would go to elsewhere");
  temp_dir_fini(&dir);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(percentiles_are_exact),
    cmocka_unit_test(errors_and_missing_answers_are_not_in_the_percentiles),
    cmocka_unit_test(every_answer_is_in_the_bin_of_its_latency),
    cmocka_unit_test(a_load_that_was_not_made_is_doubted),
    cmocka_unit_test(a_report_without_answers_is_printed),
    cmocka_unit_test(a_plot_that_cannot_be_written_is_named),
    cmocka_unit_test(random_queries_follow_from_their_seed),
    cmocka_unit_test(lines_keep_their_fields_and_get_those_that_they_lack),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
