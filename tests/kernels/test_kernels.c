/* SPDX-License-Identifier: Apache-2.0 */
/* Every level of this machine against the scalar reference, to the last bit; and the reference against the formulas in
 * double. mol_score(), pq_filter(), the lists and the sketches have tests of their own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "kernels/gelu_ref.h"
#include "kernels/math_ref.h"
#include "tests/support/blocks.h"

static struct dice dice;

enum { SIZES_SMALL = 68 }; /* sizes 0..67 cover every remainder modulo each register width, more than once */

static const struct kernels *table(enum isa isa)
{
  const struct kernels *k = NULL;

  assert_int_equal(kernels_get(isa, &k), ERR_OK);
  return k;
}

static void assert_same_bits(const char *what, const void *found, const void *wanted, size_t n)
{
  const uint32_t *a = found, *b = wanted;

  for (size_t i = 0; i < n; i++) {
    if (a[i] != b[i]) {
      float x, y;
      memcpy(&x, &a[i], sizeof x);
      memcpy(&y, &b[i], sizeof y);
      fail_msg("%s: float %zu of %zu is %a, not %a", what, i, n, (double)x, (double)y);
    }
  }
}

static float ulp_of(double x)
{
  float at = fabsf((float)x);

  return nextafterf(at, INFINITY) - at;
}

static void assert_close(const char *what, double found, double wanted, double tolerance)
{
  if (!(fabs(found - wanted) <= tolerance))
    fail_msg("%s: %.9g, not %.9g within %.3g", what, found, wanted, tolerance);
}

/* exp, SiLU -------------------- */

static void exp_is_within_an_ulp_in_its_range(void **state)
{
  (void)state;
  for (int i = 0; i < 2000000; i++) {
    float x = dice_float(&dice, i % 3 == 0 ? 1e-3f : i % 3 == 1 ? 2.0f : 87.0f);
    assert_close("exp", math_exp(x), exp(x), 1.0 * ulp_of(exp(x)));
  }
}

static void exp_stays_at_its_ends_outside_its_range(void **state)
{
  (void)state;
  assert_true(math_exp(-INFINITY) == math_exp(MATH_EXP_MIN));
  assert_true(math_exp(-1e4f) == math_exp(MATH_EXP_MIN));
  assert_true(math_exp(INFINITY) == math_exp(MATH_EXP_MAX));
  assert_true(math_exp(MATH_EXP_MIN) > 0 && math_exp(MATH_EXP_MIN) < 2e-38f);
  assert_true(math_exp(MATH_EXP_MAX) > 1e38f && isfinite(math_exp(MATH_EXP_MAX)));
  assert_true(math_exp(0.0f) == 1.0f && math_exp(-0.0f) == 1.0f);
}

static void silu_is_close_to_its_formula(void **state)
{
  (void)state;
  for (int i = 0; i < 1000000; i++) {
    float x = dice_float(&dice, i % 2 ? 4.0f : 80.0f);
    double wanted = x / (1 + exp(-(double)x));
    assert_close("silu", math_silu(x), wanted, 3.0 * ulp_of(wanted));
  }
}

static void silu_of_saturated_numbers_is_the_number_or_nothing(void **state)
{
  static const float large[] = { 100.0f, 1e4f, 1e8f, 1e30f, 3.4028235e38f };

  (void)state;
  for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
    assert_true(math_silu(large[i]) == large[i]);
    assert_true(math_silu(-large[i]) <= 0 && math_silu(-large[i]) > -1e-36f);
  }
  assert_true(math_silu(-INFINITY) <= 0 && math_silu(-INFINITY) > -1e-36f);
  assert_true(math_silu(INFINITY) == INFINITY);
  assert_true(isnan(math_silu(NAN)));
  assert_true(math_silu(0.0f) == 0 && !signbit(math_silu(0.0f)));
  assert_true(math_silu(-0.0f) == 0 && signbit(math_silu(-0.0f)));
}

