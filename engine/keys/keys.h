/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an arena: slot -> key and key -> slot.
 *
 * The table uses open addressing with linear probing; an entry is a hash and a slot. A key's home is where its hash
 * lies in the range of all hashes. At most two of three entries are used. A delete shifts the following entries back.
 * So there are no tombstones, and look-ups stay short under churn.
 *
 * Thread: written by the owner of the back arena; read by any thread while the arena is in front.
 */
#ifndef ENGINE_KEYS_H
#define ENGINE_KEYS_H

#include "base/err.h"
#include "base/span.h"
#include "engine/keys/key_hash.h"
#include "engine/keys/key_text.h"

#define KEYS_NONE UINT32_MAX

struct keys_entry {
  _Alignas(8) uint32_t hash; /* aligned, because keys_load() writes an entry at once */
  uint32_t slot_plus_1;      /* 0: free */
};

struct keys {
  size_t capacity;          /* slots */
  struct key_text **texts;  /* [capacity] this arena is one of their owners */
  struct keys_entry *table; /* [n_table] */
  size_t n_table;
  uint32_t *hashes;            /* [capacity] of the key of each slot that has one */
  const struct key_hash *hash; /* borrowed */
};

err_t keys_init(size_t capacity, const struct key_hash *hash, struct keys *out);
void keys_fini(struct keys *k, size_t n_slots);

/* The bytes that one slot needs in a pair of arenas, including a key of `key_bytes` bytes, which they share. */
size_t keys_bytes_per_pair(size_t key_bytes);

/* Get the key of a slot that has one. Valid until the slot changes. */
struct span keys_get(const struct keys *k, uint32_t slot);

/* The hash of the key of a slot that has one. */
static inline uint32_t keys_hash(const struct keys *k, uint32_t slot)
{
  return k->hashes[slot];
}

static inline void keys_prefetch_hash(const struct keys *k, uint32_t slot)
{
  __builtin_prefetch(&k->hashes[slot]);
}

/* Prefetch the key of a slot, in two steps: first the place of its text, some time later the text itself. */
void keys_prefetch_place(const struct keys *k, uint32_t slot);
void keys_prefetch_text(const struct keys *k, uint32_t slot);

/* Prefetch the table entry of a key. */
void keys_prefetch(const struct keys *k, struct span key);

/* Find the slot of a key. Returns KEYS_NONE if no slot has it. */
uint32_t keys_find(const struct keys *k, struct span key);

/* Find the slots of many keys. The memory that they need is fetched for several at a time. slots [n] */
void keys_find_all(const struct keys *k, const struct span *keys, size_t n, uint32_t *slots);

/* Give a free slot a key that no slot has. Takes over an ownership of the text. */
void keys_put(struct keys *k, uint32_t slot, struct key_text *text);

/* The same while the table is loaded: nobody reads it, no key is put twice, and several threads may put at once. */
void keys_load(struct keys *k, uint32_t slot, struct key_text *text);

/* Remove the key of a slot. */
void keys_remove(struct keys *k, uint32_t slot);

/* Move the key of `from` to `to`, which has none. */
void keys_move(struct keys *k, uint32_t from, uint32_t to);

/* Give back the memory of slots from..to-1, which have no keys. Slots from `to` on must not have had keys since the
 * last call. */
void keys_trim(struct keys *k, size_t from, size_t to);

/* Compare two slots by their keys: a topk_key_order with the keys as its context. */
int keys_order(const void *keys, uint32_t a, uint32_t b);

#endif
