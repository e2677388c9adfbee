#include "store/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { PID_TEXT_BYTES = 24 };

/* The holder writes its process id into the file: only for the message of those who come second. */
static void write_holder(int fd)
{
  char text[PID_TEXT_BYTES];
  int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());

  if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
    return; /* a full disk is no reason to refuse: the lock itself needs no byte */
}

static long read_holder(int fd)
{
  char text[PID_TEXT_BYTES] = { 0 };

  if (pread(fd, text, sizeof text - 1, 0) <= 0)
    return 0;
  return strtol(text, NULL, 10);
}

static err_t lock_file(int fd, const char *directory)
{
  if (flock(fd, LOCK_EX | LOCK_NB) == 0)
    return ERR_OK;
  if (errno != EWOULDBLOCK)
    FAIL(ERR_STORE, "store %s cannot be locked: %s", directory, strerror(errno));
  long holder = read_holder(fd);
  if (holder > 0)
    FAIL(ERR_STORE_IN_USE, "store %s is open in another process (%ld): stop it, or give each daemon its own store.path",
         directory, holder);
  FAIL(ERR_STORE_IN_USE, "store %s is open in another process: stop it, or give each daemon its own store.path",
       directory);
}

err_t directory_lock_acquire(const char *directory, int *fd)
{
  char path[PATH_MAX];
  AUTO(directory_lock_release) int file = -1;

  if ((size_t)snprintf(path, sizeof path, "%s/sluice.lock", directory) >= sizeof path)
    FAIL(ERR_STORE, "the path of store %.64s... is too long", directory);
  file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (file < 0)
    FAIL(ERR_STORE, "%s cannot be made: %s: the daemon's user must be able to write there", path, strerror(errno));
  TRY(lock_file(file, directory));
  write_holder(file);
  *fd = file;
  file = -1;
  return ERR_OK;
}

void directory_lock_release(int *fd)
{
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}