/* Numbers of every binade and both signs; the ends of exp's range and their neighbours. Returns how many. */
static size_t fill_special(float *out)
{
  static const float ends[] = { 0.0f, MATH_EXP_MIN, MATH_EXP_MAX, 1e4f, 1e8f, 1e30f, 3.4028235e38f, INFINITY };
  size_t n = 0;

  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    for (int side = -1; side <= 1; side++) {
      float x = side == 0 ? ends[i] : nextafterf(ends[i], side < 0 ? -INFINITY : INFINITY);
      out[n++] = x;
      out[n++] = -x;
    }
  }
  for (int exponent = -149; exponent <= 127; exponent++) {
    float x = ldexpf(1.0f + (float)dice_below(&dice, 1 << 23) * 0x1p-23f, exponent);
    out[n++] = x;
    out[n++] = -x;
  }
  return n;
}

static void check_activations(enum isa isa, const float *x, size_t n)
{
  float *found = block_new(n, sizeof *found), *wanted = block_new(n, sizeof *wanted);

  memcpy(found, x, n * sizeof *x);
  memcpy(wanted, x, n * sizeof *x);
  table(isa)->silu(found, n);
  table(ISA_REF)->silu(wanted, n);
  assert_same_bits("silu", found, wanted, n);
  memcpy(found, x, n * sizeof *x);
  memcpy(wanted, x, n * sizeof *x);
  table(isa)->gelu(found, n);
  table(ISA_REF)->gelu(wanted, n);
  assert_same_bits("gelu", found, wanted, n);
  free(wanted);
  free(found);
}

static void activations_are_the_same_at_every_level(void **state)
{
  float special[1024];
  size_t n_special = fill_special(special);

  (void)state;
  for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) {
    for (size_t i = 0; i < 4 * SIZES_SMALL * N_FILLS; i++) {
      size_t n = i % 97 == 0 ? 5000 + dice_below(&dice, 100) : i % SIZES_SMALL;
      float *x = floats_filled(&dice, (enum fill)(i % N_FILLS), n);
      for (size_t j = 0; j < n; j++)
        x[j] *= i % 2 ? 1.0f : 30.0f;
      check_activations(isa, x, n);
      free(x);
    }
    check_activations(isa, special, n_special);
  }
}

/* linear -------------------- */

struct linear_case {
  float *x, *w, *bias;
  size_t n, n_in, n_out;
};

static struct linear_case linear_new(size_t n, size_t n_in, size_t n_out, enum fill fill, bool has_bias)
{
  struct linear_case c = { .n = n, .n_in = n_in, .n_out = n_out };

  c.x = floats_filled(&dice, fill, n * n_in);
  c.w = floats_filled(&dice, fill, n_in * n_out);
  c.bias = has_bias ? floats_filled(&dice, fill, n_out) : NULL;
  return c;
}

static void linear_free(struct linear_case *c)
{
  free(c->x);
  free(c->w);
  free(c->bias);
}

static float *linear_run(const struct linear_case *c, enum isa isa)
{
  float *y = block_new(c->n * c->n_out, sizeof *y);

  table(isa)->linear(c->x, c->n, c->n_in, c->w, c->bias, c->n_out, y);
  return y;
}

static void check_linear(size_t n, size_t n_in, size_t n_out, enum fill fill, bool has_bias)
{
  struct linear_case c = linear_new(n, n_in, n_out, fill, has_bias);
  float *wanted = linear_run(&c, ISA_REF);

  for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) {
    float *found = linear_run(&c, isa);
    assert_same_bits("linear", found, wanted, n * n_out);
    free(found);
  }
  free(wanted);
  linear_free(&c);
}

static void linear_is_the_same_at_every_level(void **state)
{
  (void)state;
  for (size_t n_out = 0; n_out < SIZES_SMALL; n_out++) {
    for (size_t n = 0; n < 16; n++)
      check_linear(n, dice_below(&dice, 20), n_out, (enum fill)dice_below(&dice, N_FILLS), dice_below(&dice, 2));
  }
  for (size_t i = 0; i < 200; i++)
    check_linear(dice_below(&dice, SIZES_SMALL), dice_below(&dice, SIZES_SMALL), dice_below(&dice, 3 * SIZES_SMALL),
                 (enum fill)(i % N_FILLS), i & 8);
  check_linear(301, 64, 256, FILL_RANDOM, true);
  check_linear(1, 64, 1024, FILL_RANDOM, true);
  check_linear(3, 512, 448, FILL_MIXED, false);
}

