/* SPDX-License-Identifier: Apache-2.0 */
/* Converting numbers of the wire, and finding numbers that are not finite. */
#include "ingest/json/numbers.h"

#include <assert.h>
#include <math.h>

#include "base/half.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "f32 numbers are copied without conversion");

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

void numbers_decode(struct span bytes, enum numbers_type type, float *out)
{
  size_t n = bytes.n / rows[type].width;

  switch (type) {
  case NUMBERS_F32:
    if (n)
      memcpy(out, bytes.p, n * sizeof *out); /* the machine and the wire are little-endian */
    break;
  case NUMBERS_F16:
    for (size_t i = 0; i < n; i++)
      out[i] = half_from_f16(bytes.p + 2 * i);
    break;
  case NUMBERS_BF16:
    for (size_t i = 0; i < n; i++)
      out[i] = half_from_bf16(bytes.p + 2 * i);
    break;
  }
}

void numbers_encode_f32(const float *v, size_t n, uint8_t *out)
{
  if (n)
    memcpy(out, v, n * sizeof *v);
}

size_t numbers_find_not_finite(const float *v, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(v[i]))
      return i;
  }
  return n;
}
