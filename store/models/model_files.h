/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of model files that came through a topic: models/SHA256.safetensors in the directory of the store. A file
 * has that name only once it is whole, and nobody changes it then. store/models/model_file.h makes them.
 *
 * Thread: any; one at a time for each file.
 */
#ifndef STORE_MODEL_FILES_H
#define STORE_MODEL_FILES_H

#include <limits.h>

#include "base/err.h"
#include "base/sha256.h"

/* Get the path of the file with a digest.
 *
 * directory  of the store
 * digest     lower-case hex digits
 * ending     "": of the whole file; ".part": of one that is being made
 *
 * Returns ERR_STORE if it is too long.
 */
err_t model_files_path(const char *directory, const char *digest, const char *ending, char out[PATH_MAX]);

/* Make the folder, if it is not there. Returns ERR_STORE_FULL; ERR_STORE. */
err_t model_files_make_folder(const char *directory);

/* Is the file there, with the digest of its name? One that was damaged is removed. Blocks: while it reads the file. */
err_t model_files_find(const char *directory, const char *digest, bool *is_there);

/* Is the file with this digest still needed? */
typedef bool (*model_files_needed)(void *context, const char digest[SHA256_HEX_BYTES]);

/* Remove the files that are not needed, and those that were never finished. Others than model files stay.
 *
 * n  how many were removed
 */
err_t model_files_sweep(const char *directory, model_files_needed is_needed, void *context, size_t *n);

/* Verify the digest of each whole file. Returns ERR_STORE_CORRUPT with the first one that is damaged. */
err_t model_files_verify(const char *directory, size_t *n);

/* Copy the whole files from one store to another one, which has none, and make them durable. Returns ERR_STORE_FULL;
 * ERR_STORE. */
err_t model_files_copy(const char *from, const char *to);

/* Remove all model files, and the folder if nothing else is in it. What cannot be removed stays. */
void model_files_remove(const char *directory);

#endif
