/* SPDX-License-Identifier: Apache-2.0 */
/* The slots whose items have a text: a set. Two slots lie in the struct. More are split into chunks of 65,536 slots.
 * A chunk with few slots is a sorted list, one with many is words of bits. A small set costs few bytes, a large one at
 * most a bit for each slot. Words for a stretch of slots come from its chunk alone.
 *
 * Source: the containers of Roaring bitmaps (Chambi, Lemire, Kaser, Godin: Better bitmap performance with Roaring
 * bitmaps, 2016).
 *
 * Thread: one that writes, or any that read.
 */
#ifndef ENGINE_ATTRIBUTES_TEXT_SLOTS_H
#define ENGINE_ATTRIBUTES_TEXT_SLOTS_H

#include "base/err.h"

enum {
  TEXT_SLOTS_FEW = 2,           /* slots that need no allocation */
  TEXT_SLOTS_CHUNK_WORDS = 1024 /* words of the 65,536 slots of a chunk */
};

struct slot_chunk;

/* All zeros: empty. */
struct text_slots {
  uint32_t n;        /* slots */
  uint32_t n_chunks; /* 0: the slots are in few[] */
  union {
    uint32_t few[TEXT_SLOTS_FEW];
    struct slot_chunk *chunks; /* ordered by slots */
  };
};

void text_slots_fini(struct text_slots *s);

/* Add a slot; nothing happens if the set has it. Returns ERR_MEMORY. Time: logarithmic, plus a move of at most 2 KiB.
 * The first slot of a chunk also moves the chunks after it, 24 bytes each. */
err_t text_slots_add(struct text_slots *s, uint32_t slot);

/* Remove a slot; nothing happens if the set does not have it. */
void text_slots_remove(struct text_slots *s, uint32_t slot);

/* The bits of slots 64*first..64*(first+n)-1, if they lie in the set as words. NULL: use text_slots_or(). The words
 * must be in one chunk: first / TEXT_SLOTS_CHUNK_WORDS = (first + n - 1) / TEXT_SLOTS_CHUNK_WORDS. Valid until the set
 * changes. */
const uint64_t *text_slots_words(const struct text_slots *s, size_t first, size_t n);

/* Set the bits of the set's slots among slots 64*first..64*(first+n)-1: bit s % 64 of words[s / 64 - first]. */
void text_slots_or(const struct text_slots *s, size_t first, size_t n, uint64_t *words);

#endif
