/* SPDX-License-Identifier: Apache-2.0 */
/* What the searches of each space and method took and proved. A row is made at the first search of its method, and
 * stays. */
#ifndef DAEMON_SEARCH_FIGURES_H
#define DAEMON_SEARCH_FIGURES_H

#include "base/err.h"
#include "base/hist.h"
#include "base/query.h"

/* A similarity has fewer methods than SEARCH_FIGURES_METHODS. Arguments of a method make no rows of their own: a client
 * could name any number of them. */
enum { SEARCH_FIGURES_METHODS = 16 };

struct search_row {
  char method[METHOD_NAME_MAX];
  struct hist batch_us; /* searches of batches, in microseconds */
  _Atomic uint64_t n_queries;
  _Atomic uint64_t n_proven; /* of these, queries whose answers are exact */
  _Atomic uint64_t n_items;  /* items of the space, summed over the queries */
  _Atomic uint64_t n_scored; /* items scored in full, likewise */
};

struct search_figures;

err_t search_figures_open(size_t n_spaces, struct search_figures **out);
void search_figures_close(struct search_figures **f);

/* Count a search of a batch.
 *
 * answers  [n] of a space and a method
 *
 * Thread: any. Blocks: no, except at the first search of a method. Allocates: no. */
void search_figures_add(struct search_figures *f, size_t space, const struct method *method,
                        const struct answer *answers, size_t n);

/* Return the rows of a space, and their number. They live as long as the figures. Thread: any. */
const struct search_row *search_figures_of(const struct search_figures *f, size_t space, size_t *n);

#endif
