/* SPDX-License-Identifier: Apache-2.0 */
/* What users have seen, as sets of keys for their queries. The sets of the users who asked last are kept until an
 * item expires, so that a user who asks again costs nothing. What the user has seen meanwhile is read and added. How
 * many they are depends on what they take in memory.
 *
 * Thread: any. The lock is never held while the store is read. */
#ifndef DAEMON_QUERIES_SEEN_SETS_H
#define DAEMON_QUERIES_SEEN_SETS_H

#include "daemon/seen/seen.h"
#include "engine/keys/key_set.h"

/* What the daemon keeps: some 1,600 users who have seen 1,000 items with keys of 5 bytes each. */
enum { SEEN_SETS_BYTES = 64 << 20 };

struct seen_sets;
struct seen_set;

/* hash       of the engine, borrowed
 * max_bytes  limit on all kept sets together. The least recently used ones go first. One that would take more than an
 *            eighth of it is not kept. Sets that are held take memory beyond it.
 *
 * Returns ERR_MEMORY. */
err_t seen_sets_open(struct seen *seen, const struct key_hash *hash, size_t max_bytes, struct seen_sets **out);

/* Nobody may hold a set. */
void seen_sets_close(struct seen_sets **s);

/* Find what a user has seen, or read it, and hold it.
 *
 * region  scratch, and for a set that is not kept
 * held    to be released; NULL: the set lives in the region
 *
 * Errors as seen_read(). Nothing is held then. Allocates: a set that was not found.
 */
err_t seen_sets_acquire(struct seen_sets *s, struct span user, struct region *region, const struct key_set **set,
                        struct seen_set **held);

void seen_sets_release(struct seen_sets *s, struct seen_set *held);

#endif
