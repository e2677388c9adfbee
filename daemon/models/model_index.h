/* SPDX-License-Identifier: Apache-2.0 */
/* When the index of an added generation is built. Parts that come by the million are applied faster without one, and
 * searches, which scan meanwhile, are still exact. Once it is built, all later parts are inserted one by one. So it is
 * built when all parts are there, when most are and no more pour in, or when the generation is switched to: in steps
 * that updates can wait for (engine_build_index()).
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_INDEX_H
#define DAEMON_MODELS_MODEL_INDEX_H

#include "daemon/models/model_work.h"

/* Does a generation in the engine lack its index? */
bool model_index_is_lacking(const struct model_work *w, const struct model_entry *entry);

/* A fill has ended. Is the index built before anything else? Not if most of the parts are still to come. */
bool model_index_comes_first(const struct model_work *w, const struct model_entry *entry);

/* Look whether parts pour into generations that are ready and lack their index. Call it with each step. */
void model_index_look(struct model_work *w);

/* Return a ready generation whose index should be built now; NULL: there is none. */
struct model_entry *model_index_due(const struct model_work *w);

/* Does a generation that should answer wait for its index? */
bool model_index_is_awaited(const struct model_work *w);

/* Take one step. Errors as engine_build_index(). */
err_t model_index_step(struct model_work *w, const struct model_entry *entry);

/* Build the indexes of the generations that should answer, all at once: they answer from the first query after a load.
 * Errors as engine_build_index(). */
err_t model_index_build_wanted(struct model_work *w);

#endif
