/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of searches: what those of each generation of a space and method took and proved. A row is made at the first
 * search of its method, and stays as long as the generation. */
#ifndef DAEMON_COUNTERS_SEARCH_COUNTERS_H
#define DAEMON_COUNTERS_SEARCH_COUNTERS_H

#include "base/err.h"
#include "base/hist.h"
#include "base/query.h"

/* A similarity has fewer methods than SEARCH_COUNTERS_METHODS. Arguments of a method make no rows of their own: a
 * client could name any number of them. */
enum { SEARCH_COUNTERS_METHODS = 16 };

struct search_row {
  const char *_Atomic method;
  struct hist batch_us; /* searches of batches, in microseconds */
  _Atomic uint64_t n_queries;
  _Atomic uint64_t n_proven; /* of these, queries whose answers are exact */
  _Atomic uint64_t n_items;  /* items of the space, summed over the queries */
  _Atomic uint64_t n_scored; /* items scored in full, likewise */
};

struct search_counters;

/* n_spaces  how many generations there can be at a time
 * is_there  is there a generation of this number? The rows of others are used again */
typedef bool (*search_counters_is_there)(void *context, size_t number);
err_t search_counters_open(size_t n_spaces, search_counters_is_there is_there, void *context,
                           struct search_counters **out);
void search_counters_close(struct search_counters **c);

/* Count a search of a batch.
 *
 * number   of the generation (engine.h), without ENGINE_PINNED
 * answers  [n] of the generation and a method
 *
 * Thread: any. Blocks: no, except at the first search of a method. Allocates: no. */
void search_counters_add(struct search_counters *c, size_t number, const struct method *method,
                         const struct answer *answers, size_t n);

/* Return the rows of a generation, and how many there are. They live as long as the counters; once the generation has
 * been removed, they may become those of another. Thread: any. */
const struct search_row *search_counters_of(const struct search_counters *c, size_t number, size_t *n);

#endif
