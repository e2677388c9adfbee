/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form of a state of a key: an item with its parts and attributes, or a tombstone.
 *
 *   header         seal, number of the log, offset, timestamp, partition, key size and flags, number of parts
 *   part headers   for each part, the sizes of vector, components, item gate, codes and space name
 *   numbers        f32 of all parts, in order; at a multiple of 4 bytes
 *   bytes          key, then the space name and codes of each part
 *   attributes     if a flag says so: see record_attributes.h
 *
 * A tombstone has no parts and no attributes. The time when it was applied follows its header.
 *
 * Numbers have the machine's byte order, as in LMDB's own pages. So a store can move only to a machine of the same byte
 * order.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "base/err.h"
#include "base/item.h"
#include "base/region.h"
#include "store/record/attribute_ids.h"

/* The fields of a record that applying a change needs, besides the parts. */
struct record_head {
  uint64_t log_number; /* of the log that it came from; offsets are comparable only within one log */
  int64_t offset;
  int64_t timestamp_ms;
  int32_t partition;
  bool is_tombstone;
  bool has_aside;          /* for an item: other partitions have states of its key, in table `aside` */
  int64_t applied_unix_ms; /* for a tombstone: when it was applied */
  struct span key;         /* points into the record */
};

/* Return ERR_ITEM if no item can have this key. */
err_t record_verify_key(struct span key);

/* Encode an item as a record in a region.
 *
 * ids  attributes that it does not have are not stored
 *
 * Returns ERR_OK; ERR_ITEM when the key is not 1..ITEM_KEY_MAX bytes long or the item is too large for a record.
 */
err_t record_encode(const struct item_change *item, uint64_t log_number, const struct attribute_ids *ids,
                    struct region *region, struct span *out);

/* Encode the tombstone of a delete. Returns the errors of record_encode(). */
err_t record_encode_tombstone(const struct item_change *item, uint64_t log_number, int64_t applied_unix_ms,
                              struct region *region, struct span *out);

/* Copy a record into a region, and set or clear its has_aside flag. */
err_t record_copy(struct span record, bool has_aside, struct region *region, struct span *out);

/* Verify a whole record, and read its head.
 *
 * Returns ERR_OK; ERR_STORE_CORRUPT with the reason when its seal or its sizes are wrong.
 */
err_t record_read_head(struct span record, struct record_head *out);

/* Decode a record into a whole item. The item lives in the region and does not point into the record, whose bytes may
 * be unaligned. A tombstone is an error.
 *
 * ids  it borrows the names of the attributes; stored values of other ids are skipped
 *
 * Returns the errors of record_read_head().
 */
err_t record_decode(struct span record, const struct attribute_ids *ids, struct region *region,
                    struct item_change *out);

#endif
