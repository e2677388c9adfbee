/* SPDX-License-Identifier: Apache-2.0 */
/* The two walks through the store that a generation needs: giving the engine the parts that came before the model, and
 * deleting the parts of a retired generation.
 *
 * Thread: catalogue. Blocks: some tenths of a second; model_fill_pace() bounds it.
 */
#ifndef DAEMON_MODELS_MODEL_FILL_H
#define DAEMON_MODELS_MODEL_FILL_H

#include "base/region.h"
#include "daemon/models/model_entry.h"
#include "engine/engine.h"
#include "store/store.h"

/* Give the entry's generation its parts of the next items, and no other that uses them, in one epoch. The engine must
 * have the generation, and the same items as the store. Parts that the model cannot use are counted.
 * entry->walk.is_over afterwards: that was all.
 *
 * max     how many items
 * region  reset
 */
err_t model_fill_step(struct model_entry *entry, struct engine *engine, struct store *store, size_t max,
                      struct region *region);

enum { FILL_ITEMS_MIN = 2048, FILL_ITEMS_MAX = 16384, REMOVE_ITEMS_MAX = 8192 };

/* Return how many items the next step should have, from FILL_ITEMS_MIN to `max`. Each step waits once for the searches
 * that run, or for a commit, so large steps are faster in all. But updates of the catalogue wait for a step. So a step
 * should take one to three tenths of a second.
 *
 * n        items of the last step; FILL_ITEMS_MIN for the first one
 * took_ms  its time
 */
size_t model_fill_pace(size_t n, size_t max, int64_t took_ms);

/* Delete the entry's parts of the next items from the store, `max` at most. Returns ERR_STORE_FULL; other errors of the
 * store. */
err_t model_fill_remove_step(struct model_entry *entry, struct store *store, size_t max);

#endif
