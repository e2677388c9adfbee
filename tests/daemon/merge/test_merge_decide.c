/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the parts of a query become when shards are missing, have errors, or differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/merge/merge_decide.h"
#include "tests/support/assert_ok.h"

enum { PARTS_MAX = 8 };

static const struct kernels *kernels;
static struct region region;
static struct merge_part parts[PARTS_MAX];
static size_t n_parts;
static struct answer out;

static int begin(void **state)
{
  (void)state;
  region_reset(&region);
  n_parts = 0;
  return 0;
}

static int end_all(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

/* Add a part of an empty shard. */
static struct merge_part *add(uint32_t shard, uint32_t n_shards, const char *model, bool allow_partial)
{
  parts[n_parts] = (struct merge_part){
    .head = { .shard = shard,
              .n_shards = n_shards,
              .model = span_of_str(model),
              .k = 5,
              .allow_partial = allow_partial },
    .answer = { .id = span_of_str("id"),
                .space = span_of_str("books"),
                .generation = 1,
                .receipt = { .is_exact = true } },
  };
  return &parts[n_parts++];
}

static void add_error(uint32_t shard, uint32_t n_shards, bool allow_partial, enum answer_error error)
{
  struct merge_part *part = add(shard, n_shards, "", allow_partial);

  part->answer.error = error;
  part->answer.error_message = "that is wrong";
}

static void decide(void)
{
  assert_ok(merge_decide(kernels, parts, n_parts, &region, &out));
}

static void assert_error(enum answer_error error, const char *message)
{
  assert_int_equal(out.error, error);
  assert_string_equal(out.error_message, message);
  assert_true(span_equal(out.id, span_of_str("id")));
}

static void all_parts_in_any_order_are_joined(void **state)
{
  (void)state;
  add(2, 3, "m", false);
  add(0, 3, "m", false);
  add(1, 3, "m", false);
  decide();
  assert_int_equal(out.error, ANSWER_OK);
  assert_int_equal(out.n_parts, 3);
  assert_true(out.receipt.is_exact);
}

static void the_first_shards_error_is_the_answers(void **state)
{
  (void)state;
  add_error(2, 3, false, ANSWER_INTERNAL);
  add(0, 3, "m", false);
  add_error(1, 3, false, ANSWER_NOT_SEEN);
  decide();
  assert_error(ANSWER_NOT_SEEN, "shard 1 of 3: that is wrong");
}

static void missing_shards_are_named(void **state)
{
  (void)state;
  add(2, 4, "m", false);
  add(0, 4, "m", false);
  decide();
  assert_error(ANSWER_PARTIAL, "shards 1 and 3 have not answered in time (the shards are 0 to 3)");
}

static void one_missing_shard_is_no_count_of_shards(void **state)
{
  (void)state;
  add(0, 2, "m", false);
  decide();
  assert_error(ANSWER_PARTIAL, "shard 1 has not answered in time (the shards are 0 to 1)");
}

static void many_missing_shards_are_not_all_named(void **state)
{
  (void)state;
  add(0, 1000, "m", false);
  decide();
  assert_error(ANSWER_PARTIAL, "shards 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 983 more have not "
                               "answered in time (the shards are 0 to 999)");
}

static void a_query_may_allow_missing_and_failed_shards(void **state)
{
  (void)state;
  add(0, 4, "m", true);
  add_error(1, 4, true, ANSWER_INTERNAL);
  add(3, 4, "m", true);
  decide();
  assert_int_equal(out.error, ANSWER_OK);
  assert_int_equal(out.n_parts, 2);
  assert_int_equal(out.n_shards, 4);
  assert_false(out.receipt.is_exact);
}

static void an_error_of_all_shards_is_one_even_if_some_may_be_missing(void **state)
{
  (void)state;
  add_error(0, 2, true, ANSWER_BAD_QUERY);
  add_error(1, 2, true, ANSWER_BAD_QUERY);
  decide();
  assert_error(ANSWER_BAD_QUERY, "shard 0 of 2: that is wrong");
}

static void different_models_are_not_joined(void **state)
{
  (void)state;
  add(0, 2, "one", false);
  add(1, 2, "two", false);
  decide();
  assert_error(ANSWER_PARTIAL, "the shards have different models, so their scores cannot be compared: shard 0 has "
                               "generation 1, one; shard 1 has generation 1, two");
}

static void generations_with_the_same_file_are_not_joined(void **state)
{
  (void)state;
  add(0, 2, "m", false);
  add(1, 2, "m", false)->answer.generation = 2;
  decide();
  assert_error(ANSWER_PARTIAL, "the shards have different models, so their scores cannot be compared: shard 0 has "
                               "generation 1, m; shard 1 has generation 2, m");
}

static void a_daemon_that_does_not_know_max_per_is_told_apart(void **state)
{
  (void)state;
  add(0, 2, "m", false)->head.max_per = 2;
  add(1, 2, "m", false);
  decide();
  assert_error(ANSWER_PARTIAL, "shard 0 and shard 1 are of different versions: one does not know max_per");
}

static void a_daemon_that_does_not_know_mmr_is_told_apart(void **state)
{
  (void)state;
  add(0, 2, "m", false)->head.candidates = 2;
  add(1, 2, "m", false);
  decide();
  assert_error(ANSWER_PARTIAL, "shard 0 and shard 1 are of different versions: one does not know mmr");
}

static void a_daemon_that_does_not_know_boosts_is_told_apart(void **state)
{
  (void)state;
  add(0, 2, "m", false)->head.boosts = 2;
  add(1, 2, "m", false);
  decide();
  assert_error(ANSWER_PARTIAL, "shard 0 and shard 1 are of different versions: one does not know boosts");
}

static void a_daemon_that_does_not_know_attributes_is_told_apart(void **state)
{
  (void)state;
  add(0, 2, "m", false)->head.attributes = 1;
  add(1, 2, "m", false);
  decide();
  assert_error(ANSWER_PARTIAL, "shard 0 and shard 1 are of different versions: one does not know attributes");
}

static void parts_without_boosts_are_not_joined_with_those_that_have_them(void **state)
{
  (void)state;
  add(0, 3, "m", true);
  add(1, 3, "m", true)->head.boosts = 2;
  add(2, 3, "m", true)->head.boosts = 2;
  parts[0].answer.space = span_of_str("other");
  decide();
  assert_int_equal(out.error, ANSWER_OK);
  assert_int_equal(out.n_parts, 2);
  assert_true(span_equal(out.space, span_of_str("books")));
}

static void of_different_generations_the_most_frequent_is_used(void **state)
{
  (void)state;
  add(0, 3, "m", true)->answer.generation = 2;
  add(1, 3, "m", true);
  add(2, 3, "m", true)->answer.generation = 2;
  decide();
  assert_int_equal(out.error, ANSWER_OK);
  assert_int_equal(out.n_parts, 2);
  assert_int_equal(out.generation, 2);
}

static void of_different_models_the_most_frequent_is_used(void **state)
{
  (void)state;
  add(0, 3, "one", true);
  add(1, 3, "two", true);
  add(2, 3, "two", true);
  decide();
  assert_int_equal(out.error, ANSWER_OK);
  assert_int_equal(out.n_parts, 2);
  assert_false(out.receipt.is_exact);
}

static void of_equally_frequent_models_that_of_the_first_shard_is_used(void **state)
{
  (void)state;
  add(3, 4, "two", true)->answer.generation = 2;
  add(1, 4, "two", true)->answer.generation = 2;
  add(2, 4, "one", true);
  add(0, 4, "one", true);
  decide();
  assert_int_equal(out.n_parts, 2);
  assert_int_equal(out.generation, 1);
}

static void a_model_that_comes_later_and_is_less_frequent_is_not_used(void **state)
{
  (void)state;
  add(0, 3, "two", true)->answer.generation = 2;
  add(1, 3, "two", true)->answer.generation = 2;
  add(2, 3, "one", true);
  decide();
  assert_int_equal(out.n_parts, 2);
  assert_int_equal(out.generation, 2);
}

/* Whatever the order of the parts: two merges give the same answer. */
static void of_equally_complete_layouts_the_smaller_one_is_used(void **state)
{
  static const struct {
    uint32_t shard, of;
  } in[] = { { 3, 4 }, { 0, 2 }, { 0, 4 } };

  (void)state;
  for (size_t first = 0; first < 3; first++) {
    n_parts = 0;
    for (size_t i = 0; i < 3; i++)
      add(in[(first + i) % 3].shard, in[(first + i) % 3].of, "m", true);
    decide();
    assert_int_equal(out.n_shards, 2);
    assert_int_equal(out.n_parts, 1);
  }
}

static void the_most_complete_layout_is_used(void **state)
{
  (void)state;
  add(0, 4, "m", false);
  add(1, 4, "m", false);
  add(2, 4, "m", false);
  add(1, 2, "m", false);
  add(0, 2, "m", false);
  decide();
  assert_int_equal(out.error, ANSWER_OK);
  assert_int_equal(out.n_shards, 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(all_parts_in_any_order_are_joined, begin),
    cmocka_unit_test_setup(the_first_shards_error_is_the_answers, begin),
    cmocka_unit_test_setup(missing_shards_are_named, begin),
    cmocka_unit_test_setup(one_missing_shard_is_no_count_of_shards, begin),
    cmocka_unit_test_setup(many_missing_shards_are_not_all_named, begin),
    cmocka_unit_test_setup(a_query_may_allow_missing_and_failed_shards, begin),
    cmocka_unit_test_setup(an_error_of_all_shards_is_one_even_if_some_may_be_missing, begin),
    cmocka_unit_test_setup(different_models_are_not_joined, begin),
    cmocka_unit_test_setup(generations_with_the_same_file_are_not_joined, begin),
    cmocka_unit_test_setup(a_daemon_that_does_not_know_max_per_is_told_apart, begin),
    cmocka_unit_test_setup(a_daemon_that_does_not_know_mmr_is_told_apart, begin),
    cmocka_unit_test_setup(a_daemon_that_does_not_know_boosts_is_told_apart, begin),
    cmocka_unit_test_setup(a_daemon_that_does_not_know_attributes_is_told_apart, begin),
    cmocka_unit_test_setup(parts_without_boosts_are_not_joined_with_those_that_have_them, begin),
    cmocka_unit_test_setup(of_different_generations_the_most_frequent_is_used, begin),
    cmocka_unit_test_setup(of_different_models_the_most_frequent_is_used, begin),
    cmocka_unit_test_setup(of_equally_frequent_models_that_of_the_first_shard_is_used, begin),
    cmocka_unit_test_setup(a_model_that_comes_later_and_is_less_frequent_is_not_used, begin),
    cmocka_unit_test_setup(of_equally_complete_layouts_the_smaller_one_is_used, begin),
    cmocka_unit_test_setup(the_most_complete_layout_is_used, begin),
  };

  if (kernels_get(isa_detect(), &kernels) != ERR_OK)
    return 1;
  return cmocka_run_group_tests(tests, NULL, end_all);
}
