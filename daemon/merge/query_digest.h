/* SPDX-License-Identifier: Apache-2.0 */
/* What a merge knows a query by: a digest of 128 bits of its partials' key, which names the query's record. By it
 * parts find each other. Thread: any. */
#ifndef DAEMON_MERGE_QUERY_DIGEST_H
#define DAEMON_MERGE_QUERY_DIGEST_H

#include "base/span.h"

struct query_digest {
  uint64_t lo, hi;
};

struct query_digest query_digest_of(struct span key);

static inline bool query_digest_equal(struct query_digest a, struct query_digest b)
{
  return a.lo == b.lo && a.hi == b.hi;
}

#endif
