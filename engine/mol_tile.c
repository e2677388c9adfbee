#include "engine/mol_columns.h"

enum { VECTOR_BYTES = 64 };

/* Aligned to a whole vector, which a region does not promise. */
static err_t aligned_floats(struct region *region, size_t n, float **out)
{
  uint8_t *bytes;

  TRY(region_array(region, n * sizeof **out + VECTOR_BYTES, 1, &bytes));
  *out = (float *)(((uintptr_t)bytes + VECTOR_BYTES - 1) & ~(uintptr_t)(VECTOR_BYTES - 1));
  return ERR_OK;
}

err_t mol_tile_init(const struct mol_columns *c, struct region *region, struct mol_tile *out)
{
  struct mol_item_layout layout = mol_item_layout(c->model);

  TRY(aligned_floats(region, layout.components * MOL_LANES, &out->components));
  TRY(aligned_floats(region, layout.gate * MOL_LANES, &out->gates));
  return aligned_floats(region, mol_scratch_floats(&c->model->shape), &out->scratch);
}

void mol_tile_load(const struct mol_columns *c, const struct kernels *kernels, const uint32_t *slots, size_t n,
                   struct mol_tile *tile)
{
  struct mol_item_layout layout = mol_item_layout(c->model);
  const float *rows[MOL_LANES] = { 0 };

  for (size_t i = 0; i < n; i++)
    rows[i] = c->components + slots[i] * layout.components;
  kernels->transpose(rows, n, layout.components, tile->components);
  for (size_t i = 0; i < n; i++)
    rows[i] = c->gates + slots[i] * layout.gate;
  kernels->transpose(rows, n, layout.gate, tile->gates);
}

void mol_tile_score(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile)
{
  const struct mol_model *m = c->model;
  struct mol_gate gate = { m->cross_gate.first.w, m->cross_gate.first.b, m->cross_gate.second.w,
                           m->cross_gate.second.b };

  kernels->mol_score(&m->shape, &gate, query->components, query->gate, tile->components, tile->gates, tile->scratch,
                     tile->scores);
}
