/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the parts of sluicectl eval: ids as keys, comparison with exact, and the printed report.
 * tests/e2e/test_eval.py runs the command. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>

#include "daemon/ctl/eval/ctl_eval_report.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

static uint64_t seed;

static void keys_have_the_order_of_ids(void **state)
{
  const int64_t ids[] = { INT64_MIN, INT64_MIN + 1, -256, -255, -1, 0, 1, 255, 256, 65535, 1 << 24, INT64_MAX };
  struct dice dice = { seed };
  uint8_t a[CTL_EVAL_KEY_BYTES], b[CTL_EVAL_KEY_BYTES];

  (void)state;
  for (size_t i = 0; i < 20000; i++) {
    int64_t x = i < 144 ? ids[i / 12] : (int64_t)dice_u64(&dice) >> dice_below(&dice, 64);
    int64_t y = i < 144 ? ids[i % 12] : (int64_t)dice_u64(&dice) >> dice_below(&dice, 64);
    ctl_eval_key_of(x, a);
    ctl_eval_key_of(y, b);
    int order = span_compare(span_of(a, sizeof a), span_of(b, sizeof b));
    assert_int_equal((order > 0) - (order < 0), (x > y) - (x < y));
    assert_true(ctl_eval_id_of(span_of(a, sizeof a)) == x);
  }
}

/* Three queries with k = 12. The exact answer of each is 0..11. The method finds all of them for query 0, only id 0 at
 * place 6 for query 1, and nothing for query 2. */
enum { N = 3, K = 12 };

static int64_t exact_ids[N * K], ids[N * K];
static uint8_t all_exact[N] = { 1, 1, 1 }, some_exact[N] = { 1, 0, 0 };
static size_t full[N] = { K, K, K }, hits[N] = { K, 8, 0 };
static uint64_t scored[N] = { 100, 100, 100 }, fewer[N] = { 12, 8, 1 }, none[N];
static struct ctl_eval_timing timings[] = {
  { 90000000, true, false }, { 2000000, true, true }, { 1000000, false, true },
  { 4000000, true, true },   { 0, true, true },
};

static void set_answers(struct ctl_eval_answers *exact, struct ctl_eval_answers *method)
{
  for (int64_t i = 0; i < N * K; i++) {
    exact_ids[i] = i % K;
    ids[i] = i < K ? K - 1 - i : -1; /* query 0: all exact hits, in reverse */
  }
  for (int64_t i = 0; i < 8; i++)
    ids[K + i] = i == 6 ? 0 : 1000 + i; /* query 1: one exact hit among eight */
  *exact = (struct ctl_eval_answers){ .n = N,
                                  .k = K,
                                  .width = K,
                                  .ids = exact_ids,
                                  .exact = all_exact,
                                  .n_hits = full,
                                  .scored = scored,
                                  .candidates = none,
                                  .timings = timings,
                                  .n_timings = 5 };
  *method = (struct ctl_eval_answers){ .n = N,
                                   .k = K,
                                   .width = K,
                                   .ids = ids,
                                   .exact = some_exact,
                                   .n_hits = hits,
                                   .scored = fewer,
                                   .candidates = fewer,
                                   .timings = timings,
                                   .n_timings = 5 };
}

static bool is_near(double a, double b)
{
  return fabs(a - b) < 1e-12;
}

static void recall_is_relative_to_exact(void **state)
{
  struct ctl_eval_answers exact, method;
  struct ctl_eval_row row;

  (void)state;
  set_answers(&exact, &method);
  assert_ok(ctl_eval_compare(&method, &exact, NULL, &row));
  /* recall@1, @10 and @12. The first ten hits of query 0 are 11 to 2; query 1 has found 0. */
  assert_true(is_near(row.recall[0], 0));
  assert_true(is_near(row.recall[1], (8.0 / 10 + 1.0 / 10) / 3));
  assert_true(is_near(row.recall[2], (1 + 1.0 / 12 + 0) / 3));
  assert_false(row.has_targets);
  assert_true(is_near(row.proven, 1.0 / 3));
  assert_true(is_near(row.scored, 7) && is_near(row.candidates, 7));
  assert_int_equal(row.n_short, 2);
  assert_int_equal(row.min_hits, 0);
  assert_ok(ctl_eval_compare(&exact, &exact, NULL, &row));
  for (size_t r = 0; r < 3; r++)
    assert_true(row.recall[r] == 1);
  assert_true(row.proven == 1);
  assert_int_equal(row.n_short, 0);
}

