/* SPDX-License-Identifier: Apache-2.0 */
/* The items that a query admits: those that have a part of its space and are not on its list of excluded keys. */
#ifndef ENGINE_ADMIT_H
#define ENGINE_ADMIT_H

#include "base/span.h"

struct admit {
  const uint8_t *has_part;  /* [n_slots] */
  const uint32_t *excluded; /* slots in rising order; each has a part */
  size_t n_excluded;
  bool admits_all; /* every slot of the arena is admitted; has_part need not be read */
};

static inline bool admit_slot(const struct admit *a, uint32_t slot)
{
  if (!a->has_part[slot])
    return false;
  size_t low = 0, high = a->n_excluded;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (a->excluded[middle] == slot)
      return false;
    if (a->excluded[middle] < slot)
      low = middle + 1;
    else
      high = middle;
  }
  return true;
}

#endif
