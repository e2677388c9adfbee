/* SPDX-License-Identifier: Apache-2.0 */
/* While shards switch, the time of the query's record decides which generation is searched. */
#include "daemon/queries/query_check.h"

err_t query_check(struct engine *engine, struct switch_board *switches, struct pending_query *query)
{
  uint32_t *generation = &query->query.generation;

  if (!switches)
    return engine_check_query(engine, &query->query, &query->number, &query->method);
  do {
    *generation = switch_board_at(switches, query->space, query->timestamp_ms);
    TRY(engine_check_query(engine, &query->query, &query->number, &query->method));
  } while (*generation != switch_board_at(switches, query->space, query->timestamp_ms)); /* a switch came between */
  return ERR_OK;
}
