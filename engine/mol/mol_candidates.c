/* SPDX-License-Identifier: Apache-2.0 */
/* Sets for both kinds of candidates, by pairs and by average: empty sets, and the set of all admitted items. */
#include "engine/mol/mol_candidates.h"

err_t mol_candidates_init(struct search_batch *batch, struct slot_set **out)
{
  TRY(region_array(batch->scratch, batch->n, sizeof **out, out));
  for (size_t q = 0; q < batch->n; q++)
    TRY(slot_set_init(batch->n_slots, batch->scratch, &(*out)[q]));
  return ERR_OK;
}

void mol_candidates_all(struct search_batch *batch, size_t q, struct slot_set *candidates)
{
  for (size_t slot = 0; slot < batch->n_slots; slot++) {
    if (admit_slot(&batch->results[q].admit, (uint32_t)slot))
      slot_set_add(candidates, (uint32_t)slot);
  }
}
