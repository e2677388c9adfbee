/* SPDX-License-Identifier: Apache-2.0 */
/* mol_screen(): an item that reaches the threshold passes, and most others do not.
 *
 * A threshold that equals an item's score leaves no room: the item fails if the bound is smaller than the error of the
 * screen. So each item's score serves as threshold once. Each level with a mol_screen() of its own is tested, and
 * that of the level amx also with tiles in plain C; without one the tests are skipped.
 */
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
#include "tests/support/mol_screen_model.h"

static struct dice dice;
static const struct kernels *machine;

/* Of so many random cases one is tested, and of so many items one's score is a threshold. The address sanitizer finds no
 * more in the others. */
#ifdef __SANITIZE_ADDRESS__
static size_t one_of = 4, each_lane = 4;
#else
static size_t one_of = 1, each_lane = 1;
#endif

static void skip_without_screen(void)
{
  if (!machine->mol_screen)
    skip();
}

/* A case, prepared for mol_screen() and scored. */
struct screened {
  const struct mol_case *c;
  struct mol_gate gate;
  struct mol_reduced_gate *reduced_gate;
  struct mol_screen_query query;
  int16_t *numbers;
  uint32_t *words, *logits, *rows;
  float *gates, *scratch;
  float phi[MOL_LANES];
};

static struct screened screened_open(const struct mol_case *c)
{
  struct screened s = { .c = c, .gate = gate_new(c) };
  assert_ok(mol_reduced_gate_open(&c->shape, &s.gate, &s.reduced_gate));
  s.numbers = block_new_aligned(mol_screen_query_numbers(&c->shape), sizeof *s.numbers);
  s.words = block_new_aligned(mol_screen_words(&c->shape) * MOL_LANES, sizeof *s.words);
  s.logits = block_new(mol_screen_logit_rows(&c->shape) * MOL_LANES, sizeof *s.logits);
  s.rows = block_new_aligned(mol_screen_logit_rows(&c->shape) * SCREEN_LANES, sizeof *s.rows);
  s.gates = block_new_aligned(n_logits_of(&c->shape) * SCREEN_LANES, sizeof *s.gates);
  s.scratch = block_new_aligned(mol_bounds_scratch_floats(&c->shape), sizeof *s.scratch);
  machine->mol_score(&c->shape, &s.gate, c->query, c->query_gate, c->items, c->item_gates, s.scratch, NULL, s.phi);
  if (s.reduced_gate && mol_can_screen(s.reduced_gate)) {
    mol_screen_prepare(&c->shape, s.reduced_gate, c->query, c->query_gate, s.numbers, &s.query);
    machine->mol_screen_items(&c->shape, c->items, s.words);
  }
  return s;
}

static bool can_screen(const struct screened *s)
{
  return s->reduced_gate && mol_can_screen(s->reduced_gate);
}

static uint32_t screen(struct screened *s, float threshold)
{
  for (size_t i = 0; i < mol_bounds_scratch_floats(&s->c->shape); i++)
    s->scratch[i] = NAN;
  machine->mol_screen_begin();
  uint32_t lanes = machine->mol_screen_logits(&s->c->shape, s->reduced_gate, &s->query, s->words, threshold, s->logits);
  machine->mol_screen_append(s->logits, mol_screen_logit_rows(&s->c->shape), UINT32_MAX, s->rows, 0);
  machine->mol_screen_append((const uint32_t *)(const void *)s->c->item_gates, n_logits_of(&s->c->shape), UINT32_MAX,
                             (uint32_t *)(void *)s->gates, 0);
  const struct mol_screen_rows waiting = { s->rows, s->gates, SCREEN_LANES };
  const struct mol_screen_rows in_place = { s->logits, s->c->item_gates, MOL_LANES };
  uint32_t passing =
      machine->mol_screen(&s->c->shape, s->reduced_gate, &s->query, &waiting, threshold, s->scratch);
  assert_int_equal(
      machine->mol_screen(&s->c->shape, s->reduced_gate, &s->query, &in_place, threshold, s->scratch), passing);
  machine->mol_screen_end();
  return lanes & passing;
}

static void screened_close(struct screened *s)
{
  mol_reduced_gate_close(&s->reduced_gate);
  gate_free(&s->gate);
  free(s->numbers);
  free(s->words);
  free(s->logits);
  free(s->rows);
  free(s->gates);
  free(s->scratch);
}

/* Check that no item fails at a threshold that it reaches. Returns the share of the items that pass a threshold `above`
 * higher than their scores. */
