/* SPDX-License-Identifier: Apache-2.0 */
/* The items that a query admits: those that have a part of its space, are alive, pass its filter, and are not on its
 * list of excluded keys. */
#ifndef ENGINE_ADMIT_H
#define ENGINE_ADMIT_H

#include "base/bits.h"
#include "base/region.h"
#include "engine/keys/late_keys.h"
#include "kernels/filter_program.h"

struct admit {
  const uint64_t *words;    /* bit s: slot s has a part, is alive and passes the filter. Bits from n_slots on are 0 */
  uint64_t words_id;        /* words with the same id are the same, as long as the engine is open; 0: unknown */
  const uint32_t *excluded; /* slots in rising order; the bit of each is set. Other excluded slots have no bit */
  size_t n_excluded;
  uint64_t n_admitted; /* admitted slots; those of late keys count too */
  /* Not NULL: the device makes the words, by this program, and `words` is NULL. Until the search has counted,
   * n_admitted is at least the number of admitted slots. */
  const struct filter_program *program;
  const struct late_keys *late; /* excluded keys that the slots above do not have; NULL: there are none */
  bool admits_all;              /* every slot of the arena is admitted; words need not be read */
  bool admits_parts;            /* every slot that has a part is admitted */
};

/* Is a slot in the list of excluded ones? */
static inline bool admit_excludes(const struct admit *a, uint32_t slot)
{
  size_t low = 0, high = a->n_excluded;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (a->excluded[middle] == slot)
      return true;
    if (a->excluded[middle] < slot)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

/* Is a slot admitted, as far as late keys do not matter? There are words. */
static inline bool admit_but_late(const struct admit *a, uint32_t slot)
{
  return bits_get(a->words, slot) && !admit_excludes(a, slot);
}

/* Is a slot that passes the former admitted? */
static inline bool admit_late(const struct admit *a, uint32_t slot)
{
  return !a->late || !late_keys_exclude(a->late, slot);
}

static inline bool admit_slot(const struct admit *a, uint32_t slot)
{
  return admit_but_late(a, slot) && admit_late(a, slot);
}

/* Do the words leave out slots that have a part? n_items: slots that have one. */
static inline bool admit_leaves_out(const struct admit *a, uint64_t n_items)
{
  return a->n_admitted + a->n_excluded < n_items;
}

#endif
