/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes at which `exact`, `pqtopk` and the search of admitted items change their strategy. */
#ifndef ENGINE_RECJPQ_RECJPQ_RULE_H
#define ENGINE_RECJPQ_RECJPQ_RULE_H

#include "engine/recjpq/recjpq_columns.h"

#define RECJPQ_BY_KERNELS SIZE_MAX

struct recjpq_rule {
  uint64_t warm_up_items_min; /* with fewer items, a scan takes no longer than a warm-up */
  uint64_t scan_items_max;    /* `exact`: up to this many items a scan is as fast at the median, and steadier */
  size_t slots_per_cell;      /* `exact`: visiting a cell costs as much as scanning this many slots; 0: never scan;
                                 RECJPQ_BY_KERNELS: as many as the kernels say */
  size_t guess_k_min;         /* from this K on, the first threshold is guessed (recjpq_guess.h), */
  size_t guess_items_per_hit; /* if so many items are admitted for each of K; 0: never */
  size_t guess_deviations;    /* the guess is so many standard deviations below the expected threshold */
  size_t list_k_min;          /* from this K on, hits are gathered in a list (recjpq_hits.h); 0: never */
};

extern const struct recjpq_rule recjpq_rule_usual;

/* Methods with other sizes than the usual ones: for tests. */
err_t recjpq_search_exact_by(const struct recjpq_columns *c, struct search_batch *batch,
                             const struct recjpq_rule *rule);
err_t recjpq_search_pqtopk_by(const struct recjpq_columns *c, struct search_batch *batch,
                              const struct recjpq_rule *rule);

#endif
