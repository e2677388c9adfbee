/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the wire: all half-precision values, alignment and byte order, and finding numbers that are not finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "ingest/json/numbers.h"
#include "tests/support/dice.h"

/* Compute a binary16 number by the definition of IEEE 754, with powers of two. */
static double half_by_definition(unsigned half)
{
  double sign = half & 0x8000 ? -1 : 1;
  int exponent = (int)(half >> 10 & 0x1f);
  double fraction = half & 0x3ff;

  if (exponent == 0)
    return sign * ldexp(fraction, -24);
  return sign * ldexp(1024 + fraction, exponent - 25);
}

static void every_half_is_what_its_definition_says(void **state)
{
  (void)state;
  for (unsigned half = 0; half < 0x10000; half++) {
    uint8_t bytes[2] = { (uint8_t)half, (uint8_t)(half >> 8) };
    float f;
    numbers_decode(span_of(bytes, 2), NUMBERS_F16, &f);
    if ((half & 0x7c00) != 0x7c00) {
      double expected = half_by_definition(half);
      assert_true((double)f == expected && !signbit(f) == !signbit(expected));
    } else if ((half & 0x3ff) == 0) {
      assert_true(isinf(f) && !signbit(f) == !(half >> 15));
    } else {
      assert_true(isnan(f));
    }
  }
}

static void every_bf16_is_the_upper_half_of_a_float(void **state)
{
  (void)state;
  for (unsigned upper = 0; upper < 0x10000; upper++) {
    uint8_t bytes[2] = { (uint8_t)upper, (uint8_t)(upper >> 8) };
    uint32_t expected = (uint32_t)upper << 16, bits;
    float f;
    numbers_decode(span_of(bytes, 2), NUMBERS_BF16, &f);
    memcpy(&bits, &f, 4);
    assert_int_equal(bits, expected);
  }
}

static void floats_come_back_from_any_alignment(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (size_t n = 0; n < 68; n++) {
    float in[68], out[68];
    dice_fill(&d, in, n, 1e6f);
    for (size_t shift = 0; shift < 4; shift++) {
      uint8_t *bytes = malloc(4 * n + shift + (4 * n + shift == 0)); /* exact size: the sanitizer sees an over-read */
      assert_non_null(bytes);
      numbers_encode_f32(in, n, bytes + shift);
      numbers_decode(span_of(bytes + shift, 4 * n), NUMBERS_F32, out);
      assert_memory_equal(in, out, n * 4);
      free(bytes);
    }
  }
}

static void floats_are_little_endian(void **state)
{
  float v = 1.5f;
  uint8_t bytes[4], expected[4] = { 0x00, 0x00, 0xc0, 0x3f };
  (void)state;

  numbers_encode_f32(&v, 1, bytes);
  assert_memory_equal(bytes, expected, 4);
}

static void the_first_number_that_is_not_finite_is_found(void **state)
{
  const float bad[] = { INFINITY, -INFINITY, NAN, -NAN };
  (void)state;

  for (size_t at = 0; at <= 20; at++) {
    for (size_t kind = 0; kind < 4; kind++) {
      float v[20] = { 3.4028235e38f, -3.4028235e38f, 1e-45f, -0.0f };
      if (at < 20)
        v[at] = bad[kind];
      if (at < 19)
        v[19] = NAN;
      assert_int_equal(numbers_find_not_finite(v, 20), at);
    }
  }
  assert_int_equal(numbers_find_not_finite(NULL, 0), 0);
}

static void types_have_widths_and_names(void **state)
{
  (void)state;
  assert_int_equal(numbers_width(NUMBERS_F32), 4);
  assert_int_equal(numbers_width(NUMBERS_F16), 2);
  assert_int_equal(numbers_width(NUMBERS_BF16), 2);
  assert_string_equal(numbers_name(NUMBERS_BF16), "BF16");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_half_is_what_its_definition_says),
    cmocka_unit_test(every_bf16_is_the_upper_half_of_a_float),
    cmocka_unit_test(floats_come_back_from_any_alignment),
    cmocka_unit_test(floats_are_little_endian),
    cmocka_unit_test(the_first_number_that_is_not_finite_is_found),
    cmocka_unit_test(types_have_widths_and_names),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
