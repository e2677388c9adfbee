/* Inverted lists: for each sub-item of each split the slots that have it, kept as items come, change and go.
 *
 * A list is a chain of fixed-size chunks from one pool; only its head chunk is not full. Each slot remembers where it
 * stands in each list, so insert and delete are O(1) and touch a few cache lines; a delete moves the newest entry into
 * the hole. Nothing is ever rebuilt. The pool is reserved for the worst case: every list ends in a part-filled chunk.
 *
 * Thread: written by the owner of the arena's back side; read by any while it is in front.
 */
#ifndef ENGINE_POSTINGS_H
#define ENGINE_POSTINGS_H

#include "base/err.h"

enum { POSTINGS_CHUNK_SLOTS = 30 };

/* 128 bytes: two cache lines. */
struct postings_chunk {
  uint32_t n;
  uint32_t next; /* chunk behind this one, or POSTINGS_NONE */
  uint32_t slots[POSTINGS_CHUNK_SLOTS];
};

#define POSTINGS_NONE UINT32_MAX

struct postings {
  size_t n_lists;
  size_t capacity; /* slots */
  size_t n_splits;
  size_t n_subitems;
  size_t n_chunks;               /* of the pool */
  struct postings_chunk *chunks; /* pool */
  uint32_t *heads;               /* [n_splits * n_subitems] first chunk of each list */
  uint32_t *lengths;             /* [n_splits * n_subitems] slots of each list */
  uint32_t *places;              /* [capacity][n_splits] chunk * POSTINGS_CHUNK_SLOTS + entry */
  uint32_t free;                 /* chain of freed chunks */
  uint32_t n_used;               /* chunks ever taken */
};

err_t postings_init(size_t n_splits, size_t n_subitems, size_t capacity, struct postings *out);
void postings_fini(struct postings *p);

/* Bytes of one slot with all its lists, on average, when the pool is full. */
size_t postings_bytes_per_slot(size_t n_splits);

/* Put a slot into the lists of its codes [n_splits], or take it out. */
void postings_insert(struct postings *p, uint32_t slot, const uint8_t *codes);
void postings_remove(struct postings *p, uint32_t slot, const uint8_t *codes);

/* The slot `from`, which is in the lists, is called `to` from now on. */
void postings_rename(struct postings *p, uint32_t from, uint32_t to);

static inline size_t postings_list(const struct postings *p, size_t split, size_t subitem)
{
  return split * p->n_subitems + subitem;
}

#endif
