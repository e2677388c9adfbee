/* SPDX-License-Identifier: Apache-2.0 */
/* Does a cheap test of items pay, before the dearer work on those that it keeps? It is tried on some items. If it keeps
 * too many, the next items go without. */
#ifndef ENGINE_MOL_MOL_TRIAL_H
#define ENGINE_MOL_MOL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

enum {
  MOL_TRIAL_ITEMS = 1024,                        /* items that are tested before deciding whether the test pays */
  MOL_TRIAL_ITEMS_WITHOUT = 7 * MOL_TRIAL_ITEMS, /* items that are not tested if it does not */
};

struct mol_trial {
  size_t n, n_kept; /* in the current trial: items tested; those of them that the test has kept */
  size_t n_without; /* items that will not be tested */
};

/* Should the next n_items items be tested? If so, they are counted. The test pays if it keeps at most so many quarters
 * of the items. */
static inline bool mol_trial_choose(struct mol_trial *t, size_t n_items, size_t quarters_max)
{
  if (t->n_without > 0) {
    t->n_without -= n_items < t->n_without ? n_items : t->n_without;
    return false;
  }
  if (t->n >= MOL_TRIAL_ITEMS) {
    t->n_without = t->n_kept > t->n / 4 * quarters_max ? MOL_TRIAL_ITEMS_WITHOUT : 0;
    t->n = t->n_kept = 0;
  }
  t->n += n_items;
  return true;
}

#endif
