/* SPDX-License-Identifier: Apache-2.0 */
/* The names of an item's parts: which generation each belongs to. It is decided once, when a record is read, by the
 * record's own time. So reading the topic again gives the same items.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_PART_NAMES_H
#define DAEMON_MODELS_PART_NAMES_H

#include "base/item.h"
#include "base/region.h"
#include "daemon/models/model_state.h"

/* Give each part the canonical name of its generation, or of the root of a derived one. A plain name means the
 * generation that was current at the record's time. Names that are none of a generation stay as they are.
 *
 * models  NULL: a plain name means the first generation
 * region  new names live here
 *
 * Returns ERR_ITEM if two parts get one name, or a name becomes too long; ERR_MEMORY.
 */
err_t part_names_resolve(const struct model_state *models, struct region *region, struct item_change *change);

/* Is it the canonical name of parts that nobody uses any more, because their generation was retired, and all that
 * derive from it? `models` may be NULL. */
bool part_names_is_retired(const struct model_state *models, struct span canonical);

#endif
