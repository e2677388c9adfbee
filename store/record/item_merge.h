/* SPDX-License-Identifier: Apache-2.0 */
/* Merging a put into the stored item: the put's parts replace those of the same spaces, its attributes those of the
 * same names, and all others stay. An attribute that is null in the put is removed. */
#ifndef STORE_ITEM_MERGE_H
#define STORE_ITEM_MERGE_H

#include "base/err.h"
#include "base/item.h"
#include "base/region.h"

/* Merge a put into a stored item. Takes time linear in the number of parts.
 *
 * stored  its spaces and attributes are distinct; without both if there is no stored item
 * change  where it names a space or an attribute twice, the later one counts
 * out     the change with the merged parts and attributes: kept stored ones first, then the change's, each in their
 *         order. The arrays live in the region; the bytes of parts and values are not copied
 *
 * Returns ERR_OK; ERR_MEMORY.
 */
err_t item_merge(const struct item_change *stored, const struct item_change *change, struct region *region,
                 struct item_change *out);

#endif
