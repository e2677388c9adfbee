/* SPDX-License-Identifier: Apache-2.0 */
/* The deficits of a query as the tables of score_tables.h. */
#include "engine/recjpq/recjpq_tables.h"

#include "engine/recjpq/recjpq_deficits.h"

static_assert(RECJPQ_SPLITS_MAX + QUERY_BOOSTS_MAX <= PQ_TABLES_MAX, "a scan has tables of splits and of boosts");

struct recjpq_tables {
  struct score_tables base;
  const struct recjpq_columns *columns;
  const float *subitem_scores;
  struct recjpq_deficits deficits;
};

static const struct recjpq_tables *tables_of(const struct score_tables *t)
{
  return (const struct recjpq_tables *)t;
}

static void quantise(struct score_tables *t, float threshold)
{
  struct recjpq_tables *r = (struct recjpq_tables *)t;

  recjpq_deficits_quantise(&r->deficits, threshold);
  t->scale = (double)r->deficits.scale;
}

static uint8_t limit(const struct score_tables *t, float threshold)
{
  return recjpq_deficits_limit(&tables_of(t)->deficits, threshold);
}

static void find_rows(const struct score_tables *t, size_t first, const uint8_t **rows)
{
  const struct recjpq_tables *r = tables_of(t);

  recjpq_find_rows(recjpq_plane_of(r->columns, first), r->deficits.order, t->n, rows);
}

static float score(const struct score_tables *t, uint32_t slot)
{
  const struct recjpq_tables *r = tables_of(t);

  return recjpq_score_by_step(r->subitem_scores, recjpq_plane_of(r->columns, slot), RECJPQ_BLOCK_ITEMS, t->n);
}

static const struct score_tables_ops ops = {
  .quantise = quantise,
  .limit = limit,
  .find_rows = find_rows,
  .score = score,
};

err_t recjpq_tables_make(const struct columns *columns, const struct prepared_queries *query, uint64_t n_items,
                         const struct kernels *kernels, struct region *region, struct score_tables **out)
{
  const struct recjpq_columns *c = (const struct recjpq_columns *)columns; /* whose operations have this function */
  const struct recjpq_subitems subitems = { recjpq_queries_of(query)->subitem_scores, c->cells.lengths, n_items };
  struct recjpq_tables *made;

  TRY(region_array(region, 1, sizeof *made, &made));
  made->columns = c;
  made->subitem_scores = subitems.scores;
  TRY(recjpq_deficits_init(c->model, kernels, &subitems, region, &made->deficits));
  made->base = (struct score_tables){
    .ops = &ops, .n = c->model->n_splits, .best = made->deficits.best_sum, .tables = made->deficits.sorted
  };
  *out = &made->base;
  return ERR_OK;
}
