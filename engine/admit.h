/* Which items a query admits: those that have a part of its space and are not on its list of excluded keys. */
#ifndef ENGINE_ADMIT_H
#define ENGINE_ADMIT_H

#include "base/span.h"

struct admit {
  const uint8_t *has_part;   /* [n_slots] */
  const uint32_t *excluded;  /* slots, each has a part */
  size_t n_excluded;
};

static inline bool admit_slot(const struct admit *a, uint32_t slot)
{
  if (!a->has_part[slot])
    return false;
  for (size_t i = 0; i < a->n_excluded; i++) { /* asked only of slots whose score would enter: seldom */
    if (a->excluded[i] == slot)
      return false;
  }
  return true;
}

#endif
