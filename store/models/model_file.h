/* SPDX-License-Identifier: Apache-2.0 */
/* A model file that is being made: its bytes come in any order. It gets its name when it is whole, has the right digest
 * and is safe on the disk.
 *
 * Thread: one.
 */
#ifndef STORE_MODEL_FILE_H
#define STORE_MODEL_FILE_H

#include "base/err.h"
#include "base/span.h"

struct model_file;

/* Begin a file, with room on the disk for all of it.
 *
 * directory  of the store
 * digest     of the whole file, as lower-case hex digits
 *
 * Returns ERR_STORE_FULL when there is no room; ERR_STORE.
 */
err_t model_file_open(const char *directory, const char *digest, uint64_t n_bytes, struct model_file **out);

/* Close it. If it was not committed, nothing of it stays. */
void model_file_close(struct model_file **f);

/* Write some of its bytes.
 *
 * at  of the first one; all must be inside the file
 *
 * Returns ERR_STORE_FULL; ERR_STORE.
 */
err_t model_file_write(struct model_file *f, uint64_t at, struct span bytes);

/* Give the file its name. Returns ERR_MODEL when it has another digest; ERR_STORE. Blocks: while it reads the file. */
err_t model_file_commit(struct model_file *f);

#endif
