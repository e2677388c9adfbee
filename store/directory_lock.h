/* SPDX-License-Identifier: Apache-2.0 */
/* One process at a time in a directory: the directory itself is locked, and a file in it that names the holder, each
 * while its descriptor is open.
 *
 * The file alone would not do: once somebody has removed it, a second process makes and locks another one. The kernel
 * lets go when the process ends, however it ends, so a lock is never left over. The file stays.
 */
#ifndef STORE_DIRECTORY_LOCK_H
#define STORE_DIRECTORY_LOCK_H

#include "base/err.h"

struct directory_lock {
  int directory_fd; /* -1: not held */
  int file_fd;      /* -1 where a full disk has no room for the file */
};

#define DIRECTORY_LOCK_NONE ((struct directory_lock){ -1, -1 })

/* Returns ERR_OK; ERR_STORE_IN_USE with the path and the process that has it; ERR_STORE when the directory cannot be
 * locked or the file cannot be made.
 */
err_t directory_lock_acquire(const char *directory, struct directory_lock *out);

/* Accepts one that is not held. */
void directory_lock_release(struct directory_lock *lock);

#endif
