/* SPDX-License-Identifier: Apache-2.0 */
/* Searching with boosts (boosts.h), by any method: exactly the k best sums of similarity and boosts.
 *
 * The first round searches by similarity alone, for more than k hits. No other item is more similar than the last of
 * them, so only items with large enough boosts can still come among the best k sums. If no item has such boosts, that
 * was all. Otherwise the next round searches just these, and so on: the bound of similarity falls, the k-th sum rises,
 * and few items are left. If they are many, a scan finds those with the best sums, where the similarity is a sum of
 * table entries (boosted_scan.h). Else a round among the items with the largest boosts comes before, which lets the
 * k-th sum rise. This is the threshold algorithm of Fagin, Lotem and Naor (2003), with a search as its sorted access by
 * similarity. docs/exactness.md has the proof.
 *
 * The rounds of a batch are searched together, with those of its other queries (search_rounds.h).
 *
 * Thread: the one that searches. Allocates: in the searcher's regions.
 */
#ifndef ENGINE_BOOSTS_BOOSTED_SEARCH_H
#define ENGINE_BOOSTS_BOOSTED_SEARCH_H

#include "engine/boosts/boosted_scan.h"
#include "engine/similarity/admit.h"

/* Where searches are. */
struct boosted_target {
  const struct arena *arena;
  const struct arena_space *in;  /* the space */
  const struct columns *columns; /* its columns, on the backend that searches */
  const struct attributes *attributes;
  const struct kernels *kernels;
  struct admission_target filters; /* where those of boosts are evaluated, */
  struct admission *held;          /* and what holds their words */
  bool is_exact; /* The method is. What an approximate one finds depends on what it is asked for, so then what it is
                  * asked for does not depend on where items lie: equal catalogues give equal hits. */
};

/* A query and its hits, from round to round. */
struct boosted_search {
  struct boosted_target on;
  const struct query *query;
  const struct admit *admitted; /* what the query admits */
  struct boosts boosts;
  struct boost_bounds *bounds; /* NULL until a second round needs them */
  struct query plain;          /* what the round asks for */
  size_t k;                    /* hits that the last round asked for that did not ask for all */
  struct admit admit;          /* what it admits */
  struct answer found;         /* what it has found, by similarity */
  uint64_t *left;              /* [bits_words(n_slots)] can be hits, and are not found yet; NULL: never needed */
  uint64_t *words;             /* [bits_words(n_slots)] for what is chosen of these */
  struct hit *hits;            /* [max_hits] the n_hits best so far, in order. Keys are the arena's */
  size_t max_hits;
  size_t n_hits;
  size_t n_found;            /* in all rounds */
  float most_similar;        /* no item that is left, and can still be a hit, is more similar; -inf: there is none */
  float missed_below;        /* rounds have missed only items that score at most this; -inf: none */
  size_t n_rounds;           /* that were taken */
  bool is_narrowed;          /* `left` is that of this search */
  bool is_seeding;           /* the round searches the items with the largest boosts */
  bool was_seeded;           /* so did a former round */
  bool is_done;              /* there is no further round */
  struct boosted_scan *scan; /* that comes in the place of further rounds; NULL: none does */
  struct answer *answer;
};

/* Bind the boosts of a query. What is allocated in the region has to stay until the last boosted_search_write().
 * Returns ERR_MEMORY. */
err_t boosted_search_begin(const struct boosted_target *on, const struct query *query, struct region *region,
                           struct boosted_search *out);

/* Start with the first round: search `plain` among `admit`, and write `found`. After boosted_search_write() the query
 * can be started again, with another k and among other items.
 *
 * query   that of boosted_search_begin(), or a copy. Its max_per is not looked at
 * admit   of the query. Both stay until boosted_search_write()
 * answer  of the query. boosted_search_write() completes it
 * region  as above
 *
 * Returns ERR_MEMORY.
 */
err_t boosted_search_start(struct boosted_search *s, const struct query *query, const struct admit *admit,
                           struct answer *answer, struct region *region);

/* Take what a round has found. Then the next one is to be searched in the same way, unless is_done is set. If there is
 * a scan, run it instead, with those of other queries, and take it.
 *
 * kept     what is allocated has to stay until boosted_search_write()
 * scratch  for the call, and the scan
 *
 * Returns ERR_MEMORY.
 */
err_t boosted_search_take(struct boosted_search *s, struct region *kept, struct region *scratch);

/* Take what the scan has found. The search is done then. scratch: as above. Returns ERR_MEMORY. */
err_t boosted_search_take_scan(struct boosted_search *s, struct region *scratch);

/* Write the answer, when all rounds are done. Its hits live in the region. Returns ERR_MEMORY. */
err_t boosted_search_write(struct boosted_search *s, struct region *region);

#endif
