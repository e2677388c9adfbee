/* SPDX-License-Identifier: Apache-2.0 */
/* Walking through all items of the live catalogue in small steps, while the store is written between the steps.
 *
 * The walk is in order of key, because items change their slots. It visits every item that is there from its beginning
 * to its end. One that is added meanwhile may be visited or not.
 *
 * Thread: as store_apply().
 */
#ifndef STORE_STORE_WALK_H
#define STORE_STORE_WALK_H

#include "store/store.h"

/* All zeros: before the first item. The fields are private but the first. */
struct store_walk {
  bool is_over; /* no items are left */
  uint8_t key[STORE_LMDB_KEY_MAX + 1];
  size_t key_bytes; /* the walk continues at the first key that is not below this */
};

/* Read the next items, at most `max`. They live in the region, which the caller resets.
 *
 * Returns ERR_STORE_CORRUPT with the key and slot of a damaged record; ERR_STORE; ERR_MEMORY. On error the walk stays.
 */
err_t store_walk_read(struct store *s, struct store_walk *walk, size_t max, struct region *region,
                      struct item_change **changes, size_t *n);

/* Remove the parts of a space from the next items, at most `max`, in one transaction. An item that has no parts left
 * stays. States that are kept aside are not visited.
 *
 * n          how many items were visited
 * n_removed  how many of them had such a part
 *
 * Returns the errors of store_walk_read(), and ERR_STORE_FULL: the caller may repeat the call. On error the walk stays,
 * and nothing of the step is stored.
 */
err_t store_walk_remove(struct store *s, struct store_walk *walk, size_t max, struct span space, size_t *n,
                        size_t *n_removed);

#endif
