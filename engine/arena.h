/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: all columns of the catalogue, indexed by slot. Slots stay dense: when an item is deleted, the last one
 * moves into its place.
 *
 * Thread: written by the catalogue thread while it is the back of the pair; read by search workers while it is the
 * front.
 */
#ifndef ENGINE_ARENA_H
#define ENGINE_ARENA_H

#include "base/item.h"
#include "engine/backend.h"
#include "engine/keys.h"
#include "engine/prepare.h"
#include "engine/space.h"

/* One space. */
struct arena_space {
  struct columns *on[BACKENDS_MAX]; /* by backend */
  uint8_t *has_part; /* [capacity] */
  uint64_t n_items;
};

struct arena {
  size_t capacity;
  size_t pair_bytes_per_item; /* for people: what one item more takes in both arenas */
  size_t n_slots;
  size_t high_slots; /* slots that may hold memory: n_slots, or the most since memory was given back */
  struct keys keys;
  struct backends *backends; /* the engine's */
  struct arena_space *spaces;
  size_t n_spaces;
  uint64_t epoch;
  struct position *watermark; /* in order of partition */
  size_t n_watermark;
  size_t watermark_capacity;
};

err_t arena_init(const struct space *spaces, size_t n_spaces, struct backends *backends, size_t capacity,
                 size_t pair_bytes_per_item, struct arena *out);
void arena_fini(struct arena *a);

/* Apply prepared changes in order, and make them visible to searches that begin afterwards. Returns ERR_FULL,
 * ERR_MEMORY or ERR_DEVICE. */
err_t arena_apply(struct arena *a, const struct prepared_change *changes, size_t n);

/* Bring the watermark forward to these positions. */
err_t arena_advance(struct arena *a, const struct position *positions, size_t n);

/* The arena has seen nothing of the log that comes. */
void arena_forget_watermark(struct arena *a);

/* First offset of a partition that the arena has not seen; 0 for one that it does not know. */
int64_t arena_next(const struct arena *a, int32_t partition);

#endif
