/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, the digest by which people and topics name a model file. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdio.h>

#include "base/err.h"
#include "base/span.h"

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 2 * SHA256_BYTES + 1 };

/* Write the digest of bytes in lower-case hexadecimal digits, with a zero byte.
 *
 * Returns ERR_OK; ERR_MEMORY; ERR_SYSTEM when libcrypto refuses. */
err_t sha256_hex(struct span bytes, char hex[SHA256_HEX_BYTES]);

/* The same for a file, from where it stands to its end.
 *
 * Returns what sha256_hex() does; ERR_SYSTEM also when the file cannot be read to its end. Blocks: on the file. */
err_t sha256_file(FILE *in, char hex[SHA256_HEX_BYTES]);

#endif
