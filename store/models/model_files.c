/* SPDX-License-Identifier: Apache-2.0 */
/* The names in the folder: 64 hex digits and an ending. What has another name is not ours. */
#include "store/models/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/disk_error.h"
#include "base/progress.h"
#include "store/store_path.h"

enum { DIGEST_CHARS = SHA256_HEX_BYTES - 1, COPY_BYTES = 1 << 20 };

static const char ending_whole[] = ".safetensors";
static const char ending_unfinished[] = ".safetensors.part";

static err_t folder_of(const char *directory, char out[PATH_MAX])
{
  return store_path_join(directory, "models", out);
}

err_t model_files_path(const char *directory, const char *digest, const char *ending, char out[PATH_MAX])
{
  char folder[PATH_MAX], name[NAME_MAX];

  TRY(folder_of(directory, folder));
  snprintf(name, sizeof name, "%s%s%s", digest, ending_whole, ending);
  return store_path_join(folder, name, out);
}

err_t model_files_make_folder(const char *directory)
{
  char folder[PATH_MAX];

  TRY(folder_of(directory, folder));
  if (mkdir(folder, 0750) == 0 || errno == EEXIST)
    return ERR_OK;
  FAIL(disk_error_is_full(errno) ? ERR_STORE_FULL : ERR_STORE, "directory %s cannot be made: %s", folder,
       strerror(errno));
}

/* ---- Digests ---- */

/* Has the file the digest? If it is not there, is_there is false. */
static err_t compare(const char *path, const char *digest, bool *is_there, bool *is_good)
{
  AUTO(auto_close_file) FILE *in = fopen(path, "rbe");
  char found[SHA256_HEX_BYTES];

  *is_there = in != NULL;
  *is_good = false;
  if (!in && errno != ENOENT)
    FAIL(ERR_STORE, "model file %s cannot be read: %s", path, strerror(errno));
  if (!in)
    return ERR_OK;
  TRY(sha256_file(in, found));
  *is_good = strcmp(found, digest) == 0;
  return ERR_OK;
}

err_t model_files_find(const char *directory, const char *digest, bool *is_there)
{
  char path[PATH_MAX];
  bool is_good;

  TRY(model_files_path(directory, digest, "", path));
  TRY(compare(path, digest, is_there, &is_good));
  if (*is_there && !is_good && unlink(path) != 0)
    FAIL(ERR_STORE, "model file %s is damaged, and cannot be removed: %s", path, strerror(errno));
  *is_there = is_good;
  return ERR_OK;
}

/* ---- All files ---- */

/* Is it the name of a model file? Takes the digest out of it. */
static bool parse_name(const char *name, const char *ending, char digest[SHA256_HEX_BYTES])
{
  if (strspn(name, "0123456789abcdef") != DIGEST_CHARS || strcmp(name + DIGEST_CHARS, ending) != 0)
    return false;
  memcpy(digest, name, DIGEST_CHARS);
  digest[DIGEST_CHARS] = '\0';
  return true;
}

/* What is done with each file of a folder. */
struct visit {
  const char *folder;
  err_code_t (*whole)(struct visit *v, const char *path, const char *digest);
  err_code_t (*unfinished)(struct visit *v, const char *path); /* NULL: nothing */
  model_files_needed is_needed;
  void *context;
  const char *to; /* the folder of a copy */
  size_t n;
};

static err_t visit_name(struct visit *v, const char *name)
{
  char path[PATH_MAX], digest[SHA256_HEX_BYTES];

  if (snprintf(path, sizeof path, "%s/%s", v->folder, name) >= (int)sizeof path)
    return ERR_OK;
  if (parse_name(name, ending_whole, digest))
    return v->whole(v, path, digest);
  return v->unfinished && parse_name(name, ending_unfinished, digest) ? v->unfinished(v, path) : ERR_OK;
}

