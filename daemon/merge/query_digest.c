/* SPDX-License-Identifier: Apache-2.0 */
/* The digest: 128 bits of XXH3. */
#include "daemon/merge/query_digest.h"

#include <xxhash.h>

struct query_digest query_digest_of(struct span key)
{
  XXH128_hash_t hash = XXH3_128bits(key.p, key.n);

  return (struct query_digest){ hash.low64, hash.high64 };
}