static double check_screen(const struct mol_case *c, float above)
{
  struct screened s = screened_open(c);
  size_t n_passing = 0, n = 0;

  for (size_t i = dice_below(&dice, each_lane); can_screen(&s) && i < MOL_LANES; i += each_lane, n++) {
    uint32_t passing = screen(&s, s.phi[i]);
    for (size_t lane = 0; lane < MOL_LANES; lane++) {
      if (s.phi[lane] >= s.phi[i] && !(passing >> lane & 1))
        fail_msg("%zux%zux%zu, hidden %zu: a score of %.9g fails at %.9g", c->shape.n_query_components,
                 c->shape.n_item_components, c->shape.component_dim, c->shape.gate_hidden, (double)s.phi[lane],
                 (double)s.phi[i]);
    }
    n_passing += screen(&s, s.phi[i] + above) >> i & 1;
  }
  screened_close(&s);
  return n > 0 ? (double)n_passing / (double)n : 0;
}

static void scale_weights(struct mol_case *c, float first, float second)
{
  size_t n = n_logits_of(&c->shape) * c->shape.gate_hidden;

  scale_floats(c->w1, n, first);
  scale_floats(c->w2, n, second);
}

static void items_that_reach_the_threshold_pass(void **state)
{
  static const struct mol_shape shapes[] = {
    { 8, 8, 32, 128, 20.0f }, { 8, 4, 64, 128, 20.0f }, { 5, 3, 12, 19, 20.0f }, { 1, 1, 1, 1, 20.0f },
    { 3, 7, 13, 33, 20.0f },  { 2, 1, 67, 5, 1.0f },    { 16, 2, 8, 66, 20.0f }, { 9, 9, 4, 8, 100.0f },
  };

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    for (int fill = 0; fill < N_FILLS; fill++) {
      struct mol_case c = mol_new(&dice, shapes[i], (enum fill)fill);
      check_screen(&c, 0);
      mol_free(&c);
    }
  }
}

