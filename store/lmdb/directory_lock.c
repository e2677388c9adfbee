/* SPDX-License-Identifier: Apache-2.0 */
/* Locking a directory with flock(2), and naming the holder in error messages. */
#include "store/lmdb/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/disk_error.h"

enum { PID_TEXT_BYTES = 24 };

/* Write our process id into the file. It is only used in the error message of a second process. */
static void write_holder(int fd)
{
  char text[PID_TEXT_BYTES];
  int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());

  if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
    return; /* a full disk is no failure: the lock itself needs no space */
}

static long read_holder(int fd)
{
  char text[PID_TEXT_BYTES] = { 0 };

  if (pread(fd, text, sizeof text - 1, 0) <= 0)
    return 0;
  return strtol(text, NULL, 10);
}

static err_t lock_one(int fd, const char *directory, int holder_fd)
{
  if (flock(fd, LOCK_EX | LOCK_NB) == 0)
    return ERR_OK;
  if (errno != EWOULDBLOCK)
    FAIL(ERR_STORE, "store %s cannot be locked: %s", directory, strerror(errno));
  long holder = holder_fd >= 0 ? read_holder(holder_fd) : 0;
  if (holder > 0)
    FAIL(ERR_STORE_IN_USE, "store %s is open in another process (%ld): stop it, or give each daemon its own store.path",
         directory, holder);
  FAIL(ERR_STORE_IN_USE, "store %s is open in another process: stop it, or give each daemon its own store.path",
       directory);
}

/* Lock the directory. The lock file of a former holder is read for the error message only. */
static err_t lock_directory(int fd, const char *directory, const char *path)
{
  int file = open(path, O_RDONLY | O_CLOEXEC);
  err_code_t err = lock_one(fd, directory, file);

  if (file >= 0)
    close(file);
  return err;
}

err_t directory_lock_acquire(const char *directory, struct directory_lock *out)
{
  char path[PATH_MAX];
  AUTO(directory_lock_release) struct directory_lock lock = DIRECTORY_LOCK_NONE;

  if ((size_t)snprintf(path, sizeof path, "%s/sluice.lock", directory) >= sizeof path)
    FAIL(ERR_STORE, "the path of store %.64s... is too long", directory);
  lock.directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock.directory_fd < 0)
    FAIL(ERR_STORE, "store directory %s cannot be read: %s: the daemon's user must be able to read and write there",
         directory, strerror(errno));
  TRY(lock_directory(lock.directory_fd, directory, path));
  lock.file_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (lock.file_fd < 0 && !disk_error_is_full(errno))
    FAIL(ERR_STORE, "%s cannot be created: %s: the daemon's user must be able to write there", path, strerror(errno));
  if (lock.file_fd >= 0) { /* earlier versions lock only the file */
    TRY(lock_one(lock.file_fd, directory, lock.file_fd));
    write_holder(lock.file_fd);
  }
  *out = lock;
  lock = DIRECTORY_LOCK_NONE;
  return ERR_OK;
}

static void release(int *fd)
{
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

void directory_lock_release(struct directory_lock *lock)
{
  release(&lock->file_fd);
  release(&lock->directory_fd);
}
