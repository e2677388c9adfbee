/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an arena: slot -> key and key -> slot.
 *
 * The table uses open addressing with linear probing; an entry is a hash and a slot. A delete shifts the following
 * entries back. So there are no tombstones, and look-ups stay short under churn. The hash has a random secret: keys
 * come from outside, and nobody can choose keys that collide.
 *
 * Thread: written by the owner of the back arena; read by any thread while the arena is in front.
 */
#ifndef ENGINE_KEYS_H
#define ENGINE_KEYS_H

#include "base/err.h"
#include "base/span.h"

#define KEYS_NONE UINT32_MAX

enum { KEYS_SECRET_BYTES = 192 };

struct keys_entry {
  _Alignas(8) uint32_t hash; /* aligned, because keys_fill() writes an entry at once */
  uint32_t slot_plus_1; /* 0: free */
};

struct keys {
  size_t capacity;          /* slots */
  uint8_t **texts;          /* [capacity] the key's length as u16, then the key; owned */
  struct keys_entry *table; /* [n_table], a power of two */
  size_t n_table;
  uint8_t secret[KEYS_SECRET_BYTES]; /* secret of the hash */
};

err_t keys_init(size_t capacity, struct keys *out);
void keys_fini(struct keys *k, size_t n_slots);

/* The bytes that one slot needs, including a key of `key_bytes` bytes. */
size_t keys_bytes_per_slot(size_t key_bytes);

/* Get the key of a slot that has one. Valid until the slot changes. */
struct span keys_get(const struct keys *k, uint32_t slot);

/* Prefetch the table entry of a key. */
void keys_prefetch(const struct keys *k, struct span key);

/* Find the slot of a key. Returns KEYS_NONE if no slot has it. */
uint32_t keys_find(const struct keys *k, struct span key);

/* Give a free slot a key that no slot has. Returns ERR_MEMORY. */
err_t keys_put(struct keys *k, uint32_t slot, struct span key);

/* The same while the table is filled: nobody reads it, no key is put twice, and several threads may put at once. */
err_t keys_fill(struct keys *k, uint32_t slot, struct span key);

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
