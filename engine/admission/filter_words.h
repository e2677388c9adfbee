/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a filter: the slots of a space that pass it and are alive. They are evaluated for all slots, or, when
 * few slots have changed since an older version, just for the words of these. */
#ifndef ENGINE_FILTER_WORDS_H
#define ENGINE_FILTER_WORDS_H

#include "base/region.h"
#include "engine/admission/filter_sight.h"

/* What is evaluated, and where. */
struct filter_scope {
  const struct arena *arena;
  size_t space;
  const struct filter_node *filter;
};

struct filter_words {
  uint64_t *words; /* [n_words] */
  size_t n_words;
  uint64_t n; /* bits that are set */
};

/* Evaluate a filter for all slots. w->words has room for them. Returns ERR_MEMORY. */
err_t filter_words_evaluate(const struct filter_scope *scope, struct region *region, struct filter_words *w);

/* Have so few slots changed since a version that patching its words is faster than evaluating the filter again? */
bool filter_words_can_patch(const struct filter_scope *scope, const struct filter_sight *sight, uint64_t since);

/* Bring words of an older version up to date: the result is that of filter_words_evaluate().
 *
 * since  the version of the words; filter_words_can_patch() said yes
 * w      its words, which have room for all slots, n_words and n; updated
 *
 * Returns ERR_MEMORY.
 */
err_t filter_words_patch(const struct filter_scope *scope, const struct filter_sight *sight, uint64_t since,
                         struct region *region, struct filter_words *w);

#endif
