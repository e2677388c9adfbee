/* SPDX-License-Identifier: Apache-2.0 */
/* Reads .safetensors files: parses the JSON header with jansson and checks every tensor against the file. */
#include "engine/model/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "engine/model/tensor_hint.h"

enum { HEADER_MAX = 100 * 1024 * 1024 };

/* Larger weights come from a broken export. They could overflow scores to infinity. */
static const float NUMBER_MAX = 1e6f;

struct safetensors {
  char *path;
  uint8_t *bytes;
  size_t n_bytes;
  bool is_mapped;
  struct span data; /* the tensors, after the header */
  json_t *header;
};

static void close_file(FILE **file)
{
  if (*file)
    fclose(*file);
}

static err_t read_bytes(struct safetensors *f, FILE *file)
{
  TRY(mem_array(f->n_bytes, 1, &f->bytes));
  if (fread(f->bytes, 1, f->n_bytes, file) != f->n_bytes)
    FAIL(ERR_MODEL, "%s: cannot be read: is it a file?", f->path);
  return ERR_OK;
}

static err_t map_bytes(struct safetensors *f, FILE *file)
{
  void *bytes = f->n_bytes ? mmap(NULL, f->n_bytes, PROT_READ, MAP_PRIVATE, fileno(file), 0) : NULL;

  if (bytes == MAP_FAILED)
    FAIL(ERR_MODEL, "%s: cannot be mapped into memory: %s", f->path, strerror(errno));
  f->bytes = bytes;
  f->is_mapped = true;
  return ERR_OK;
}

/* Open a file without blocking if the path is a pipe that has no writer. */
static FILE *open_to_read(const char *path)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

  return fd < 0 ? NULL : fdopen(fd, "rb");
}

static err_t load_file(struct safetensors *f, bool is_mapped)
{
  AUTO(close_file) FILE *file = open_to_read(f->path);
  struct stat status;

  if (!file)
    FAIL(ERR_MODEL, "%s: cannot be opened: %s", f->path, strerror(errno));
  if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
    FAIL(ERR_MODEL, "%s: cannot be read: is it a file?", f->path);
  f->n_bytes = (size_t)status.st_size;
  return is_mapped ? map_bytes(f, file) : read_bytes(f, file);
}

static err_t parse_header(struct safetensors *f)
{
  uint64_t n;
  json_error_t error;

  if (f->n_bytes < 8)
    FAIL(ERR_MODEL, "%s: not a safetensors file: only %zu bytes", f->path, f->n_bytes);
  memcpy(&n, f->bytes, 8);
  if (n > HEADER_MAX || n > f->n_bytes - 8)
    FAIL(ERR_MODEL, "%s: not a safetensors file, or cut short: its header would be %" PRIu64 " bytes long", f->path, n);
  f->header = json_loadb((const char *)f->bytes + 8, (size_t)n, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(f->header))
    FAIL(ERR_MODEL, "%s: its header is not a JSON object: %s", f->path, error.text);
  f->data = span_of(f->bytes + 8 + n, f->n_bytes - 8 - (size_t)n);
  return ERR_OK;
}

static err_t open_file(const char *path, bool is_mapped, struct safetensors **out)
{
  AUTO(safetensors_close) struct safetensors *f = NULL;

  TRY(mem_array(1, sizeof *f, &f));
  TRY(mem_copy_str(path, &f->path));
  TRY(load_file(f, is_mapped));
  TRY(parse_header(f));
  *out = f;
  f = NULL;
  return ERR_OK;
}

err_t safetensors_open(const char *path, struct safetensors **out)
{
  return open_file(path, false, out);
}

err_t safetensors_map(const char *path, struct safetensors **out)
{
  return open_file(path, true, out);
}

void safetensors_close(struct safetensors **f)
{
  if (!*f)
    return;
  json_decref((*f)->header);
  if (!(*f)->is_mapped)
    mem_free(&(*f)->bytes);
  else if ((*f)->bytes)
    munmap((*f)->bytes, (*f)->n_bytes);
  mem_free(&(*f)->path);
  mem_free(f);
}

