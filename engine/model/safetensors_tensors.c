/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tensors of .safetensors files, and checks each against the file. Separate from safetensors.c, because a
 * missing tensor gets a hint that looks at the names of the others. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#include "base/mem.h"
#include "engine/model/safetensors_file.h"
#include "engine/model/tensor_hint.h"

/* Larger weights come from a broken export. They could overflow scores to infinity. */
static const float NUMBER_MAX = 1e6f;

err_t safetensors_shape(const struct safetensors *f, const char *name, struct tensor_shape *out)
{
  json_t *dims = json_object_get(json_object_get(f->header, name), "shape");
  struct tensor_shape shape = { .n_dims = json_array_size(dims) };

  if (!safetensors_has(f, name)) {
    char hint[TENSOR_HINT_MAX];
    tensor_hint_print(f, name, hint);
    FAIL(ERR_MODEL, "%s: there is no tensor \"%s\"%s", f->path, name, hint);
  }
  if (!json_is_array(dims) || shape.n_dims > TENSOR_DIMS_MAX)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has no shape or more than %d dimensions", f->path, name, TENSOR_DIMS_MAX);
  for (size_t i = 0; i < shape.n_dims; i++) {
    json_int_t dim = json_integer_value(json_array_get(dims, i));
    if (!json_is_integer(json_array_get(dims, i)))
      FAIL(ERR_MODEL, "%s: tensor \"%s\" has a dimension that is not a whole number", f->path, name);
    if (dim < 0 || dim > UINT32_MAX)
      FAIL(ERR_MODEL, "%s: tensor \"%s\" has a dimension of %" JSON_INTEGER_FORMAT, f->path, name, dim);
    shape.dim[i] = (size_t)dim;
  }
  *out = shape;
  return ERR_OK;
}

static err_t find_type(const struct safetensors *f, const char *name, unsigned types, enum tensor_type *out)
{
  const char *text = json_string_value(json_object_get(json_object_get(f->header, name), "dtype"));
  char expected[TENSOR_TYPES_TEXT_MAX];
  enum tensor_type type;

  if (text && tensor_type_find(text, &type) && types & TENSOR_TYPE_BIT(type)) {
    *out = type;
    return ERR_OK;
  }
  tensor_types_print(types, expected);
  FAIL(ERR_MODEL, "%s: tensor \"%s\" has type %s; %s can be used", f->path, name, text ? text : "?", expected);
}

static err_t find_bytes(const struct safetensors *f, const char *name, size_t n_bytes, struct span *out)
{
  json_t *offsets = json_object_get(json_object_get(f->header, name), "data_offsets");
  json_int_t begin = json_integer_value(json_array_get(offsets, 0));
  json_int_t end = json_integer_value(json_array_get(offsets, 1));

  if (json_array_size(offsets) != 2 || !json_is_integer(json_array_get(offsets, 0)) ||
      !json_is_integer(json_array_get(offsets, 1)))
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has data_offsets that are not two whole numbers: export the file again", f->path,
         name);
  if (begin < 0 || end < begin || (uint64_t)end > f->data.n)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" is not inside the file: is it cut short?", f->path, name);
  if ((uint64_t)(end - begin) != n_bytes)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has %" JSON_INTEGER_FORMAT " bytes where its shape needs %zu", f->path, name,
         end - begin, n_bytes);
  *out = span_of(f->data.p + begin, n_bytes);
  return ERR_OK;
}

err_t safetensors_tensor(const struct safetensors *f, const char *name, unsigned types, struct tensor *out)
{
  struct tensor tensor = { .name = name };
  size_t count;

  TRY(safetensors_shape(f, name, &tensor.shape));
  TRY(find_type(f, name, types, &tensor.type));
  if (!tensor_shape_count(&tensor.shape, &count))
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has more numbers than a file can hold", f->path, name);
  TRY(find_bytes(f, name, count * tensor_type_bytes(tensor.type), &tensor.bytes));
  *out = tensor;
  return ERR_OK;
}

static err_t verify_shape(const struct safetensors *f, const char *name, const struct tensor_shape *want)
{
  struct tensor_shape have;
  char have_text[TENSOR_SHAPE_TEXT_MAX], want_text[TENSOR_SHAPE_TEXT_MAX];

  TRY(safetensors_shape(f, name, &have));
  if (have.n_dims == want->n_dims && memcmp(have.dim, want->dim, have.n_dims * sizeof have.dim[0]) == 0)
    return ERR_OK;
  tensor_shape_print(&have, have_text);
  tensor_shape_print(want, want_text);
  FAIL(ERR_MODEL, "%s: tensor \"%s\" has shape %s where the model needs %s", f->path, name, have_text, want_text);
}

err_t safetensors_floats(const struct safetensors *f, const char *name, float **out, size_t n_dims, ...)
{
  AUTO(mem_free) float *floats = NULL;
  struct tensor_shape want = { .n_dims = n_dims };
  struct tensor tensor;
  va_list args;

  va_start(args, n_dims);
  for (size_t i = 0; i < n_dims; i++)
    want.dim[i] = va_arg(args, size_t);
  va_end(args);
  TRY(verify_shape(f, name, &want));
  TRY(safetensors_tensor(f, name, TENSOR_FLOATS, &tensor));

  size_t count = tensor.bytes.n / tensor_type_bytes(tensor.type);
  TRY(mem_array(count, sizeof *floats, &floats));
  tensor_floats(&tensor, 0, count, floats);
  for (size_t i = 0; i < count; i++) {
    if (!(fabsf(floats[i]) <= NUMBER_MAX))
      FAIL(ERR_MODEL, "%s: tensor \"%s\": number %zu is %g, which is not within +-%g", f->path, name, i,
           (double)floats[i], (double)NUMBER_MAX);
  }
  *out = floats;
  floats = NULL;
  return ERR_OK;
}
