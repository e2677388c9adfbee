/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a change to a key that several partitions have, or had: the rule of store.h for one key in several
 * partitions. */
#ifndef STORE_KEY_STATES_H
#define STORE_KEY_STATES_H

#include "store/keys/key_context.h"

/* Apply a change.
 *
 * item    NULL: there is none. Its record may move while the change is applied
 * effect  if *kind is STORE_APPLIED: the change that the engine must apply
 */
err_t key_states_apply(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                       enum store_effect *kind, struct item_change *effect);

#endif
