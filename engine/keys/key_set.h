/* SPDX-License-Identifier: Apache-2.0 */
/* A set of keys that can be asked by hash, such as what a user has seen. It knows nothing of the catalogue, so it is
 * made in one pass over the keys, and stays right whatever the catalogue becomes. It can grow by some more keys.
 *
 * A bit filter answers for most hashes that no key has. It is small enough for the cache of a core, also for the sets
 * of a whole batch. Behind it is a hash table with linear probing.
 *
 * Thread: any. While a set grows, nobody else may use it.
 */
#ifndef ENGINE_KEY_SET_H
#define ENGINE_KEY_SET_H

#include "base/bits.h"
#include "base/region.h"
#include "engine/keys/key_hash.h"

struct key_set_entry {
  uint32_t hash;
  uint32_t index_plus_1; /* 0: free */
};

struct key_set {
  const struct key_hash *hash;
  const struct span *keys; /* [n], borrowed; a key may be there twice */
  size_t n;
  size_t n_distinct;
  uint64_t *filter; /* bit h >> filter_shift is set if a key has the hash h */
  unsigned filter_shift;
  struct key_set_entry *table; /* [mask + 1] */
  size_t mask;
};

/* Return what the set of n keys takes in its region. */
size_t key_set_bytes(size_t n);

/* Make a set of keys [n], n < 2^24. To let it grow, give keys an array with more room.
 *
 * hash    borrowed
 * region  the set lives here
 *
 * Returns ERR_MEMORY. */
err_t key_set_init(const struct key_hash *hash, const struct span *keys, size_t n, struct region *region,
                   struct key_set *out);

/* Add keys[n], which whoever owns the keys has put there and the set does not have: n rises by one. Beyond an eighth
 * and 16 keys more than the set was made of, it gets slow, and full at last. */
void key_set_grow(struct key_set *s);

/* Does the set have the key? */
bool key_set_has(const struct key_set *s, struct span key);

/* May a key of the set have this hash? */
static inline bool key_set_may_have(const struct key_set *s, uint32_t hash)
{
  return bits_get(s->filter, hash >> s->filter_shift);
}

/* Find the next key of the set with this hash. Different keys can have the same one.
 *
 * at  the hash at first; then what the last call left
 *
 * Returns NULL if there are no more. */
const struct span *key_set_next(const struct key_set *s, uint32_t hash, size_t *at);

#endif
