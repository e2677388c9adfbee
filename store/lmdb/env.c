/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, growing and reopening an LMDB environment, and running transactions in it. Failures get an error code and a
 * remedy here. */
#include "store/lmdb/env.h"

#include "base/disk_error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/size.h"
#include "store/lmdb/pages.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  TABLES_MAX = 16,
  FULL_PERCENT = 80,
  READERS_MAX = 510,       /* threads that read at a time */
  LOCK_FILE_BYTES = 32768, /* size that LMDB gives lock.mdb, for so many */
};

static_assert(sizeof(size_t) == 8, "a map that grows needs 64-bit addresses");

/* Return the remedy for a common failure, else "". */
static const char *remedy(int rc)
{
  switch (rc) {
  case ENOSPC:
  case EDQUOT:
    return ": make room on the disk";
  case EIO: /* LMDB also returns EIO when only some pages could be written */
    return ": the disk is full or fails: make room, or see the kernel log";
  case EFBIG:
    return ": raise the limit on the size of files (LimitFSIZE=, ulimit -f)";
  case EACCES:
  case EPERM:
    return ": the daemon's user must be able to write there";
  case EROFS:
    return ": the file system must be writable (in a systemd unit: StateDirectory= or ReadWritePaths=)";
  default:
    return "";
  }
}

/* Return the error code for an errno. */
static err_code_t code_of(int error)
{
  return disk_error_is_full(error) ? ERR_STORE_FULL : ERR_STORE;
}

static bool is_damage(int rc)
{
  return rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH ||
         rc == MDB_INCOMPATIBLE;
}

err_t env_verify_at(struct env *env, int rc, const char *what, const char *file, int line)
{
  if (rc == MDB_SUCCESS)
    return ERR_OK;
  if (rc == MDB_MAP_FULL)
    env->is_full = true;
  if (is_damage(rc))
    return err_set(ERR_STORE_CORRUPT, file, line, "store %s is damaged or not a store: cannot %s: %s: " ENV_REMEDY,
                   env->path, what, mdb_strerror(rc));
  return err_set(code_of(rc), file, line, "store %s: cannot %s: %s%s", env->path, what, mdb_strerror(rc), remedy(rc));
}

static err_t verify_alive(const struct env *env)
{
  if (!env->mdb)
    FAIL(ERR_STORE, "store %s cannot be used after an earlier failure: restart the daemon", env->path);
  return ERR_OK;
}

static err_t make_directory(const char *path)
{
  struct stat info;

  if (mkdir(path, 0750) != 0 && errno != EEXIST)
    FAIL(code_of(errno), "store directory %s cannot be created: %s%s", path, strerror(errno),
         errno == ENOENT ? ": its parent must exist" : remedy(errno));
  if (stat(path, &info) != 0)
    FAIL(ERR_STORE, "store directory %s cannot be read: %s%s", path, strerror(errno), remedy(errno));
  if (!S_ISDIR(info.st_mode))
    FAIL(ERR_STORE, "store path %s is a file: store.path names a directory", path);
  return ERR_OK;
}

static void note_usage(struct env *env)
{
  MDB_envinfo info;

  mdb_env_info(env->mdb, &info);
  env->map_bytes = info.me_mapsize;
  env->used_bytes = (info.me_last_pgno + 1) * env->page_bytes;
}

static err_t reach_file(struct env *env, mdb_filehandle_t *fd, size_t *bytes)
{
  struct stat info;

  TRY(env_verify(env, mdb_env_get_fd(env->mdb, fd), "reach the file"));
  if (fstat(*fd, &info) != 0)
    FAIL(ERR_STORE, "store %s: data.mdb cannot be read: %s", env->path, strerror(errno));
  *bytes = (size_t)info.st_size;
  return ERR_OK;
}

static size_t last_txn_id(const struct env *env)
{
  MDB_envinfo info;

  mdb_env_info(env->mdb, &info);
  return info.me_last_txnid;
}

/* Make the file at least as long as the map. */
static err_t extend_file(struct env *env, size_t map_bytes)
{
  mdb_filehandle_t fd;
  size_t bytes;

  TRY(reach_file(env, &fd, &bytes));
  if (bytes < map_bytes && ftruncate(fd, (off_t)map_bytes) != 0)
    FAIL(code_of(errno), "store %s: data.mdb cannot grow to %zu bytes: %s%s", env->path, map_bytes, strerror(errno),
         remedy(errno));
  return ERR_OK;
}

