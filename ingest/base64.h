/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648). Thread: any. Blocks: no. Allocates: in the region. */
#ifndef INGEST_BASE64_H
#define INGEST_BASE64_H

#include "base/err.h"
#include "base/region.h"

/* Decode text in the standard or the URL-safe alphabet, with or without padding.
 *
 * Returns false where it is not Base64; `n` is then untouched.
 * out   room for text.n / 4 * 3 + 2 bytes
 */
bool base64_decode(struct span text, uint8_t *out, size_t *n);

/* Encode in the standard alphabet with padding, zero-terminated. */
err_t base64_encode(struct region *r, struct span bytes, char **out);

#endif
