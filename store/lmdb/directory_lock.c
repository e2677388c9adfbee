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

/* Return the process id that the file names; 0: none. */
static long read_holder(const char *path)
{
  char text[PID_TEXT_BYTES] = { 0 };
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    return 0;
  ssize_t n = pread(fd, text, sizeof text - 1, 0);
  close(fd);
  return n > 0 ? strtol(text, NULL, 10) : 0;
}

static err_t lock(int fd, const char *directory, const char *path)
{
  if (flock(fd, LOCK_EX | LOCK_NB) == 0)
    return ERR_OK;
  if (errno != EWOULDBLOCK)
    FAIL(ERR_STORE, "store %s cannot be locked: %s", directory, strerror(errno));
  long holder = read_holder(path);
  if (holder > 0)
    FAIL(ERR_STORE_IN_USE, "store %s is open in another process (%ld): stop it, or give each daemon its own store.path",
         directory, holder);
  FAIL(ERR_STORE_IN_USE, "store %s is open in another process: stop it, or give each daemon its own store.path",
       directory);
}

/* Write our process id into the file. A full disk is no failure: the lock itself needs no space. */
static err_t write_holder(const char *path, bool must_write)
{
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);

  if (fd < 0 && must_write && !disk_error_is_full(errno))
    FAIL(ERR_STORE, "%s cannot be created: %s: the daemon's user must be able to write there", path, strerror(errno));
  if (fd < 0)
    return ERR_OK;
  if (ftruncate(fd, 0) == 0)
    dprintf(fd, "%ld\n", (long)getpid());
  close(fd);
  return ERR_OK;
}

static err_t acquire(const char *directory, bool must_write, struct directory_lock *out)
{
  char path[PATH_MAX];
  AUTO(directory_lock_release) struct directory_lock held = DIRECTORY_LOCK_NONE;

  if ((size_t)snprintf(path, sizeof path, "%s/sluice.lock", directory) >= sizeof path)
    FAIL(ERR_STORE, "the path of store %.64s... is too long", directory);
  held.fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (held.fd < 0)
    FAIL(ERR_STORE, "store directory %s cannot be read: %s: the daemon's user must be able to read%s there", directory,
         strerror(errno), must_write ? " and write" : "");
  TRY(lock(held.fd, directory, path));
  TRY(write_holder(path, must_write));
  *out = held;
  held = DIRECTORY_LOCK_NONE;
  return ERR_OK;
}

err_t directory_lock_acquire(const char *directory, struct directory_lock *out)
{
  return acquire(directory, true, out);
}

err_t directory_lock_acquire_to_read(const char *directory, struct directory_lock *out)
{
  return acquire(directory, false, out);
}

void directory_lock_release(struct directory_lock *l)
{
  if (l->fd >= 0)
    close(l->fd);
  l->fd = -1;
}
