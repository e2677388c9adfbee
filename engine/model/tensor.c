/* SPDX-License-Identifier: Apache-2.0 */
/* Types and shapes of tensors, and conversion of their numbers. */
#include "engine/model/tensor.h"

#include <assert.h>
#include <stdio.h>

#include "base/half.h"

static const struct {
  const char *name;
  size_t bytes;
} types[N_TENSOR_TYPES] = {
  [TENSOR_F32] = { "F32", 4 }, [TENSOR_F64] = { "F64", 8 }, [TENSOR_F16] = { "F16", 2 }, [TENSOR_BF16] = { "BF16", 2 },
  [TENSOR_I64] = { "I64", 8 }, [TENSOR_U8] = { "U8", 1 },   [TENSOR_I8] = { "I8", 1 },   [TENSOR_I16] = { "I16", 2 },
  [TENSOR_U16] = { "U16", 2 }, [TENSOR_I32] = { "I32", 4 }, [TENSOR_U32] = { "U32", 4 }, [TENSOR_U64] = { "U64", 8 },
};

const char *tensor_type_name(enum tensor_type type)
{
  return types[type].name;
}

bool tensor_type_find(const char *name, enum tensor_type *out)
{
  for (size_t i = 0; i < N_TENSOR_TYPES; i++) {
    if (strcmp(name, types[i].name) == 0) {
      *out = (enum tensor_type)i;
      return true;
    }
  }
  return false;
}

void tensor_types_print(unsigned set, char *text)
{
  size_t n = 0;

  *text = '\0';
  for (unsigned i = 0; i < N_TENSOR_TYPES; i++) {
    bool is_last = set >> i == 1;
    if (set & TENSOR_TYPE_BIT(i))
      n += (size_t)snprintf(text + n, TENSOR_TYPES_TEXT_MAX - n, "%s%s",
                            n == 0    ? ""
                            : is_last ? " or "
                                      : ", ",
                            types[i].name);
  }
}

void tensor_shape_print(const struct tensor_shape *shape, char *text)
{
  size_t n = (size_t)snprintf(text, TENSOR_SHAPE_TEXT_MAX, "[");

  for (size_t i = 0; i < shape->n_dims; i++)
    n += (size_t)snprintf(text + n, TENSOR_SHAPE_TEXT_MAX - n, "%s%zu", i ? ", " : "", shape->dim[i]);
  snprintf(text + n, TENSOR_SHAPE_TEXT_MAX - n, "]");
}

size_t tensor_type_bytes(enum tensor_type type)
{
  return types[type].bytes;
}

bool tensor_shape_count(const struct tensor_shape *shape, size_t *out)
{
  size_t count = 1;

  for (size_t i = 0; i < shape->n_dims; i++) {
    if (__builtin_mul_overflow(count, shape->dim[i], &count))
      return false;
  }
  *out = count;
  return count <= SIZE_MAX / sizeof(uint64_t);
}

static float load_number(const uint8_t *p, enum tensor_type type)
{
  double f64;

  switch (type) {
  case TENSOR_F64:
    memcpy(&f64, p, sizeof f64);
    return (float)f64;
  case TENSOR_F16:
    return half_from_f16(p);
  case TENSOR_BF16:
    return half_from_bf16(p);
  default:
    assert(false);
    return 0.0f;
  }
}

void tensor_floats(const struct tensor *tensor, size_t first, size_t n, float *out)
{
  size_t bytes = tensor_type_bytes(tensor->type);
  const uint8_t *p = tensor->bytes.p + first * bytes;

  assert((first + n) * bytes <= tensor->bytes.n);
  if (n && tensor->type == TENSOR_F32) {
    memcpy(out, p, n * sizeof *out);
    return;
  }
  for (size_t i = 0; i < n; i++)
    out[i] = load_number(p + i * bytes, tensor->type);
}

int64_t tensor_i64(const struct tensor *tensor, size_t i)
{
  int64_t value;

  assert(tensor->type == TENSOR_I64 && (i + 1) * sizeof value <= tensor->bytes.n);
  memcpy(&value, tensor->bytes.p + i * sizeof value, sizeof value);
  return value;
}

static bool is_signed(enum tensor_type type)
{
  return type == TENSOR_I8 || type == TENSOR_I16 || type == TENSOR_I32 || type == TENSOR_I64;
}

int64_t tensor_integer(const struct tensor *tensor, size_t i)
{
  size_t n = tensor_type_bytes(tensor->type);
  unsigned unused = 64 - 8 * (unsigned)n;
  uint64_t bits = 0;

  assert(TENSOR_INTEGERS & TENSOR_TYPE_BIT(tensor->type) && (i + 1) * n <= tensor->bytes.n);
  memcpy(&bits, tensor->bytes.p + i * n, n);
  bits <<= unused; /* the sign moves to the highest bit, and comes back with the number */
  return is_signed(tensor->type) ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}
