#include "ingest/numbers.h"

static const struct {
  const char *name;
  size_t width;
} rows[] = {
  [NUMBERS_F32] = { "F32", 4 },
  [NUMBERS_F16] = { "F16", 2 },
  [NUMBERS_BF16] = { "BF16", 2 },
};

size_t numbers_width(enum numbers_type type)
{
  return rows[type].width;
}

const char *numbers_name(enum numbers_type type)
{
  return rows[type].name;
}

static uint32_t read_le16(const uint8_t *p)
{
  return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_le32(const uint8_t *p)
{
  return read_le16(p) | read_le16(p + 2) << 16;
}

static float float_of_bits(uint32_t bits)
{
  float f;

  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint32_t bits_of_float(float f)
{
  uint32_t bits;

  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* IEEE 754 binary16: 1 sign bit, 5 bits of exponent (bias 15), 10 of fraction. */
static float float_of_half(uint32_t half)
{
  uint32_t sign = (half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 0x1f;
  uint32_t fraction = half & 0x3ff;

  if (exponent == 0) /* zero or subnormal: fraction * 2^-24, a normal number in f32 */
    return float_of_bits(sign | bits_of_float((float)fraction * 0x1p-24f));
  if (exponent == 0x1f)
    return float_of_bits(sign | 0x7f800000 | fraction << 13);
  return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

void numbers_decode(struct span bytes, enum numbers_type type, float *out)
{
  size_t n = bytes.n / rows[type].width;

  switch (type) {
  case NUMBERS_F32:
    for (size_t i = 0; i < n; i++)
      out[i] = float_of_bits(read_le32(bytes.p + 4 * i));
    break;
  case NUMBERS_F16:
    for (size_t i = 0; i < n; i++)
      out[i] = float_of_half(read_le16(bytes.p + 2 * i));
    break;
  case NUMBERS_BF16: /* the upper half of an f32 */
    for (size_t i = 0; i < n; i++)
      out[i] = float_of_bits(read_le16(bytes.p + 2 * i) << 16);
    break;
  }
}

void numbers_encode_f32(const float *v, size_t n, uint8_t *out)
{
  for (size_t i = 0; i < n; i++) {
    uint32_t bits = bits_of_float(v[i]);
    for (unsigned k = 0; k < 4; k++)
      out[4 * i + k] = (uint8_t)(bits >> 8 * k);
  }
}

size_t numbers_find_not_finite(const float *v, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if ((bits_of_float(v[i]) & 0x7f800000) == 0x7f800000)
      return i;
  }
  return n;
}
