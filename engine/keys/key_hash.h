/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of keys. It has a random secret: keys come from outside, and nobody can choose keys that collide. */
#ifndef ENGINE_KEY_HASH_H
#define ENGINE_KEY_HASH_H

#include "base/err.h"
#include "base/span.h"

enum { KEY_HASH_SECRET_BYTES = 192 };

struct key_hash {
  uint8_t secret[KEY_HASH_SECRET_BYTES];
};

/* Draw a secret. Returns ERR_SYSTEM. */
err_t key_hash_init(struct key_hash *out);

/* Thread: any. */
uint32_t key_hash_of(const struct key_hash *h, struct span key);

#endif
