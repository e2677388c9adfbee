/* One process at a time in a directory: a locked file in it, held while the descriptor is open.
 *
 * The kernel lets go when the process ends, however it ends, so a lock is never left over. The file stays.
 */
#ifndef STORE_DIRECTORY_LOCK_H
#define STORE_DIRECTORY_LOCK_H

#include "base/err.h"

/* Returns ERR_OK; ERR_STORE_IN_USE with the path and the process that has it; ERR_STORE when the file cannot be made.
 */
err_t directory_lock_acquire(const char *directory, int *fd);

/* Accepts -1, sets -1. */
void directory_lock_release(int *fd);

#endif
