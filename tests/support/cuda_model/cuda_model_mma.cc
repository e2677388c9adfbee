/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of a device's half-precision, tensor-core and special-function units, in software. */
#include "tests/support/cuda_model/cuda_model_mma.h"

#include <atomic>

#include "base/half.h"
#include "tests/support/cuda_model/cuda_model_control.h"

float cuda_model_float(uint16_t half)
{
  uint8_t bytes[2] = { (uint8_t)half, (uint8_t)(half >> 8) };

  return half_from_f16(bytes);
}

uint16_t cuda_model_half(float x)
{
  uint32_t bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;

  if (size > 0x7f800000)
    return (uint16_t)(sign | 0x7fff);
  if (size >= 0x477ff000) /* 65520 and more */
    return (uint16_t)(sign | 0x7c00);
  if (size < 0x38800000) /* subnormal: a whole number of 2^-24, rounded by the addition */
    return (uint16_t)(sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000));
  size += 0xfff + (size >> 13 & 1);
  return (uint16_t)(sign | ((size - 0x38000000) >> 13));
}

uint32_t cuda_model_half_pair_fma(uint32_t a, uint32_t b, uint32_t c)
{
  uint32_t pair = 0;

  for (unsigned shift = 0; shift < 32; shift += 16) {
    float x = cuda_model_float((uint16_t)(a >> shift)), y = cuda_model_float((uint16_t)(b >> shift));
    pair |= (uint32_t)cuda_model_half(fmaf(x, y, cuda_model_float((uint16_t)(c >> shift)))) << shift;
  }
  return pair;
}

uint32_t cuda_model_half_pair_max(uint32_t a, uint32_t b)
{
  uint32_t pair = 0;

  for (unsigned shift = 0; shift < 32; shift += 16) {
    uint16_t x = (uint16_t)(a >> shift), y = (uint16_t)(b >> shift);
    float left = cuda_model_float(x), right = cuda_model_float(y);
    pair |= (uint32_t)(left >= right || left != left ? x : y) << shift;
  }
  return pair;
}

uint32_t cuda_model_half_pair_larger(uint32_t a, uint32_t b)
{
  uint32_t pair = 0;

  for (unsigned shift = 0; shift < 32; shift += 16) {
    uint16_t x = (uint16_t)(a >> shift), y = (uint16_t)(b >> shift);
    float left = cuda_model_float(x), right = cuda_model_float(y);
    pair |= (uint32_t)(left >= right || right != right ? x : y) << shift;
  }
  return pair;
}

float cuda_model_inexact(float x, float error)
{
  return x * (__float_as_uint(x) * 2654435761u >> 31 ? 1 + error : 1 - error);
}

float cuda_model_fast_tanh(float x)
{
  float error = __float_as_uint(x) * 2654435761u >> 31 ? 0x1p-12f : -0x1p-12f;

  return tanhf(x) * (1 + error);
}

static std::atomic<cuda_model_tensor_cores> tensor_cores{ CUDA_MODEL_NEAREST };

extern "C" void cuda_model_set_tensor_cores(enum cuda_model_tensor_cores cores)
{
  tensor_cores = cores;
}

bool cuda_model_has_warpgroups()
{
  return tensor_cores != CUDA_MODEL_AMPERE;
}

enum { PRODUCTS = 16, SUBNORMAL_EXPONENT = -14, EXPONENT_OF_ZERO = -1000 };

/* A row of A or a column of B: numbers, and their exponents. Subnormal halves have that of the smallest normal one. */
struct vector16 {
  float of[PRODUCTS];
  int16_t exponents[PRODUCTS];
};

/* How a generation of tensor cores adds, as published measurements found (Fasi and others 2021; MMA-Sim 2025): n
 * products and a sum are cut to this many bits behind the point of the largest exponent, and their exact sum is cut to
 * f32. A product's exponent is the sum of its factors' exponents. */
struct generation {
  int n_products, fraction_bits;
};
static const generation ampere = { 8, 24 }, hopper = { 16, 25 };

static int exponent_of(float x)
{
  return x == 0 ? (int)EXPONENT_OF_ZERO : ilogbf(x);
}

static double power_of_two(int exponent)
{
  return ldexp(1, exponent);
}

static float cut_to_float(int64_t sum, int exponent)
{
  uint64_t size = (uint64_t)(sum < 0 ? -sum : sum);
  int n_bits = size == 0 ? 0 : 64 - __builtin_clzll(size);

  if (n_bits > 24)
    size = size >> (n_bits - 24) << (n_bits - 24);
  double cut = (double)size * power_of_two(exponent);
  return (float)(sum < 0 ? -cut : cut);
}

