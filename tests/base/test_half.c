/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floats: every number, compared with its definition in double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/half.h"

/* Compute a number by the definition of IEEE 754, given the bits of its exponent and fraction. */
static double value_of(uint32_t bits, int n_exponent, int n_fraction)
{
  int exponent = (int)(bits >> n_fraction) & ((1 << n_exponent) - 1);
  double fraction = (double)(bits & ((1u << n_fraction) - 1)) / (double)(1 << n_fraction);
  double sign = bits >> (n_exponent + n_fraction) & 1 ? -1.0 : 1.0;
  int bias = (1 << (n_exponent - 1)) - 1;

  if (exponent == (1 << n_exponent) - 1)
    return fraction != 0.0 ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * ldexp(fraction, 1 - bias);
  return sign * ldexp(1.0 + fraction, exponent - bias);
}

static void check_all(float (*convert)(const uint8_t *), int n_exponent, int n_fraction)
{
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    uint8_t unaligned[3] = { 0xee, (uint8_t)bits, (uint8_t)(bits >> 8) };
    double want = value_of(bits, n_exponent, n_fraction);
    double have = (double)convert(unaligned + 1);
    if (isnan(want) ? !isnan(have) : have != want || signbit(have) != signbit(want))
      fail_msg("%#x is %g, not %g", bits, have, want);
  }
}

static void every_f16_number_is_right(void **state)
{
  (void)state;
  check_all(half_from_f16, 5, 10);
}

static void every_bf16_number_is_right(void **state)
{
  (void)state;
  check_all(half_from_bf16, 8, 7);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_f16_number_is_right),
    cmocka_unit_test(every_bf16_number_is_right),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
