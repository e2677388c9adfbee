/* SPDX-License-Identifier: Apache-2.0 */
/* Making sets of keys, and probing them. */
#include "engine/keys/key_set.h"

#include <assert.h>

#include "base/size.h"

enum {
  FILTER_BITS_PER_KEY = 8, /* at least, and at most twice as many; down to 5.8 in a set that has grown */
  FILTER_BITS_MIN = 512,
  ENTRIES_MIN = 64,
  GROUP = 64 /* keys that are hashed, and whose places are prefetched, before they are put */
};

static size_t n_filter_bits(size_t n)
{
  size_t n_bits = FILTER_BITS_MIN;

  while (n_bits < FILTER_BITS_PER_KEY * n)
    n_bits *= 2;
  return n_bits;
}

static size_t n_entries(size_t n)
{
  size_t entries = ENTRIES_MIN;

  while (entries < 2 * n)
    entries *= 2;
  return entries;
}

size_t key_set_bytes(size_t n)
{
  return n_filter_bits(n) / 8 + n_entries(n) * sizeof(struct key_set_entry);
}

static err_t reserve(size_t n, struct region *region, struct key_set *out)
{
  size_t n_bits = n_filter_bits(n);

  out->filter_shift = 32 - (unsigned)__builtin_ctzl(n_bits);
  out->mask = n_entries(n) - 1;
  TRY(region_array(region, bits_words(n_bits), sizeof *out->filter, &out->filter));
  return region_array(region, out->mask + 1, sizeof *out->table, &out->table);
}

const struct span *key_set_next(const struct key_set *s, uint32_t hash, size_t *at)
{
  for (;;) {
    struct key_set_entry entry = s->table[*at & s->mask];
    if (entry.index_plus_1 == 0)
      return NULL;
    ++*at;
    if (entry.hash == hash)
      return &s->keys[entry.index_plus_1 - 1];
  }
}

/* Does the set have the key, which has this hash?
 *
 * at  the place that it has, or where it can be put */
static bool find(const struct key_set *s, struct span key, uint32_t hash, size_t *at)
{
  *at = hash;
  for (const struct span *found; (found = key_set_next(s, hash, at));) {
    if (span_equal(*found, key))
      return true;
  }
  return false;
}

bool key_set_has(const struct key_set *s, struct span key)
{
  uint32_t hash = key_hash_of(s->hash, key);
  size_t at;

  return key_set_may_have(s, hash) && find(s, key, hash, &at);
}

/* A key that the set has is not put again: a list that repeats one key would be slow to probe. */
static void put(struct key_set *s, uint32_t hash, size_t index)
{
  size_t at;

  if (find(s, s->keys[index], hash, &at))
    return;
  s->table[at & s->mask] = (struct key_set_entry){ hash, (uint32_t)index + 1 };
  bits_set(s->filter, hash >> s->filter_shift);
  s->n_distinct++;
}

static void put_group(struct key_set *s, size_t first, size_t n)
{
  uint32_t hashes[GROUP];
  size_t next = first + n;

  for (size_t i = next; i < size_min(next + GROUP, s->n); i++)
    __builtin_prefetch(s->keys[i].p);
  for (size_t i = 0; i < n; i++) {
    hashes[i] = key_hash_of(s->hash, s->keys[first + i]);
    __builtin_prefetch(&s->table[hashes[i] & s->mask], 1);
  }
  for (size_t i = 0; i < n; i++)
    put(s, hashes[i], first + i);
}

void key_set_grow(struct key_set *s)
{
  assert(s->n_distinct < s->mask);
  put(s, key_hash_of(s->hash, s->keys[s->n]), s->n);
  s->n++;
}

err_t key_set_init(const struct key_hash *hash, const struct span *keys, size_t n, struct region *region,
                   struct key_set *out)
{
  *out = (struct key_set){ .hash = hash, .keys = keys, .n = n };
  TRY(reserve(n, region, out));
  for (size_t i = 0; i < n; i += GROUP)
    put_group(out, i, size_min(n - i, GROUP));
  return ERR_OK;
}
