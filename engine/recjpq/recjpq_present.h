/* SPDX-License-Identifier: Apache-2.0 */
/* Which sub-items of a split do the items have that a filter admits? One scan over the codes of the split finds out.
 * What it has found is kept with the columns for the newest filters, as long as no code changes: most queries come with
 * a filter that others had before.
 *
 * Thread: any number of searches. The writer forgets everything when it changes codes; no search has the columns then.
 */
#ifndef ENGINE_RECJPQ_RECJPQ_PRESENT_H
#define ENGINE_RECJPQ_RECJPQ_PRESENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"

enum { RECJPQ_PRESENT_WORDS = PQ_SUBITEMS / 64, RECJPQ_PRESENT_FILTERS = 64 };

/* A bit for each sub-item of a split. */
struct recjpq_present_set {
  uint64_t words[RECJPQ_PRESENT_WORDS];
};

struct recjpq_present;

/* Returns ERR_MEMORY. */
err_t recjpq_present_open(size_t n_splits, struct recjpq_present **out);
void recjpq_present_close(struct recjpq_present **p);

/* Forget all sets. */
void recjpq_present_forget(struct recjpq_present *p);

/* Find the sets of a filter that are known.
 *
 * words_id  of struct admit; 0: none are known
 * sets      [n_splits]
 * Returns a bit for each split whose set is known. */
uint64_t recjpq_present_get(struct recjpq_present *p, uint64_t words_id, struct recjpq_present_set *sets);

/* Keep a set. A filter that has none yet takes the place of the one that was asked for least recently. */
void recjpq_present_put(struct recjpq_present *p, uint64_t words_id, size_t split,
                        const struct recjpq_present_set *set);

static inline bool recjpq_present_has(const struct recjpq_present_set *set, size_t subitem)
{
  return set->words[subitem / 64] >> subitem % 64 & 1;
}

#endif