static void recall_is_reported_at_powers_of_ten_and_at_k(void **state)
{
  static const struct {
    size_t k, n, ranks[CTL_EVAL_RECALLS_MAX];
  } rows[] = {
    { 1, 1, { 1 } },          { 2, 2, { 1, 2 } },         { 10, 2, { 1, 10 } },
    { 12, 3, { 1, 10, 12 } }, { 100, 3, { 1, 10, 100 } }, { 5000, 4, { 1, 10, 100, 5000 } },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    size_t ranks[CTL_EVAL_RECALLS_MAX];
    assert_int_equal(ctl_eval_recall_ranks(rows[i].k, ranks), rows[i].n);
    assert_memory_equal(ranks, rows[i].ranks, rows[i].n * sizeof *ranks);
  }
}

/* The targets' places: 3, 0 and missing in the exact answers; 8, 6 and missing in the method's. */
static int64_t target_ids[N] = { 3, 0, 77 };

static struct tensor targets_of(const int64_t *ids_of_targets)
{
  return (struct tensor){
    "target_ids", TENSOR_I64, { .n_dims = 1, .dim = { N } }, span_of(ids_of_targets, N * sizeof *ids_of_targets)
  };
}

static void hit_rates_are_of_targets_and_ratios_relative_to_exact(void **state)
{
  static const int64_t nowhere[N] = { 77, 78, 79 };
  struct tensor targets = targets_of(target_ids), lost = targets_of(nowhere);
  struct ctl_eval_answers exact, method;
  struct ctl_eval_row row;

  (void)state;
  set_answers(&exact, &method);
  assert_ok(ctl_eval_compare(&exact, &exact, &targets, &row));
  assert_true(row.has_targets);
  assert_true(is_near(row.hit_rate[0], 1.0 / 3));
  for (size_t r = 1; r < CTL_EVAL_N_RANKS; r++)
    assert_true(is_near(row.hit_rate[r], 2.0 / 3) && is_near(row.hit_ratio[r], 1));
  assert_ok(ctl_eval_compare(&method, &exact, &targets, &row));
  assert_true(is_near(row.hit_rate[0], 0) && is_near(row.hit_ratio[0], 0));
  assert_true(is_near(row.hit_rate[1], 0) && is_near(row.hit_ratio[1], 0));
  assert_true(is_near(row.hit_rate[2], 2.0 / 3) && is_near(row.hit_ratio[2], 1));
  assert_ok(ctl_eval_compare(&method, &exact, &lost, &row));
  for (size_t r = 0; r < CTL_EVAL_N_RANKS; r++)
    assert_true(row.hit_rate[r] == 0 && isnan(row.hit_ratio[r])); /* no ratio, because exact finds none */
}

static void times_are_of_warm_whole_batches_if_there_are_any(void **state)
{
  struct ctl_eval_answers exact, method;
  struct ctl_eval_row row;

  (void)state;
  set_answers(&exact, &method);
  assert_ok(ctl_eval_compare(&method, &exact, NULL, &row));
  assert_int_equal(row.n_timed, 2);
  assert_true(is_near(row.median_ms, 3) && is_near(row.p95_ms, 4));
  method.n_timings = 1; /* only the cold batch */
  assert_ok(ctl_eval_compare(&method, &exact, NULL, &row));
  assert_int_equal(row.n_timed, 1);
  assert_true(is_near(row.median_ms, 90) && is_near(row.p95_ms, 90));
  method.timings = timings + 2; /* only a warm batch that is not whole */
  assert_ok(ctl_eval_compare(&method, &exact, NULL, &row));
  assert_true(row.n_timed == 1 && is_near(row.median_ms, 1));
}

static char *print_table(size_t n_items, const struct tensor *targets)
{
  struct ctl_eval_answers exact, method;
  struct ctl_eval_row rows[2];
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  set_answers(&exact, &method);
  assert_ok(ctl_eval_compare(&exact, &exact, targets, &rows[0]));
  assert_ok(ctl_eval_compare(&method, &exact, targets, &rows[1]));
  rows[0].method = "exact";
  rows[0].ran = "brute_force";
  rows[1].method = rows[1].ran = "average(12)";
  ctl_eval_report_print(rows, 2, n_items, out);
  fclose(out);
  return text;
}

