/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form of an item, or of what one partition says of it.
 *
 *   header         seal, generation, offset, timestamp, partition, size of the key and marks, number of parts
 *   part header    sizes of vector, components, item gate, codes and name; one for each part
 *   numbers        f32 of all parts, in order; here, where they are aligned to 4
 *   bytes          key, then the name and codes of each part
 *
 * A tombstone has no parts; behind its header comes the time when it was applied.
 *
 * Numbers are in the machine's own byte order, as LMDB's own pages are: a store moves between like machines only.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "base/err.h"
#include "base/item.h"
#include "base/region.h"

/* What applying a change needs to know of the stored item. */
struct record_head {
  uint64_t generation; /* of the log: offsets compare within one only */
  int64_t offset;
  int64_t timestamp_ms;
  int32_t partition;
  bool is_tombstone;
  bool has_aside;          /* of an item: other partitions have states of its key, in table `aside` */
  int64_t applied_unix_ms; /* of a tombstone */
  struct span key;         /* valid as long as the record's bytes */
};

/* Encode an item as a record, in a region.
 *
 * Returns ERR_OK; ERR_ITEM when the key is not 1..ITEM_KEY_MAX bytes long or the item is larger than a record can be.
 */
err_t record_encode(const struct item_change *item, uint64_t generation, struct region *region, struct span *out);

/* Encode the tombstone that a delete leaves. Errors as above. */
err_t record_encode_tombstone(const struct item_change *item, uint64_t generation, int64_t applied_unix_ms,
                              struct region *region, struct span *out);

/* Copy a record into a region, with or without the mark that there are states aside. */
err_t record_copy(struct span record, bool has_aside, struct region *region, struct span *out);

/* Check the whole record, and read its head.
 *
 * Returns ERR_OK; ERR_STORE_CORRUPT with the reason when its seal or its sizes are wrong.
 */
err_t record_read_head(struct span record, struct record_head *out);

/* Decode a record, not a tombstone, into a whole item that lives in the region: nothing in it points to the record's
 * bytes, which may be unaligned.
 *
 * Returns as record_read_head() does.
 */
err_t record_decode(struct span record, struct region *region, struct item_change *out);

#endif