static err_t visit_all(struct visit *v, const char *directory)
{
  char folder[PATH_MAX];
  const struct dirent *entry;

  TRY(folder_of(directory, folder));
  AUTO(auto_close_folder) DIR *all = opendir(folder);
  if (!all && errno == ENOENT)
    return ERR_OK;
  if (!all)
    FAIL(ERR_STORE, "directory %s cannot be read: %s", folder, strerror(errno));
  v->folder = folder;
  while ((entry = readdir(all)))
    TRY(visit_name(v, entry->d_name));
  return ERR_OK;
}

/* ---- Sweeping ---- */

static err_code_t remove_file(struct visit *v, const char *path)
{
  if (unlink(path) != 0 && errno != ENOENT)
    FAIL(ERR_STORE, "model file %s cannot be removed: %s", path, strerror(errno));
  v->n++;
  return ERR_OK;
}

static err_code_t remove_unneeded(struct visit *v, const char *path, const char *digest)
{
  return v->is_needed(v->context, digest) ? ERR_OK : remove_file(v, path);
}

err_t model_files_sweep(const char *directory, model_files_needed is_needed, void *context, size_t *n)
{
  struct visit v = { .whole = remove_unneeded, .unfinished = remove_file, .is_needed = is_needed, .context = context };

  TRY(visit_all(&v, directory));
  *n = v.n;
  return ERR_OK;
}

/* ---- Verifying ---- */

static err_code_t verify_file(struct visit *v, const char *path, const char *digest)
{
  bool is_there, is_good;

  TRY(compare(path, digest, &is_there, &is_good));
  if (is_there && !is_good)
    FAIL(ERR_STORE_CORRUPT, "model file %s is damaged: remove it, and the daemon fetches it again", path);
  v->n += is_there;
  return ERR_OK;
}

err_t model_files_verify(const char *directory, size_t *n)
{
  struct visit v = { .whole = verify_file };

  TRY(visit_all(&v, directory));
  *n = v.n;
  return ERR_OK;
}

/* ---- Copying ---- */

/* Copy to the end. Returns 0, or what errno says. */
static int copy_bytes(int from, int to)
{
  ssize_t n;

  while ((n = sendfile(to, from, NULL, COPY_BYTES)) > 0)
    progress_note();
  return n < 0 ? errno : fsync(to) == 0 ? 0 : errno;
}

static err_t fail_copy(const char *path, const char *to_path, int error)
{
  FAIL(disk_error_is_full(error) ? ERR_STORE_FULL : ERR_STORE, "model file %s cannot be copied to %s: %s", path,
       to_path, strerror(error));
}

static err_code_t copy_file(struct visit *v, const char *path, const char *digest)
{
  char to_path[PATH_MAX];

  TRY(model_files_path(v->to, digest, "", to_path));
  AUTO(auto_close_fd) const int from = open(path, O_RDONLY | O_CLOEXEC);
  if (from < 0 && errno == ENOENT) /* its generation was just retired */
    return ERR_OK;
  if (from < 0)
    return fail_copy(path, to_path, errno);
  TRY(model_files_make_folder(v->to));
  AUTO(auto_close_fd) const int to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  int error = to < 0 ? errno : copy_bytes(from, to);
  return error ? fail_copy(path, to_path, error) : ERR_OK;
}

err_t model_files_copy(const char *from, const char *to)
{
  struct visit v = { .whole = copy_file, .to = to };
  char folder[PATH_MAX];

  TRY(visit_all(&v, from));
  TRY(folder_of(to, folder));
  return access(folder, F_OK) == 0 ? store_path_sync(folder) : ERR_OK;
}

static bool is_no_file_needed(void *context, const char digest[SHA256_HEX_BYTES])
{
  (void)context;
  (void)digest;
  return false;
}

void model_files_remove(const char *directory)
{
  char folder[PATH_MAX];
  size_t n;

  err_code_t err = model_files_sweep(directory, is_no_file_needed, NULL, &n);
  if (err == ERR_OK && folder_of(directory, folder) == ERR_OK)
    rmdir(folder);
}