static void linear_is_close_to_its_formula(void **state)
{
  struct linear_case c = linear_new(7, 130, 37, FILL_RANDOM, true);
  float *y = linear_run(&c, ISA_REF);

  (void)state;
  for (size_t i = 0; i < c.n; i++) {
    for (size_t j = 0; j < c.n_out; j++) {
      double sum = c.bias[j], size = fabs(sum);
      for (size_t k = 0; k < c.n_in; k++) {
        double term = (double)c.x[i * c.n_in + k] * (double)c.w[k * c.n_out + j];
        sum += term;
        size += fabs(term);
      }
      assert_close("linear", y[i * c.n_out + j], sum, 130 * 0x1p-24 * size);
    }
  }
  free(y);
  linear_free(&c);
}

/* transpose -------------------- */

static void check_transpose(enum isa isa, size_t n_rows, size_t n_cols)
{
  float *rows[MOL_LANES], *out = block_new_aligned(n_cols * MOL_LANES, sizeof *out);
  const float **list = block_new(n_rows, sizeof *list);

  for (size_t i = 0; i < n_rows; i++)
    list[i] = rows[i] = floats_filled(&dice, FILL_MIXED, n_cols);
  table(isa)->transpose(list, n_rows, n_cols, out);
  for (size_t i = 0; i < MOL_LANES; i++) {
    for (size_t c = 0; c < n_cols; c++) {
      float wanted = i < n_rows ? rows[i][c] : 0.0f;
      assert_same_bits("transpose", &out[c * MOL_LANES + i], &wanted, 1);
    }
  }
  for (size_t i = 0; i < n_rows; i++)
    free(rows[i]);
  free(list);
  free(out);
}

static void transpose_turns_rows_into_lanes_at_every_level(void **state)
{
  (void)state;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    for (size_t n_rows = 0; n_rows <= MOL_LANES; n_rows++) {
      for (size_t n_cols = 0; n_cols < SIZES_SMALL; n_cols += 1 + dice_below(&dice, 3))
        check_transpose(isa, n_rows, n_cols);
      check_transpose(isa, n_rows, 256 + dice_below(&dice, 64));
    }
  }
}

/* dot_blocks -------------------- */

static float *dot_run(enum isa isa, const float *query, size_t dim, const float *blocks, size_t n_blocks)
{
  float *scores = block_new(n_blocks * DOT_BLOCK_ITEMS, sizeof *scores);

  table(isa)->dot_blocks(query, dim, blocks, n_blocks, scores);
  return scores;
}

static void check_dot(size_t dim, size_t n_blocks, enum fill fill)
{
  float *query = floats_filled(&dice, fill, dim);
  float *blocks = floats_filled_aligned(&dice, fill, n_blocks * dim * DOT_BLOCK_ITEMS);
  float *wanted = dot_run(ISA_REF, query, dim, blocks, n_blocks);

  for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) {
    float *found = dot_run(isa, query, dim, blocks, n_blocks);
    assert_same_bits("dot_blocks", found, wanted, n_blocks * DOT_BLOCK_ITEMS);
    free(found);
  }
  free(wanted);
  free(blocks);
  free(query);
}

static void dot_blocks_is_the_same_at_every_level(void **state)
{
  (void)state;
  for (size_t dim = 0; dim < SIZES_SMALL; dim++)
    check_dot(dim, dice_below(&dice, 40), (enum fill)(dim % N_FILLS));
  for (size_t n_blocks = 0; n_blocks < SIZES_SMALL; n_blocks++)
    check_dot(dice_below(&dice, 40), n_blocks, (enum fill)(n_blocks % N_FILLS));
  check_dot(256, 333, FILL_RANDOM);
}