static err_t verify_not_cut(struct env *env)
{
  mdb_filehandle_t fd;
  size_t bytes;

  TRY(reach_file(env, &fd, &bytes));
  if (bytes < env->used_bytes)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: data.mdb has been cut to %zu of %zu bytes: " ENV_REMEDY, env->path,
         bytes, env->used_bytes);
  return ERR_OK;
}

/* Return the size of the existing map, which is the length of its file; 0 if there is none. */
static size_t old_map_bytes(const char *directory)
{
  char path[PATH_MAX];
  struct stat info;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);

  if ((size_t)snprintf(path, sizeof path, "%s/data.mdb", directory) >= sizeof path || stat(path, &info) != 0)
    return 0;
  return ((size_t)info.st_size + page - 1) / page * page;
}

/* Reserve disk blocks for lock.mdb. LMDB writes to it through a memory map, and on a full disk a write to a missing
 * block would kill the process. */
static err_t reserve_lock_file(const struct env *env)
{
  char path[PATH_MAX];

  if ((size_t)snprintf(path, sizeof path, "%s/lock.mdb", env->path) >= sizeof path)
    FAIL(ERR_STORE, "the path of store %.64s... is too long", env->path);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (fd < 0)
    FAIL(code_of(errno), "%s cannot be created: %s%s", path, strerror(errno), remedy(errno));
  int error = fallocate(fd, 0, 0, LOCK_FILE_BYTES) == 0 ? 0 : errno;
  close(fd);
  if (disk_error_is_full(error))
    FAIL(ERR_STORE_FULL, "%s cannot be written: %s%s", path, strerror(error), remedy(error));
  return ERR_OK; /* some file systems cannot reserve blocks: leave the file to LMDB */
}

/* Make the file fit the map. If the disk has no room for that, an existing map keeps its old size. */
static err_t fit_file(struct env *env, size_t old_bytes)
{
  TRY(verify_not_cut(env));
  err_code_t err = extend_file(env, env->map_bytes);
  if (err != ERR_STORE_FULL || old_bytes == 0)
    return err;
  TRY(env_verify(env, mdb_env_set_mapsize(env->mdb, old_bytes), "set the map"));
  note_usage(env);
  return ERR_OK;
}

/* LMDB calls this when it can neither go on nor return. */
static void on_damage(MDB_env *mdb, const char *reason)
{
  const struct env *env = mdb_env_get_userctx(mdb);

  log_error("store_damaged", "path=%s reason=%s remedy=%s", log_quote(span_of_str(env->path)),
            log_quote(span_of_str(reason)), log_quote(span_of_str(ENV_REMEDY)));
  _exit(ENV_DAMAGED_STATUS);
}

static err_t create_mdb(struct env *env, size_t map_bytes)
{
  TRY(env_verify(env, mdb_env_create(&env->mdb), "begin"));
  TRY(env_verify(env, mdb_env_set_userctx(env->mdb, env), "begin"));
  TRY(env_verify(env, mdb_env_set_assert(env->mdb, on_damage), "begin"));
  TRY(env_verify(env, mdb_env_set_maxdbs(env->mdb, TABLES_MAX), "set the number of tables"));
  TRY(env_verify(env, mdb_env_set_maxreaders(env->mdb, READERS_MAX), "set the number of readers"));
  return env_verify(env, mdb_env_set_mapsize(env->mdb, map_bytes), "set the map");
}

static err_t note_pages(struct env *env)
{
  MDB_stat stat;

  TRY(env_verify(env, mdb_env_stat(env->mdb, &stat), "read the page size"));
  env->page_bytes = stat.ms_psize;
  note_usage(env);
  return ERR_OK;
}

static err_t open_mdb(struct env *env, size_t map_bytes)
{
  size_t old_bytes = old_map_bytes(env->path);
  int n_stale;

  TRY(reserve_lock_file(env));
  TRY(create_mdb(env, size_max(old_bytes, map_bytes)));
  TRY(env_verify(env, mdb_env_open(env->mdb, env->path, MDB_NOMETASYNC, 0640), "open"));
  TRY(note_pages(env));
  TRY(fit_file(env, old_bytes));
  /* A reading tool that was killed leaves a stale reader, which keeps LMDB from reusing pages. */
  return env_verify(env, mdb_reader_check(env->mdb, &n_stale), "clear stale readers");
}

/* LMDB's own locks are for processes that have the file open beside this one. The lock on the directory excludes them.
 */
