/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a model's file in a thread of its own: it takes seconds, and the catalogue goes on meanwhile.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_LOADING_H
#define DAEMON_MODELS_MODEL_LOADING_H

#include "daemon/models/model_entry.h"
#include "engine/engine_spaces.h"

struct model_load;

/* All zeros: none is under way. */
struct model_loading {
  bool is_under_way;
  struct model_load *load;   /* owned; NULL: none is under way */
  struct model_entry *entry; /* whose file is being loaded */
};

/* Begin to load the file of an entry, whose path and digest are copied. Without a thread, the file is loaded before
 * this returns.
 *
 * space  its name is copied; its path is not used
 * are_there_searches  they come first: the thread has a low priority
 *
 * Returns ERR_MEMORY: then nothing has begun.
 */
err_t model_loading_begin(struct model_loading *l, const struct engine_space *space, struct model_entry *entry,
                          bool are_there_searches);

/* Is the file of this entry being loaded? */
bool model_loading_is_of(const struct model_loading *l, const struct model_entry *entry);

/* Take the model, if loading has ended. Otherwise *is_done is false.
 *
 * Returns ERR_MODEL with the reason when the file cannot be used or has another digest; ERR_FULL when there is no
 * memory to load it; ERR_SYSTEM.
 */
err_t model_loading_end(struct model_loading *l, bool *is_done, struct engine_model **out);

/* Drop the load, because the process is about to end. Loading that takes longer than a moment is left behind: it cannot
 * be interrupted, and its file system may hang. errand_n_left() counts it then. */
void model_loading_drop(struct model_loading *l);

#endif
