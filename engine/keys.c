/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table of keys, and the texts of the keys, one allocation each. */
#include "engine/keys.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

static_assert(KEYS_SECRET_BYTES >= XXH3_SECRET_SIZE_MIN, "XXH3 needs a secret of this size");

static size_t table_size(size_t capacity)
{
  size_t n = 64;

  while (n < 2 * capacity)
    n *= 2;
  return n;
}

err_t keys_init(size_t capacity, struct keys *out)
{
  *out = (struct keys){ .capacity = capacity, .n_table = table_size(capacity) };
  if (getrandom(out->secret, sizeof out->secret, 0) != sizeof out->secret)
    FAIL(ERR_SYSTEM, "no random bytes: %s", strerror(errno));
  TRY(mem_reserve(capacity, sizeof *out->texts, &out->texts));
  return mem_reserve(out->n_table, sizeof *out->table, &out->table);
}

void keys_fini(struct keys *k, size_t n_slots)
{
  for (size_t slot = 0; k->texts && slot < n_slots; slot++)
    mem_free(&k->texts[slot]);
  mem_release(&k->texts, k->capacity, sizeof *k->texts);
  mem_release(&k->table, k->n_table, sizeof *k->table);
}

size_t keys_bytes_per_slot(size_t key_bytes)
{
  return sizeof(uint8_t *) + 4 * sizeof(struct keys_entry) + ((key_bytes + 2 + 15) & ~(size_t)15);
}

struct span keys_get(const struct keys *k, uint32_t slot)
{
  uint16_t n;

  memcpy(&n, k->texts[slot], sizeof n);
  return span_of(k->texts[slot] + sizeof n, n);
}

static uint32_t hash_of(const struct keys *k, struct span key)
{
  return (uint32_t)XXH3_64bits_withSecret(key.p, key.n, k->secret, sizeof k->secret);
}

/* Return the index of a key's entry, or of the free entry where the key would go. */
static size_t locate(const struct keys *k, struct span key, uint32_t hash)
{
  size_t mask = k->n_table - 1;
  size_t i = hash & mask;

  while (k->table[i].slot_plus_1) {
    if (k->table[i].hash == hash && span_equal(keys_get(k, k->table[i].slot_plus_1 - 1), key))
      return i;
    i = (i + 1) & mask;
  }
  return i;
}

void keys_prefetch(const struct keys *k, struct span key)
{
  __builtin_prefetch(&k->table[hash_of(k, key) & (k->n_table - 1)]);
}

uint32_t keys_find(const struct keys *k, struct span key)
{
  return k->table[locate(k, key, hash_of(k, key))].slot_plus_1 - 1; /* 0 - 1 is KEYS_NONE */
}

static err_t put_text(struct keys *k, uint32_t slot, struct span key)
{
  uint16_t n = (uint16_t)key.n;

  TRY(mem_bytes(sizeof n + key.n, &k->texts[slot]));
  memcpy(k->texts[slot], &n, sizeof n);
  memcpy(k->texts[slot] + sizeof n, key.p, key.n);
  return ERR_OK;
}

err_t keys_put(struct keys *k, uint32_t slot, struct span key)
{
  uint32_t hash = hash_of(k, key);

  TRY(put_text(k, slot, key));
  k->table[locate(k, key, hash)] = (struct keys_entry){ hash, slot + 1 };
  return ERR_OK;
}

err_t keys_fill(struct keys *k, uint32_t slot, struct span key)
{
  uint32_t hash = hash_of(k, key);
  size_t mask = k->n_table - 1;
  struct keys_entry entry = { hash, slot + 1 };

  TRY(put_text(k, slot, key));
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    struct keys_entry expected = { 0 };
    if (__atomic_compare_exchange(&k->table[i], &expected, &entry, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return ERR_OK;
  }
}

/* Free an entry and close the gap. An entry further on may stay only if no free entry lies between its home and it. */
static void free_entry(struct keys *k, size_t hole)
{
  size_t mask = k->n_table - 1;

  for (size_t i = (hole + 1) & mask; k->table[i].slot_plus_1; i = (i + 1) & mask) {
    size_t home = k->table[i].hash & mask;
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      k->table[hole] = k->table[i];
      hole = i;
    }
  }
  k->table[hole] = (struct keys_entry){ 0 };
}

void keys_remove(struct keys *k, uint32_t slot)
{
  struct span key = keys_get(k, slot);

  free_entry(k, locate(k, key, hash_of(k, key)));
  mem_free(&k->texts[slot]);
}

void keys_move(struct keys *k, uint32_t from, uint32_t to)
{
  struct span key = keys_get(k, from);

  k->table[locate(k, key, hash_of(k, key))].slot_plus_1 = to + 1;
  k->texts[to] = k->texts[from];
  k->texts[from] = NULL;
}

void keys_trim(struct keys *k, size_t from, size_t to)
{
  mem_give_back(k->texts, from, to, sizeof *k->texts);
  if (from == 0) /* no keys are left: all entries are free, which is zero */
    mem_give_back(k->table, 0, k->n_table, sizeof *k->table);
}

int keys_order(const void *keys, uint32_t a, uint32_t b)
{
  return span_compare(keys_get(keys, a), keys_get(keys, b));
}
