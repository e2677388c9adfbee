/* SPDX-License-Identifier: Apache-2.0 */
/* mol_bounds(): every score lies within its bounds, and the bounds are close. Each level with a mol_bounds() of its own
 * is tested; without one the tests are skipped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/mol_reduced_gate.h"
#include "tests/support/assert_ok.h"
#include "tests/support/mol_case.h"
#include "tests/support/rough_math.h"

static struct dice dice;
static const struct kernels *machine;

static void skip_without_bounds(void)
{
  if (!machine->mol_bounds)
    skip();
}

/* Functions -------------------- */

/* Compare SiLU and exp of mol_bounds() with the functions in double. Of the allowed difference from mol_score()'s,
 * 2^-22 is reserved for mol_score()'s own error. */
static void check_functions(const float *x)
{
  float silu[ROUGH_LANES], e[ROUGH_LANES];

  memcpy(silu, x, sizeof silu);
  memcpy(e, x, sizeof e);
  rough_silu(silu);
  rough_exp(e);
  for (size_t i = 0; i < ROUGH_LANES; i++) {
    double right_exp = exp((double)x[i]), right_silu = (double)x[i] / (1 + exp(-(double)x[i]));
    if (x[i] > -87 && !(fabs((double)silu[i] - right_silu) <= (ROUGH_SILU_ERROR - 0x1p-22) * fabs(right_silu)))
      fail_msg("SiLU(%a) is %a", (double)x[i], (double)silu[i]);
    if (x[i] > -87 && x[i] < 88 && !(fabs((double)e[i] - right_exp) <= (ROUGH_EXP_ERROR - 0x1p-22) * right_exp))
      fail_msg("exp(%a) is %a", (double)x[i], (double)e[i]);
    assert_true(x[i] > -104 || e[i] < 1e-44f);
  }
}

static void functions_are_nearly_right(void **state)
{
  static const float scales[] = { 1e-30f, 1e-3f, 0.3f, 1.0f, 3.0f, 20.0f, 90.0f, 1e4f, 1e9f, 1e14f };

  (void)state;
  skip_without_bounds();
  for (size_t round = 0; round < 100000; round++) {
    float x[ROUGH_LANES];
    dice_fill(&dice, x, ROUGH_LANES, scales[round % 10]);
    check_functions(x);
  }
}

/* Bounds -------------------- */

struct case_bounds {
  float phi[MOL_LANES], lower[MOL_LANES], upper[MOL_LANES];
};

static void run(const struct mol_case *c, const struct mol_reduced_gate *reduced_gate, struct case_bounds *out)
{
  struct mol_gate gate = gate_new(c);
  float *scratch = block_new_aligned(mol_bounds_scratch_floats(&c->shape), sizeof *scratch);
  const float *lines[2000];
  struct mol_prefetch prefetch = { lines, dice_below(&dice, 2000) };

  for (size_t i = 0; i < prefetch.n; i++)
    lines[i] = c->items;

  machine->mol_score(&c->shape, &gate, c->query, c->query_gate, c->items, c->item_gates, scratch, NULL, out->phi);
  for (size_t i = 0; i < mol_bounds_scratch_floats(&c->shape); i++)
    scratch[i] = INFINITY;
  machine->mol_bounds(&c->shape, &gate, reduced_gate, c->query, c->query_gate, c->items, c->item_gates, scratch,
                      &prefetch, out->lower, out->upper);
  gate_free(&gate);
  free(scratch);
}

/* Check the bounds of one case. Returns the largest distance of an upper bound from its score. */
static float check_bounds(const struct mol_case *c)
{
  struct mol_gate gate = gate_new(c);
  struct mol_reduced_gate *reduced_gate;
  struct case_bounds b;
  float most = 0;

  assert_ok(mol_reduced_gate_open(&c->shape, &gate, &reduced_gate));
  assert_non_null(reduced_gate);
  run(c, reduced_gate, &b);
  for (size_t i = 0; i < MOL_LANES; i++) {
    if (!(b.lower[i] <= b.phi[i] && b.phi[i] <= b.upper[i]))
      fail_msg("%zux%zux%zu, hidden %zu: the score is %.9g, its bounds %.9g and %.9g", c->shape.n_query_components,
               c->shape.n_item_components, c->shape.component_dim, c->shape.gate_hidden, (double)b.phi[i],
               (double)b.lower[i], (double)b.upper[i]);
    most = fmaxf(most, b.upper[i] - b.phi[i]);
  }
  mol_reduced_gate_close(&reduced_gate);
  gate_free(&gate);
  return most;
}