/* Add the products of numbers first to first + n - 1. */
static float add_aligned(float sum, const vector16 &a, const vector16 &b, int first, generation how)
{
  float products[PRODUCTS], plain = sum;
  int largest = exponent_of(sum);

  for (int k = 0; k < how.n_products; k++) {
    products[k] = a.of[first + k] * b.of[first + k];
    plain += products[k];
    if (products[k] != 0) {
      int exponent = a.exponents[first + k] + b.exponents[first + k];
      largest = exponent > largest ? exponent : largest;
    }
  }
  if (largest == EXPONENT_OF_ZERO || !(fabsf(plain) < INFINITY))
    return plain;
  double scale = power_of_two(how.fraction_bits - largest);
  int64_t total = (int64_t)((double)sum * scale);
  for (int k = 0; k < how.n_products; k++)
    total += (int64_t)((double)products[k] * scale);
  return cut_to_float(total, largest - how.fraction_bits);
}

static float add_products(float sum, const vector16 &a, const vector16 &b, cuda_model_tensor_cores cores)
{
  if (cores == CUDA_MODEL_NEAREST) {
    for (int k = 0; k < PRODUCTS; k++)
      sum += a.of[k] * b.of[k];
    return sum;
  }
  const generation &how = cores == CUDA_MODEL_AMPERE ? ampere : hopper;
  for (int first = 0; first < PRODUCTS; first += how.n_products)
    sum = add_aligned(sum, a, b, first, how);
  return sum;
}

/* Half of a tensor core's sum. A NaN is the canonical one. */
static uint16_t half_of_sum(float sum)
{
  return sum != sum ? 0x7fff : cuda_model_half(sum);
}

/* The same for a sum in half precision, which is rounded after each part. */
static uint16_t add_products_to_half(uint16_t sum, const vector16 &a, const vector16 &b, cuda_model_tensor_cores cores)
{
  if (cores != CUDA_MODEL_AMPERE)
    return half_of_sum(add_products(cuda_model_float(sum), a, b, cores));
  for (int first = 0; first < PRODUCTS; first += ampere.n_products)
    sum = half_of_sum(add_aligned(cuda_model_float(sum), a, b, first, ampere));
  return sum;
}

struct operands {
  uint32_t a[4], b[2];
};

/* The value and the exponent of every half-precision number, by its bits. */
struct half_table {
  float of[1 << 16];
  int16_t exponents[1 << 16];
  half_table()
  {
    for (unsigned i = 0; i < 1 << 16; i++) {
      of[i] = cuda_model_float((uint16_t)i);
      int exponent = (int)(i >> 10 & 31) - 15;
      exponents[i] = (int16_t)(exponent < SUBNORMAL_EXPONENT ? (int)SUBNORMAL_EXPONENT : exponent);
    }
  }
};

/* Collect 16 numbers from four lanes. Each lane has two of the low eight and two of the high eight. */
static void gather(const unsigned char (*lanes)[CUDA_MODEL_WARP_BYTES], size_t low, size_t high, vector16 &out)
{
  static const half_table table;

  for (unsigned i = 0; i < 4; i++) {
    uint32_t two[2];
    memcpy(&two[0], lanes[i] + low, sizeof two[0]);
    memcpy(&two[1], lanes[i] + high, sizeof two[1]);
    for (unsigned k = 0; k < 4; k++) {
      unsigned bits = two[k / 2] >> 16 * (k % 2) & 0xffff, at = 8 * (k / 2) + 2 * i + k % 2;
      out.of[at] = table.of[bits];
      out.exponents[at] = table.exponents[bits];
    }
  }
}

/* The rows g and g + 8 of A and the columns 2 t and 2 t + 1 of B, from the warp's lanes. */
static void gather_operands(const uint32_t a[4], const uint32_t b[2], vector16 rows[2], vector16 columns[2])
{
  operands mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  const unsigned char(*all)[CUDA_MODEL_WARP_BYTES] = cuda_model_exchange(&mine, sizeof mine);
  unsigned g = cuda_model_lane() / 4, t = cuda_model_lane() % 4;

  for (unsigned i = 0; i < 2; i++) {
    gather(all + 4 * g, offsetof(operands, a) + i * 4, offsetof(operands, a) + i * 4 + 8, rows[i]);
    gather(all + 4 * (2 * t + i), offsetof(operands, b), offsetof(operands, b) + 4, columns[i]);
  }
}

void cuda_model_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4])
{
  cuda_model_tensor_cores cores = tensor_cores;
  vector16 rows[2], columns[2];

  gather_operands(a, b, rows, columns);
  for (unsigned i = 0; i < 4; i++)
    d[i] = add_products(c[i], rows[i / 2], columns[i % 2], cores);
}

void cuda_model_mma_halves(uint32_t d[2], const uint32_t a[4], const uint32_t b[2], const uint32_t c[2])
{
  cuda_model_tensor_cores cores = tensor_cores;
  vector16 rows[2], columns[2];

  gather_operands(a, b, rows, columns);
  for (unsigned i = 0; i < 2; i++) {
    uint32_t low = add_products_to_half((uint16_t)c[i], rows[i], columns[0], cores);
    d[i] = low | (uint32_t)add_products_to_half((uint16_t)(c[i] >> 16), rows[i], columns[1], cores) << 16;
  }
}
