/* SPDX-License-Identifier: Apache-2.0 */
/* The entries follow the state: each generation that it names gets one, with the file that it should be loaded from.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_FOLLOW_H
#define DAEMON_MODELS_MODEL_FOLLOW_H

#include "daemon/models/model_work.h"

/* Let the entries follow the state. A model that is loaded stays, because its parts were made for it. */
err_t model_follow_state(struct model_work *w);

/* Give an entry the file and the root that the state names. */
err_t model_follow_set_file(const struct model_work *w, struct model_entry *entry,
                            const struct model_generation *asked);

/* Is the entry's root the one that the state names? */
bool model_follow_has_root(const struct model_work *w, const struct model_entry *entry);

#endif
