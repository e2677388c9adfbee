/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: all columns of the catalogue, of spaces and of attributes, indexed by slot. Slots stay dense: when an item
 * is deleted, the last item moves into its slot.
 *
 * Thread: written by the catalogue thread while it is the back arena of the pair; read by search workers while it is
 * the front arena.
 */
#ifndef ENGINE_ARENA_H
#define ENGINE_ARENA_H

#include "base/bits.h"
#include "base/change_log.h"
#include "base/item.h"
#include "engine/arena/lifetimes.h"
#include "engine/arena/prepare.h"
#include "engine/arena/space_table.h"
#include "engine/attributes/attribute_columns.h"
#include "engine/backend/backend.h"
#include "engine/keys/keys.h"

/* The columns of one space. */
struct arena_space {
  const struct space *space;        /* NULL: a hole; then all the rest is 0 */
  bool is_current;                  /* in this epoch: as in struct space_entry */
  struct columns *on[BACKENDS_MAX]; /* one for each backend */
  uint64_t *has_part;               /* a bit for each slot of the capacity */
  struct change_log touched;        /* of has_part and alive */
  uint64_t n_items;
  uint64_t *alive; /* the slots of has_part that are neither expired nor embargoed; NULL: lifetimes are not kept */
  uint64_t n_alive;
};

/* The slots of a space that a query without a filter admits, and their number. */
static inline const uint64_t *arena_space_words(const struct arena_space *space)
{
  return space->alive ? space->alive : space->has_part;
}

static inline uint64_t arena_space_n_alive(const struct arena_space *space)
{
  return space->alive ? space->n_alive : space->n_items;
}

struct arena {
  size_t capacity;
  size_t pair_bytes_per_item; /* for messages: bytes of one more item in both arenas */
  size_t n_slots;
  struct change_log slots; /* of which items there are, and in which slots; touch it for whatever filters see and no
                            * other log covers */
  size_t high_slots;       /* slots that may use memory: the largest n_slots since memory was last given back */
  struct keys keys;
  struct backends *backends;  /* owned by the engine */
  struct arena_space *spaces; /* [n_spaces], with holes; ARENA_FOR_EACH_SPACE */
  size_t n_spaces;
  struct attribute_columns *attributes;
  struct device_attributes *copies[BACKENDS_MAX]; /* of the attributes; NULL: the backend keeps none */
  struct lifetimes lifetimes;                     /* with the epoch's time */
  uint64_t epoch;
  struct position *watermark; /* ordered by partition */
  size_t n_watermark;
  size_t watermark_capacity;
};

/* Skips backends that have failed: their columns stay as they are. */
#define ARENA_FOR_EACH_BACKEND(arena, b) \
  for (size_t b = atomic_load(&(arena)->backends->first); (b) < (arena)->backends->n; (b)++)

/* Return the first space in place i or a later one; NULL: there is none. */
static inline struct arena_space *arena_space_from(const struct arena *a, size_t i)
{
  while (i < a->n_spaces && !a->spaces[i].space)
    i++;
  return i < a->n_spaces ? &a->spaces[i] : NULL;
}

/* Skips holes. */
#define ARENA_FOR_EACH_SPACE(arena, s)                                                                     \
  for (struct arena_space *s /* NOLINT(bugprone-macro-parentheses) */ = arena_space_from((arena), 0); (s); \
       (s) = arena_space_from((arena), (size_t)((s) - (arena)->spaces) + 1))

/* What an arena is made for. The caller keeps it while the arena is in use. */
struct arena_plan {
  const struct space_table *spaces;
  const struct attributes *attributes;
  struct lifetimes_plan lifetimes;
  const struct kernels *kernels;
  const struct key_hash *hash;
  struct backends *backends;
  size_t capacity;
  size_t pair_bytes_per_item;
};

err_t arena_init(const struct arena_plan *plan, struct arena *out);
void arena_fini(struct arena *a);

/* Apply prepared changes in order and make them visible to searches that begin afterwards. The first arena of the pair
 * makes the text of each new key, the second takes the same; the caller then drops its references
 * (prepare_drop_texts()). Returns ERR_FULL, ERR_MEMORY or ERR_DEVICE. */
err_t arena_apply(struct arena *a, struct prepared_change *changes, size_t n);

/* Complete what was written to all columns, so that searches can see it. */
err_t arena_flush(struct arena *a);

/* What was written since the last call is this epoch. Both arenas of a pair get the same changes in the same epochs, so
 * their logs are the same. */
void arena_date(struct arena *a, uint64_t epoch);

/* Return ERR_FULL, with the setting and the bytes of an item. */
err_t arena_fail_full(const struct arena *a);

/* Advance the watermark to these positions. */
err_t arena_advance(struct arena *a, const struct position *positions, size_t n);

/* Clear the watermark: the arena has seen nothing of the log that follows. */
void arena_forget_watermark(struct arena *a);

/* Return the first offset of a partition that the arena has not seen, or 0 if it does not know the partition. */
int64_t arena_next(const struct arena *a, int32_t partition);

#endif
