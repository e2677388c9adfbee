/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes: which slots hold an item that is expired or embargoed at the epoch's time, and when that changes next.
 *
 * Two attributes of type `time` say when an item's life begins and ends. There is no queue of moments. Each block of
 * slots has a lower bound of the next moment at which one of its slots changes. A write lowers the bound. When the
 * moment has come, the block is scanned, which makes the bound exact again. So a million items that expire together
 * cost a scan, and a bound that a delete or a renewal has left too early costs a scan of one block.
 */
#ifndef ENGINE_LIFETIMES_H
#define ENGINE_LIFETIMES_H

#include "base/attributes.h"
#include "engine/attributes/attribute_columns.h"

enum { LIFETIMES_BLOCK_WORDS = 8, LIFETIMES_BLOCK_SLOTS = 64 * LIFETIMES_BLOCK_WORDS };

/* Two bits of a slot and its share of a block, rounded up. */
enum { LIFETIMES_BYTES_PER_SLOT = 1 };

/* The attributes that say when an item's life begins and ends. ATTRIBUTE_NONE: nothing says so. */
struct lifetimes_plan {
  size_t not_before; /* embargoed before this moment; an item without it is not embargoed */
  size_t expires;    /* expired from this moment on; an item without it does not expire */
};

/* Find attributes by their names; NULL or "": none. Returns ERR_CONFIG if there is no such attribute, or if its type is
 * not `time`. */
err_t lifetimes_plan_make(const struct attributes *attributes, const char *not_before, const char *expires,
                          struct lifetimes_plan *out);

static inline bool lifetimes_plan_is_empty(const struct lifetimes_plan *plan)
{
  return plan->not_before == ATTRIBUTE_NONE && plan->expires == ATTRIBUTE_NONE;
}

/* Verify a time of an item, if the plan names its attribute: one in seconds would be taken for one in January or
 * February 1970, and the item would expire unnoticed.
 *
 * name  name of the attribute
 *
 * Returns ERR_ITEM with the time that was probably meant. Thread: any. */
err_t lifetimes_verify_unit(const struct lifetimes_plan *plan, size_t attribute, struct span name, int64_t time_ms);

struct lifetimes {
  struct lifetimes_plan plan; /* if it is empty, there is nothing below */
  size_t capacity;
  int64_t time_ms;     /* the epoch's time, in milliseconds since 1970 */
  uint64_t *expired;   /* a bit for each slot of the capacity */
  uint64_t *embargoed; /* the same; a slot is never in both */
  uint64_t n_expired;
  uint64_t n_embargoed;
  int64_t *bounds_ms; /* [blocks] no slot of the block changes before; 0: none changes */
  int64_t next_ms;    /* no slot changes before; INT64_MAX: none changes */
};

/* Reserve bits and bounds for `capacity` slots. Returns ERR_MEMORY. */
err_t lifetimes_init(const struct lifetimes_plan *plan, size_t capacity, struct lifetimes *out);
void lifetimes_fini(struct lifetimes *l);

/* Return the slots of a word that are expired or embargoed. */
static inline uint64_t lifetimes_dead(const struct lifetimes *l, size_t word)
{
  return l->expired[word] | l->embargoed[word];
}

/* Note that the attributes of a slot may have changed. */
void lifetimes_look(struct lifetimes *l, const struct attribute_columns *columns, uint32_t slot);

/* Is a block to be scanned at the epoch's time? */
static inline bool lifetimes_is_due(const struct lifetimes *l, size_t block)
{
  return l->bounds_ms[block] != 0 && l->bounds_ms[block] <= l->time_ms;
}

/* Find the slots of a block that are expired or embargoed now, and make its bound exact. Returns whether a slot has
 * changed. */
bool lifetimes_scan(struct lifetimes *l, const struct attribute_columns *columns, size_t block);

/* Make all blocks of n_slots slots due: their attributes were loaded. */
void lifetimes_look_at_all(struct lifetimes *l, size_t n_slots);

/* Make next_ms as late as the bounds of n_slots slots allow. */
void lifetimes_find_next(struct lifetimes *l, size_t n_slots);

/* Give back the memory of slots from..to-1, which have no items. No slot from `to` on has had one since the last call.
 */
void lifetimes_trim(struct lifetimes *l, size_t from, size_t to);

#endif
