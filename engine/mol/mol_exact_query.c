/* SPDX-License-Identifier: Apache-2.0 */
/* What the scans of `exact` do with a query, whichever items it looks at. */
#include "engine/mol/mol_exact_query.h"

#include "engine/mol/mol_bound.h"
#include "engine/search/receipt.h"

err_t mol_exact_query_init(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                           float floor, struct mol_exact_query *out)
{
  const struct mol_shape *shape = &c->model->shape;

  TRY(mol_scorer_init(c, batch, q, tile, &out->scorer));
  TRY(mol_screening_init(c, batch, q, tile, &out->scorer.screening));
  out->scorer.floor = floor;
  TRY(region_array(batch->scratch, shape->n_query_components, sizeof *out->starts, &out->starts));
  return mol_sketch_query(shape, out->scorer.query->components, c->residual, batch->scratch, &out->sketch);
}

void mol_exact_query_start(struct mol_exact_query *e)
{
  const struct mol_shape *shape = &e->scorer.columns->model->shape;

  mol_sketch_starts(&e->sketch, mol_bound_dot_from_score(shape, e->scorer.query, mol_scorer_threshold(&e->scorer)),
                    e->starts);
}

enum mol_tile_use mol_exact_query_use(struct mol_exact_query *e, size_t n, bool may_screen)
{
  if (may_screen && mol_scorer_choose_screen(&e->scorer, n))
    return MOL_TILE_SCREEN;
  return mol_scorer_choose_bounds(&e->scorer, n) ? MOL_TILE_BOUND : MOL_TILE_SCORE;
}

bool mol_exact_query_claim(struct mol_exact_query *queries, struct search_batch *batch, size_t job, size_t n_steps,
                           size_t n_each, struct share_steps *steps)
{
  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].floor = mol_scorer_threshold(&queries[q].scorer);
  bool has_steps = share_claim(batch, job, n_steps, n_each, steps);
  for (size_t q = 0; q < batch->n; q++)
    queries[q].scorer.floor = batch->results[q].floor;
  return has_steps;
}

void mol_exact_query_finish(struct mol_exact_query *queries, struct search_batch *batch)
{
  for (size_t q = 0; q < batch->n; q++) {
    mol_scorer_flush(&queries[q].scorer);
    batch->results[q].counts.scored += queries[q].scorer.n_scored;
    receipt_exact(&batch->results[q], batch->n_items);
  }
}
