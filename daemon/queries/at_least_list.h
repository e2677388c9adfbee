/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that wait until the catalogue has seen their at_least, and the seen topic was read as far as they want. They
 * are looked at only when more was read, or when the wait of one of them ends.
 *
 * Thread: query.
 */
#ifndef DAEMON_QUERIES_AT_LEAST_LIST_H
#define DAEMON_QUERIES_AT_LEAST_LIST_H

#include "daemon/queries/at_least.h"
#include "daemon/queries/pending_query.h"

/* All zeros, but for the two bounds, is a valid empty list. */
struct at_least_list {
  size_t max_queries;
  size_t max_bytes;
  struct pending_query *first;
  struct pending_query *last;
  size_t n;
  size_t bytes;
  struct at_least_state state; /* what the queries were last compared with */
  int64_t due_ns;              /* when the first wait ends by its deadline or give_up_ns */
};

/* Is there room for this query? */
bool at_least_list_has_room(const struct at_least_list *list, const struct pending_query *query);

/* Add a query whose give_up_ns and deadline_ns are set. */
void at_least_list_push(struct at_least_list *list, struct pending_query *query);

/* Take up to `max` queries whose wait has ended: is_seen is set, or the deadline or give_up_ns has passed. Returns a
 * list linked by `next`, in the order of arrival. */
struct pending_query *at_least_list_take_ended(struct at_least_list *list, const struct at_least_sources *sources,
                                               int64_t now_ns, size_t max);

/* Take all queries: a list linked by `next`. */
struct pending_query *at_least_list_take_all(struct at_least_list *list);

#endif
