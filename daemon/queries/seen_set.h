/* SPDX-License-Identifier: Apache-2.0 */
/* What one user has seen, as a set of keys in memory of its own. It has room for what the user sees next: an eighth and
 * 16 keys more, of the average length. So a page that is seen after each query is added, and all is seldom read anew.
 */
#ifndef DAEMON_QUERIES_SEEN_SET_H
#define DAEMON_QUERIES_SEEN_SET_H

#include <sys/queue.h>

#include "base/region.h"
#include "engine/keys/key_set.h"
#include "store/seen/seen_keys.h"

struct seen_set {
  struct key_set set;
  struct span user;
  struct region region;   /* of the user, the keys and the set */
  size_t n_bytes;         /* of all this */
  uint64_t newest_chunk;  /* of the user's log */
  int64_t oldest_unix_ms; /* of the items */
  struct span *keys;      /* [max_keys] the set has the first ones */
  size_t max_keys;
  uint8_t *unused; /* [n_unused] for bytes of further keys */
  size_t n_unused;
  /* Of the sets that it is kept with. */
  uint64_t stamp;   /* of the user, before what it has seen was read */
  size_t n_holders; /* queries that hold it */
  bool is_kept;
  struct seen_set *next_in_bucket;
  TAILQ_ENTRY(seen_set) in_order;
};

/* Return what a set of these keys takes. */
size_t seen_set_bytes(struct span user, const struct seen_keys *read);

/* Make a set of what was read, which is all that the user has seen. Keys and user are copied. Returns ERR_MEMORY. */
err_t seen_set_make(const struct key_hash *hash, struct span user, const struct seen_keys *read, struct seen_set **out);

/* Add what was read from newest_chunk on. Nobody else may use the set. Returns false if there is no room; then the set
 * is good for nothing but to be closed. */
bool seen_set_extend(struct seen_set *e, const struct seen_keys *read);

void seen_set_close(struct seen_set **e);

#endif
