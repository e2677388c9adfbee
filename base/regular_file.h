/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a file that must be a regular one. A plain open() of a pipe would wait for its writer, maybe for ever. */
#ifndef BASE_REGULAR_FILE_H
#define BASE_REGULAR_FILE_H

#include <sys/stat.h>

#include "base/err.h"

/* Open a regular file for reading.
 *
 * status  what fstat() says about it
 * fd      the caller closes it
 *
 * Returns ERR_OK; ERR_CONFIG with the path when it cannot be opened or is something else. Blocks: no, except for a slow
 * file system.
 */
err_t regular_file_open(const char *path, struct stat *status, int *fd);

#endif
