/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary file that is renamed: a crash leaves either the whole file or one that the next sweep removes. */
#include "store/models/model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/disk_error.h"
#include "base/mem.h"
#include "store/models/model_files.h"
#include "store/store_path.h"

struct model_file {
  int fd; /* -1: closed */
  bool is_committed;
  char digest[SHA256_HEX_BYTES];
  char path[PATH_MAX]; /* while it is being made */
  char named[PATH_MAX];
};

static err_t fail(const struct model_file *f, const char *what, int error)
{
  bool is_full = disk_error_is_full(error);

  FAIL(is_full ? ERR_STORE_FULL : ERR_STORE, "model file %s cannot be %s: %s%s", f->path, what, strerror(error),
       is_full ? ": make room on the disk of the store, or see the kernel log" : "");
}

static err_t make(struct model_file *f, const char *directory, uint64_t n_bytes)
{
  TRY(model_files_make_folder(directory));
  TRY(model_files_path(directory, f->digest, ".part", f->path));
  TRY(model_files_path(directory, f->digest, "", f->named));
  f->fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (f->fd < 0)
    return fail(f, "made", errno);
  int error = posix_fallocate(f->fd, 0, (off_t)n_bytes);
  return error ? fail(f, "made", error) : ERR_OK;
}

err_t model_file_open(const char *directory, const char *digest, uint64_t n_bytes, struct model_file **out)
{
  AUTO(model_file_close) struct model_file *f = NULL;

  TRY(mem_array(1, sizeof *f, &f));
  f->fd = -1;
  snprintf(f->digest, sizeof f->digest, "%s", digest);
  TRY(make(f, directory, n_bytes));
  *out = f;
  f = NULL;
  return ERR_OK;
}

void model_file_close(struct model_file **f)
{
  if (!*f)
    return;
  if ((*f)->fd >= 0) {
    close((*f)->fd);
    if (!(*f)->is_committed)
      unlink((*f)->path);
  }
  mem_free(f);
}

err_t model_file_write(struct model_file *f, uint64_t at, struct span bytes)
{
  while (bytes.n > 0) {
    ssize_t n = pwrite(f->fd, bytes.p, bytes.n, (off_t)at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail(f, "written", errno);
    bytes = span_of(bytes.p + n, bytes.n - (size_t)n);
    at += (uint64_t)n;
  }
  return ERR_OK;
}

static err_t verify_digest(const struct model_file *f)
{
  AUTO(auto_close_file) FILE *in = fopen(f->path, "rbe");
  char digest[SHA256_HEX_BYTES];

  if (!in)
    return fail(f, "read", errno);
  TRY(sha256_file(in, digest));
  if (strcmp(digest, f->digest) != 0)
    FAIL(ERR_MODEL, "the chunks of model file %s make a file with the SHA-256 %s: upload the right file again",
         f->digest, digest);
  return ERR_OK;
}

/* Make the new name durable. */
static err_t sync_folder(const struct model_file *f)
{
  char folder[PATH_MAX];

  snprintf(folder, sizeof folder, "%s", f->named);
  *strrchr(folder, '/') = '\0';
  return store_path_sync(folder);
}

err_t model_file_commit(struct model_file *f)
{
  TRY(verify_digest(f));
  if (fsync(f->fd) != 0)
    return fail(f, "written to the disk", errno);
  if (rename(f->path, f->named) != 0)
    return fail(f, "named", errno);
  f->is_committed = true;
  return sync_folder(f);
}
