/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a model's file in a thread of its own: it takes seconds, and the catalogue goes on meanwhile.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_LOADING_H
#define DAEMON_MODELS_MODEL_LOADING_H

#include <stdatomic.h>

#include "base/errand.h"
#include "base/model_change.h"
#include "engine/engine_spaces.h"

/* All zeros: none is under way. It must not move while one is. */
struct model_loading {
  bool is_under_way;
  _Atomic bool is_done;
  bool has_thread;
  struct engine_space space; /* path and digest are in the fields below */
  char path[MODEL_PATH_MAX + 1];
  char digest[MODEL_DIGEST_CHARS + 1]; /* that the file must have */
  struct engine_model *model;
  struct errand errand;
};

/* Begin to load a file. Without a thread, the file is loaded before this returns.
 *
 * space   its name is borrowed until the end; its path is not used
 * path    at most MODEL_PATH_MAX bytes
 * digest  MODEL_DIGEST_CHARS hex digits
 */
void model_loading_begin(struct model_loading *l, const struct engine_space *space, const char *path,
                         const char *digest);

/* Take the model, if loading has ended. Otherwise *is_done is false.
 *
 * Returns ERR_MODEL with the reason when the file cannot be used or has another digest; ERR_FULL when there is no
 * memory to load it; ERR_SYSTEM.
 */
err_t model_loading_end(struct model_loading *l, bool *is_done, struct engine_model **out);

/* Wait until loading has ended, and drop the model. */
void model_loading_drop(struct model_loading *l);

#endif
