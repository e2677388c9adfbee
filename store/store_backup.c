/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a store: LMDB copies an environment while others use it. */
#include "store/store_backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/disk_error.h"
#include "store/lmdb/directory_lock.h"
#include "store/models/model_files.h"
#include "store/store_path.h"

static void close_mdb(MDB_env **mdb)
{
  if (*mdb)
    mdb_env_close(*mdb);
  *mdb = NULL;
}

static err_t fail_copy(const char *path, const char *to, int rc)
{
  bool is_full = disk_error_is_full(rc);

  FAIL(is_full ? ERR_STORE_FULL : ERR_STORE, "store %s cannot be copied to %s: %s%s", path, to, mdb_strerror(rc),
       rc == ENOENT || rc == MDB_INVALID ? ": is it the directory of a store?"
       : rc == EACCES                    ? ": run it as the daemon's user"
       : rc == EFBIG                     ? ": a limit on the size of files ends it (ulimit -f)"
       : is_full                         ? ": make room on the disk"
                                         : "");
}

/* A directory that a copy goes to. */
struct target {
  const char *path;
  char file[PATH_MAX];
  bool has_made_path; /* what is removed if the copy fails */
  bool has_made_file;
};

/* Let a copy not go through the page cache, which has the pages of the store. But where the size of files is limited,
 * the last part of the file could not be written so, and the error would not say why. */
static void bypass_cache(int fd)
{
  struct rlimit limit;

  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
    (void)fcntl(fd, F_SETFL, O_DIRECT); /* if it can be */
}

/* Write a copy into a file that only the daemon's user and group may read, as they alone may read the store. */
static int write_file(MDB_env *mdb, struct target *to)
{
  int fd = open(to->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

  if (fd < 0)
    return errno;
  to->has_made_file = true;
  bypass_cache(fd);
  int rc = mdb_env_copyfd2(mdb, fd, MDB_CP_COMPACT);
  if (close(fd) != 0 && rc == MDB_SUCCESS)
    rc = errno;
  return rc;
}

/* Can LMDB lock the pages that are read? */
static bool can_lock_pages(const char *path)
{
  char file[PATH_MAX];

  if (store_path_join(path, "lock.mdb", file) != ERR_OK)
    return false;
  return faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) == 0 ||
         (errno == ENOENT && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0);
}

/* Copy an environment. Readers that were killed are cleared first: they keep pages from being reused. Where LMDB cannot
 * lock pages, as on a read-only mount, it would copy without: then no other process may write meanwhile. */
static int copy_mdb(MDB_env *mdb, const char *path, struct target *to)
{
  AUTO(directory_lock_release) struct directory_lock lock = DIRECTORY_LOCK_NONE;
  unsigned no_lock = can_lock_pages(path) ? 0 : MDB_NOLOCK;
  int n_stale;

  if (no_lock && directory_lock_acquire_to_read(path, &lock) != ERR_OK)
    return EACCES;
  int rc = mdb_env_open(mdb, path, MDB_RDONLY | MDB_NOTLS | no_lock, 0640);

  if (rc == MDB_SUCCESS)
    rc = mdb_reader_check(mdb, &n_stale);
  return rc == MDB_SUCCESS ? write_file(mdb, to) : rc;
}

static err_t copy_env(const char *path, struct target *to)
{
  AUTO(close_mdb) MDB_env *mdb = NULL;
  int rc = mdb_env_create(&mdb);

  if (rc == MDB_SUCCESS)
    rc = copy_mdb(mdb, path, to);
  if (rc != MDB_SUCCESS)
    return fail_copy(path, to->path, rc);
  TRY(store_path_sync(to->file));
  return store_path_sync(to->path);
}

static bool is_empty(const char *path)
{
  AUTO(auto_close_folder) DIR *directory = opendir(path);
  struct dirent *entry;
  bool is_empty = directory != NULL;

  while (directory && (entry = readdir(directory)))
    is_empty &= entry->d_name[0] == '.' && (!entry->d_name[1] || strcmp(entry->d_name, "..") == 0);
  return is_empty;
}

static err_t target_make(struct target *to)
{
  to->has_made_path = mkdir(to->path, 0750) == 0;
  if (to->has_made_path || (errno == EEXIST && is_empty(to->path)))
    return ERR_OK;
  FAIL(ERR_STORE, "directory %s cannot be used: %s", to->path,
       errno == EEXIST ? "something is in it: name a new one, or move what is there away" : strerror(errno));
}

/* Remove what a copy that failed has made. */
static void target_remove(const struct target *to)
{
  if (to->has_made_file)
    unlink(to->file);
  if (to->has_made_path)
    rmdir(to->path);
}

/* What users have seen comes first: a copy that is killed then leaves no whole catalogue that lacks it. */
static err_t copy_all(const char *path, struct target *to, struct target *seen_to)
{
  char seen[PATH_MAX], parent[PATH_MAX];
  bool has_seen;

  TRY(store_path_join(path, STORE_PATH_SEEN, seen));
  TRY(store_path_find_store(seen, &has_seen));
  if (has_seen) {
    TRY(target_make(seen_to));
    TRY(copy_env(seen, seen_to));
  }
  TRY(model_files_copy(path, to->path));
  TRY(copy_env(path, to));
  if (!to->has_made_path)
    return ERR_OK;
  TRY(store_path_join(to->path, "..", parent));
  return store_path_sync(parent);
}

/* Lock the directory. If that fails, remove it, unless another process has begun to use it. */
static err_t lock_target(const struct target *to, struct directory_lock *lock)
{
  struct err_kept kept;
  err_code_t err = directory_lock_acquire(to->path, lock);

  if (err == ERR_OK || err == ERR_STORE_IN_USE)
    return err;
  err_keep(err, &kept);
  target_remove(to);
  return err_give_back(&kept);
}

/* Copy into a directory that no daemon can open meanwhile. */
static err_t copy_locked(const char *path, struct target *to, struct target *seen_to)
{
  AUTO(directory_lock_release) struct directory_lock lock = DIRECTORY_LOCK_NONE;
  struct err_kept kept;
  char lock_file[PATH_MAX];

  TRY(store_path_join(to->path, "sluice.lock", lock_file));
  TRY(target_make(to));
  TRY(lock_target(to, &lock));
  err_code_t err = copy_all(path, to, seen_to);
  if (err == ERR_OK)
    return ERR_OK;
  err_keep(err, &kept);
  target_remove(seen_to);
  model_files_remove(to->path);
  unlink(lock_file);
  target_remove(to);
  return err_give_back(&kept);
}

/* A copy in the store would be moved or lost with it. */
static err_t verify_apart(const char *path, const char *to)
{
  if (store_path_is_within(to, path))
    FAIL(ERR_STORE, "directory %s is within the store %s that is copied: name one outside it", to, path);
  return ERR_OK;
}

err_t store_backup_copy(const char *path, const char *to)
{
  char seen[PATH_MAX];
  struct target items_to = { .path = to }, seen_to = { .path = seen };

  TRY(store_path_verify_store(path));
  TRY(verify_apart(path, to));
  TRY(store_path_join(to, "data.mdb", items_to.file));
  TRY(store_path_join(to, STORE_PATH_SEEN, seen));
  TRY(store_path_join(seen, "data.mdb", seen_to.file));
  return copy_locked(path, &items_to, &seen_to);
}
