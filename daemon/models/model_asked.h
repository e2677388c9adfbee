/* SPDX-License-Identifier: Apache-2.0 */
/* What the state asks for, of the spaces of the configuration and their generations.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_ASKED_H
#define DAEMON_MODELS_MODEL_ASKED_H

#include "daemon/models/model_work.h"

/* Return the name of a space by its index. Borrowed from the configuration. */
struct span model_asked_name(const struct model_work *w, size_t space);

/* Return the index of a configured space; n_spaces: it is not configured. */
size_t model_asked_space(const struct model_work *w, struct span name);

/* Return what the state says about this generation, or NULL. */
const struct model_generation *model_asked_of(const struct model_work *w, const struct model_entry *entry);

/* Should this generation be there? */
bool model_is_asked_for(const struct model_work *w, const struct model_entry *entry);

#endif