static void dot_blocks_is_close_to_its_formula(void **state)
{
  enum { DIM = 33, BLOCKS = 3 };
  float *query = floats_filled(&dice, FILL_RANDOM, DIM);
  float *blocks = floats_filled_aligned(&dice, FILL_RANDOM, BLOCKS * DIM * DOT_BLOCK_ITEMS);
  float *scores = dot_run(ISA_REF, query, DIM, blocks, BLOCKS);

  (void)state;
  for (size_t i = 0; i < BLOCKS * DOT_BLOCK_ITEMS; i++) {
    const float *item = blocks + i / DOT_BLOCK_ITEMS * DIM * DOT_BLOCK_ITEMS + i % DOT_BLOCK_ITEMS;
    double sum = 0;
    for (size_t k = 0; k < DIM; k++)
      sum += (double)query[k] * (double)item[k * DOT_BLOCK_ITEMS];
    assert_close("dot_blocks", scores[i], sum, DIM * DIM * 0x1p-24);
  }
  free(scores);
  free(blocks);
  free(query);
}

/* filter_ge -------------------- */

static void check_filter(enum isa isa, const float *scores, size_t n, float threshold)
{
  uint32_t *indices = block_new(n, sizeof *indices);
  size_t found = table(isa)->filter_ge(scores, n, threshold, indices), wanted = 0;

  for (size_t i = 0; i < n; i++) {
    if (isgreaterequal(scores[i], threshold)) {
      assert_true(wanted < found);
      assert_int_equal(indices[wanted++], i);
    }
  }
  assert_int_equal(found, wanted);
  free(indices);
}

static void fill_scores(float *scores, size_t n)
{
  static const float special[] = { INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 3.4028235e38f };
  enum { N_SPECIAL = sizeof special / sizeof special[0] };

  fill_floats(&dice, (enum fill)dice_below(&dice, N_FILLS), scores, n);
  for (size_t i = 0; i < n; i++)
    scores[i] = dice_below(&dice, 8) ? scores[i] : special[dice_below(&dice, N_SPECIAL)];
}

static void filter_ge_finds_what_reaches_the_threshold_at_every_level(void **state)
{
  static const float thresholds[] = { -INFINITY, INFINITY, NAN, 0.0f, -0.0f, 0.5f, -0.5f };

  (void)state;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    for (size_t i = 0; i < 30 * SIZES_SMALL; i++) {
      size_t n = i % 101 == 0 ? 3000 + dice_below(&dice, 100) : i % SIZES_SMALL;
      float *scores = block_new(n, sizeof *scores);
      fill_scores(scores, n);
      for (size_t t = 0; t < sizeof thresholds / sizeof thresholds[0]; t++)
        check_filter(isa, scores, n, thresholds[t]);
      if (n > 0)
        check_filter(isa, scores, n, scores[dice_below(&dice, n)]);
      free(scores);
    }
  }
}

/* GELU, normalisation -------------------- */

static void gelu_is_the_exact_form(void **state)
{
  (void)state;
  for (int i = 0; i < 1000000; i++) {
    float x = dice_float(&dice, i % 3 == 0 ? 1e-3f : i % 3 == 1 ? 3.0f : 30.0f), y = gelu_of(x);
    double wanted = 0.5 * x * erfc(-(double)x / sqrt(2.0));
    assert_close("gelu", y, wanted, 0.51 * ulp_of(wanted) + 1e-15);
  }
}

static void gelu_of_large_numbers_is_the_number_or_nothing(void **state)
{
  float x[] = { 1e4f, -1e4f, 3.4028235e38f, -3.4028235e38f, 0.0f };

  (void)state;
  table(ISA_REF)->gelu(x, 5);
  assert_true(x[0] == 1e4f && x[2] == 3.4028235e38f);
  assert_true(x[1] == 0 && x[3] == 0 && x[4] == 0);
  assert_true(gelu_of(INFINITY) == INFINITY && gelu_of(-INFINITY) == 0 && isnan(gelu_of(NAN)));
}

