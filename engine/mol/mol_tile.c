/* SPDX-License-Identifier: Apache-2.0 */
/* Loads tiles from the columns and calls the kernels that score and bound them. */
#include "engine/mol/mol_tile.h"

enum { LINE_FLOATS = REGION_LINE / sizeof(float) };

err_t mol_tile_init(const struct mol_columns *c, struct region *region, struct mol_tile *out)
{
  struct mol_item_layout layout = mol_item_layout(c->model);
  size_t n_lines = layout.components / LINE_FLOATS + layout.gate / LINE_FLOATS + 2;

  TRY(region_array(region, n_lines * MOL_LANES, sizeof *out->lines, &out->lines));
  TRY(region_aligned(region, layout.components * MOL_LANES, sizeof *out->components, &out->components));
  TRY(region_aligned(region, layout.gate * MOL_LANES, sizeof *out->gates, &out->gates));
  return region_aligned(region, mol_bounds_scratch_floats(&c->model->shape), /* enough for mol_score() too */
                        sizeof *out->scratch, &out->scratch);
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

void mol_tile_offer(const struct mol_tile *tile, const struct kernels *kernels, const uint32_t *slots, size_t n,
                    float threshold, struct search_result *result)
{
  uint32_t passed[MOL_LANES];
  size_t n_passed = kernels->filter_ge(tile->scores, n, threshold, passed);

  for (size_t i = 0; i < n_passed; i++) {
    uint32_t slot = slots[passed[i]];
    if (admit_slot(&result->admit, slot))
      topk_push(&result->topk, tile->scores[passed[i]], slot);
  }
}

/* Append the cache lines of n floats. Returns the end of the list. */
static const float **add_lines(const float *row, size_t n, const float **lines)
{
  for (size_t k = 0; k < n; k += LINE_FLOATS)
    *lines++ = row + k;
  return lines;
}

struct mol_prefetch mol_tile_prefetch(const struct mol_columns *c, const uint32_t *slots, size_t n,
                                      struct mol_tile *tile)
{
  struct mol_item_layout layout = mol_item_layout(c->model);
  const float **lines = tile->lines;

  for (size_t i = 0; i < n; i++) {
    lines = add_lines(c->components + slots[i] * layout.components, layout.components, lines);
    lines = add_lines(c->gates + slots[i] * layout.gate, layout.gate, lines);
  }
  return (struct mol_prefetch){ tile->lines, (size_t)(lines - tile->lines) };
}

void mol_tile_score(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile, const struct mol_prefetch *ahead)
{
  const struct mol_model *m = c->model;
  struct mol_gate gate = mol_model_gate(m);

  kernels->mol_score(&m->shape, &gate, query->components, query->gate, tile->components, tile->gates, tile->scratch,
                     ahead, tile->scores);
}

bool mol_tile_can_screen(const struct mol_columns *c, const struct kernels *kernels)
{
  return kernels->mol_screen && c->model->reduced_gate && mol_can_screen(c->model->reduced_gate);
}

bool mol_tile_can_bound(const struct mol_columns *c, const struct kernels *kernels)
{
  return kernels->mol_bounds && c->model->reduced_gate;
}

void mol_tile_bound(const struct mol_columns *c, const struct kernels *kernels, const struct mol_query *query,
                    struct mol_tile *tile, const struct mol_prefetch *ahead)
{
  const struct mol_model *m = c->model;
  struct mol_gate gate = mol_model_gate(m);

  kernels->mol_bounds(&m->shape, &gate, m->reduced_gate, query->components, query->gate, tile->components, tile->gates,
                      tile->scratch, ahead, tile->lower, tile->upper);
}
