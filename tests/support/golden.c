/* SPDX-License-Identifier: Apache-2.0 */
/* Reads golden .safetensors files with jansson, independently of the engine's reader. */
#include "tests/support/golden.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SLUICE_GOLDEN_DIR
#define SLUICE_GOLDEN_DIR "tests/golden"
#endif

struct golden {
  char path[512];
  uint8_t *bytes;
  size_t n_bytes;
  size_t data; /* offset of the tensors */
  json_t *header;
};

__attribute__((noreturn, format(printf, 2, 3))) static void die(const char *path, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  fprintf(stderr, "%s: ", path);
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(1);
}

static void read_bytes(struct golden *g)
{
  FILE *f = fopen(g->path, "rb");

  if (!f)
    die(g->path, "cannot be opened");
  fseek(f, 0, SEEK_END);
  g->n_bytes = (size_t)ftell(f);
  rewind(f);
  g->bytes = malloc(g->n_bytes);
  if (!g->bytes || fread(g->bytes, 1, g->n_bytes, f) != g->n_bytes)
    die(g->path, "cannot be read");
  fclose(f);
}

static void parse_header(struct golden *g)
{
  uint64_t length;
  json_error_t error;

  if (g->n_bytes < sizeof length)
    die(g->path, "too short");
  memcpy(&length, g->bytes, sizeof length);
  if (length > g->n_bytes - sizeof length)
    die(g->path, "the header is longer than the file");
  g->header = json_loadb((const char *)g->bytes + sizeof length, (size_t)length, 0, &error);
  if (!g->header)
    die(g->path, "header: %s", error.text);
  g->data = sizeof length + (size_t)length;
}

struct golden *golden_open(const char *path)
{
  const char *folder = getenv("SLUICE_GOLDEN");
  struct golden *g = calloc(1, sizeof *g);

  if (!g)
    die(path, "no memory");
  snprintf(g->path, sizeof g->path, "%s/%s", folder ? folder : SLUICE_GOLDEN_DIR, path);
  read_bytes(g);
  parse_header(g);
  return g;
}

void golden_close(struct golden **g)
{
  if (!*g)
    return;
  json_decref((*g)->header);
  free((*g)->bytes);
  free(*g);
  *g = NULL;
}

static json_t *find_tensor(const struct golden *g, const char *name)
{
  json_t *tensor = json_object_get(g->header, name);

  if (!tensor)
    die(g->path, "no tensor %s", name);
  return tensor;
}

size_t golden_extent(const struct golden *g, const char *name, size_t dim)
{
  return (size_t)json_integer_value(json_array_get(json_object_get(find_tensor(g, name), "shape"), dim));
}

static size_t check_shape(const struct golden *g, const char *name, size_t n_dims, const size_t *shape)
{
  size_t count = 1;

  if (json_array_size(json_object_get(find_tensor(g, name), "shape")) != n_dims)
    die(g->path, "%s does not have %zu dimensions", name, n_dims);
  for (size_t i = 0; i < n_dims; i++) {
    size_t extent = golden_extent(g, name, i);
    if (shape[i] != 0 && shape[i] != extent)
      die(g->path, "%s has extent %zu in dimension %zu, not %zu", name, extent, i, shape[i]);
    count *= extent;
  }
  return count;
}

static const void *read_tensor(const struct golden *g, const char *name, const char *type, size_t size, size_t n_dims,
                               const size_t *shape)
{
  json_t *tensor = find_tensor(g, name), *offsets = json_object_get(tensor, "data_offsets");
  const char *found = json_string_value(json_object_get(tensor, "dtype"));
  size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
  size_t end = (size_t)json_integer_value(json_array_get(offsets, 1));

  if (!found || strcmp(found, type) != 0)
    die(g->path, "%s is %s, not %s", name, found ? found : "nothing", type);
  if (begin > end || end > g->n_bytes - g->data || end - begin != check_shape(g, name, n_dims, shape) * size)
    die(g->path, "%s: offsets %zu to %zu do not match its shape or the file", name, begin, end);
  return g->bytes + g->data + begin;
}

const float *golden_f32(const struct golden *g, const char *name, size_t n_dims, const size_t *shape)
{
  return read_tensor(g, name, "F32", sizeof(float), n_dims, shape);
}

const double *golden_f64(const struct golden *g, const char *name, size_t n_dims, const size_t *shape)
{
  return read_tensor(g, name, "F64", sizeof(double), n_dims, shape);
}

const int64_t *golden_i64(const struct golden *g, const char *name, size_t n_dims, const size_t *shape)
{
  return read_tensor(g, name, "I64", sizeof(int64_t), n_dims, shape);
}

double golden_number(const struct golden *g, const char *key)
{
  const char *text = json_string_value(json_object_get(json_object_get(g->header, "__metadata__"), key));

  if (!text)
    die(g->path, "no %s in the metadata", key);
  return strtod(text, NULL);
}
