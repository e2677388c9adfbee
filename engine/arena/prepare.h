/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared changes: item changes together with the bytes that the columns keep of their parts. They are computed once,
 * so the item networks run once and both arenas of the pair get the same bytes. */
#ifndef ENGINE_PREPARE_H
#define ENGINE_PREPARE_H

#include "base/attributes.h"
#include "base/item.h"
#include "base/region.h"
#include "engine/arena/space_table.h"
#include "engine/keys/key_text.h"
#include "engine/team/team.h"

/* A part as one space keeps it. */
struct prepared_part {
  size_t space;            /* its place */
  const struct part *part; /* NULL: the space refuses it, and has no part of the item afterwards */
  const uint8_t *bytes;    /* in the format of columns_ops.put; NULL: the same */
};

struct prepared_change {
  const struct item_change *change;
  struct prepared_part *parts; /* [n_parts] one for each space that uses a part of the change */
  size_t n_parts;
  size_t *attributes;    /* [change->n_attributes] index of the attribute, or ATTRIBUTE_NONE: it is ignored */
  struct key_text *text; /* of a key that an arena did not have; made by the first arena, shared by the second */
};

/* What the changes are prepared for. */
struct prepare_target {
  const struct space_table *spaces;
  const struct attributes *attributes;
  const struct kernels *kernels;
  struct team *team; /* its idle helpers prepare parts, too; NULL: none do */
  size_t only;       /* the place of the only space that gets parts; SPACE_TABLE_NONE: all do */
};

/* Prepare n changes whose parts and attributes have been checked. Parts that no space uses and unknown attributes are
 * ignored. If several spaces use a part, each checks it again, and counts what it refuses. `*out` [n] lives in the
 * region. Returns ERR_MEMORY. */
err_t prepare_changes(const struct prepare_target *target, const struct item_change *changes, size_t n,
                      struct region *region, struct prepared_change **out);

/* Drop the texts of keys when all arenas have the changes. */
void prepare_drop_texts(struct prepared_change *changes, size_t n);

#endif
