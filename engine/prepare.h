/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared changes: item changes with what the columns keep of their parts already computed, so that both arenas of the
 * pair get the same bytes and the item networks run once. */
#ifndef ENGINE_PREPARE_H
#define ENGINE_PREPARE_H

#include "base/item.h"
#include "base/region.h"
#include "engine/space.h"

/* The space of a part that no space of the engine can use: it is left alone. */
#define PREPARE_NO_SPACE SIZE_MAX

struct prepared_part {
  size_t space; /* index, or PREPARE_NO_SPACE */
  const uint8_t *bytes; /* as columns_ops.put takes it */
};

struct prepared_change {
  const struct item_change *change;
  struct prepared_part *parts; /* [change->n_parts] */
};

/* Index of a space by name; false when there is none. */
bool prepare_find_space(const struct space *spaces, size_t n_spaces, struct span name, size_t *out);

/* Prepare n changes whose parts were checked; parts of spaces that there are not are left out. `*out` [n] lives in the
 * region. */
err_t prepare_changes(const struct space *spaces, size_t n_spaces, const struct kernels *kernels,
                      const struct item_change *changes, size_t n, struct region *region, struct prepared_change **out);

#endif