static void scale_weights(struct mol_case *c, float first, float second)
{
  size_t n = n_logits_of(&c->shape) * c->shape.gate_hidden;

  scale_floats(c->w1, n, first);
  scale_floats(c->w2, n, second);
}

static void scores_are_within_bounds(void **state)
{
  static const struct mol_shape shapes[] = {
    { 8, 8, 32, 128, 20.0f }, { 8, 4, 64, 128, 20.0f }, { 5, 3, 12, 19, 20.0f }, { 1, 1, 1, 1, 20.0f },
    { 3, 7, 13, 33, 20.0f },  { 2, 1, 67, 5, 1.0f },    { 16, 2, 8, 66, 20.0f }, { 9, 9, 4, 8, 100.0f },
  };

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    for (int fill = 0; fill < N_FILLS; fill++) {
      struct mol_case c = mol_new(&dice, shapes[i], (enum fill)fill);
      check_bounds(&c);
      mol_free(&c);
    }
  }
}

/* Sizes beyond and at MATRIX_SPECTRAL_MAX: beyond it the proof uses Frobenius norms. */
static void scores_are_within_bounds_for_large_shapes(void **state)
{
  static const struct mol_shape shapes[] = { { 16, 17, 4, 300, 20.0f }, { 16, 16, 4, 257, 20.0f } };

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    struct mol_case c = mol_new(&dice, shapes[i], FILL_RANDOM);
    scale_weights(&c, 0.1f, 0.1f);
    check_bounds(&c);
    mol_free(&c);
  }
}

static void scores_are_within_bounds_for_odd_shapes_and_scales(void **state)
{
  static const float scales[] = { 0.0f, 1e-30f, 1e-3f, 0.03f, 0.3f, 1.0f, 10.0f, 1e3f };

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < 600; i++) {
    struct mol_shape shape = { 1 + dice_below(&dice, 12), 1 + dice_below(&dice, 9), 1 + dice_below(&dice, 40),
                               1 + dice_below(&dice, 140), dice_below(&dice, 3) ? 20.0f : 1.0f };
    struct mol_case c =
        mol_new(&dice, shape, dice_below(&dice, 2) ? FILL_RANDOM : (enum fill)dice_below(&dice, N_FILLS));
    scale_weights(&c, scales[dice_below(&dice, 8)], scales[dice_below(&dice, 8)]);
    scale_floats(c.b1, shape.gate_hidden, scales[dice_below(&dice, 8)]);
    scale_floats(c.b2, n_logits_of(&shape), scales[dice_below(&dice, 8)]);
    scale_floats(c.item_gates, n_logits_of(&shape) * MOL_LANES, scales[dice_below(&dice, 8)]);
    check_bounds(&c);
    mol_free(&c);
  }
}

/* Return a number of units nearly half a unit away from an integer: the largest rounding error, with a chosen sign. */
static double rounded_by_half(bool is_up)
{
  return (double)(50 + dice_below(&dice, 300)) + (is_up ? -0.47 : 0.47);
}

/* A case with one-dimensional components, where the softmax has two logits that matter: all errors of a layer end in
 * logit 1. */
static struct mol_case case_of_two(size_t n_logits, size_t n_hidden)
{
  struct mol_case c = mol_new(&dice, (struct mol_shape){ 1, n_logits, 1, n_hidden, 1.0f }, FILL_RANDOM);

  c.query[0] = 1;
  scale_floats(c.w1, n_logits * n_hidden, 0);
  scale_floats(c.w2, n_logits * n_hidden, 0);
  scale_floats(c.b1, n_hidden, 0);
  scale_floats(c.b2, n_logits, 0);
  for (size_t p = 0; p < n_logits; p++) {
    c.query_gate[p] = 1;
    for (size_t lane = 0; lane < MOL_LANES; lane++)
      c.item_gates[p * MOL_LANES + lane] = p < 2 ? 12.0f : 0.0f;
  }
  return c;
}

/* Logit 0 is the largest and sets the rounding unit. The others are chosen so that their rounding errors add up in one
 * hidden unit, where SiLU is steep. */
