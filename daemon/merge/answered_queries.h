/* SPDX-License-Identifier: Apache-2.0 */
/* The set of queries that are answered, so that no part of one opens it again.
 *
 * Thread: the one that owns the set.
 */
#ifndef DAEMON_MERGE_ANSWERED_QUERIES_H
#define DAEMON_MERGE_ANSWERED_QUERIES_H

#include "base/err.h"
#include "daemon/merge/query_digest.h"

/* A set whose members are forgotten after a while: at least `keep_ns` after they were added, at most twice that. It
 * has about 32 bytes for each. */
struct answered_queries;

err_t answered_queries_open(int64_t keep_ns, struct answered_queries **out);
void answered_queries_close(struct answered_queries **a);

/* Add a query, and forget old ones. Returns ERR_MEMORY. */
err_t answered_queries_add(struct answered_queries *a, struct query_digest digest, int64_t now_ns);

bool answered_queries_have(const struct answered_queries *a, struct query_digest digest);

size_t answered_queries_count(const struct answered_queries *a);

/* Forget all. */
void answered_queries_clear(struct answered_queries *a);

#endif
