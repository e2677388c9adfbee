/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how the device's tensor cores add, and compares their errors with what kernels/cuda/warp.cuh assumes
 * (MMA_ERROR, MMA_LOST and those of halves), on products that are chosen to lose much: of warps, with sums in single and
 * in half precision, and of warpgroups where there are any. On the model it does so for each known way. */
#include <math.h>
#include <string.h>

#include "tests/gpu/check.h"
#include "tests/gpu/probe_kernels.h"
#include "tests/support/dice.h"

enum { M = 16, N = 8, K = 16, ROUND = 1024, SIGN = 0x8000 };
enum { SUBNORMAL = 0x0001, ONE = 0x3c00, MINUS_ONE = 0xbc00, HALF_2_6 = 0x2400 }; /* 2^-24, 1, -1, 2^-6 */
enum { HALF_2_12 = 0x0c00, MORE_THAN_2_12 = 0x0c01 };

/* MMA_ERROR, MMA_LOST, MMA_HALF_ERROR and MMA_HALF_LOST of warp.cuh, which only CUDA can include. */
static const double mma_error = 0x1.2p-19, mma_lost = 0x1p-32, smallest_normal = 0x1p-14;
static const double half_error = 0x1.02p-10, half_lost = 0x1p-24, half_sum_max = 60000;

static struct dice dice;
static struct device_stream *stream;
static enum probe_product product;
static uint16_t *a, *b, *device_a, *device_b;
static float *c, *d, *device_c, *device_d;

static void open_arrays(void)
{
  CHECK_OK(device_stream_open(&stream));
  CHECK_OK(device_alloc_host(ROUND * M * K, sizeof *a, &a));
  CHECK_OK(device_alloc_host(ROUND * N * K, sizeof *b, &b));
  CHECK_OK(device_alloc_host(ROUND * M * N, sizeof *c, &c));
  CHECK_OK(device_alloc_host(ROUND * M * N, sizeof *d, &d));
  CHECK_OK(device_alloc(ROUND * M * K, sizeof *a, &device_a));
  CHECK_OK(device_alloc(ROUND * N * K, sizeof *b, &device_b));
  CHECK_OK(device_alloc(ROUND * M * N, sizeof *c, &device_c));
  CHECK_OK(device_alloc(ROUND * M * N, sizeof *d, &device_d));
}

static void close_arrays(void)
{
  device_stream_close(&stream);
  device_free(&device_a);
  device_free(&device_b);
  device_free(&device_c);
  device_free(&device_d);
  device_free_host(&a);
  device_free_host(&b);
  device_free_host(&c);
  device_free_host(&d);
}

static void multiply(size_t n)
{
  CHECK_OK(device_copy_in(stream, device_a, a, n * M * K * sizeof *a));
  CHECK_OK(device_copy_in(stream, device_b, b, n * N * K * sizeof *b));
  CHECK_OK(device_copy_in(stream, device_c, c, n * M * N * sizeof *c));
  CHECK_OK(probe_mma(stream, product, n, device_a, device_b, device_c, device_d));
  CHECK_OK(device_copy_out(stream, d, device_d, n * M * N * sizeof *d));
  CHECK_OK(device_wait(stream));
}

static double value_of(uint16_t half)
{
  int exponent = half >> 10 & 31;
  double size = exponent ? ldexp(1024 + (half & 1023), exponent - 25) : ldexp(half & 1023, -24);

  return half >> 15 ? -size : size;
}

/* A half of magnitude about 2^exponent, with a random or a full fraction. */
static uint16_t draw_half(int exponent, bool is_full)
{
  unsigned fraction = is_full ? 1023 : (unsigned)dice_below(&dice, 1024), sign = (unsigned)dice_below(&dice, 2) << 15;

  if (exponent > 15)
    exponent = 15;
  if (exponent >= -14)
    return (uint16_t)(sign | (unsigned)(exponent + 15) << 10 | fraction);
  return (uint16_t)(sign | (exponent < -24 ? 0 : (1024 | fraction) >> (-14 - exponent)));
}

/* How a product's operands are drawn. One number of a row, the first, is the largest; the others lie below what the
 * first lets the sum keep, or everything is random. */
enum draw { ANYTHING, ONE_LARGE, CANCELLING, SUBNORMAL_ROWS, TINY_ROWS, ALL_SUBNORMAL, DRAWS };