static err_t open_mdb_to_read(struct env *env)
{
  TRY(create_mdb(env, old_map_bytes(env->path)));
  TRY(env_verify(env, mdb_env_open(env->mdb, env->path, MDB_RDONLY | MDB_NOLOCK, 0640), "open"));
  TRY(note_pages(env));
  return verify_not_cut(env);
}

/* A reader that begins waits for the writer that waits to grow the map. Otherwise steady readers would keep it out. */
static void init_map_lock(struct env *env)
{
  pthread_rwlockattr_t prefers_writer;

  pthread_rwlockattr_init(&prefers_writer);
  pthread_rwlockattr_setkind_np(&prefers_writer, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&env->map_lock, &prefers_writer);
  pthread_rwlockattr_destroy(&prefers_writer);
}

err_t env_check_pages(struct env *env, bool reads_values)
{
  mdb_filehandle_t fd;
  size_t bytes;

  TRY(reach_file(env, &fd, &bytes));
  return pages_check(env->path, fd, env->page_bytes, reads_values);
}

/* The caller closes it with env_close(), after an error too. */
static err_t make_env(const char *path, struct env **out)
{
  struct env *env;

  TRY(mem_array(1, sizeof *env, &env));
  env->lock = DIRECTORY_LOCK_NONE;
  init_map_lock(env);
  *out = env;
  return mem_copy_str(path, &env->path);
}

err_t env_open_to_read(const char *path, struct env **out)
{
  AUTO(env_close) struct env *env = NULL;

  TRY(make_env(path, &env));
  env->is_to_read = true;
  TRY(directory_lock_acquire_to_read(path, &env->lock));
  TRY(open_mdb_to_read(env));
  env->txn_id = last_txn_id(env);
  *out = env;
  env = NULL;
  return ERR_OK;
}

err_t env_open(const char *path, size_t map_bytes, struct env **out)
{
  AUTO(env_close) struct env *env = NULL;

  TRY(make_env(path, &env));
  TRY(make_directory(path));
  TRY(directory_lock_acquire(path, &env->lock));
  TRY(open_mdb(env, map_bytes));
  env->txn_id = last_txn_id(env);
  *out = env;
  env = NULL;
  return ERR_OK;
}

/* Close the environment. The newest transaction is synced first, so that it survives a power cut. page_bytes is 0 if
 * opening failed. */
static void close_mdb(struct env *env)
{
  int rc = env->page_bytes && !env->is_to_read ? mdb_env_sync(env->mdb, 1) : MDB_SUCCESS;

  if (rc != MDB_SUCCESS)
    log_warn("store_not_synced", "path=%s error=%s", log_quote(span_of_str(env->path)),
             log_quote(span_of_str(mdb_strerror(rc))));
  mdb_env_close(env->mdb);
  env->mdb = NULL;
}

void env_close(struct env **env)
{
  if (!*env)
    return;
  if ((*env)->mdb)
    close_mdb(*env);
  directory_lock_release(&(*env)->lock);
  pthread_rwlock_destroy(&(*env)->map_lock);
  mem_free(&(*env)->path);
  mem_free(env);
}

static void lose(struct env *env)
{
  if (env->mdb)
    mdb_env_close(env->mdb);
  env->mdb = NULL;
}

/* Verify that a map of this size is possible. LMDB unmaps the old map first, and is lost if the new mapping fails. */
static err_t verify_address_space(const struct env *env, size_t bytes)
{
  void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  if (p == MAP_FAILED)
    FAIL(ERR_STORE, "store %s: no address space for a map of %zu bytes: raise the limit (LimitAS=, ulimit -v)",
         env->path, bytes);
  munmap(p, bytes);
  return ERR_OK;
}

/* Set the size of the map. LMDB allows no transaction meanwhile. */
static err_t set_map(struct env *env, size_t bytes)
{
  pthread_rwlock_wrlock(&env->map_lock);
  int rc = mdb_env_set_mapsize(env->mdb, bytes);
  if (rc != MDB_SUCCESS)
    lose(env);
  pthread_rwlock_unlock(&env->map_lock);
  return env_verify(env, rc, "grow the map");
}

/* Double the map. This thread may have no transaction. */
static err_t grow_map(struct env *env)
{
  size_t bytes = env->map_bytes * 2;

  TRY(verify_address_space(env, bytes));
  TRY(extend_file(env, bytes));
  TRY(set_map(env, bytes));
  note_usage(env);
  log_info("store_map_grown", "path=%s map_bytes=%zu used_bytes=%zu", log_quote(span_of_str(env->path)), env->map_bytes,
           env->used_bytes);
  return ERR_OK;
}

