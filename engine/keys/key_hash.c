/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of keys: XXH3 with a secret from the kernel. */
#include "engine/keys/key_hash.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(KEY_HASH_SECRET_BYTES >= XXH3_SECRET_SIZE_MIN, "XXH3 needs a secret of this size");

err_t key_hash_init(struct key_hash *out)
{
  if (getrandom(out->secret, sizeof out->secret, 0) != sizeof out->secret)
    FAIL(ERR_SYSTEM, "no random bytes: %s", strerror(errno));
  return ERR_OK;
}

uint32_t key_hash_of(const struct key_hash *h, struct span key)
{
  return (uint32_t)XXH3_64bits_withSecret(key.p, key.n, h->secret, sizeof h->secret);
}
