/* SPDX-License-Identifier: Apache-2.0 */
/* The seal of a stored value: its first 8 bytes are a checksum (XXH3, 64 bits) of all bytes that follow. */
#ifndef STORE_SEAL_H
#define STORE_SEAL_H

#include "base/span.h"

enum { SEAL_BYTES = 8 };

/* Write the seal into the first SEAL_BYTES of a value of n >= SEAL_BYTES bytes. */
void seal_put(uint8_t *value, size_t n);

/* Does the value have a seal that matches its bytes? */
bool seal_is_whole(struct span value);

#endif
