/* SPDX-License-Identifier: Apache-2.0 */
/* Opens .safetensors files, parses the JSON header with jansson, and reads the metadata. */
#include "engine/model/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/mem.h"
#include "base/regular_file.h"
#include "engine/model/safetensors_file.h"

enum { HEADER_MAX = 100 * 1024 * 1024 };

static err_t read_bytes(struct safetensors *f, FILE *file)
{
  TRY(mem_array(f->n_bytes, 1, &f->bytes));
  if (fread(f->bytes, 1, f->n_bytes, file) != f->n_bytes)
    FAIL(ERR_MODEL, "%s: cannot be read", f->path);
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

static err_t open_regular(const char *path, struct stat *status, FILE **out)
{
  int fd;

  if (regular_file_open(path, status, &fd) != ERR_OK)
    FAIL(ERR_MODEL, "%s", err_message());
  *out = fdopen(fd, "rb");
  if (!*out) {
    close(fd);
    FAIL(ERR_MEMORY, "no memory to read %s", path);
  }
  return ERR_OK;
}

static err_t load_file(struct safetensors *f, bool is_mapped)
{
  AUTO(auto_close_file) FILE *file = NULL;
  struct stat status;

  TRY(open_regular(f->path, &status, &file));
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
    FAIL(ERR_MODEL, "%s: not a safetensors file, or cut short: its first 8 bytes say that its header is longer than %s",
         f->path, n > HEADER_MAX ? "100 MiB" : "the file");
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
