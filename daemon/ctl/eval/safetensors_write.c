/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .safetensors files: a header in JSON, then the tensors, in a draft that is renamed when it is complete. */
#include "daemon/ctl/eval/safetensors_write.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* The data begins at a multiple of this many bytes. */
enum { DATA_ALIGN = 8 };

/* A file that is written beside its final path. */
struct draft {
  const char *path;
  char *draft_path;
  FILE *file;
};

static void drop_draft(struct draft *d)
{
  if (d->file)
    fclose(d->file);
  if (d->draft_path)
    unlink(d->draft_path);
  free(d->draft_path);
}

static void drop_json(json_t **json)
{
  json_decref(*json);
}

static err_t open_draft(const char *path, struct draft *d)
{
  struct stat status;

  d->path = path;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    FAIL(ERR_SYSTEM, "%s cannot be written: it exists and is not a regular file", path);
  if (asprintf(&d->draft_path, "%s.%ld.unfinished", path, (long)getpid()) < 0) {
    d->draft_path = NULL;
    FAIL(ERR_MEMORY, "no memory for the name of a file");
  }
  d->file = fopen(d->draft_path, "wbe");
  if (!d->file)
    FAIL(ERR_SYSTEM, "%s cannot be written: %s", path, strerror(errno));
  return ERR_OK;
}

static err_t finish_draft(struct draft *d)
{
  bool is_whole = fflush(d->file) == 0 && fsync(fileno(d->file)) == 0;
  int error = errno;

  is_whole &= fclose(d->file) == 0;
  d->file = NULL;
  if (!is_whole)
    FAIL(ERR_SYSTEM, "%s cannot be written: %s", d->path, strerror(error));
  if (rename(d->draft_path, d->path) != 0)
    FAIL(ERR_SYSTEM, "%s cannot be written: %s", d->path, strerror(errno));
  return ERR_OK;
}

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]} */
static json_t *describe(const struct tensor *tensor, size_t begin)
{
  json_t *shape = json_array();

  for (size_t i = 0; i < tensor->shape.n_dims; i++)
    json_array_append_new(shape, json_integer((json_int_t)tensor->shape.dim[i]));
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", tensor_type_name(tensor->type), "shape", shape, "data_offsets",
                   (json_int_t)begin, (json_int_t)(begin + tensor->bytes.n));
}

/* Call `visit` for each tensor, in the order of the file. Stops and returns false when a call returns false. */
static bool for_each(const struct tensor *tensors, size_t n, bool (*visit)(void *context, const struct tensor *),
                     void *context)
{
  for (size_t width = sizeof(uint64_t); width > 0; width /= 2) {
    for (size_t i = 0; i < n; i++) {
      if (tensor_type_bytes(tensors[i].type) == width && !visit(context, &tensors[i]))
        return false;
    }
  }
  return true;
}

struct layout {
  json_t *header;
  size_t n_bytes;
};

static bool place(void *context, const struct tensor *tensor)
{
  struct layout *layout = context;

  if (json_object_set_new(layout->header, tensor->name, describe(tensor, layout->n_bytes)) != 0)
    return false;
  layout->n_bytes += tensor->bytes.n;
  return true;
}

static bool write_data(void *file, const struct tensor *tensor)
{
  return tensor->bytes.n == 0 || fwrite(tensor->bytes.p, tensor->bytes.n, 1, file) == 1;
}

static err_t make_header(const struct safetensors_entry *metadata, size_t n_metadata, const struct tensor *tensors,
                         size_t n_tensors, char **out)
{
  AUTO(drop_json) json_t *header = json_object();
  struct layout layout = { header, 0 };
  json_t *entries = json_object();
  bool is_made = json_object_set_new(header, "__metadata__", entries) == 0;

  for (size_t i = 0; is_made && i < n_metadata; i++)
    is_made = json_object_set_new(entries, metadata[i].key, json_string(metadata[i].value)) == 0;
  is_made = is_made && for_each(tensors, n_tensors, place, &layout);
  char *text = is_made ? json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
  if (!text)
    FAIL(ERR_SYSTEM, "the header of the safetensors file cannot be written: is a name not UTF-8?");
  *out = text;
  return ERR_OK;
}

/* Write the header: its length, its text, and spaces up to where the data begins. */
static bool write_header(FILE *file, const char *header)
{
  size_t n_text = strlen(header);
  uint64_t n = (n_text + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;

  return fwrite(&n, sizeof n, 1, file) == 1 && fwrite(header, n_text, 1, file) == 1 &&
         (n == n_text || fprintf(file, "%*s", (int)(n - n_text), "") >= 0);
}

err_t safetensors_write(const char *path, const struct safetensors_entry *metadata, size_t n_metadata,
                        const struct tensor *tensors, size_t n_tensors)
{
  AUTO(drop_draft) struct draft draft = { 0 };
  AUTO(mem_free) char *header = NULL;

  TRY(make_header(metadata, n_metadata, tensors, n_tensors, &header));
  TRY(open_draft(path, &draft));
  if (!write_header(draft.file, header) || !for_each(tensors, n_tensors, write_data, draft.file))
    FAIL(ERR_SYSTEM, "%s cannot be written: %s", path, strerror(errno));
  return finish_draft(&draft);
}

err_t safetensors_verify_writable(const char *path)
{
  AUTO(drop_draft) struct draft draft = { 0 };

  return open_draft(path, &draft);
}