static void items_that_reach_the_threshold_pass_for_odd_shapes_and_scales(void **state)
{
  static const float scales[] = { 0.0f, 1e-30f, 1e-3f, 0.03f, 0.3f, 1.0f, 10.0f, 1e3f };

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 1000 / one_of; i++) {
    struct mol_shape shape = { 1 + dice_below(&dice, 12), 1 + dice_below(&dice, 9), 1 + dice_below(&dice, 40),
                               1 + dice_below(&dice, 140), dice_below(&dice, 3) ? 20.0f : 1.0f };
    struct mol_case c =
        mol_new(&dice, shape, dice_below(&dice, 2) ? FILL_RANDOM : (enum fill)dice_below(&dice, N_FILLS));
    scale_weights(&c, scales[dice_below(&dice, 8)], scales[dice_below(&dice, 8)]);
    scale_floats(c.b1, shape.gate_hidden, scales[dice_below(&dice, 8)]);
    scale_floats(c.b2, n_logits_of(&shape), scales[dice_below(&dice, 8)]);
    scale_floats(c.item_gates, n_logits_of(&shape) * MOL_LANES, scales[dice_below(&dice, 8)]);
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* A case with one-dimensional components, where the softmax has two logits that matter: 0 is 1, 1 is -1, and all errors
 * of the gate end in one of the two. */
static struct mol_case case_of_two(size_t n_logits, size_t n_hidden)
{
  struct mol_case c = mol_new(&dice, (struct mol_shape){ 1, n_logits, 1, n_hidden, 20.0f }, FILL_RANDOM);

  c.query[0] = 1;
  scale_floats(c.w1, n_logits * n_hidden, 0);
  scale_floats(c.w2, n_logits * n_hidden, 0);
  scale_floats(c.b1, n_hidden, 0);
  scale_floats(c.b2, n_logits, 0);
  for (size_t p = 0; p < n_logits; p++) {
    c.query_gate[p] = 1;
    for (size_t lane = 0; lane < MOL_LANES; lane++) {
      c.items[p * MOL_LANES + lane] = p == 0 ? 1.0f : p == 1 ? -1.0f : 0.0f;
      c.item_gates[p * MOL_LANES + lane] = p < 2 ? 12.0f : 0.0f;
    }
  }
  return c;
}

/* Logits are chosen so that their rounding errors, and those of their weights, add up in one hidden unit, where SiLU is
 * steep. */
static void items_pass_where_the_errors_of_logits_add_up(void **state)
{
  enum { N = 64 };
  const double units = (double)SCREEN_ITEM_SCALE * (double)SCREEN_QUERY_SCALE / 65536;

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 200 / one_of; i++) {
    struct mol_case c = case_of_two(N, 1);
    double weight = ldexp(1, -4 + (int)dice_below(&dice, 4)), sum = 0;
    for (size_t p = 2; p < N; p++) {
      bool is_up = dice_below(&dice, 2);
      double l = ((double)(50 + dice_below(&dice, 300)) + (is_up ? -0.44 : 0.44)) / units;
      c.w1[p] = is_up ? (float)-weight : (float)weight;
      for (size_t lane = 0; lane < MOL_LANES; lane++)
        c.items[p * MOL_LANES + lane] = (float)l;
      sum += 20 * l * (double)c.w1[p];
    }
    c.b1[0] = (float)(2.4 - sum);
    c.w2[1] = dice_below(&dice, 2) ? 1.0f : -1.0f;
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* Hidden units are chosen so that the errors of their bytes add up in logit 1. */
static void items_pass_where_the_errors_of_hidden_units_add_up(void **state)
{
  enum { N = 128 };
  double h_0 = 0.2785;

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 200 / one_of; i++) {
    struct mol_case c = case_of_two(2, N);
    double largest = 10 / (1 + exp(-10.0)), unit = (10.0 + h_0) / 255, sum = 0;
    for (size_t j = 0; j < N; j++) {
      bool is_up = dice_below(&dice, 2);
      double h = j == 0 ? largest : ((double)(12 + dice_below(&dice, 200)) + (is_up ? -0.45 : 0.45)) * unit - h_0;
      double y = h;
      for (size_t k = 0; k < 100; k++) /* SiLU's inverse */
        y = h * (1 + exp(-y));
      c.b1[j] = (float)y;
      c.w2[j * 2 + 1] = j == 0 ? 0 : is_up ? -0.125f : 0.125f;
      sum += (double)c.w2[j * 2 + 1] * h;
    }
    c.b2[1] = (float)-sum;
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* Each weight of W2 is rounded by nearly half a unit, and the errors add up in logit 1. */
static void items_pass_where_the_errors_of_weights_add_up(void **state)
{
  enum { N = 128 };

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 200 / one_of; i++) {
    struct mol_case c = case_of_two(2, N);
    double sign = dice_below(&dice, 2) ? 0.47 : -0.47, sum = 0;
    for (size_t j = 0; j < N; j++) {
      c.w2[j * 2 + 1] = j == 0 ? 0.127f : (float)(((double)dice_below(&dice, 100) - 50 + sign) * 0.001);
      c.b1[j] = 4.0f;
      sum += (double)c.w2[j * 2 + 1] * 4 / (1 + exp(-4.0));
    }
    c.b2[1] = (float)-sum;
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* Return a number next to x that rounding to bf16 raises or lowers by nearly half a unit. */
static double bf16_middle(double x, bool is_raised)
{
  float f = (float)x;
  uint32_t bits;

  memcpy(&bits, &f, sizeof bits);
  bits = (bits & 0xffff0000) | (is_raised ? 0x8200 : 0x7e00);
  memcpy(&f, &bits, sizeof f);
  return (double)f;
}

/* A number whose mantissa is near 1, where half a unit of bf16 is the largest share. */
static double near_power_of_two(int least, int n)
{
  return ldexp(1 + (double)dice_below(&dice, 4) / 128, least + (int)dice_below(&dice, (size_t)n));
}

/* Hidden units and the weights of W2 are chosen so that their errors in bf16 add up, with opposite signs in both logits
 * that matter. */
static void items_pass_where_the_bf16_errors_of_hidden_units_add_up(void **state)
{
  enum { N = 128 };

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 200 / one_of; i++) {
    struct mol_case c = case_of_two(2, N);
    double sum = 0;
    for (size_t j = 0; j < N; j++) {
      bool is_raised = dice_below(&dice, 2);
      double h = bf16_middle(near_power_of_two(2, 2), is_raised), y = h;
      double weight = bf16_middle(near_power_of_two(-5, 2), is_raised) * (is_raised ? 1 : -1);
      for (size_t k = 0; k < 100; k++) /* SiLU's inverse */
        y = h * (1 + exp(-y));
      c.b1[j] = (float)y;
      c.w2[j * 2] = (float)-weight;
      c.w2[j * 2 + 1] = (float)weight;
      sum += weight * h;
    }
    c.b2[0] = (float)sum;
    c.b2[1] = (float)-sum;
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* Two logits and their weights in W1 are chosen so that their errors in bf16 add up in one hidden unit, where SiLU is
 * steep. A query of one number, 1, makes integer logits of 125 x with x = SCREEN_BYTES_SCALE times the item's number.
 * Weights are rounded in units of these integers. */
static void items_pass_where_the_bf16_errors_of_logits_add_up(void **state)
{
  const double unit = 20.0 / 125 / (double)SCREEN_BYTES_SCALE;

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 200 / one_of; i++) {
    struct mol_case c = case_of_two(2, 1);
    double sign = dice_below(&dice, 2) ? 1 : -1, sum = 0;
    for (size_t p = 0; p < 2; p++) {
      bool is_raised = dice_below(&dice, 2);
      double direction = p == 0 ? 1 : -1, x = rint(bf16_middle(near_power_of_two(20, 1), is_raised) / 125);
      double l = direction * 20 * x / (double)SCREEN_BYTES_SCALE, weight_sign = direction * (is_raised ? sign : -sign);
      c.w1[p] = (float)(weight_sign * bf16_middle(near_power_of_two(-16, 2), is_raised) / unit);
      for (size_t lane = 0; lane < MOL_LANES; lane++)
        c.items[p * MOL_LANES + lane] = (float)(l / 20);
      sum += l * (double)c.w1[p];
    }
    c.b1[0] = (float)(2.4 - sum);
    c.w2[0] = dice_below(&dice, 2) ? 1.0f : -1.0f;
    c.w2[1] = -c.w2[0];
    for (size_t p = 0; p < 2; p++)
      c.b2[p] = -c.w2[p] * 2.2f; /* about SiLU(2.4), so that both logits have the same weight */
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* Logits of one number are chosen so that rounding to bf16 lowers both, and with them the mean. */
static void items_pass_where_the_bf16_errors_of_logits_lower_the_mean(void **state)
{
  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 200 / one_of; i++) {
    struct mol_case c = case_of_two(2, 1);
    double x = rint(bf16_middle(near_power_of_two(20, 1), false) / 125);
    for (size_t lane = 0; lane < 2 * MOL_LANES; lane++)
      c.items[lane] = (float)(x / (double)SCREEN_BYTES_SCALE);
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* All numbers of a query and of an item component have the same low byte, -64, so the products of low bytes add up. The
 * integer logit, 231 * 2^13, and its weight are not rounded further. */
static void items_pass_where_the_products_of_low_bytes_add_up(void **state)
{
  enum { DIM = 32, NUMBER = 22 * 128 - 64 };
  const double unit = 20.0 / 125 / (double)SCREEN_BYTES_SCALE, weight = 0x1p-13 / unit;
  const double x = NUMBER / (double)SCREEN_BYTES_SCALE, sum = weight * 20 * DIM * x * x;

  (void)state;
  skip_without_screen();
  for (int sign = -1; sign <= 1; sign += 2) {
    struct mol_case c = mol_new(&dice, (struct mol_shape){ 1, 2, DIM, 1, 20.0f }, FILL_RANDOM);
    for (size_t k = 0; k < DIM; k++) {
      c.query[k] = (float)x;
      for (size_t lane = 0; lane < MOL_LANES; lane++) {
        c.items[k * MOL_LANES + lane] = (float)x;
        c.items[(DIM + k) * MOL_LANES + lane] = 0;
      }
    }
    for (size_t p = 0; p < 2; p++) {
      c.query_gate[p] = 1;
      c.w1[p] = p == 0 ? (float)weight : 0;
      c.w2[p] = p == 0 ? (float)sign : (float)-sign;
      c.b2[p] = -c.w2[p] * 2.2f; /* about SiLU(2.4), so that both logits have the same weight */
      for (size_t lane = 0; lane < MOL_LANES; lane++)
        c.item_gates[p * MOL_LANES + lane] = 12.0f;
    }
    c.b1[0] = (float)(2.4 - sum);
    check_screen(&c, 0);
    mol_free(&c);
  }
}

/* Appended lanes keep their order; the others are dropped. */
static void lanes_are_appended(void **state)
{
  enum { ROWS = 3, TIMES = 40 };
  uint32_t out[ROWS][SCREEN_LANES], expected[ROWS][SCREEN_LANES] = { 0 };
  size_t at = 0;

  (void)state;
  skip_without_screen();
  memset(out, 0, sizeof out);
  for (size_t i = 0; i < TIMES; i++) {
    uint32_t rows[ROWS][MOL_LANES], lanes = i % 4 == 0 ? UINT32_MAX : i % 4 == 1 ? 0 : (uint32_t)dice_u64(&dice);
    size_t n = 0;
    for (size_t lane = 0; lane < MOL_LANES; lane++) {
      for (size_t r = 0; r < ROWS; r++)
        rows[r][lane] = (uint32_t)dice_u64(&dice);
      if (!(lanes >> lane & 1))
        continue;
      for (size_t r = 0; r < ROWS; r++)
        expected[r][(at + n) % SCREEN_LANES] = rows[r][lane];
      n++;
    }
    machine->mol_screen_append(rows[0], ROWS, lanes, out[0], at % SCREEN_LANES);
    assert_memory_equal(out, expected, sizeof out);
    at += n;
  }
}

static void infinite_gates_pass(void **state)
{
  struct mol_case c;

  (void)state;
  skip_without_screen();
  c = mol_new(&dice, (struct mol_shape){ 4, 4, 8, 16, 20.0f }, FILL_RANDOM);
  c.query_gate[3] = 3e38f;
  for (size_t i = 0; i < MOL_LANES; i++)
    c.item_gates[3 * MOL_LANES + i] = i % 2 ? 3e38f : 1e-38f;
  struct screened s = screened_open(&c);
  assert_true((screen(&s, -19) & 0xaaaaaaaa) == 0xaaaaaaaa); /* some logit is higher */
  assert_true(screen(&s, -INFINITY) == UINT32_MAX);
  assert_true(screen(&s, NAN) == UINT32_MAX);
  screened_close(&s);
  mol_free(&c);
}

/* Xavier-initialised weights, as in the benchmarks' random model: the scores' standard deviation is 1.6. */
static void few_items_of_a_random_model_pass(void **state)
{
  static const struct mol_shape shape = { 8, 8, 32, 128, 20.0f };
  double passing = 0;

  (void)state;
  skip_without_screen();
  for (size_t i = 0; i < 40; i++) {
    struct mol_case c = mol_new(&dice, shape, FILL_RANDOM);
    scale_weights(&c, 0.177f / 0.3f, 0.177f / 0.3f);
    passing += check_screen(&c, 4) / 40;
    mol_free(&c);
  }
  print_message("random model: %.2f%% of the items pass a threshold 4 above their scores\n", 100 * passing);
  assert_true(passing < 0.2);
}

static void weights_beyond_the_integers_are_not_screened(void **state)
{
  struct mol_case c = mol_new(&dice, (struct mol_shape){ 4, 2, 8, 5, 20.0f }, FILL_RANDOM);

  (void)state;
  scale_weights(&c, 1e3f, 1.0f);
  struct mol_gate gate = gate_new(&c);
  struct mol_reduced_gate *reduced_gate;
  assert_ok(mol_reduced_gate_open(&c.shape, &gate, &reduced_gate));
  assert_non_null(reduced_gate);
  assert_false(mol_can_screen(reduced_gate));
  mol_reduced_gate_close(&reduced_gate);
  gate_free(&gate);
  mol_free(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(items_that_reach_the_threshold_pass),
    cmocka_unit_test(items_that_reach_the_threshold_pass_for_odd_shapes_and_scales),
    cmocka_unit_test(items_pass_where_the_errors_of_logits_add_up),
    cmocka_unit_test(items_pass_where_the_errors_of_hidden_units_add_up),
    cmocka_unit_test(items_pass_where_the_errors_of_weights_add_up),
    cmocka_unit_test(items_pass_where_the_bf16_errors_of_logits_add_up),
    cmocka_unit_test(items_pass_where_the_bf16_errors_of_hidden_units_add_up),
    cmocka_unit_test(items_pass_where_the_bf16_errors_of_logits_lower_the_mean),
    cmocka_unit_test(items_pass_where_the_products_of_low_bytes_add_up),
    cmocka_unit_test(lanes_are_appended),
    cmocka_unit_test(infinite_gates_pass),
    cmocka_unit_test(few_items_of_a_random_model_pass),
    cmocka_unit_test(weights_beyond_the_integers_are_not_screened),
  };

  const struct kernels *below = NULL;
  int n_failed = 0;

  dice.state = dice_seed();
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    if (kernels_get(isa, &machine) != ERR_OK)
      return 1;
    bool is_own = machine->mol_screen && (!below || machine->mol_screen != below->mol_screen);
    below = machine;
    if (!is_own && (machine->mol_screen || isa != isa_detect()))
      continue;
    print_message("level %s\n", isa_name(isa));
    n_failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  if (isa_detect() >= ISA_AVX512_VNNI) {
    static struct kernels modelled;
    modelled = *machine;
    mol_screen_model(&modelled);
    machine = &modelled;
    one_of = 20; /* they take long */
    each_lane = 8;
    print_message("level amx with tiles in plain C\n");
    n_failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  return n_failed;
}
