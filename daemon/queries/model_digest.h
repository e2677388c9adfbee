/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a model's file, by which the role merge recognises parts of different models. */
#ifndef DAEMON_QUERIES_MODEL_DIGEST_H
#define DAEMON_QUERIES_MODEL_DIGEST_H

#include "base/err.h"

enum { MODEL_DIGEST_BYTES = 33 };

/* Write the digest of a file's bytes, as 32 hexadecimal digits. Returns ERR_MODEL when the file cannot be read. */
err_t model_digest(const char *path, char out[MODEL_DIGEST_BYTES]);

#endif
