/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in the directory of a store. */
#ifndef STORE_STORE_PATH_H
#define STORE_STORE_PATH_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

/* The folder in it that has what users have seen. */
#define STORE_PATH_SEEN "seen"

/* Get the path of a file or folder in a folder. Returns ERR_STORE if it is too long. */
err_t store_path_join(const char *folder, const char *name, char out[PATH_MAX]);

/* Does the directory have a store? Returns ERR_STORE if that cannot be found out, as when it may not be entered. */
err_t store_path_find_store(const char *directory, bool *out);

/* Verify that it has one. Returns ERR_STORE with the directory. */
err_t store_path_verify_store(const char *directory);

/* Is the path this folder, or somewhere in it? It need not be there yet, but its parent. */
bool store_path_is_within(const char *path, const char *folder);

/* Make a file or a folder durable. Returns ERR_STORE_FULL; ERR_STORE. */
err_t store_path_sync(const char *path);

#endif
