/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that wait until the catalogue has seen their at_least.
 *
 * Waiting costs nothing while no epoch is published and no time is over. Thread: the query reader.
 */
#ifndef DAEMON_QUERIES_AT_LEAST_LIST_H
#define DAEMON_QUERIES_AT_LEAST_LIST_H

#include "daemon/queries/pending_query.h"
#include "engine/engine.h"

/* All zeros is an empty one, but for its bounds. */
struct at_least_list {
  size_t max_queries;
  size_t max_bytes;
  struct pending_query *first;
  struct pending_query *last;
  size_t n;
  size_t bytes;
  uint64_t epoch; /* that was looked at last */
  int64_t due_ns; /* when the first of them gives up, or its deadline passes */
};

/* Whether there is room for this one. */
bool at_least_list_has_room(const struct at_least_list *list, const struct pending_query *query);

/* Add one: give_up_ns and deadline_ns are set. */
void at_least_list_push(struct at_least_list *list, struct pending_query *query);

/* Take up to `max` that were seen (is_seen), that are late, or that give up: a chain by `next`, in the order of their
 * coming. */
struct pending_query *at_least_list_take_ended(struct at_least_list *list, struct engine *engine, int64_t now_ns,
                                               size_t max);

/* Take all: a chain by `next`. */
struct pending_query *at_least_list_take_all(struct at_least_list *list);

/* Say which position was not seen, and how far the catalogue is.
 *
 * reason   what ended the wait, first in the message
 * scratch  is reset
 * message  [n] */
void at_least_list_explain(struct engine *engine, const struct query *query, const char *reason, struct region *scratch,
                           char *message, size_t n);

#endif
