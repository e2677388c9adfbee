/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, the digest by which people and topics name a model file. Source: FIPS 180-4. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include "base/span.h"

enum { SHA256_BYTES = 32, SHA256_BLOCK_BYTES = 64, SHA256_HEX_BYTES = 2 * SHA256_BYTES + 1 };

/* A digest under way. */
struct sha256 {
  uint32_t state[8];
  uint64_t n_bytes;
  uint8_t rest[SHA256_BLOCK_BYTES]; /* the last n_bytes % SHA256_BLOCK_BYTES bytes */
};

/* Begin a digest, add bytes in any pieces, then write it in lower-case hexadecimal digits, with a zero byte. */
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, struct span bytes);
void sha256_finish(struct sha256 *s, char hex[SHA256_HEX_BYTES]);

/* The digest of bytes that are all there. */
void sha256_hex(struct span bytes, char hex[SHA256_HEX_BYTES]);

#endif
