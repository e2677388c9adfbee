/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor as it lies in a .safetensors file: little-endian numbers back to back, row by row. Thread: any. */
#ifndef ENGINE_MODEL_TENSOR_H
#define ENGINE_MODEL_TENSOR_H

#include "base/span.h"

enum tensor_type { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16, TENSOR_I64, TENSOR_U8, N_TENSOR_TYPES };

/* A set of types. */
#define TENSOR_TYPE_BIT(type) (1u << (type))
#define TENSOR_FLOATS                                                                        \
  (TENSOR_TYPE_BIT(TENSOR_F32) | TENSOR_TYPE_BIT(TENSOR_F64) | TENSOR_TYPE_BIT(TENSOR_F16) | \
   TENSOR_TYPE_BIT(TENSOR_BF16))

enum { TENSOR_DIMS_MAX = 4 };

struct tensor_shape {
  size_t n_dims;
  size_t dim[TENSOR_DIMS_MAX];
};

struct tensor {
  const char *name;
  enum tensor_type type;
  struct tensor_shape shape;
  struct span bytes; /* at any address */
};

/* "F32", as the file format writes it. */
const char *tensor_type_name(enum tensor_type type);

/* The type of such a name; false where we read none of it. */
bool tensor_type_find(const char *name, enum tensor_type *out);

/* The names of a set: "F32, F64 or F16". */
enum { TENSOR_TYPES_TEXT_MAX = 48 };
void tensor_types_print(unsigned types, char *text);

/* "[2, 3]" */
enum { TENSOR_SHAPE_TEXT_MAX = 128 };
void tensor_shape_print(const struct tensor_shape *shape, char *text);

/* Bytes of one number. */
size_t tensor_type_bytes(enum tensor_type type);

/* Numbers of a shape; false where they are more than can be counted in bytes. */
bool tensor_shape_count(const struct tensor_shape *shape, size_t *out);

/* Numbers first to first + n of a floating-point tensor as f32, as they are: infinities and NaN too, and numbers of F64
 * that f32 does not reach become infinities. */
void tensor_floats(const struct tensor *tensor, size_t first, size_t n, float *out);

/* One number of an I64 tensor. */
int64_t tensor_i64(const struct tensor *tensor, size_t i);

#endif
