/* SPDX-License-Identifier: Apache-2.0 */
/* Which generation answers. The newest switch says which one should. Until that one is loaded and filled, and if it
 * cannot be, the switches before it are tried, down to the model of the configuration. So a daemon always answers with
 * a whole generation.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_SWITCHING_H
#define DAEMON_MODELS_MODEL_SWITCHING_H

#include "daemon/models/model_work.h"

/* Switch the spaces that another generation should answer now. Errors as engine_set_current(). */
err_t model_switching_step(struct model_work *w);

/* Return the generation that should answer queries for a space, by the newest switch. */
uint32_t model_switching_wanted(const struct model_work *w, size_t space);

/* Does a retired generation answer, whose parts may have been deleted? It does after a start at which the model of the
 * one that should answer cannot be loaded, if no other generation can. */
bool model_switching_lacks_parts(const struct model_work *w);

#endif
