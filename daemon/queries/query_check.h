/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what a query searches: its space, the generation and the method. */
#ifndef DAEMON_QUERIES_QUERY_CHECK_H
#define DAEMON_QUERIES_QUERY_CHECK_H

#include "daemon/models/switch_board.h"
#include "daemon/queries/pending_query.h"
#include "engine/engine.h"

/* Check a query, and find what it searches now. Its index of the configuration's spaces must be known.
 *
 * switches  NULL: the current generation is searched, unless the query names one
 *
 * Errors as engine_check_query(). Thread: any. */
err_t query_check(struct engine *engine, struct switch_board *switches, struct pending_query *query);

#endif
