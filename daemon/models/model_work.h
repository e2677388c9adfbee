/* SPDX-License-Identifier: Apache-2.0 */
/* Doing what the control topic asks for: each generation is loaded, filled, switched to and removed, one step at a time
 * between the batches of the catalogue.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_WORK_H
#define DAEMON_MODELS_MODEL_WORK_H

#include "base/stand_back.h"
#include "daemon/config/config.h"
#include "daemon/models/model_entries.h"
#include "daemon/models/model_fetching.h"
#include "daemon/models/model_loading.h"
#include "daemon/models/model_state.h"
#include "daemon/models/switch_board.h"

struct model_work {
  const struct config *config;
  struct engine *engine;
  struct store *store;
  const struct model_state *state;
  struct model_entries entries;
  struct model_fetching fetching; /* see model_work_fetch_from() */
  uint64_t n_followed;            /* of state->n_applied, when all entries were last compared with the state */
  bool must_sweep;                /* there may be model files that nobody needs */
  struct model_loading loading;
  uint32_t *current;               /* [config->n_spaces] the generation that answers */
  struct switch_board *switches;   /* learns of each switch before it is done; NULL: nobody needs it */
  size_t fill_items, remove_items; /* of the next step of a fill, and of deletes */
  int64_t remove_due_ns;           /* no deletes from the store before this: its disk was full */
  struct stand_back *stand_back;   /* of the thread: fills, indexes and removals can wait; NULL: they do not */
  struct region region;
};

/* Perhaps nobody needs a file any more: look soon. */
static inline void model_work_sweep_soon(struct model_work *w)
{
  w->must_sweep = w->fetching.config != NULL;
}

/* Begin with the generations with which the engine was opened.
 *
 * state  knows those that are not the model of the configuration; read at each step; must outlive the work
 */
err_t model_work_init(const struct config *config, struct engine *engine, struct store *store,
                      const struct model_state *state, struct model_work *out);
void model_work_fini(struct model_work *w);

/* Fetch model files with a consumer of these properties, which must outlive the work. Without this call no file can be
 * fetched. */
void model_work_fetch_from(struct model_work *w, const struct kafka_layers *layers);

/* Note that the parts of a retired generation are deleted already. */
err_t model_work_note_removed(struct model_work *w, struct span space, uint32_t generation);

/* Do a little: look at what the state asks for, take a loaded model, fill, index or remove for a tenth of a second,
 * switch.
 *
 * may_fill  the engine has the items that the store has
 * is_busy   there is more to do that need not wait for anything
 * removed   a generation whose parts have just been deleted; NULL: none
 *
 * Returns an error of the store or the engine. What is wrong with a model is a problem of its entry instead.
 */
err_t model_work_step(struct model_work *w, bool may_fill, bool *is_busy, const struct model_entry **removed);

/* Is a generation being loaded, or to be loaded? One whose file could not be fetched does not count. */
bool model_work_is_loading(const struct model_work *w);

/* The engine is about to be loaded from the store: the parts that no model can use are counted anew. */
void model_work_note_loading(struct model_work *w);

/* Count such a part, for each generation that uses it; the calling thread's newest failure says why.
 *
 * part  its canonical name
 * key   of the item
 *
 * Thread: any, one at a time, while the catalogue thread loads the engine. */
void model_work_note_unusable(struct model_work *w, struct span part, struct span key);

/* A record of the catalogue was refused because no generation that uses this part of it can: count it for each of them;
 * the calling thread's newest failure says why. Parameters as above. */
void model_work_note_refused(struct model_work *w, struct span part, struct span key);

/* The engine was loaded from the store, with all generations that it has: those that were being filled are ready,
 * those that should answer do so from now on, and those that were retired have left it. Errors as
 * engine_set_current() and engine_remove_space(). */
err_t model_work_note_loaded(struct model_work *w);

/* Can this change wait, because it does not change what current generations answer? That is so if it only adds parts
 * that none of them uses. Who waits for its position, or asks for a generation by name, waits with it. */
bool model_work_can_wait(const struct model_work *w, const struct item_change *change);

#endif
