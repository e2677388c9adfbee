/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of a filter are made from: the changes of all that it sees in an arena. */
#ifndef ENGINE_FILTER_SIGHT_H
#define ENGINE_FILTER_SIGHT_H

#include "engine/arena/arena.h"

enum { FILTER_SIGHT_LOGS = ATTRIBUTES_MAX + 2 };

struct filter_sight {
  const struct change_log *logs[FILTER_SIGHT_LOGS]; /* [n] of slots, of the parts of a space, of named attributes */
  size_t n;
  uint64_t version;     /* the last epoch that changed one of them. Arenas with equal versions admit the same slots */
  uint64_t known_since; /* the changes of later epochs are listed */
};

/* Find what a filter sees of a space. NULL: no filter. Valid while the arena is in front. */
void filter_sight_look(const struct arena *arena, size_t space, const struct filter_node *filter,
                       struct filter_sight *out);

/* How many changes are listed of epochs after `since`, which is not before known_since? */
size_t filter_sight_count(const struct filter_sight *s, uint64_t since);

#endif