static void scores_are_within_bounds_where_logits_are_rounded(void **state)
{
  enum { N = 64 };

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < 100; i++) {
    struct mol_case c = case_of_two(N, 1);
    double unit = 1.0 / INT16_LAYER_MAX, sum = 0, weight = ldexp(1, (int)dice_below(&dice, 4));
    for (size_t p = 0; p < N; p++) {
      bool is_up = dice_below(&dice, 2);
      double l = p == 0 ? 1 : rounded_by_half(is_up) * unit;
      c.w1[p] = p == 0 ? 0 : is_up ? (float)-weight : (float)weight;
      sum += l * (double)c.w1[p];
      for (size_t lane = 0; lane < MOL_LANES; lane++)
        c.items[p * MOL_LANES + lane] = (float)l;
    }
    c.b1[0] = (float)(2.4 - sum);
    c.w2[1] = dice_below(&dice, 2) ? 1.0f : -1.0f;
    check_bounds(&c);
    mol_free(&c);
  }
}

/* Hidden unit 0 is the largest and sets the rounding unit. The others are chosen so that their rounding errors add up
 * in logit 1. */
static void scores_are_within_bounds_where_hidden_units_are_rounded(void **state)
{
  enum { N = 128 };

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < 100; i++) {
    struct mol_case c = case_of_two(2, N);
    double largest = 10 / (1 + exp(-10.0)), unit = largest / INT16_LAYER_MAX, sum = 0;
    for (size_t lane = 0; lane < MOL_LANES; lane++) {
      c.items[lane] = 1;
      c.items[MOL_LANES + lane] = -1;
    }
    for (size_t j = 0; j < N; j++) {
      bool is_up = dice_below(&dice, 2);
      double h = j == 0 ? largest : rounded_by_half(is_up) * unit, y = h;
      for (size_t k = 0; k < 100; k++) /* SiLU's inverse */
        y = h * (1 + exp(-y));
      c.b1[j] = (float)y;
      c.w2[j * 2 + 1] = j == 0 ? 0 : is_up ? -0.125f : 0.125f;
      sum += (double)c.w2[j * 2 + 1] * h;
    }
    c.b2[1] = (float)-sum;
    check_bounds(&c);
    mol_free(&c);
  }
}

/* Choose an extra weight for an output that has n - 1 weights of size 1: all of these are then nearly half a unit away
 * from integers, in one direction. */
static float extra_weight(size_t n)
{
  double most = INT32_MAX / INT16_LAYER_MAX - (double)n / 2; /* the sum of the integers */
  double units = floor(most / (double)(n - 1)) - (double)dice_below(&dice, 4) - (dice_below(&dice, 2) ? 0.49 : 0.51);

  return (float)(most / units - (double)(n - 1));
}

static float small_weight(int exponent)
{
  return ldexpf(dice_below(&dice, 2) ? 1 : -1, exponent - (int)dice_below(&dice, 4));
}

/* Logit 1 is zero, and its weight sets the unit of the weights. The errors of the others add up in one hidden unit, where
 * SiLU is steep. */
static void scores_are_within_bounds_where_first_weights_are_rounded(void **state)
{
  enum { N = 1024 };

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < 20; i++) {
    struct mol_case c = case_of_two(N, 1);
    float weight = small_weight(-3), extra = extra_weight(N) * weight;
    for (size_t p = 0; p < N; p++) {
      c.w1[p] = p == 1 ? extra : weight;
      for (size_t lane = 0; lane < MOL_LANES; lane++)
        c.items[p * MOL_LANES + lane] = p == 1 ? 0 : 1;
    }
    c.b1[0] = 2.4f - (N - 1) * weight;
    c.w2[1] = dice_below(&dice, 2) ? 1 : -1;
    c.b2[1] = -2.2f * c.w2[1]; /* SiLU(2.4) */
    check_bounds(&c);
    mol_free(&c);
  }
}

/* Hidden unit 0 is zero, and its weight sets the unit of the weights. The errors of the others add up in logit 1. */
static void scores_are_within_bounds_where_second_weights_are_rounded(void **state)
{
  enum { N = 1024 };

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < 20; i++) {
    struct mol_case c = case_of_two(2, N);
    float weight = small_weight(-6), extra = extra_weight(N) * weight;
    for (size_t lane = 0; lane < MOL_LANES; lane++) {
      c.items[lane] = 1;
      c.items[MOL_LANES + lane] = -1;
    }
    for (size_t j = 0; j < N; j++) {
      c.b1[j] = j == 0 ? 0 : 10;
      c.w2[j * 2 + 1] = j == 0 ? extra : weight;
    }
    c.b2[1] = (float)-((N - 1) * (double)weight * 10 / (1 + exp(-10.0)));
    check_bounds(&c);
    mol_free(&c);
  }
}

