#include "tests/support/cuda_model/cuda_model_mma.h"

#include "base/half.h"

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

float cuda_model_fast_tanh(float x)
{
  float error = __float_as_uint(x) * 2654435761u >> 31 ? 0x1p-12f : -0x1p-12f;

  return tanhf(x) * (1 + error);
}

struct operands {
  uint32_t a[4], b[2];
};

void cuda_model_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4])
{
  operands mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  const unsigned char(*all)[CUDA_MODEL_WARP_BYTES] = cuda_model_exchange(&mine, sizeof mine);
  unsigned g = cuda_model_lane() / 4, t = cuda_model_lane() % 4;

  for (unsigned i = 0; i < 4; i++) {
    unsigned row = i / 2, column = 2 * t + i % 2; /* row + 8 * (i / 2), within g's registers */
    float sum = c[i];
    for (unsigned k = 0; k < 16; k++) {
      operands of_row, of_column;
      memcpy(&of_row, all[4 * g + k % 8 / 2], sizeof of_row);
      memcpy(&of_column, all[4 * column + k % 8 / 2], sizeof of_column);
      sum += cuda_model_float((uint16_t)(of_row.a[row + k / 8 * 2] >> 16 * (k % 2))) *
             cuda_model_float((uint16_t)(of_column.b[k / 8] >> 16 * (k % 2)));
    }
    d[i] = sum;
  }
}
