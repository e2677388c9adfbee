/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes in a record: their number in 2 bytes, then for each its id, a byte for the kind of its value, and the
 * value.
 *
 *   bool             1 byte, 0 or 1
 *   integer, number  8 bytes
 *   text             its length in 2 bytes, then the text
 *   list of texts    their number in 2 bytes, then each as above
 *
 * Private to the files of store/record/record.h.
 */
#ifndef STORE_RECORD_ATTRIBUTES_H
#define STORE_RECORD_ATTRIBUTES_H

#include "base/item.h"
#include "store/record/attribute_ids.h"

/* Return the bytes that the attributes of an item take. Values of null, and attributes without an id, take none. 0: no
 * section. */
size_t record_attributes_bytes(const struct item_change *item, const struct attribute_ids *ids);

/* Write them. Returns the end. Values must be in their kept form. */
uint8_t *record_attributes_put(const struct item_change *item, const struct attribute_ids *ids, uint8_t *to);

/* Verify a section: its sizes, and the limits of attributes (base/value.h). Returns ERR_STORE_CORRUPT with the reason.
 */
err_t record_attributes_verify(struct span section);

/* Read a verified section; n = 0: there is none. Values of ids that no longer exist are skipped.
 *
 * out  attributes and their number; they borrow the section and the names of `ids`, and live in the region
 *
 * Returns ERR_STORE_CORRUPT for a value that is not of its attribute's type; ERR_MEMORY.
 */
err_t record_attributes_take(struct span section, const struct attribute_ids *ids, struct region *region,
                             struct item_change *out);

#endif