static void normalize_gives_rows_of_length_one(void **state)
{
  static const float scales[] = { 1.0f, 1e-4f, 1e4f, 1e30f };

  (void)state;
  for (size_t dim = 1; dim < SIZES_SMALL; dim++) {
    float *rows = floats_filled(&dice, FILL_RANDOM, 4 * dim), *before = block_new(4 * dim, sizeof *before);
    for (size_t i = 0; i < 4 * dim; i++)
      before[i] = rows[i] *= scales[i / dim];
    kernels_normalize(rows, 4, dim, 1e-6f);
    for (size_t r = 0; r < 4; r++) {
      double sum = 0;
      for (size_t i = 0; i < dim; i++)
        sum += (double)before[r * dim + i] * (double)before[r * dim + i];
      for (size_t i = 0; i < dim; i++)
        assert_close("normalize", rows[r * dim + i], before[r * dim + i] / fmax(sqrt(sum), 1e-6), 1e-7);
    }
    free(before);
    free(rows);
  }
}

/* Rows that are normalised together get the bits of a row that is normalised alone. */
static void normalize_gives_each_row_the_same_bits_in_any_company(void **state)
{
  (void)state;
  for (size_t n = 0; n < 10; n++) {
    for (size_t dim = 1; dim < SIZES_SMALL; dim++) {
      float *rows = floats_filled(&dice, FILL_RANDOM, n * dim), *alone = block_new(n * dim, sizeof *alone);
      for (size_t i = 0; i < n * dim; i++)
        alone[i] = rows[i];
      kernels_normalize(rows, n, dim, 1e-6f);
      for (size_t r = 0; r < n; r++) {
        double sum = 0;
        for (size_t i = 0; i < dim; i++)
          sum = fma((double)alone[r * dim + i], (double)alone[r * dim + i], sum);
        for (size_t i = 0; i < dim; i++) {
          float quotient = (float)((double)alone[r * dim + i] / fmax(sqrt(sum), (double)1e-6f));
          assert_memory_equal(&rows[r * dim + i], &quotient, sizeof quotient);
        }
      }
      free(alone);
      free(rows);
    }
  }
}

static void normalize_divides_short_rows_by_eps(void **state)
{
  float rows[3][2] = { { 0.0f, -0.0f }, { 3e-9f, 4e-9f }, { 3e-40f, 0.0f } };

  (void)state;
  kernels_normalize(rows[0], 3, 2, 1e-6f);
  assert_true(rows[0][0] == 0 && rows[0][1] == 0);
  assert_close("normalize", rows[1][0], 3e-3, 1e-9);
  assert_close("normalize", rows[1][1], 4e-3, 1e-9);
  assert_close("normalize", rows[2][0], 3e-34, 1e-38);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(exp_is_within_an_ulp_in_its_range),
    cmocka_unit_test(exp_stays_at_its_ends_outside_its_range),
    cmocka_unit_test(silu_is_close_to_its_formula),
    cmocka_unit_test(silu_of_saturated_numbers_is_the_number_or_nothing),
    cmocka_unit_test(activations_are_the_same_at_every_level),
    cmocka_unit_test(linear_is_the_same_at_every_level),
    cmocka_unit_test(linear_is_close_to_its_formula),
    cmocka_unit_test(transpose_turns_rows_into_lanes_at_every_level),
    cmocka_unit_test(dot_blocks_is_the_same_at_every_level),
    cmocka_unit_test(dot_blocks_is_close_to_its_formula),
    cmocka_unit_test(filter_ge_finds_what_reaches_the_threshold_at_every_level),
    cmocka_unit_test(gelu_is_the_exact_form),
    cmocka_unit_test(gelu_of_large_numbers_is_the_number_or_nothing),
    cmocka_unit_test(normalize_gives_rows_of_length_one),
    cmocka_unit_test(normalize_gives_each_row_the_same_bits_in_any_company),
    cmocka_unit_test(normalize_divides_short_rows_by_eps),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
