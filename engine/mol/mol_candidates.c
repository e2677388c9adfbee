/* SPDX-License-Identifier: Apache-2.0 */
/* Sets for both kinds of candidates, by pairs and by average: empty sets, and the set of all admitted items. */
#include "engine/mol/mol_candidates.h"

#include <assert.h>

err_t mol_candidates_init(struct search_batch *batch, struct slot_set **out)
{
  TRY(region_array(batch->scratch, batch->n, sizeof **out, out));
  for (size_t q = 0; q < batch->n; q++)
    TRY(slot_set_init(batch->n_slots, batch->scratch, &(*out)[q]));
  return ERR_OK;
}

void mol_candidates_all(struct search_batch *batch, size_t q, struct slot_set *candidates)
{
  const struct admit *admit = &batch->results[q].admit;

  assert(!admit->late);
  for (size_t w = 0; w < bits_words(batch->n_slots); w++)
    candidates->words[w] |= admit->words[w];
  for (size_t i = 0; i < admit->n_excluded; i++)
    bits_clear(candidates->words, admit->excluded[i]);
}
