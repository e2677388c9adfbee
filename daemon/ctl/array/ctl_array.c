/* SPDX-License-Identifier: Apache-2.0 */
/* Find the array of a file, whatever the file's format. */
#include "daemon/ctl/array/ctl_array.h"

#include <stdio.h>

#include "daemon/ctl/array/ctl_npy.h"
#include "engine/model/safetensors.h"

enum { NAMES_BYTES = 256 };

static bool has_end(const char *path, const char *end)
{
  size_t n = strlen(path), n_end = strlen(end);

  return n > n_end && strcmp(path + n - n_end, end) == 0;
}

bool ctl_array_is_file(const char *path)
{
  return has_end(path, ".npy") || has_end(path, ".safetensors");
}

static bool has_dims(const struct safetensors *file, const char *name, size_t n_dims)
{
  struct tensor_shape shape;

  return safetensors_shape(file, name, &shape) == ERR_OK && shape.n_dims == n_dims;
}

/* Find the only tensor of n_dims dimensions. */
static err_t find_only(const struct safetensors *file, size_t n_dims, const char **out)
{
  const char *found = NULL;
  char names[NAMES_BYTES] = "";
  size_t n = 0;

  for (const char *name = safetensors_next_tensor(file, NULL); name; name = safetensors_next_tensor(file, name)) {
    if (!has_dims(file, name, n_dims))
      continue;
    size_t at = strlen(names);
    snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", name);
    found = name;
    n++;
  }
  if (n == 0)
    FAIL(ERR_ITEM, "%s: it has no tensor of %zu %s", safetensors_path(file), n_dims,
         n_dims == 1 ? "dimension" : "dimensions");
  if (n > 1)
    FAIL(ERR_USAGE, "%s: it has several such tensors: %s: %s", safetensors_path(file), names,
         n_dims == 2 ? "say which one with --tensor NAME" : "use a file with just one");
  *out = found;
  return ERR_OK;
}

static err_t open_safetensors(const char *path, const char *name, unsigned types, size_t n_dims, struct ctl_array *a)
{
  TRY(safetensors_map(path, &a->file));
  if (!name)
    TRY(find_only(a->file, n_dims, &name));
  return safetensors_tensor(a->file, name, types, &a->tensor);
}

static err_t open_npy(const char *path, const char *name, unsigned types, struct ctl_array *a)
{
  char expected[TENSOR_TYPES_TEXT_MAX];

  if (name)
    FAIL(ERR_USAGE, "%s: a .npy file has one array without a name: leave out --tensor", path);
  TRY(ctl_npy_map(path, &a->npy));
  a->tensor = *ctl_npy_tensor(a->npy);
  tensor_types_print(types, expected);
  if (!(types & TENSOR_TYPE_BIT(a->tensor.type)))
    FAIL(ERR_ITEM, "%s: its numbers are %s; %s can be used", path, tensor_type_name(a->tensor.type), expected);
  return ERR_OK;
}

err_t ctl_array_open(const char *path, const char *name, unsigned types, size_t n_dims, struct ctl_array *out)
{
  AUTO(ctl_array_fini) struct ctl_array a = { 0 };
  char shape[TENSOR_SHAPE_TEXT_MAX];

  TRY(has_end(path, ".npy") ? open_npy(path, name, types, &a) : open_safetensors(path, name, types, n_dims, &a));
  tensor_shape_print(&a.tensor.shape, shape);
  if (a.tensor.shape.n_dims != n_dims)
    FAIL(ERR_ITEM, "%s: the array has shape %s; it must have %zu %s", path, shape, n_dims,
         n_dims == 1 ? "dimension" : "dimensions");
  *out = a;
  a = (struct ctl_array){ 0 };
  return ERR_OK;
}

void ctl_array_fini(struct ctl_array *a)
{
  ctl_npy_close(&a->npy);
  safetensors_close(&a->file);
}
