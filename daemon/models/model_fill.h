/* SPDX-License-Identifier: Apache-2.0 */
/* The two walks through the store that a generation needs: giving the engine the parts that came before the model, and
 * deleting the parts of a retired generation.
 *
 * Thread: catalogue. Blocks: some milliseconds.
 */
#ifndef DAEMON_MODELS_MODEL_FILL_H
#define DAEMON_MODELS_MODEL_FILL_H

#include "base/region.h"
#include "daemon/models/model_entry.h"
#include "engine/engine.h"
#include "store/store.h"

/* Give the engine the entry's parts of the next items, in one epoch. The engine must have the generation, and the same
 * items as the store. Parts that the model cannot use are counted. entry->walk.is_over afterwards: that was all.
 *
 * region  reset
 */
err_t model_fill_step(struct model_entry *entry, struct engine *engine, struct store *store, struct region *region);

/* Delete the entry's parts of the next items from the store. Returns ERR_STORE_FULL; other errors of the store. */
err_t model_fill_remove_step(struct model_entry *entry, struct store *store);

#endif
