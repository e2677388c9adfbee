/* SPDX-License-Identifier: Apache-2.0 */
/* Which generation takes the next step of its walk through the store, and how many items the step has.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_WALKS_H
#define DAEMON_MODELS_MODEL_WALKS_H

#include "daemon/models/model_work.h"

/* Take one step: fill a generation, build an index, or delete the parts of a retired generation. Parameters and errors
 * as model_work_step(). */
err_t model_walks_step(struct model_work *w, bool may_fill, const struct model_entry **removed);

/* Is there another step that can be taken now? */
bool model_walks_are_due(const struct model_work *w, bool may_fill);

#endif
