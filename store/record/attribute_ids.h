/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of attributes in records. Table `meta` keeps the id, type and name of each configured attribute. An attribute
 * that leaves the configuration loses its id, and ids are never used twice. So what old records hold under it is never
 * read again, and an attribute that comes back starts absent.
 */
#ifndef STORE_ATTRIBUTE_IDS_H
#define STORE_ATTRIBUTE_IDS_H

#include "base/attributes.h"
#include "base/region.h"

struct attribute_ids {
  struct attributes attributes; /* as configured; owned */
  uint16_t ids[ATTRIBUTES_MAX]; /* [attributes.n] */
  uint32_t next;                /* the next new attribute gets this id */
};

void attribute_ids_fini(struct attribute_ids *a);

/* Return the index of the attribute with this id, or ATTRIBUTE_NONE. `hint` as in attributes_find(). */
size_t attribute_ids_find(const struct attribute_ids *a, uint16_t id, size_t hint);

/* Give every configured attribute its stored id, or a new one.
 *
 * stored  from attribute_ids_decode(); no attributes and `next` 0: nothing is stored yet
 *
 * Returns ERR_CONFIG if a type has changed, with the attribute, both types and the remedies; ERR_STORE if there are no
 * ids left; ERR_MEMORY.
 */
err_t attribute_ids_assign(const struct attribute_ids *stored, const struct attributes *configured,
                           struct attribute_ids *out);

/* Encode in the order of the ids: equal lists have equal bytes, in whatever order they are configured. Lives in the
 * region. */
err_t attribute_ids_encode(const struct attribute_ids *a, struct region *region, struct span *out);

/* Decode. Returns ERR_STORE_CORRUPT with the reason; ERR_MEMORY. */
err_t attribute_ids_decode(struct span bytes, struct attribute_ids *out);

#endif
