/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on scores, to the last bit: they are compared with sums as an engine computes them, in f32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "engine/mol/mol_bound.h"
#include "tests/support/dice.h"

enum { LOGITS_MAX = 64, ROUNDS = 20000 };

static struct dice dice;

static void draw(struct mol_shape *shape, struct mol_query *query)
{
  *shape = (struct mol_shape){
    .n_query_components = 1 + dice_below(&dice, 8),
    .n_item_components = 1 + dice_below(&dice, 8),
    .component_dim = 1 + dice_below(&dice, 64),
    .inv_temperature = 0.1f + fabsf(dice_float(&dice, 30.0f)),
  };
  *query = (struct mol_query){ .max_norm = dice_below(&dice, 2) ? 1.0f : 0.1f + fabsf(dice_float(&dice, 0.9f)) };
  if (dice_below(&dice, 4) == 0)
    query->max_norm = ldexpf(query->max_norm, -(int)dice_below(&dice, 149)); /* down to the smallest numbers */
}

/* The score of an item all of whose dot products are the same. As an engine computes it, the largest weight is 1. */
static float score_of(const struct mol_shape *shape, float dot)
{
  size_t n = shape->n_query_components * shape->n_item_components;
  float num = 0.0f, den = 0.0f, logit = dot * shape->inv_temperature;
  size_t largest = dice_below(&dice, n);

  for (size_t p = 0; p < n; p++) {
    float weight = p == largest ? 1.0f : expf(dice_float(&dice, 3.0f) - 3.0f);
    num += weight * logit;
    den += weight;
  }
  return num / den;
}

static void no_item_scores_above_the_bound_of_its_largest_dot_product(void **state)
{
  struct mol_shape shape;
  struct mol_query query;
  size_t n_above = 0;

  (void)state;
  for (int i = 0; i < ROUNDS; i++) {
    draw(&shape, &query);
    float dot = dice_float(&dice, query.max_norm);
    float score = score_of(&shape, dot);
    assert_true(score <= mol_bound_score_from_dot(&shape, &query, dot));
    n_above += score > dot * shape.inv_temperature;
  }
  assert_true(n_above > 0); /* without slack, the bound would be broken */
}

static void of_an_unknown_item_the_bound_is_the_highest_score_that_can_be(void **state)
{
  struct mol_shape shape;
  struct mol_query query;

  (void)state;
  for (int i = 0; i < ROUNDS; i++) {
    draw(&shape, &query);
    float bound = mol_bound_score_from_dot(&shape, &query, INFINITY);
    assert_true(score_of(&shape, query.max_norm) <= bound);
    assert_true(bound <= query.max_norm * shape.inv_temperature * 1.0001f + 1e-40f);
  }
}

static void an_item_below_the_dot_product_of_a_score_is_below_the_score(void **state)
{
  struct mol_shape shape;
  struct mol_query query;

  (void)state;
  for (int i = 0; i < ROUNDS; i++) {
    draw(&shape, &query);
    float wanted = dice_float(&dice, query.max_norm * shape.inv_temperature);
    double dot = mol_bound_dot_from_score(&shape, &query, wanted);
    float below = (float)dot;
    while ((double)below >= dot)
      below = nextafterf(below, -INFINITY);
    assert_true(score_of(&shape, below) < wanted);
    assert_true(fabs(dot * shape.inv_temperature - wanted) <= 0.001 * query.max_norm * shape.inv_temperature + 1e-40);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_item_scores_above_the_bound_of_its_largest_dot_product),
    cmocka_unit_test(of_an_unknown_item_the_bound_is_the_highest_score_that_can_be),
    cmocka_unit_test(an_item_below_the_dot_product_of_a_score_is_below_the_score),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
