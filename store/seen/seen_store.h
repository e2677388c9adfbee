/* SPDX-License-Identifier: Apache-2.0 */
/* The seen store: which items each user has seen, and the positions of the topic that says so, changed together in one
 * transaction of an LMDB environment of its own. So its writer never waits for the catalogue's.
 *
 * For each user it keeps the max_per_user items that were recorded last, and up to an eighth more. An item that is
 * older than the time to live counts as not seen; seen_store_sweep() frees it. The same record may be applied again:
 * that changes nothing but the order in which items are dropped.
 *
 * After any crash it is exactly what the changes below its positions made of it, as with the store of items
 * (store/store.h). The same holds for full disks, for damage, and for tools that read.
 *
 * Thread: one makes all calls; seen_store_read() and seen_store_stats() from any.
 */
#ifndef STORE_SEEN_STORE_H
#define STORE_SEEN_STORE_H

#include "base/region.h"
#include "base/seen_change.h"
#include "store/seen/seen_keys.h"
#include "store/store_position.h"

struct seen_store;

struct seen_store_limits {
  uint64_t max_per_user;
  int64_t ttl_ms; /* 0: for ever */
};

/* Open the store in a directory, or create it. Its parent must exist. Errors as store_open(). */
err_t seen_store_open(const char *path, const struct seen_store_limits *limits, struct seen_store **out);
void seen_store_close(struct seen_store **s);

/* Apply changes in order, and commit them with the positions in one transaction. A position is ignored if it is below
 * the stored one of its partition. Returns the same errors as store_apply(): then nothing is stored. */
err_t seen_store_apply(struct seen_store *s, const struct seen_change *changes, size_t n,
                       const struct store_position *positions, size_t n_positions);

/* Return the positions, in order of partition. Valid until the next seen_store_apply() or
 * seen_store_forget_positions(). */
const struct store_position *seen_store_positions(const struct seen_store *s, size_t *n);

/* Return the one of a partition; NULL: there is none. Valid as long as seen_store_positions(). */
const struct store_position *seen_store_find_position(const struct seen_store *s, int32_t partition);

/* Forget the positions, but keep what users have seen: the topic is another one. */
err_t seen_store_forget_positions(struct seen_store *s);

/* Free expired items: look at the next `max` chunks. Each round begins with the first user.
 *
 * is_round_done  the last user was reached
 */
err_t seen_store_sweep(struct seen_store *s, size_t max, bool *is_round_done);

/* Read the keys of the items that a user has seen. They live in the region.
 *
 * first_chunk  SEEN_WHOLE_LOG; or out->newest_chunk of an earlier read from this store: read what has changed since
 *
 * Returns ERR_STORE_CORRUPT; ERR_STORE; ERR_MEMORY. Thread: any. Blocks: while the store's map grows. */
err_t seen_store_read(struct seen_store *s, struct span user, uint64_t first_chunk, struct region *region,
                      struct seen_keys *out);

/* Has an item that was seen at this time expired? Thread: any. */
bool seen_store_is_expired(const struct seen_store *s, int64_t time_unix_ms);

struct seen_store_stats {
  uint64_t n_users;
  uint64_t n_items;    /* of all users; an item that is kept twice for one user counts twice */
  uint64_t used_bytes; /* used part of the map */
};
void seen_store_stats(const struct seen_store *s, struct seen_store_stats *out);

#endif
