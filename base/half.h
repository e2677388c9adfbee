/* SPDX-License-Identifier: Apache-2.0 */
/* Converting 16-bit floats, bf16 and f16, to f32. Their bytes are little-endian and may be unaligned. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* Convert a bfloat16 number: the upper half of an f32. */
static inline float half_from_bf16(const uint8_t *p)
{
  uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24;
  float value;

  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Convert an IEEE binary16 number, including subnormals, infinities and NaN. */
static inline float half_from_f16(const uint8_t *p)
{
  uint32_t half = (uint32_t)p[0] | (uint32_t)p[1] << 8;
  uint32_t sign = (half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 0x1f;
  uint32_t fraction = half & 0x3ff;
  uint32_t bits;
  float value;

  if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, exact in f32 */
    value = (float)fraction * 0x1p-24f;
    return sign ? -value : value;
  }
  if (exponent == 0x1f)
    bits = sign | 0x7f800000 | fraction << 13;
  else
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
