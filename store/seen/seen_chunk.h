/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk: some consecutive items of a user's log, each with the time at which it was seen. It is the value of one row,
 * small enough that LMDB keeps it in a page with others. */
#ifndef STORE_SEEN_CHUNK_H
#define STORE_SEEN_CHUNK_H

#include "base/err.h"
#include "base/item.h"
#include "base/span.h"

enum { SEEN_CHUNK_ITEMS = 64, SEEN_CHUNK_BYTES = 1760 };

struct seen_item {
  struct span key; /* 1..ITEM_KEY_MAX bytes */
  int64_t time_unix_ms;
};

/* All zeros: empty. */
struct seen_chunk {
  uint64_t n_before; /* at least as many items as the user's older chunks have */
  int64_t newest_unix_ms;
  size_t n;
  size_t bytes;                             /* of the stored items */
  struct seen_item items[SEEN_CHUNK_ITEMS]; /* oldest first */
};

/* Is there room for one more item? */
bool seen_chunk_has_room(const struct seen_chunk *c, struct span key);

/* Add an item, for which there is room. Its key is not copied. */
void seen_chunk_push(struct seen_chunk *c, struct seen_item item);

/* Remove an item, if the chunk has it. Returns false if not.
 *
 * out  the removed item
 */
bool seen_chunk_take(struct seen_chunk *c, struct span key, struct seen_item *out);

/* Write the stored form. Returns its size.
 *
 * out  [SEEN_CHUNK_BYTES]
 */
size_t seen_chunk_encode(const struct seen_chunk *c, uint8_t *out);

/* Read the stored form. The keys point into it. Returns false if it is damaged. */
bool seen_chunk_decode(struct span value, struct seen_chunk *out);

/* Read only the number of items and the newest time. Returns false if the value is damaged. */
bool seen_chunk_decode_head(struct span value, size_t *n, int64_t *newest_unix_ms);

#endif
