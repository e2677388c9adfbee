/* SPDX-License-Identifier: Apache-2.0 */
/* The places of queries, by which parts find each other, and the set of those that are answered.
 *
 * A place is a digest of 128 bits of the partial's key, which names the query's record.
 *
 * Thread: the one that owns the set.
 */
#ifndef DAEMON_MERGE_PLACES_H
#define DAEMON_MERGE_PLACES_H

#include "base/err.h"
#include "base/span.h"

struct place {
  uint64_t lo, hi;
};

struct place place_of(struct span key);

static inline bool place_equal(struct place a, struct place b)
{
  return a.lo == b.lo && a.hi == b.hi;
}

/* A set whose members are forgotten after a while: at least `keep_ns` after they were added, at most twice that. It
 * has about 32 bytes for each. */
struct places;

err_t places_open(int64_t keep_ns, struct places **out);
void places_close(struct places **p);

/* Add a place, and forget old ones. Returns ERR_MEMORY. */
err_t places_add(struct places *p, struct place place, int64_t now_ns);

bool places_have(const struct places *p, struct place place);

size_t places_count(const struct places *p);

/* Forget all. */
void places_clear(struct places *p);

#endif