const char *safetensors_path(const struct safetensors *f)
{
  return f->path;
}

struct span safetensors_bytes(const struct safetensors *f)
{
  return span_of(f->bytes, f->n_bytes);
}

const char *safetensors_text(const struct safetensors *f, const char *key)
{
  return json_string_value(json_object_get(json_object_get(f->header, "__metadata__"), key));
}

/* The key after `previous`, which must be a key of this object, or the first key if `previous` is NULL. */
static const char *next_of(json_t *object, const char *previous)
{
  void *at = previous ? json_object_iter_next(object, json_object_key_to_iter(previous)) : json_object_iter(object);

  return at ? json_object_iter_key(at) : NULL;
}

const char *safetensors_next_key(const struct safetensors *f, const char *previous)
{
  return next_of(json_object_get(f->header, "__metadata__"), previous);
}

const char *safetensors_next_tensor(const struct safetensors *f, const char *previous)
{
  const char *name = next_of(f->header, previous);

  return name && strcmp(name, "__metadata__") == 0 ? next_of(f->header, name) : name;
}

err_t safetensors_supply(struct safetensors *f, const char *key, const char *text)
{
  const char *own = safetensors_text(f, key);

  if (own && strcmp(own, text) != 0)
    FAIL(ERR_MODEL, "%s: __metadata__ \"%s\" is \"%s\", the configuration says %s: remove it there", f->path, key, own,
         text);
  if (!json_object_get(f->header, "__metadata__") && json_object_set_new(f->header, "__metadata__", json_object()) != 0)
    FAIL(ERR_MEMORY, "no memory for the metadata of %s", f->path);
  if (json_object_set_new(json_object_get(f->header, "__metadata__"), key, json_string(text)) != 0)
    FAIL(ERR_MEMORY, "no memory for the metadata of %s", f->path);
  return ERR_OK;
}

static err_t metadata_number(const struct safetensors *f, const char *key, double min, double max, bool is_integer,
                             double *out)
{
  const char *text = safetensors_text(f, key);
  char *end;

  if (!text)
    FAIL(ERR_MODEL, "%s: __metadata__ lacks \"%s\": docs/models.md says what it is", f->path, key);
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= min && value <= max) || (is_integer && value != floor(value)))
    FAIL(ERR_MODEL, "%s: __metadata__ \"%s\" is \"%s\", not %s from %g to %g", f->path, key, text,
         is_integer ? "a whole number" : "a number", min, max);
  *out = value;
  return ERR_OK;
}

err_t safetensors_integer(const struct safetensors *f, const char *key, int64_t min, int64_t max, int64_t *out)
{
  double value;

  TRY(metadata_number(f, key, (double)min, (double)max, true, &value));
  *out = (int64_t)value;
  return ERR_OK;
}

err_t safetensors_real(const struct safetensors *f, const char *key, double min, double max, double *out)
{
  return metadata_number(f, key, min, max, false, out);
}

bool safetensors_has(const struct safetensors *f, const char *name)
{
  return strcmp(name, "__metadata__") != 0 && json_object_get(f->header, name) != NULL;
}

err_t safetensors_shape(const struct safetensors *f, const char *name, struct tensor_shape *out)
{
  json_t *dims = json_object_get(json_object_get(f->header, name), "shape");
  struct tensor_shape shape = { .n_dims = json_array_size(dims) };

  if (!safetensors_has(f, name)) {
    char hint[TENSOR_HINT_MAX];
    tensor_hint_print(f, safetensors_next_tensor, name, hint);
    FAIL(ERR_MODEL, "%s: there is no tensor \"%s\"%s", f->path, name, hint);
  }
  if (!json_is_array(dims) || shape.n_dims > TENSOR_DIMS_MAX)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has no shape or more than %d dimensions", f->path, name, TENSOR_DIMS_MAX);
  for (size_t i = 0; i < shape.n_dims; i++) {
    json_int_t dim = json_integer_value(json_array_get(dims, i));
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

  if (json_array_size(offsets) != 2 || begin < 0 || end < begin || (uint64_t)end > f->data.n)
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
