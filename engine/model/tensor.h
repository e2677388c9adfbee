/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor as it is stored in a .safetensors file: little-endian numbers without gaps, row by row. Thread: any. */
#ifndef ENGINE_MODEL_TENSOR_H
#define ENGINE_MODEL_TENSOR_H

#include "base/span.h"

enum tensor_type {
  TENSOR_F32,
  TENSOR_F64,
  TENSOR_F16,
  TENSOR_BF16,
  TENSOR_I64,
  TENSOR_U8,
  TENSOR_I8,
  TENSOR_I16,
  TENSOR_U16,
  TENSOR_I32,
  TENSOR_U32,
  TENSOR_U64,
  N_TENSOR_TYPES
};

/* Sets of types, as bits. */
#define TENSOR_TYPE_BIT(type) (1u << (type))
#define TENSOR_FLOATS                                                                        \
  (TENSOR_TYPE_BIT(TENSOR_F32) | TENSOR_TYPE_BIT(TENSOR_F64) | TENSOR_TYPE_BIT(TENSOR_F16) | \
   TENSOR_TYPE_BIT(TENSOR_BF16))
#define TENSOR_INTEGERS (((1u << N_TENSOR_TYPES) - 1) & ~TENSOR_FLOATS)

enum { TENSOR_DIMS_MAX = 4 };

struct tensor_shape {
  size_t n_dims;
  size_t dim[TENSOR_DIMS_MAX];
};

struct tensor {
  const char *name;
  enum tensor_type type;
  struct tensor_shape shape;
  struct span bytes; /* not necessarily aligned */
};

/* The name of a type in the file format, like "F32". */
const char *tensor_type_name(enum tensor_type type);

/* Find the type with this name. Returns false if it is none of the types that we read. */
bool tensor_type_find(const char *name, enum tensor_type *out);

/* Print the names of a set of types, like "F32, F64 or F16". */
enum { TENSOR_TYPES_TEXT_MAX = 96 };
void tensor_types_print(unsigned set, char *text);

/* Print a shape, like "[2, 3]". */
enum { TENSOR_SHAPE_TEXT_MAX = 128 };
void tensor_shape_print(const struct tensor_shape *shape, char *text);

/* The number of bytes of one number. */
size_t tensor_type_bytes(enum tensor_type type);

/* Count the numbers of a shape. Returns false if their bytes would overflow a size_t. */
bool tensor_shape_count(const struct tensor_shape *shape, size_t *out);

/* Convert numbers first..first+n-1 of a floating-point tensor to f32. Infinities and NaN are kept. F64 numbers beyond
 * the range of f32 become infinities. */
void tensor_floats(const struct tensor *tensor, size_t first, size_t n, float *out);

/* Return one number of an I64 tensor. */
int64_t tensor_i64(const struct tensor *tensor, size_t i);

/* Return one number of an integer tensor. Numbers of U64 beyond the range wrap around: cast them back. */
int64_t tensor_integer(const struct tensor *tensor, size_t i);

#endif
