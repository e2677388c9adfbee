/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the file whole, and walking along paths through types. */
#include "ingest/protobuf/protobuf_source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/regular_file.h"

enum { FILE_BYTES_MAX = 16 << 20 };

struct protobuf_source {
  struct region region;
  const struct protobuf_type *type;
};

/* The file -------------------- */

static err_t read_bytes(const char *path, int fd, uint8_t *bytes, size_t n)
{
  for (size_t done = 0; done < n;) {
    ssize_t got = read(fd, bytes + done, n - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      FAIL(ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (got == 0)
      FAIL(ERR_CONFIG, "%s became shorter while it was read", path);
    done += (size_t)got;
  }
  return ERR_OK;
}

static err_t read_file(const char *path, uint8_t **bytes, size_t *n)
{
  AUTO(auto_close_fd) int fd = -1;
  struct stat status = { 0 };

  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    FAIL(ERR_CONFIG, "%s is a folder: expected the file of a descriptor set", path);
  TRY(regular_file_open(path, &status, &fd));
  if (status.st_size > FILE_BYTES_MAX)
    FAIL(ERR_CONFIG, "%s has %lld bytes: a descriptor set has at most %d", path, (long long)status.st_size,
         FILE_BYTES_MAX);
  *n = (size_t)status.st_size;
  TRY(mem_array(*n + 1, 1, bytes));
  return read_bytes(path, fd, *bytes, *n);
}

err_t protobuf_source_open(const char *path, const char *message, struct protobuf_source **out)
{
  AUTO(protobuf_source_close) struct protobuf_source *s = NULL;
  AUTO(mem_free) uint8_t *bytes = NULL;
  size_t n = 0;

  TRY(mem_array(1, sizeof *s, &s));
  TRY(read_file(path, &bytes, &n));
  err_code_t err = protobuf_schema_make(span_of(bytes, n), message, &s->region, &s->type);
  if (err == ERR_CONFIG)
    FAIL(err, "%s: %s", path, err_message());
  TRY(err);
  *out = s;
  s = NULL;
  return ERR_OK;
}

void protobuf_source_close(struct protobuf_source **s)
{
  if (!*s)
    return;
  region_fini(&(*s)->region);
  mem_free(s);
}

const struct protobuf_type *protobuf_source_type(const struct protobuf_source *s)
{
  return s->type;
}

/* Paths -------------------- */

/* Where a path has come to: a message, a list, a map, or a value without anything in it. */
struct spot {
  const struct protobuf_field *field; /* NULL: the message itself */
  const struct protobuf_type *type;   /* of a message, a list of them, or the entries of a map */
  bool is_many;                       /* a list or a map, not yet one of its elements */
};

static struct spot spot_of(const struct protobuf_field *field, bool is_many)
{
  return (struct spot){ field, field->type, is_many };
}

static bool has_fields(const struct spot *at)
{
  return !at->is_many && at->type && at->type->meaning == PROTOBUF_ITSELF;
}

static err_t step_into_many(struct spot *at, const char *step)
{
  if (!at->field->is_map && strspn(step, "0123456789") != strlen(step))
    FAIL(ERR_CONFIG, "%s is a list: %s is no index into it", at->field->name, log_quote(span_of_str(step)));
  *at = spot_of(at->field->is_map ? protobuf_schema_find(at->type, 2) : at->field, false);
  return ERR_OK;
}

static err_t step_into(struct spot *at, const char *step)
{
  const struct protobuf_field *field;

  if (at->is_many)
    return step_into_many(at, step);
  if (!has_fields(at))
    FAIL(ERR_CONFIG, "%s has no fields, so no %s", at->field ? at->field->name : at->type->name,
         log_quote(span_of_str(step)));
  field = protobuf_schema_find_name(at->type, step);
  if (!field)
    FAIL(ERR_CONFIG, "message %s has no field %s: names are those of the .proto file", at->type->name,
         log_quote(span_of_str(step)));
  *at = spot_of(field, field->is_repeated);
  return ERR_OK;
}

err_t protobuf_source_verify_path(const struct protobuf_source *s, const char *row, const struct json_path *path)
{
  struct spot at = { .type = s->type };

  if (row)
    TRY(step_into(&at, row));
  for (size_t i = 0; i < path->n_steps; i++)
    TRY(step_into(&at, path->steps[i]));
  return ERR_OK;
}