static void draw_operand(enum draw draw, bool is_b, uint16_t *x, size_t n_rows)
{
  for (size_t row = 0; row < n_rows; row++) {
    int top = (int)dice_below(&dice, 24) - 12, below = 8 + (int)dice_below(&dice, 8);
    bool is_full = dice_below(&dice, 2);
    for (size_t k = 0; k < K; k++) {
      uint16_t *to = &x[row * K + k];
      if (draw == ANYTHING)
        *to = draw_half((int)dice_below(&dice, 40) - 24, false);
      else if (draw == ALL_SUBNORMAL || (draw == SUBNORMAL_ROWS && is_b) || (draw == TINY_ROWS && is_b && k > 0))
        *to = draw_half(-15 - (int)dice_below(&dice, 10), is_full);
      else if (draw == CANCELLING)
        *to = k % 2 ? (uint16_t)(to[-1] ^ (is_b ? 0 : 0x8000)) : draw_half(top - (int)dice_below(&dice, 6), is_full);
      else
        *to = (uint16_t)(draw_half(k == 0 ? top : top - below - (int)dice_below(&dice, 3), is_full) & 0x7fff);
    }
  }
}

struct most {
  double plain, with_lost; /* the largest error, as a part of MMA_ERROR alone and of both terms */
};

/* Compare the number in row m and column n of product i. */
static void compare(size_t i, size_t m, size_t n, struct most *most)
{
  size_t at = (i * M + m) * N + n;
  long double sum = c[at], sizes = fabsl(sum);
  double largest = smallest_normal;

  for (size_t k = 0; k < K; k++) {
    double x = value_of(a[(i * M + m) * K + k]), y = value_of(b[(i * N + n) * K + k]);
    sum += (long double)x * y;
    sizes += fabsl((long double)x * y);
    largest = fmax(largest, fmax(fabs(x), fabs(y)));
  }
  if (product == PROBE_HALVES && !(sizes < half_sum_max)) /* beyond halves */
    return;
  double error = (double)fabsl(d[at] - sum), allowed = (product == PROBE_HALVES ? half_error : mma_error) * (double)sizes;
  if (allowed > 0)
    most->plain = fmax(most->plain, error / allowed);
  allowed += mma_lost * largest + (product == PROBE_HALVES ? half_lost : 0);
  most->with_lost = fmax(most->with_lost, error / allowed);
  CHECK(error <= allowed, "product %zu, row %zu, column %zu is off by %g, allowed %g", i, m, n, error, allowed);
}

/* What a sum starts from. */
static float draw_start(void)
{
  if (dice_below(&dice, 2))
    return 0.0f;
  if (product == PROBE_HALVES)
    return (float)value_of(draw_half((int)dice_below(&dice, 39) - 24, false));
  return ldexpf(dice_float(&dice, 1.0f), (int)dice_below(&dice, 60) - 45);
}

static void check_errors(size_t n_rounds)
{
  static const char *const names[DRAWS] = { "anything",           "one large",         "cancelling",
                                            "one subnormal side", "one normal number", "all subnormal" };

  for (enum draw draw = 0; draw < DRAWS; draw++) {
    struct most most = { 0, 0 };
    for (size_t round = 0; round < n_rounds; round++) {
      draw_operand(draw, false, a, ROUND * M);
      draw_operand(draw, true, b, ROUND * N);
      for (size_t i = 0; i < ROUND * M * N; i++)
        c[i] = draw_start();
      multiply(ROUND);
      for (size_t i = 0; i < ROUND * M * N; i++)
        compare(i / (M * N), i / N % M, i % N, &most);
    }
    printf("  %-19s %9zu sums: at most %.3f of the relative error allowed, %.3f of all that is\n", names[draw],
           n_rounds * ROUND * M * N, most.plain, most.with_lost);
  }
}

/* Compute one sum of the products a[k] b[k] and the number `start`. */
static float sum_of(const uint16_t x[K], const uint16_t y[K], float start)
{
  memset(a, 0, M * K * sizeof *a);
  memset(b, 0, N * K * sizeof *b);
  memset(c, 0, M * N * sizeof *c);
  memcpy(a, x, K * sizeof *x);
  memcpy(b, y, K * sizeof *y);
  c[0] = start;
  multiply(1);
  return d[0];
}

struct facts {
  int fraction_bits; /* that a term keeps behind the largest exponent */
  bool is_one_sum;   /* are all 16 products and the start one sum? Else two of 8 */
  bool is_unnormal;  /* does a subnormal half count as the smallest normal one? */
};

/* 2^-k beside 1 and -1 is lost at the first k beyond the bits kept. 2^-30 in the second half of the products is lost
 * beside 1 and -1 in the first only if all of them are one sum. 2^-k beside a subnormal half and its negative is lost
 * early if that half counts as the smallest normal one. */
