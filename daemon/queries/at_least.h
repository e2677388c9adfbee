/* SPDX-License-Identifier: Apache-2.0 */
/* What a query waits for: positions of the catalogue, and of the seen topic.
 *
 * Thread: any.
 */
#ifndef DAEMON_QUERIES_AT_LEAST_H
#define DAEMON_QUERIES_AT_LEAST_H

#include "base/query.h"
#include "daemon/seen/seen.h"
#include "engine/engine.h"

struct at_least_sources {
  struct engine *engine;
  struct seen *seen; /* NULL: no seen topic is read, and no query excludes what a user has seen */
};

/* Was everything read that the query wants? */
bool at_least_is_reached(const struct at_least_sources *sources, const struct query *query);

/* What the sources have read, to notice changes. */
struct at_least_state {
  uint64_t epoch;
  uint64_t seen;
};

void at_least_state_get(const struct at_least_sources *sources, struct at_least_state *out);

/* Why a wait ended without success. */
enum at_least_end { AT_LEAST_DEADLINE, AT_LEAST_TIMEOUT, AT_LEAST_NO_WAIT };

/* Write a message that names a position that was not reached, and how far its topic was read.
 *
 * scratch  is reset
 * message  [n]
 */
void at_least_explain(const struct at_least_sources *sources, const struct query *query, enum at_least_end end,
                      struct region *scratch, char *message, size_t n);

#endif
