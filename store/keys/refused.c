/* SPDX-License-Identifier: Apache-2.0 */
/* The set of refused keys: a hash table with open addressing. */
#include "store/keys/refused.h"

#include "base/mem.h"

#include <xxhash.h>

enum { CAPACITY_MIN = 64 };

void refused_keys_fini(struct refused_keys *r)
{
  mem_free(&r->hashes);
  *r = (struct refused_keys){ 0 };
}

void refused_keys_clear(struct refused_keys *r)
{
  if (r->n)
    refused_keys_fini(r);
}

static uint64_t hash_of(struct span key, int32_t partition)
{
  uint64_t hash = XXH3_64bits_withSeed(key.p, key.n, (uint32_t)partition);

  return hash ? hash : 1;
}

static uint64_t *find(const struct refused_keys *r, uint64_t hash)
{
  size_t i = hash & (r->capacity - 1);

  while (r->hashes[i] && r->hashes[i] != hash)
    i = (i + 1) & (r->capacity - 1);
  return &r->hashes[i];
}

bool refused_keys_has(const struct refused_keys *r, struct span key, int32_t partition)
{
  if (r->n == 0)
    return false;
  return r->n > REFUSED_KEYS_MAX || *find(r, hash_of(key, partition));
}

/* Double the table if one more key would make it more than half full. */
static err_t make_room(struct refused_keys *r)
{
  struct refused_keys larger = { .capacity = r->capacity ? r->capacity * 2 : CAPACITY_MIN };

  if (2 * (r->n + 1) <= r->capacity)
    return ERR_OK;
  TRY(mem_array(larger.capacity, sizeof *larger.hashes, &larger.hashes));
  for (size_t i = 0; i < r->capacity; i++)
    if (r->hashes[i])
      *find(&larger, r->hashes[i]) = r->hashes[i];
  larger.n = r->n;
  refused_keys_fini(r);
  *r = larger;
  return ERR_OK;
}

err_t refused_keys_add(struct refused_keys *r, struct span key, int32_t partition)
{
  uint64_t hash = hash_of(key, partition);

  if (r->n > REFUSED_KEYS_MAX)
    return ERR_OK;
  TRY(make_room(r));
  uint64_t *at = find(r, hash);
  r->n += *at == 0;
  *at = hash;
  return ERR_OK;
}
