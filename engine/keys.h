/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of an arena: slot -> key and key -> slot.
 *
 * Open addressing with linear probing over entries of hash and slot; a delete shifts what follows back, so that there
 * are no tombstones and look-ups stay short under churn. The hash has a secret of its own, drawn at random: keys come
 * from outside, and nobody can choose some that share a place.
 *
 * Thread: written by the owner of the arena's back side; read by any while it is in front.
 */
#ifndef ENGINE_KEYS_H
#define ENGINE_KEYS_H

#include "base/err.h"
#include "base/span.h"

#define KEYS_NONE UINT32_MAX

enum { KEYS_SECRET_BYTES = 192 };

struct keys_entry {
  uint32_t hash;
  uint32_t slot_plus_1; /* 0: free */
};

struct keys {
  size_t capacity;          /* slots */
  uint8_t **texts;          /* [capacity] length as u16, then the key; owned */
  struct keys_entry *table; /* [n_table], a power of two */
  size_t n_table;
  uint8_t secret[KEYS_SECRET_BYTES]; /* of the hash */
};

err_t keys_init(size_t capacity, struct keys *out);
void keys_fini(struct keys *k, size_t n_slots);

/* Bytes of one slot, its key of `key_bytes` bytes included. */
size_t keys_bytes_per_slot(size_t key_bytes);

/* The key of a slot that has one: valid until the slot changes. */
struct span keys_get(const struct keys *k, uint32_t slot);

/* Have the place of a key come into cache, for a call that follows soon. */
void keys_fetch(const struct keys *k, struct span key);

/* The slot of a key, or KEYS_NONE. */
uint32_t keys_find(const struct keys *k, struct span key);

/* Give a free slot a key that no slot has. */
err_t keys_put(struct keys *k, uint32_t slot, struct span key);

/* Take the key of a slot away. */
void keys_remove(struct keys *k, uint32_t slot);

/* Move the key of `from` to `to`, which has none. */
void keys_move(struct keys *k, uint32_t from, uint32_t to);

/* Give back the memory of slots from..to-1, which have no keys; those from `to` on had none since the last call. */
void keys_trim(struct keys *k, size_t from, size_t to);

/* Order of two slots by their keys; a topk_key_order with the keys as its context. */
int keys_order(const void *keys, uint32_t a, uint32_t b);

#endif