void env_close_cursor(MDB_cursor **cursor)
{
  if (*cursor)
    mdb_cursor_close(*cursor);
  *cursor = NULL;
}

static void abort_txn(MDB_txn **txn)
{
  if (*txn)
    mdb_txn_abort(*txn);
  *txn = NULL;
}

static err_t attempt_write(struct env *env, env_body body, void *context)
{
  AUTO(abort_txn) MDB_txn *txn = NULL;

  env->is_full = false;
  TRY(env_verify(env, mdb_txn_begin(env->mdb, NULL, 0, &txn), "begin a write"));
  TRY(body(context, txn));
  MDB_txn *committed = txn;
  txn = NULL; /* a commit ends the transaction even if it fails */
  TRY(env_verify(env, mdb_txn_commit(committed), "commit"));
  env->txn_id = last_txn_id(env);
  return ERR_OK;
}

/* Give the environment up if LMDB is in panic. It is after a header page could not be written, and then refuses every
 * call until it is reopened. */
static void note_panic(struct env *env)
{
  AUTO(abort_txn) MDB_txn *txn = NULL;

  if (mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn) != MDB_PANIC)
    return;
  pthread_rwlock_wrlock(&env->map_lock);
  lose(env);
  pthread_rwlock_unlock(&env->map_lock);
}

/* Grow the map before it is full, which would end a transaction halfway. If it cannot grow, there is room in it still,
 * and a transaction that only deletes frees some. But an environment that was lost meanwhile is an error. */
static err_t grow_early(struct env *env)
{
  if (env->used_bytes < env->map_bytes / 100 * FULL_PERCENT)
    return ERR_OK;
  err_code_t err = grow_map(env);
  if (err != ERR_OK && !env->is_cramped)
    log_warn("store_map_not_grown", "path=%s map_bytes=%zu used_bytes=%zu reason=%s", log_quote(span_of_str(env->path)),
             env->map_bytes, env->used_bytes, log_failure());
  env->is_cramped = err != ERR_OK;
  return env->mdb ? ERR_OK : err;
}

err_t env_write(struct env *env, env_body body, void *context)
{
  TRY(verify_alive(env));
  TRY(grow_early(env));
  err_code_t err = attempt_write(env, body, context);
  while (err != ERR_OK && env->is_full) {
    TRY(grow_map(env));
    err = attempt_write(env, body, context);
  }
  if (err != ERR_OK)
    note_panic(env);
  if (env->mdb)
    note_usage(env);
  return err;
}

static err_t attempt_read(struct env *env, env_body body, void *context)
{
  AUTO(abort_txn) MDB_txn *txn = NULL;

  TRY(verify_alive(env));
  TRY(env_verify(env, mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn), "begin to read"));
  TRY(body(context, txn));
  MDB_txn *ended = txn;
  txn = NULL;
  /* A commit, because an abort would close the tables that `body` opened. */
  return env_verify(env, mdb_txn_commit(ended), "end reading");
}

err_t env_read(struct env *env, env_body body, void *context)
{
  pthread_rwlock_rdlock(&env->map_lock);
  err_code_t err = attempt_read(env, body, context);
  pthread_rwlock_unlock(&env->map_lock);
  return err;
}

/* ---- Reopening ---- */

static err_t verify_same_transaction(const struct env *env)
{
  size_t id = last_txn_id(env);

  if (id != env->txn_id)
    FAIL(ERR_STORE, "store %s has transaction %zu instead of %zu after a failed write: restart the daemon", env->path,
         id, env->txn_id);
  return ERR_OK;
}

static err_t reopen(struct env *env, env_body open_tables, void *context)
{
  TRY(open_mdb(env, env->map_bytes));
  TRY(verify_same_transaction(env));
  return attempt_read(env, open_tables, context);
}

err_t env_ensure_open(struct env *env, env_body open_tables, void *context)
{
  if (env->mdb)
    return ERR_OK;
  pthread_rwlock_wrlock(&env->map_lock);
  err_code_t err = reopen(env, open_tables, context);
  if (err != ERR_OK)
    lose(env);
  pthread_rwlock_unlock(&env->map_lock);
  if (err == ERR_OK)
    log_warn("store_reopened", "path=%s", log_quote(span_of_str(env->path)));
  return err;
}
