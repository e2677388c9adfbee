/* SPDX-License-Identifier: Apache-2.0 */
/* Applying one change: the entry that chooses between the two kinds of keys. */
#ifndef STORE_KEY_APPLY_H
#define STORE_KEY_APPLY_H

#include "store/keys/key_context.h"

/* Apply a change.
 *
 * kind    what became of the change
 * effect  if kind is STORE_APPLIED: the change that the engine must apply
 *
 * Returns ERR_OK; ERR_ITEM when the key has an impossible size; ERR_STORE_CORRUPT; errors of writing.
 */
err_t key_apply(struct key_context *k, const struct item_change *change, enum store_effect *kind,
                struct item_change *effect);

#endif
