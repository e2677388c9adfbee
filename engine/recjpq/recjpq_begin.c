/* SPDX-License-Identifier: Apache-2.0 */
/* How a search begins: which sub-items it looks at, and where its first threshold comes from. */
#include "engine/recjpq/recjpq_begin.h"

#include "engine/recjpq/recjpq_guess.h"
#include "engine/recjpq/recjpq_warm_up.h"

/* Does a query admit nearly all of these items? */
static bool admits_most(const struct admit *admit, uint64_t n_items)
{
  return admit->admits_parts || admit->n_admitted >= n_items - n_items / 4;
}

/* Members of a team tell each other their floors, so these must be proven. */
static err_t find_floor(struct recjpq_search *s, struct search_batch *batch, const struct recjpq_rule *rule)
{
  float min_score = s->result->min_score;

  if (!batch->share && recjpq_guess_pays(s->kernels, s->result, s->deficits.subitems.n_items, rule))
    TRY(recjpq_guess(s, batch, rule));
  else if (cells_are_complete(&s->columns->cells))
    TRY(recjpq_warm_up(s, batch));
  s->is_guess &= s->floor > min_score;
  s->floor = fmaxf(s->floor, min_score);
  return ERR_OK;
}

/* If many items are wanted, gather them in a list. */
static err_t init_hits(struct recjpq_search *s, struct region *scratch, const struct recjpq_rule *rule)
{
  size_t k = s->result->topk.k;

  s->hits = (struct recjpq_hits){ .threshold = -INFINITY };
  return rule->list_k_min > 0 && k >= rule->list_k_min ? recjpq_hits_init(k, scratch, &s->hits) : ERR_OK;
}

err_t recjpq_begin(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                   const struct recjpq_rule *rule, struct recjpq_search *out)
{
  struct search_result *result = &batch->results[query];
  struct recjpq_subitems subitems = { recjpq_queries_of(batch->prepared)[query].subitem_scores, c->cells.lengths,
                                      batch->n_items };

  bool has_floor = result->floor > result->min_score; /* from another member, which narrowed for itself */

  if (!has_floor && batch->n_items >= rule->warm_up_items_min && !admits_most(&result->admit, batch->n_items))
    TRY(recjpq_narrow(c, batch, &result->admit, &subitems));
  *out = (struct recjpq_search){
    .columns = c,
    .kernels = batch->kernels,
    .subitem_scores = subitems.scores,
    .result = result,
    .floor = result->floor,
    .expected = -INFINITY,
    .ceiling = INFINITY,
    .admits_most = admits_most(&result->admit, subitems.n_items),
    .n_tables = c->model->n_splits - c->model->n_splits * 3 / 8,
  };
  TRY(init_hits(out, batch->scratch, rule));
  TRY(recjpq_deficits_init(c->model, batch->kernels, &subitems, batch->scratch, &out->deficits));
  if (!has_floor && batch->n_items >= rule->warm_up_items_min)
    TRY(find_floor(out, batch, rule));
  recjpq_deficits_quantise(&out->deficits, out->floor);
  return ERR_OK;
}
