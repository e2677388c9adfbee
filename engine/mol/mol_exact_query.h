/* SPDX-License-Identifier: Apache-2.0 */
/* A query of the scans of `exact`: its scorer, and what compares sketches with its threshold. */
#ifndef ENGINE_MOL_MOL_EXACT_QUERY_H
#define ENGINE_MOL_MOL_EXACT_QUERY_H

#include "engine/mol/mol_shared_tile.h"
#include "engine/mol/mol_sketch.h"
#include "engine/search/share.h"

/* Where sketches drop too few items of a chunk, the query does not read those of the next chunks. */
enum { MOL_EXACT_CHUNKS_UNTIL_RETRY = 15 };

struct mol_exact_query {
  struct mol_scorer scorer;
  struct mol_query_sketch sketch;
  int32_t *starts;      /* [P_q], from mol_exact_query_start() */
  size_t n_until_retry; /* chunks whose sketches are not read */
  /* Of the current chunk, in mol_exact_admitted.c: */
  bool is_testing; /* does the query drop items by their sketches? */
  size_t n_kept;
};

/* Prepare query q. floor: see mol_exact.h. Returns ERR_MEMORY. */
err_t mol_exact_query_init(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                           float floor, struct mol_exact_query *out);

/* Compute the start values with which mol_any() passes every item that may reach the query's threshold now. */
void mol_exact_query_start(struct mol_exact_query *e);

/* Choose what the query does with the next n items, in tiles that it shares. */
enum mol_tile_use mol_exact_query_use(struct mol_exact_query *e, size_t n, bool may_screen);

/* Claim steps of a job after telling the other members the floors of all queries. Theirs raise these. queries
 * [batch->n]. The other arguments are share_claim()'s. */
bool mol_exact_query_claim(struct mol_exact_query *queries, struct search_batch *batch, size_t job, size_t n_steps,
                           size_t n_each, struct share_steps *steps);

/* After the last item: score what waits, and write counts and receipts. queries [batch->n]. */
void mol_exact_query_finish(struct mol_exact_query *queries, struct search_batch *batch);

#endif
