/* SPDX-License-Identifier: Apache-2.0 */
/* The version of what a filter sees of a space: the last epoch that changed it. */
#ifndef TESTS_SUPPORT_FILTER_VERSION_H
#define TESTS_SUPPORT_FILTER_VERSION_H

#include "engine/admission/filter_sight.h"

static inline uint64_t filter_version(const struct arena *arena, size_t space, const struct filter_node *filter)
{
  struct filter_sight sight;

  filter_sight_look(arena, space, filter, &sight);
  return sight.version;
}

#endif