static void check_infinite_gates(const struct mol_case *c)
{
  struct mol_gate gate = gate_new(c);
  struct mol_reduced_gate *reduced_gate;
  struct case_bounds b;

  assert_ok(mol_reduced_gate_open(&c->shape, &gate, &reduced_gate));
  run(c, reduced_gate, &b);
  for (size_t i = 0; i < MOL_LANES; i++) {
    assert_true(i % 2 ? b.upper[i] == INFINITY : b.upper[i] >= b.phi[i] && b.upper[i] < INFINITY);
    assert_true(i % 2 ? b.lower[i] == -INFINITY : b.lower[i] <= b.phi[i] && b.lower[i] > -INFINITY);
  }
  mol_reduced_gate_close(&reduced_gate);
  gate_free(&gate);
}

static void infinite_gates_have_no_bound(void **state)
{
  struct mol_case c;

  (void)state;
  skip_without_bounds();
  c = mol_new(&dice, (struct mol_shape){ 4, 4, 8, 16, 20.0f }, FILL_RANDOM);
  c.query_gate[3] = 3e38f;
  for (size_t i = 0; i < MOL_LANES; i++)
    c.item_gates[3 * MOL_LANES + i] = i % 2 ? 3e38f : 1e-38f;
  check_infinite_gates(&c);
  mol_free(&c);
}

/* Xavier-initialised weights, as in the benchmarks' random model: the scores' standard deviation is 1.6. */
static void bounds_of_a_random_model_are_close(void **state)
{
  static const struct mol_shape shapes[] = { { 8, 8, 32, 128, 20.0f }, { 5, 3, 12, 19, 20.0f } };
  float most = 0;

  (void)state;
  skip_without_bounds();
  for (size_t i = 0; i < 20; i++) {
    struct mol_case c = mol_new(&dice, shapes[i % 2], FILL_RANDOM);
    scale_weights(&c, 0.177f / 0.3f, 0.177f / 0.3f);
    most = fmaxf(most, check_bounds(&c));
    mol_free(&c);
  }
  print_message("random model: bounds are at most %.3f above scores\n", (double)most);
  assert_true(most < 0.5f);
}

static void weights_beyond_the_proof_have_no_bounds(void **state)
{
  static const float beyond[] = { 2e6f, -2e6f, INFINITY, NAN };
  struct mol_case c = mol_new(&dice, (struct mol_shape){ 4, 2, 8, 5, 20.0f }, FILL_RANDOM);
  float *const weights[] = { c.w1 + 39, c.b1 + 4, c.w2 + 39, c.b2 + 7 };

  (void)state;
  for (size_t w = 0; w < 4; w++) {
    for (size_t i = 0; i < 4; i++) {
      struct mol_reduced_gate *reduced_gate;
      float kept = *weights[w];
      *weights[w] = beyond[i];
      struct mol_gate gate = gate_new(&c);
      assert_ok(mol_reduced_gate_open(&c.shape, &gate, &reduced_gate));
      assert_null(reduced_gate);
      gate_free(&gate);
      *weights[w] = kept;
    }
  }
  mol_free(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(functions_are_nearly_right),
    cmocka_unit_test(scores_are_within_bounds),
    cmocka_unit_test(scores_are_within_bounds_for_large_shapes),
    cmocka_unit_test(scores_are_within_bounds_for_odd_shapes_and_scales),
    cmocka_unit_test(scores_are_within_bounds_where_logits_are_rounded),
    cmocka_unit_test(scores_are_within_bounds_where_hidden_units_are_rounded),
    cmocka_unit_test(scores_are_within_bounds_where_first_weights_are_rounded),
    cmocka_unit_test(scores_are_within_bounds_where_second_weights_are_rounded),
    cmocka_unit_test(infinite_gates_have_no_bound),
    cmocka_unit_test(bounds_of_a_random_model_are_close),
    cmocka_unit_test(weights_beyond_the_proof_have_no_bounds),
  };

  const struct kernels *below = NULL;
  int n_failed = 0;

  dice.state = dice_seed();
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    if (kernels_get(isa, &machine) != ERR_OK)
      return 1;
    bool is_own = machine->mol_bounds && (!below || machine->mol_bounds != below->mol_bounds);
    below = machine;
    if (!is_own && (machine->mol_bounds || isa != isa_detect()))
      continue;
    print_message("level %s\n", isa_name(isa));
    n_failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  return n_failed;
}
