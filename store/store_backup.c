/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB copies an environment while others use it. A copy is checked by opening it as the daemon would. */
#include "store/store_backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk_error.h"
#include "store/lmdb/directory_lock.h"
#include "store/models/model_files.h"
#include "store/seen/seen_private.h"
#include "store/store_models.h"
#include "store/store_private.h"

/* A small map keeps the file of a copy as small as it is. */
enum { MAP_BYTES = 1 << 20, SCAN_CHUNK = 512 };

static const char seen_folder[] = "seen";

/* ---- Copying ---- */

static void close_mdb(MDB_env **mdb)
{
  if (*mdb)
    mdb_env_close(*mdb);
  *mdb = NULL;
}

static err_t join(const char *path, const char *name, char out[PATH_MAX])
{
  if (snprintf(out, PATH_MAX, "%s/%s", path, name) >= PATH_MAX)
    FAIL(ERR_STORE, "the path %.64s... is too long", path);
  return ERR_OK;
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

/* Copy an environment. Readers that were killed are cleared first: they keep pages from being reused. */
static int copy_mdb(MDB_env *mdb, const char *path, struct target *to)
{
  int n_stale;
  int rc = mdb_env_open(mdb, path, MDB_RDONLY | MDB_NOTLS, 0640);

  if (rc == MDB_SUCCESS)
    rc = mdb_reader_check(mdb, &n_stale);
  return rc == MDB_SUCCESS ? write_file(mdb, to) : rc;
}

/* Make a file or directory durable. */
static err_t sync_path(const char *path)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool is_synced = fd >= 0 && fsync(fd) == 0;
  int error = errno;

  if (fd >= 0)
    close(fd);
  if (!is_synced)
    FAIL(ERR_STORE, "%s cannot be written to the disk: %s", path, strerror(error));
  return ERR_OK;
}

static err_t copy_env(const char *path, struct target *to)
{
  AUTO(close_mdb) MDB_env *mdb = NULL;
  int rc = mdb_env_create(&mdb);

  if (rc == MDB_SUCCESS)
    rc = copy_mdb(mdb, path, to);
  if (rc != MDB_SUCCESS)
    return fail_copy(path, to->path, rc);
  TRY(sync_path(to->file));
  return sync_path(to->path);
}

static bool has_store(const char *path)
{
  char file[PATH_MAX];

  return join(path, "data.mdb", file) == ERR_OK && access(file, F_OK) == 0;
}

