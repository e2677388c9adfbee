/* SPDX-License-Identifier: Apache-2.0 */
/* Which hits are left out, and what that means for the receipt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/min_score.h"

enum { HITS = 4 };

static const float scores[HITS] = { 3.0f, 2.0f, 2.0f, -1.0f };

static struct answer cut(const struct query *query, size_t n_hits, struct receipt receipt)
{
  static struct hit hits[HITS];

  for (size_t i = 0; i < HITS; i++)
    hits[i] = (struct hit){ .score = scores[i] };
  struct answer answer = { .hits = hits, .n_hits = n_hits, .receipt = receipt };
  min_score_cut(query, &answer);
  return answer;
}

static void cuts(float min_score, struct receipt receipt, size_t n_left, struct receipt expected)
{
  const struct query query = { .k = HITS, .has_min_score = true, .min_score = min_score };
  const struct answer answer = cut(&query, HITS, receipt);

  assert_int_equal(answer.n_hits, n_left);
  assert_true(answer.receipt.is_exact == expected.is_exact);
  assert_true(answer.receipt.has_bound == expected.has_bound);
  if (expected.has_bound)
    assert_true(answer.receipt.bound == expected.bound);
}

static void test_hits_below_it_are_left_out(void **state)
{
  const struct receipt all = { .is_exact = true }, best = { true, true, -1.0f };

  (void)state;
  cuts(-1.0f, all, 4, all);
  cuts(-0.5f, all, 3, (struct receipt){ true, true, -1.0f });
  cuts(2.0f, best, 3, best);
  cuts(2.5f, best, 1, (struct receipt){ true, true, 2.0f });
  cuts(3.5f, all, 0, (struct receipt){ true, true, 3.0f });
}

static void test_a_bound_below_it_proves_the_answer(void **state)
{
  (void)state;
  cuts(2.0f, (struct receipt){ false, true, 1.5f }, 3, (struct receipt){ true, true, 1.5f });
  cuts(2.0f, (struct receipt){ false, true, -3.0f }, 3, (struct receipt){ true, true, -1.0f });
  cuts(2.0f, (struct receipt){ false, true, 2.0f }, 3, (struct receipt){ false, true, 2.0f });
  cuts(3.5f, (struct receipt){ false, true, 4.0f }, 0, (struct receipt){ false, true, 4.0f });
}

static void test_without_it_nothing_changes(void **state)
{
  const struct query query = { .k = HITS, .min_score = 10.0f };
  const struct answer answer = cut(&query, HITS, (struct receipt){ false, true, 1.0f });

  (void)state;
  assert_int_equal(answer.n_hits, HITS);
  assert_false(answer.receipt.is_exact);
  assert_false(min_score_is_missed(&query, 5.0f));
}

static void test_an_answer_without_hits(void **state)
{
  const struct query query = { .k = HITS, .has_min_score = true, .min_score = 1.0f };
  const struct answer answer = cut(&query, 0, (struct receipt){ .is_exact = true });

  (void)state;
  assert_int_equal(answer.n_hits, 0);
  assert_false(answer.receipt.has_bound);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hits_below_it_are_left_out),
    cmocka_unit_test(test_a_bound_below_it_proves_the_answer),
    cmocka_unit_test(test_without_it_nothing_changes),
    cmocka_unit_test(test_an_answer_without_hits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
