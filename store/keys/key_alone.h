/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a change to a key that only one partition has: nearly every key. */
#ifndef STORE_KEY_ALONE_H
#define STORE_KEY_ALONE_H

#include "store/keys/key_context.h"

/* Apply a change.
 *
 * item    the key's item; NULL if it has none. An item of a lower log number comes from a forgotten log, so every
 *         record of the current log is newer
 * effect  set to the change
 */
err_t key_alone_apply(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                      enum store_effect *kind, struct item_change *effect);

#endif
