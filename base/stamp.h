/* SPDX-License-Identifier: Apache-2.0 */
/* The epoch of the last change of something. A change is noted when it is made, and dated when the epoch that it
 * belongs to is known. */
#ifndef BASE_STAMP_H
#define BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

struct stamp {
  uint64_t epoch;  /* of the last change; 0: there was none */
  bool is_touched; /* changed since then */
};

static inline void stamp_touch(struct stamp *s)
{
  s->is_touched = true;
}

/* Changes since the last call belong to this epoch. */
static inline void stamp_date(struct stamp *s, uint64_t epoch)
{
  s->epoch = s->is_touched ? epoch : s->epoch;
  s->is_touched = false;
}

#endif
