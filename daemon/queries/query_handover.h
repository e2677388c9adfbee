/* SPDX-License-Identifier: Apache-2.0 */
/* A second consumer takes over the queries when certificates change, so that no query is lost or answered twice.
 *
 * 1. The next consumer joins the group. The former one goes on meanwhile, however long that takes.
 * 2. The group asks the former one for its partitions, and waits for them. No more queries are taken. If it asks
 *    before it has let the next one in, because of another member, the former one gives them up and joins again.
 * 3. When the queries that were taken are answered, their offsets are committed, and the former one leaves the group.
 * 4. The group gives the partitions to the next one, which begins behind the committed offsets.
 *
 * Thread: query.
 */
#ifndef DAEMON_QUERIES_QUERY_HANDOVER_H
#define DAEMON_QUERIES_QUERY_HANDOVER_H

#include "ingest/readers/query_reader.h"

/* All zeros: none is under way. */
struct query_handover {
  struct query_reader *next; /* owned; NULL: none is under way */
  int64_t until_ns;          /* how long the queries that were taken are waited for; 0: queries are still taken */
};

/* Begin with the next consumer, which is open. The former one keeps its partitions. */
void query_handover_begin(struct query_handover *h, struct query_reader **next, struct query_reader *former);

/* Give up: the next consumer leaves the group. */
void query_handover_abort(struct query_handover *h);

/* Serve the next consumer.
 *
 * n_open  queries that were taken and are not answered
 * is_due  set: may the next consumer take over now?
 */
err_t query_handover_step(struct query_handover *h, struct query_reader *former, size_t n_open, bool *is_due);

/* Return the next consumer, which the caller owns now. */
struct query_reader *query_handover_end(struct query_handover *h);

#endif
