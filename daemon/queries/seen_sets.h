/* SPDX-License-Identifier: Apache-2.0 */
/* What users have seen, as sets of keys for their queries. The sets of the users who asked last are kept until the user
 * sees something or an item of the set expires, so that a user who asks again costs nothing.
 *
 * Thread: any. The lock is never held while the store is read. */
#ifndef DAEMON_QUERIES_SEEN_SETS_H
#define DAEMON_QUERIES_SEEN_SETS_H

#include "daemon/seen/seen.h"
#include "engine/keys/key_set.h"

enum {
  SEEN_SETS_KEPT = 64,
  SEEN_SETS_BYTES_EACH = 2 << 20 /* enough for some 10,000 items; larger sets are not kept */
};

struct seen_sets;
struct seen_set;

/* hash  of the engine, borrowed. Returns ERR_MEMORY. */
err_t seen_sets_open(struct seen *seen, const struct key_hash *hash, struct seen_sets **out);

/* Nobody may hold a set. */
void seen_sets_close(struct seen_sets **s);

/* Find what a user has seen, or read it, and hold it.
 *
 * region  for the set if there is no room for it here
 * held    to be released; NULL: the set lives in the region
 *
 * Errors as seen_read(). Nothing is held then. Allocates: if a set is larger than those before.
 */
err_t seen_sets_acquire(struct seen_sets *s, struct span user, struct region *region, const struct key_set **set,
                        struct seen_set **held);

void seen_sets_release(struct seen_sets *s, struct seen_set *held);

#endif
