/* SPDX-License-Identifier: Apache-2.0 */
/* Hits that differ from each other (struct mmr): maximal marginal relevance, from Carbonell and Goldstein (1998).
 *
 * The candidates are the best items for the query. The first hit is the best of them. Each further one is the candidate
 * with the largest
 *
 *   (1 - diversity) relevance - diversity max{ cosine of its vector and that of a hit so far }
 *
 * and of those with equal values, the one that comes first by score. Relevance is the score, scaled so that the best
 * candidate has 1 and the last one 0, because the scores of learned similarities have no unit; if all scores are equal,
 * all have 1. Vectors are those of columns_ops.read_vector. The cosine with a zero vector is 0.
 *
 * All is computed in double, in a fixed order. So a merge of shards that has the same candidates chooses the same hits
 * to the bit. That excludes bilinear spaces: each daemon may turn their vectors in another way.
 *
 * docs/diversity.md is for users.
 */
#ifndef ENGINE_MMR_H
#define ENGINE_MMR_H

#include "base/query.h"
#include "base/region.h"
#include "engine/arena/arena.h"
#include "engine/search/search_batch.h"
#include "kernels/kernels.h"

/* Verify the mmr of a query, if it has one: it fits k and the limit, and the vectors of the space's items can be read,
 * and compared where they are to be.
 *
 * max_k  of the engine
 *
 * Returns ERR_QUERY with the reason. Thread: any.
 */
err_t mmr_check(const struct query *query, size_t max_k, const struct space *space, const struct backends *backends);

/* Return the query that finds the candidates: the same, or a copy in the region that asks for so many. Returns
 * ERR_MEMORY. Thread: any. */
err_t mmr_widen(const struct query *query, size_t max_k, struct region *region, const struct query **out);

/* Read the vectors of the candidates, which an answer of the query of mmr_widen() has, and choose the hits among them,
 * unless that is left open.
 *
 * query   has mmr, and its own k
 * pause   is called after each query, and in a long choice after every thousand cosines
 * region  the hits live in it; all else that is allocated is given back
 *
 * Returns ERR_MEMORY. Thread: one that holds the arena.
 */
err_t mmr_finish(const struct arena *arena, const struct arena_space *space, const struct kernels *kernels,
                 const struct query *query, const struct search_pause *pause, struct region *region,
                 struct answer *answer);

/* Choose k hits among the candidates of an answer, and change its explanations likewise.
 *
 * region  as above
 * answer  its hits are the candidates, in order of rank, with their vectors; afterwards the chosen ones, without. A
 *         vector of another length than the first one counts as a zero vector
 *
 * Returns ERR_MEMORY. Thread: any. Time: at most that of k * candidates cosines.
 */
err_t mmr_choose(const struct kernels *kernels, double diversity, size_t k, struct region *region,
                 struct answer *answer);

#endif
