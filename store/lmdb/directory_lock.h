/* SPDX-License-Identifier: Apache-2.0 */
/* A lock that lets one process at a time use a directory. It locks the directory itself, while its descriptor is open.
 * A file in the directory, which stays there, names the holder for error messages.
 *
 * The file is not what is locked: after somebody removed it, a second process could create and lock a new one. The
 * kernel releases the lock when the process ends in any way, so no stale lock is left.
 */
#ifndef STORE_DIRECTORY_LOCK_H
#define STORE_DIRECTORY_LOCK_H

#include "base/err.h"

struct directory_lock {
  int fd; /* of the directory; -1: not held */
};

#define DIRECTORY_LOCK_NONE ((struct directory_lock){ -1 })

/* Lock a directory, without waiting.
 *
 * Returns ERR_OK; ERR_STORE_IN_USE with the path and the process that holds it; ERR_STORE when the directory cannot be
 * locked or the file cannot be created.
 */
err_t directory_lock_acquire(const char *directory, struct directory_lock *out);

/* Lock a directory that this process only reads, so it may be one that cannot be written: then no file names the
 * holder. Returns the same errors. */
err_t directory_lock_acquire_to_read(const char *directory, struct directory_lock *out);

/* Release the lock. A lock that is not held is accepted. */
void directory_lock_release(struct directory_lock *lock);

#endif