static void the_table_has_the_ranks_up_to_k_and_names_short_lists(void **state)
{
  char *text = print_table(100, NULL);

  (void)state;
  assert_non_null(strstr(text, "    recall@1   recall@10   recall@12"));
  assert_null(strstr(text, "HR@"));
  assert_non_null(strstr(text, "exact = brute_force       1.000"));
  assert_non_null(
      strstr(text, "average(12): 2 of 3 queries have fewer than 12 hits (fewest: 0), because the method has"));
  assert_null(strstr(text, "exact: "));
  free(text);
  text = print_table(11, NULL);
  assert_non_null(strstr(text, "because there are only 11 items to find"));
  free(text);
}

static void exact_answers_that_are_short_blame_no_argument(void **state)
{
  struct ctl_eval_answers exact, method;
  struct ctl_eval_row row;
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  (void)state;
  set_answers(&exact, &method);
  method.exact = all_exact;
  assert_ok(ctl_eval_compare(&method, &exact, NULL, &row));
  row.method = row.ran = "exact";
  ctl_eval_report_print(&row, 1, 100, out);
  fclose(out);
  assert_non_null(strstr(text, "because no others can be: --max-per, --min-score or the filter leaves them out"));
  free(text);
}

static void targets_have_their_own_table(void **state)
{
  struct tensor targets = targets_of(target_ids);
  char *text = print_table(100, &targets);

  (void)state;
  assert_non_null(strstr(text, "method                HR@1  ratio   HR@5  ratio  HR@10  ratio  median ms\n"
                               "exact = brute_force  0.333  1.000  0.667  1.000  0.667  1.000      3.000\n"
                               "average(12)          0.000  0.000  0.000  0.000  0.667  1.000      3.000\n"
                               "\n"
                               "method "));
  assert_null(strstr(text, "HR@50"));
  assert_non_null(strstr(text, "as in Table 4 of the Mixture-of-Logits paper"));
  free(text);
  target_ids[0] = target_ids[1] = 77;
  text = print_table(100, &targets);
  assert_non_null(strstr(text, "average(12)          0.000      -  0.000      -  0.000      -      3.000\n"));
  free(text);
  target_ids[0] = 3;
  target_ids[1] = 0;
}

static void json_has_the_same_numbers(void **state)
{
  const struct query common = { .n_boosts = 1, .now_unix_ms = 1790000000250 };
  const struct ctl_eval_setting setting = {
    .similarity = "mol", .isa = "ref", .n_items = 100, .batch = 2, .n_threads = 1, .common = &common
  };
  struct ctl_eval_answers exact, method;
  struct ctl_eval_row row;
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);
  struct tensor targets = targets_of(target_ids);

  (void)state;
  set_answers(&exact, &method);
  assert_ok(ctl_eval_compare(&method, &exact, &targets, &row));
  row.hit_ratio[0] = (double)NAN;
  row.method = row.ran = "average(12)";
  ctl_eval_report_print_json(&row, &setting, out);
  fclose(out);
  assert_ptr_equal(strchr(text, '\n'), text + n - 1);
  json_t *json = json_loads(text, 0, NULL);
  assert_string_equal(json_string_value(json_object_get(json, "method")), "average(12)");
  assert_true(is_near(json_real_value(json_object_get(json, "hr_at_10")), 2.0 / 3));
  assert_true(is_near(json_real_value(json_object_get(json, "hr_ratio_at_10")), 1));
  assert_true(json_is_null(json_object_get(json, "hr_ratio_at_1")));
  assert_null(json_object_get(json, "hr_at_50"));
  assert_true(is_near(json_real_value(json_object_get(json, "recall_at_10")), row.recall[1]));
  assert_true(is_near(json_real_value(json_object_get(json, "recall_at_k")), row.recall[2]));
  assert_int_equal(json_integer_value(json_object_get(json, "short_queries")), 2);
  assert_int_equal(json_integer_value(json_object_get(json, "now_unix_ms")), 1790000000250);
  assert_true(is_near(json_real_value(json_object_get(json, "p95_ms")), 4));
  json_decref(json);
  free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_have_the_order_of_ids),
    cmocka_unit_test(recall_is_relative_to_exact),
    cmocka_unit_test(recall_is_reported_at_powers_of_ten_and_at_k),
    cmocka_unit_test(hit_rates_are_of_targets_and_ratios_relative_to_exact),
    cmocka_unit_test(times_are_of_warm_whole_batches_if_there_are_any),
    cmocka_unit_test(the_table_has_the_ranks_up_to_k_and_names_short_lists),
    cmocka_unit_test(exact_answers_that_are_short_blame_no_argument),
    cmocka_unit_test(targets_have_their_own_table),
    cmocka_unit_test(json_has_the_same_numbers),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
