/* SPDX-License-Identifier: Apache-2.0 */
/* When the index of an added generation is built. Parts that come by the million are applied two to three times as fast
 * without one, and searches, which scan meanwhile, are still exact. So it is built afterwards, in steps that updates
 * can wait for (engine_build_index()).
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_INDEX_H
#define DAEMON_MODELS_MODEL_INDEX_H

#include "daemon/models/model_work.h"

/* A fill has ended. Does the generation lack its index, and are most of its parts there? If not, they are still to
 * come, and the index after them. */
bool model_index_pays(const struct model_work *w, const struct model_entry *entry);

/* Look whether parts still pour into generations that are ready and have no index. Call it with each step. */
void model_index_look(struct model_work *w);

/* Return a ready generation whose index should be built now: no parts pour into it, or it answers. NULL: there is none.
 */
struct model_entry *model_index_due(const struct model_work *w);

/* Take one step. Errors as engine_build_index(). */
err_t model_index_step(struct model_work *w, const struct model_entry *entry);

#endif