static bool is_empty(const char *path)
{
  DIR *directory = opendir(path);
  struct dirent *entry;
  bool is_empty = directory != NULL;

  while (directory && (entry = readdir(directory)))
    is_empty &= entry->d_name[0] == '.' && (!entry->d_name[1] || strcmp(entry->d_name, "..") == 0);
  if (directory)
    closedir(directory);
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

/* The files have their names, and so has the folder. */
static err_t copy_model_files(const char *path, const char *to)
{
  char folder[PATH_MAX];

  TRY(model_files_copy(path, to));
  TRY(join(to, "models", folder));
  return access(folder, F_OK) == 0 ? sync_path(folder) : ERR_OK;
}

static bool is_no_file_needed(void *context, const char digest[SHA256_HEX_BYTES])
{
  (void)context;
  (void)digest;
  return false;
}

/* Remove the model files that a copy has made. What cannot be removed stays. */
static void remove_model_files(const char *to)
{
  char folder[PATH_MAX];
  size_t n;

  err_code_t err = model_files_sweep(to, is_no_file_needed, NULL, &n);
  if (err == ERR_OK && join(to, "models", folder) == ERR_OK)
    rmdir(folder);
}

/* What users have seen comes first: a copy that is killed then leaves no whole catalogue that lacks it. */
static err_t copy_all(const char *path, struct target *to, struct target *seen_to)
{
  char seen[PATH_MAX], parent[PATH_MAX];

  TRY(join(path, seen_folder, seen));
  if (has_store(seen)) {
    TRY(target_make(seen_to));
    TRY(copy_env(seen, seen_to));
  }
  TRY(copy_model_files(path, to->path));
  TRY(copy_env(path, to));
  if (!to->has_made_path)
    return ERR_OK;
  TRY(join(to->path, "..", parent));
  return sync_path(parent);
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

  TRY(join(to->path, "sluice.lock", lock_file));
  TRY(target_make(to));
  TRY(lock_target(to, &lock));
  err_code_t err = copy_all(path, to, seen_to);
  if (err == ERR_OK)
    return ERR_OK;
  err_keep(err, &kept);
  target_remove(seen_to);
  remove_model_files(to->path);
  unlink(lock_file);
  target_remove(to);
  return err_give_back(&kept);
}

err_t store_backup_copy(const char *path, const char *to)
{
  char seen[PATH_MAX];
  struct target items_to = { .path = to }, seen_to = { .path = seen };

  if (!has_store(path))
    FAIL(ERR_STORE, "there is no store in %s", path);
  TRY(join(to, "data.mdb", items_to.file));
  TRY(join(to, seen_folder, seen));
  TRY(join(seen, "data.mdb", seen_to.file));
  return copy_locked(path, &items_to, &seen_to);
}

/* ---- Verifying ---- */

static err_t scan_items(struct store *s, uint64_t *n_items)
{
  AUTO(region_fini) struct region region = { 0 };
  struct item_change *changes;
  struct store_scan scan;
  uint64_t first;
  size_t n = 1;

  TRY(store_scan_begin(s, SCAN_CHUNK, &scan));
  for (*n_items = 0; n > 0; *n_items += n) {
    region_reset(&region);
    TRY(store_scan_next(&scan, &region, &first, &changes, &n));
  }
  return store_scan_end(&scan);
}

/* What is walked in one transaction. */
struct walk {
  struct store *store;
  struct seen_store *seen;
  uint64_t n, n_users;
};

static err_code_t walk_aside(void *context, MDB_txn *txn)
{
  struct walk *w = context;
  struct side *side = store_current(w->store);
  const struct aside aside = { .env = w->store->env, .table = side->tables.aside, .txn = txn };
  uint8_t row[ASIDE_KEY_MAX + 1] = { 0 };
  size_t n_row = 0;
  struct aside_state state;
  bool is_found = true;

  for (;;) {
    TRY(aside_next(&aside, span_of(row, n_row), row, &n_row, &state, &is_found));
    if (!is_found)
      return ERR_OK;
    w->n++;
    row[n_row++] = 0; /* the next row is not below this */
  }
}

/* Count a row of what users have seen, which comes after `last`. */
static err_t walk_seen_row(struct walk *w, MDB_txn *txn, MDB_val *last, MDB_val *key, struct span value)
{
  struct seen_chunk chunk;

  if (!seen_chunk_decode(value, &chunk) || (last->mv_size && mdb_cmp(txn, w->seen->logs, last, key) >= 0))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: a row of what users have seen: " ENV_REMEDY, w->seen->env->path);
  w->n += chunk.n;
  w->n_users += !last->mv_size || !span_equal(seen_key_user(env_span(*last)), seen_key_user(env_span(*key)));
  *last = *key;
  return ERR_OK;
}

static err_code_t walk_seen(void *context, MDB_txn *txn)
{
  struct walk *w = context;
  struct seen_store *s = w->seen;
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key, value, last = { 0 };
  int rc;

  TRY(env_verify(s->env, mdb_cursor_open(txn, s->logs, &cursor), "read what users have seen"));
  while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == MDB_SUCCESS)
    TRY(walk_seen_row(w, txn, &last, &key, env_span(value)));
  if (rc != MDB_NOTFOUND)
    return env_verify(s->env, rc, "read what users have seen");
  if (w->n != s->counts.n_items || w->n_users != s->counts.n_users)
    FAIL(ERR_STORE_CORRUPT,
         "store %s is damaged: %" PRIu64 " users have seen %" PRIu64 " items, but it counted %" PRIu64 " and %" PRIu64
         ": " ENV_REMEDY,
         s->env->path, w->n_users, w->n, s->counts.n_users, s->counts.n_items);
  return ERR_OK;
}

/* Read the records of the control topic: each has a seal. */
static err_t read_models(struct store *s)
{
  AUTO(region_fini) struct region region = { 0 };
  struct store_model_record *records;
  struct store_position position;
  bool has_position;
  size_t n;

  return store_models_get(s, &region, &records, &n, &has_position, &position);
}

static err_code_t check_meta(void *context, MDB_txn *txn)
{
  const struct walk *w = context;

  return w->store ? meta_check(w->store->env, txn, w->store->meta_table) : meta_check(w->seen->env, txn, w->seen->meta);
}

static err_t verify_items(const char *path, struct store_contents *out)
{
  AUTO(store_close) struct store *s = NULL;

  TRY(store_open_sized(path, MAP_BYTES, &s));
  TRY(env_check_pages(s->env, true));
  struct walk walk = { .store = s };
  TRY(store_read(s, check_meta, &walk));
  TRY(scan_items(s, &out->n_items));
  TRY(store_read(s, walk_aside, &walk));
  out->n_aside = walk.n;
  TRY(read_models(s));
  store_positions(s, &out->n_partitions);
  return ERR_OK;
}

static err_t verify_seen(const char *path, struct store_contents *out)
{
  AUTO(seen_store_close) struct seen_store *s = NULL;
  static const struct seen_store_limits limits = { .max_per_user = UINT32_MAX };

  TRY(seen_store_open_sized(path, &limits, MAP_BYTES, true, &s));
  struct walk walk = { .seen = s };
  TRY(env_read(s->env, check_meta, &walk));
  TRY(env_read(s->env, walk_seen, &walk));
  out->n_seen_items = walk.n;
  return ERR_OK;
}

err_t store_backup_verify(const char *path, struct store_contents *out)
{
  char seen[PATH_MAX];

  *out = (struct store_contents){ 0 };
  if (!has_store(path)) /* opening it would create one */
    FAIL(ERR_STORE, "there is no store in %s", path);
  TRY(verify_items(path, out));
  TRY(model_files_verify(path, &out->n_model_files));
  TRY(join(path, seen_folder, seen));
  out->has_seen = has_store(seen);
  return out->has_seen ? verify_seen(seen, out) : ERR_OK;
}
