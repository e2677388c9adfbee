/* SPDX-License-Identifier: Apache-2.0 */
/* What mol_score() needs, whatever its variant: packed weights and the size of its scratch memory. */
#include "kernels/mol.h"

size_t mol_scratch_floats(const struct mol_shape *shape)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components;

  return (2 * n_logits + shape->gate_hidden) * MOL_LANES + shape->n_query_components * shape->component_dim;
}

void mol_pack(const float *w, size_t n_in, size_t n_out, float *packed)
{
  for (size_t j = 0; j < n_out; j++) {
    size_t step, at = mol_packed_at(n_in, n_out, j, &step);
    for (size_t k = 0; k < n_in; k++)
      packed[at + k * step] = w[k * n_out + j];
  }
}
