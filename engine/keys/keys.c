/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table of keys, and the owned texts of the keys. */
#include "engine/keys/keys.h"

#include "base/mem.h"

/* Two of three entries are used at most, so a look-up ends after a few. */
static size_t table_size(size_t capacity)
{
  return capacity + capacity / 2 + 1;
}

/* The entry where a hash is looked for first. */
static size_t home_of(const struct keys *k, uint32_t hash)
{
  return (size_t)((unsigned __int128)k->n_table * hash >> 32);
}

static size_t after(const struct keys *k, size_t i)
{
  return i + 1 < k->n_table ? i + 1 : 0;
}

/* How many steps lie from one entry to another, around the end of the table. */
static size_t steps(const struct keys *k, size_t from, size_t to)
{
  return to >= from ? to - from : to + k->n_table - from;
}

err_t keys_init(size_t capacity, const struct key_hash *hash, struct keys *out)
{
  *out = (struct keys){ .capacity = capacity, .n_table = table_size(capacity), .hash = hash };
  TRY(mem_reserve(capacity, sizeof *out->texts, &out->texts));
  TRY(mem_reserve(capacity, sizeof *out->hashes, &out->hashes));
  return mem_reserve(out->n_table, sizeof *out->table, &out->table);
}

void keys_fini(struct keys *k, size_t n_slots)
{
  for (size_t slot = 0; k->texts && slot < n_slots; slot++)
    key_text_drop(&k->texts[slot]);
  mem_release(&k->texts, k->capacity, sizeof *k->texts);
  mem_release(&k->hashes, k->capacity, sizeof *k->hashes);
  mem_release(&k->table, k->n_table, sizeof *k->table);
}

size_t keys_bytes_per_pair(size_t key_bytes)
{
  size_t text = (sizeof(struct key_text) + key_bytes + 15) & ~(size_t)15;
  size_t in_table = sizeof(struct keys_entry) * 3 / 2;

  return text + 2 * (sizeof(struct key_text *) + sizeof(uint32_t) + in_table);
}

struct span keys_get(const struct keys *k, uint32_t slot)
{
  return span_of(k->texts[slot]->bytes, k->texts[slot]->n);
}

void keys_prefetch_place(const struct keys *k, uint32_t slot)
{
  __builtin_prefetch(&k->texts[slot]);
}

void keys_prefetch_text(const struct keys *k, uint32_t slot)
{
  __builtin_prefetch(k->texts[slot]);
}

/* Return the index of the first entry from `i` on that has this hash, or that is free. */
static size_t probe(const struct keys *k, size_t i, uint32_t hash)
{
  while (k->table[i].slot_plus_1 && k->table[i].hash != hash)
    i = after(k, i);
  return i;
}

/* Return the index of a key's entry, or of the free entry where the key would go. `i` is from probe(). */
static size_t locate_from(const struct keys *k, struct span key, uint32_t hash, size_t i)
{
  while (k->table[i].slot_plus_1 && !span_equal(keys_get(k, k->table[i].slot_plus_1 - 1), key))
    i = probe(k, after(k, i), hash);
  return i;
}

static size_t locate(const struct keys *k, struct span key, uint32_t hash)
{
  return locate_from(k, key, hash, probe(k, home_of(k, hash), hash));
}

void keys_prefetch(const struct keys *k, struct span key)
{
  __builtin_prefetch(&k->table[home_of(k, key_hash_of(k->hash, key))]);
}

uint32_t keys_find(const struct keys *k, struct span key)
{
  return k->table[locate(k, key, key_hash_of(k->hash, key))].slot_plus_1 - 1; /* 0 - 1 is KEYS_NONE */
}

/* Each step of a look-up is done for so many keys before the next one. */
enum { FIND_GROUP = 64 };

static void find_group(const struct keys *k, const struct span *keys, size_t n, uint32_t *slots)
{
  uint32_t hashes[FIND_GROUP];
  size_t at[FIND_GROUP];

  for (size_t i = 0; i < n; i++) {
    hashes[i] = key_hash_of(k->hash, keys[i]);
    __builtin_prefetch(&k->table[home_of(k, hashes[i])]);
  }
  for (size_t i = 0; i < n; i++) {
    at[i] = probe(k, home_of(k, hashes[i]), hashes[i]);
    slots[i] = k->table[at[i]].slot_plus_1 - 1;
    if (slots[i] != KEYS_NONE)
      keys_prefetch_place(k, slots[i]);
  }
  for (size_t i = 0; i < n; i++) {
    if (slots[i] != KEYS_NONE)
      keys_prefetch_text(k, slots[i]);
  }
  for (size_t i = 0; i < n; i++)
    slots[i] = k->table[locate_from(k, keys[i], hashes[i], at[i])].slot_plus_1 - 1;
}

void keys_find_all(const struct keys *k, const struct span *keys, size_t n, uint32_t *slots)
{
  for (size_t i = 0; i < n; i += FIND_GROUP)
    find_group(k, keys + i, n - i < FIND_GROUP ? n - i : FIND_GROUP, slots + i);
}

static uint32_t put_text(struct keys *k, uint32_t slot, struct key_text *text)
{
  k->texts[slot] = text;
  k->hashes[slot] = key_hash_of(k->hash, span_of(text->bytes, text->n));
  return k->hashes[slot];
}

void keys_put(struct keys *k, uint32_t slot, struct key_text *text)
{
  uint32_t hash = put_text(k, slot, text);

  k->table[locate(k, keys_get(k, slot), hash)] = (struct keys_entry){ hash, slot + 1 };
}

void keys_load(struct keys *k, uint32_t slot, struct key_text *text)
{
  uint32_t hash = put_text(k, slot, text);
  struct keys_entry entry = { hash, slot + 1 };

  for (size_t i = home_of(k, hash);; i = after(k, i)) {
    struct keys_entry expected = { 0 };
    if (__atomic_compare_exchange(&k->table[i], &expected, &entry, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return;
  }
}

/* Free an entry and close the gap. An entry further on may stay only if no free entry lies between its home and it. */
static void free_entry(struct keys *k, size_t hole)
{
  for (size_t i = after(k, hole); k->table[i].slot_plus_1; i = after(k, i)) {
    size_t home = home_of(k, k->table[i].hash);
    if (steps(k, home, i) >= steps(k, hole, i)) {
      k->table[hole] = k->table[i];
      hole = i;
    }
  }
  k->table[hole] = (struct keys_entry){ 0 };
}

void keys_remove(struct keys *k, uint32_t slot)
{
  free_entry(k, locate(k, keys_get(k, slot), k->hashes[slot]));
  key_text_drop(&k->texts[slot]);
}

void keys_move(struct keys *k, uint32_t from, uint32_t to)
{
  k->table[locate(k, keys_get(k, from), k->hashes[from])].slot_plus_1 = to + 1;
  k->texts[to] = k->texts[from];
  k->texts[from] = NULL;
  k->hashes[to] = k->hashes[from];
}

void keys_trim(struct keys *k, size_t from, size_t to)
{
  mem_give_back(k->texts, from, to, sizeof *k->texts);
  mem_give_back(k->hashes, from, to, sizeof *k->hashes);
  if (from == 0) /* no keys are left: all entries are free, which is zero */
    mem_give_back(k->table, 0, k->n_table, sizeof *k->table);
}

int keys_order(const void *keys, uint32_t a, uint32_t b)
{
  return span_compare(keys_get(keys, a), keys_get(keys, b));
}
