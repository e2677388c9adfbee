/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the items that queries admit with those that they would look at together. */
#include "engine/mol/mol_exact_choose.h"

#include "engine/mol/mol_exact.h"
#include "engine/mol/mol_walk.h"

enum {
  ALONE_TIMES = 3,    /* an item takes so many times longer if no other query shares its tile */
  ADMITTED_TIMES = 2, /* the same if the queries share its sketch */
};

/* Choose for queries that have the same filter, or none. */
static enum mol_exact_kind choose_for_same(const struct search_batch *batch)
{
  bool is_few = batch->n < MOL_SHARING_MIN && batch->results[0].admit.n_admitted <= batch->n_slots / 2;

  return is_few && mol_exact_scan_admitted_pays(batch) ? MOL_EXACT_ADMITTED : MOL_EXACT_TOGETHER;
}

/* Choose for queries that look at n_walked items together. */
static enum mol_exact_kind choose_for_own(const struct search_batch *batch, size_t n_walked)
{
  uint64_t n_together = (uint64_t)n_walked * batch->n, n_admitted = 0;

  for (size_t q = 0; q < batch->n; q++)
    n_admitted += batch->results[q].admit.n_admitted;
  if (n_admitted * ADMITTED_TIMES < n_together && mol_exact_scan_admitted_pays(batch))
    return MOL_EXACT_ADMITTED;
  return n_admitted * ALONE_TIMES < n_together ? MOL_EXACT_ALONE : MOL_EXACT_TOGETHER;
}

err_t mol_exact_choose(const struct mol_columns *c, const struct search_batch *batch, enum mol_exact_kind *out)
{
  struct region_mark mark = region_mark(batch->scratch);
  bool has_own = false;
  struct mol_walk walk;

  for (size_t q = 1; q < batch->n; q++)
    has_own |= batch->results[q].admit.words != batch->results[0].admit.words;
  *out = choose_for_same(batch);
  if (!has_own)
    return ERR_OK;
  TRY(mol_walk_init(c, batch, &walk));
  *out = choose_for_own(batch, walk.n);
  region_rewind(batch->scratch, mark);
  return ERR_OK;
}
