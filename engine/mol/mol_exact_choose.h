/* SPDX-License-Identifier: Apache-2.0 */
/* How `exact` scans a batch whose queries may admit different items. */
#ifndef ENGINE_MOL_MOL_EXACT_CHOOSE_H
#define ENGINE_MOL_MOL_EXACT_CHOOSE_H

#include "engine/mol/mol_columns.h"

enum mol_exact_kind {
  MOL_EXACT_TOGETHER, /* all queries look at all items that some query admits, */
  MOL_EXACT_ADMITTED, /* or each at those that it admits, in one pass, */
  MOL_EXACT_ALONE,    /* or each at those in a pass of its own */
};

/* Choose the fastest scan. Returns ERR_MEMORY. */
err_t mol_exact_choose(const struct mol_columns *c, const struct search_batch *batch, enum mol_exact_kind *out);

#endif
