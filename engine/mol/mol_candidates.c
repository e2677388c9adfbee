/* SPDX-License-Identifier: Apache-2.0 */
/* Sets for both kinds of candidates, by pairs and by average: empty sets, and the set of all admitted items. */
#include "engine/mol/mol_candidates.h"

#include <assert.h>

err_t mol_candidates_init(struct search_batch *batch, uint64_t ***out)
{
  size_t n_words = bits_words(batch->n_slots);
  uint64_t **sets;

  TRY(region_array(batch->scratch, batch->n, sizeof *sets, &sets));
  for (size_t q = 0; q < batch->n; q++)
    TRY(region_array(batch->scratch, n_words, sizeof **sets, &sets[q]));
  *out = sets;
  return ERR_OK;
}

void mol_candidates_all(struct search_batch *batch, size_t q, uint64_t *candidates)
{
  const struct admit *admit = &batch->results[q].admit;

  assert(!admit->late);
  for (size_t w = 0; w < bits_words(batch->n_slots); w++)
    candidates[w] |= admit->words[w];
  for (size_t i = 0; i < admit->n_excluded; i++)
    bits_clear(candidates, admit->excluded[i]);
}
