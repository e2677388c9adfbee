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

float cuda_model_inexact(float x, float error)
{
  return x * (__float_as_uint(x) * 2654435761u >> 31 ? 1 + error : 1 - error);
}

float cuda_model_fast_tanh(float x)
{
  float error = __float_as_uint(x) * 2654435761u >> 31 ? 0x1p-12f : -0x1p-12f;

  return tanhf(x) * (1 + error);
}

/* Are sums truncated, as on some devices, or rounded to nearest? */
static std::atomic<bool> is_cutting{ false };

extern "C" void cuda_model_set_cutting(bool cuts)
{
  is_cutting = cuts;
}

enum { PRODUCTS = 16, BLOCK = 8 };

static float sum_rounding(float sum, const float products[PRODUCTS])
{
  for (int k = 0; k < PRODUCTS; k++)
    sum += products[k];
  return sum;
}

/* Add 8 products to a sum. All are truncated to the 25 bits of the largest, and the result to its own 24. */
static float cut_block(float sum, const float products[BLOCK])
{
  float largest = fabsf(sum), plain = sum;

  for (int k = 0; k < BLOCK; k++) {
    largest = fmaxf(largest, fabsf(products[k]));
    plain += products[k];
  }
  if (largest == 0 || !(fabsf(plain) < INFINITY))
    return plain;
  double last = ldexp(1, ilogbf(largest) - 24), total = trunc((double)sum / last);
  for (int k = 0; k < BLOCK; k++)
    total += trunc((double)products[k] / last);
  double place = total == 0 ? 1 : ldexp(1, ilogb(total) - 23);
  return (float)(trunc(total / place) * place * last);
}

static float sum_cutting(float sum, const float products[PRODUCTS])
{
  for (int first = 0; first < PRODUCTS; first += BLOCK)
    sum = cut_block(sum, products + first);
  return sum;
}

struct operands {
  uint32_t a[4], b[2];
};

/* The value of every half-precision number, by its bits. */
struct half_table {
  float of[1 << 16];
  half_table()
  {
    for (unsigned i = 0; i < 1 << 16; i++)
      of[i] = cuda_model_float((uint16_t)i);
  }
};

/* Collect 16 numbers from four lanes. Each lane has two of the low eight and two of the high eight. */
static void gather(const unsigned char (*lanes)[CUDA_MODEL_WARP_BYTES], size_t low, size_t high, float out[PRODUCTS])
{
  static const half_table table;

  for (unsigned i = 0; i < 4; i++) {
    uint32_t two[2];
    memcpy(&two[0], lanes[i] + low, sizeof two[0]);
    memcpy(&two[1], lanes[i] + high, sizeof two[1]);
    for (unsigned k = 0; k < 2; k++) {
      out[2 * i + k] = table.of[two[0] >> 16 * k & 0xffff];
      out[8 + 2 * i + k] = table.of[two[1] >> 16 * k & 0xffff];
    }
  }
}

void cuda_model_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4])
{
  operands mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  const unsigned char(*all)[CUDA_MODEL_WARP_BYTES] = cuda_model_exchange(&mine, sizeof mine);
  unsigned g = cuda_model_lane() / 4, t = cuda_model_lane() % 4;
  bool cuts = is_cutting;
  float rows[2][PRODUCTS], columns[2][PRODUCTS], products[PRODUCTS];

  for (unsigned i = 0; i < 2; i++) {
    gather(all + 4 * g, offsetof(operands, a) + i * 4, offsetof(operands, a) + i * 4 + 8, rows[i]);
    gather(all + 4 * (2 * t + i), offsetof(operands, b), offsetof(operands, b) + 4, columns[i]);
  }
  for (unsigned i = 0; i < 4; i++) {
    for (unsigned k = 0; k < PRODUCTS; k++)
      products[k] = rows[i / 2][k] * columns[i % 2][k];
    d[i] = cuts ? sum_cutting(c[i], products) : sum_rounding(c[i], products);
  }
}