static struct facts find_facts(void)
{
  uint16_t x[K] = { ONE, MINUS_ONE }, y[K] = { ONE, ONE };
  struct facts facts = { 0, false, false };

  while (facts.fraction_bits < 60 && sum_of(x, y, ldexpf(1, -facts.fraction_bits - 1)) != 0)
    facts.fraction_bits++;
  x[K - 1] = SUBNORMAL; /* 2^-24 */
  y[K - 1] = HALF_2_6;
  facts.is_one_sum = sum_of(x, y, 0) == 0;
  x[K - 1] = 0;
  x[0] = SUBNORMAL;
  x[1] = SUBNORMAL | SIGN;
  facts.is_unnormal = sum_of(x, y, ldexpf(1, -24 - facts.fraction_bits)) == 0;
  return facts;
}

/* How sums in half precision are rounded. 1 + 2^-11 + 2^-22 is 1 + 2^-10 to nearest. If the first eight products are
 * rounded alone, that leaves 1, and the other half does not change it either. */
struct half_facts {
  bool is_nearest, is_rounded_once;
};

static struct half_facts find_half_facts(void)
{
  uint16_t x[K] = { ONE, HALF_2_12, MORE_THAN_2_12 }, y[K] = { ONE, ONE, ONE };
  struct half_facts facts;

  facts.is_nearest = sum_of(x, y, 0) == 1.0f + 0x1p-10f;
  x[K - 1] = x[2];
  y[K - 1] = y[2];
  x[2] = 0;
  facts.is_rounded_once = facts.is_nearest && sum_of(x, y, 0) == 1.0f + 0x1p-10f;
  return facts;
}

static struct half_facts check_halves(const char *name, size_t n_rounds)
{
  product = PROBE_HALVES;
  struct half_facts facts = find_half_facts();
  printf("%s, sums in half precision: rounded %s, %s\n", name, facts.is_nearest ? "to nearest" : "in another way",
         facts.is_rounded_once ? "once" : "more than once");
  check_errors(n_rounds);
  product = PROBE_WARPS;
  return facts;
}

static struct facts check(const char *name, size_t n_rounds)
{
  struct facts facts = find_facts();

  printf("%s: a term keeps %d bits behind the largest exponent; %s; a subnormal half counts as %s\n", name,
         facts.fraction_bits, facts.is_one_sum ? "all 17 terms are one sum" : "not all 17 terms are one sum",
         facts.is_unnormal ? "2^-14" : "what it is");
  check_errors(n_rounds);
  return facts;
}

/* Check products of warpgroups. They add as those of warps do: `warps`. */
static void check_together(const char *name, size_t n_rounds, struct facts warps)
{
  if (!probe_has_warpgroups())
    return;
  product = PROBE_WARPGROUPS;
  struct facts facts = check(name, n_rounds);
  product = PROBE_WARPS;
  CHECK(facts.fraction_bits == warps.fraction_bits && facts.is_one_sum == warps.is_one_sum &&
            facts.is_unnormal == warps.is_unnormal,
        "products of warpgroups add in another way");
}

int main(void)
{
  dice.state = dice_seed();
  check_begin("gpu_mma");
  open_arrays();
#ifdef SLUICE_CUDA_MODEL
  cuda_model_set_tensor_cores(CUDA_MODEL_NEAREST);
  check("rounded to nearest", 1);
  check_halves("rounded to nearest", 1);
  cuda_model_set_tensor_cores(CUDA_MODEL_AMPERE);
  struct facts ampere = check("as Ampere", check_size(2, 1));
  CHECK(ampere.fraction_bits == 24 && !ampere.is_one_sum && ampere.is_unnormal, "the probe is wrong");
  struct half_facts halves = check_halves("as Ampere", 1);
  CHECK(halves.is_nearest && !halves.is_rounded_once, "the probe is wrong");
  cuda_model_set_tensor_cores(CUDA_MODEL_HOPPER);
  struct facts hopper = check("as Hopper", check_size(2, 1));
  CHECK(hopper.fraction_bits == 25 && hopper.is_one_sum && hopper.is_unnormal, "the probe is wrong");
  check_together("as Hopper, warpgroups", check_size(2, 1), hopper);
  halves = check_halves("as Hopper", 1);
  CHECK(halves.is_nearest && halves.is_rounded_once, "the probe is wrong");
#else
  check_together("this device, warpgroups", check_size(16, 1), check("this device", check_size(16, 1)));
  check_halves("this device", check_size(16, 1));
#endif
  close_arrays();
  return check_end("gpu_mma");
}
