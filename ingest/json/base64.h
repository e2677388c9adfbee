/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648), encoding and decoding. Thread: any. Blocks: no. Allocates: in the region. */
#ifndef INGEST_BASE64_H
#define INGEST_BASE64_H

#include "base/err.h"
#include "base/region.h"

/* Decode text in the standard or the URL-safe alphabet, with or without padding.
 *
 * out   room for text.n / 4 * 3 + 2 bytes
 * n     set to the number of bytes; unchanged if the text is not Base64
 *
 * Returns false if the text is not Base64.
 */
bool base64_decode(struct span text, uint8_t *out, size_t *n);

/* Encode bytes in the standard alphabet, with padding. `*out` is zero-terminated and lives in the region. */
err_t base64_encode(struct region *r, struct span bytes, char **out);

#endif
