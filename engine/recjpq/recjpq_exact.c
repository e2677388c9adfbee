/* SPDX-License-Identifier: Apache-2.0 */
/* Method `exact`: pruning over pairs of splits. It follows RecJPQPrune's idea (section 4.1, Principles P1 and P2), with
 * cells in the place of sub-items. It is exact.
 *
 * Each pair's cells are visited in rings of rising level (recjpq_rings.h). Suppose that every pair p has visited all
 * its cells below level next_p. An item that was not visited is in none of those cells, so the sum of its levels is at
 * least sum_p next_p. If that sum is above the limit, the item cannot be among the K best, and the search ends.
 *
 *   the paper, over splits                        here, over pairs
 *   sigma, sum of the best scores not visited     sum_p next_p, counted down from the highest possible score
 *   theta                                         the limit: the levels that reach the K-th best score found
 *   the split of the best sub-item comes next     the pair whose next ring has the fewest cells comes next
 *   BS sub-items at a time                        a ring at a time
 *
 * A pair's bound is far sharper than the bounds of its two splits. With M = 8 splits of 256 sub-items, a few percent of
 * the items are visited; single splits visit a fifth. In a cell, only the items that pass the levels of the other
 * splits are scored. An item that was already visited in an earlier ring of another pair is skipped (recjpq_seen.h).
 *
 * Small catalogues are scanned instead, and columns without cells, and a query whose rings turn out to be large
 * (recjpq_budget.h). The scan keeps the hits of the rings and skips the items that they have visited.
 */
#include <math.h>

#include "engine/recjpq/recjpq_admitted.h"
#include "engine/recjpq/recjpq_begin.h"
#include "engine/recjpq/recjpq_budget.h"
#include "engine/recjpq/recjpq_guess.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_scan.h"
#include "engine/recjpq/recjpq_visits.h"
#include "engine/search/receipt.h"

/* Visit rings until the answer is proven. Returns false if scanning the rest is faster. */
static bool visit_rings(struct recjpq_search *s, struct recjpq_budget *budget, struct recjpq_rings *rings,
                        struct recjpq_visits *visits)
{
  const uint8_t *limit = &s->deficits.limit;

  for (int left = recjpq_rings_left(rings, *limit); left > 0; left = recjpq_rings_left(rings, *limit)) {
    struct recjpq_ring_pair *p = recjpq_rings_cheapest(rings);
    if (recjpq_budget_is_due(budget, s, visits->n_begun, p->next_cells)) {
      recjpq_visits_finish(visits);
      if (!recjpq_budget_allows(budget, s, rings, visits->n_begun))
        return false;
    }
    recjpq_visits_ring(visits, p, recjpq_rings_end(p, left));
  }
  recjpq_visits_finish(visits);
  recjpq_offer_waiting(s);
  return true;
}

/* Let a scan find the items that the rings have not visited. The scan changes the tables, so it gets a copy. */
static err_t start_scan(struct recjpq_search *s, const struct recjpq_rings *rings, struct region *scratch)
{
  struct recjpq_seen *seen = &s->seen;
  size_t n_bytes = s->deficits.n_splits * PQ_SUBITEMS;
  uint8_t *tables;

  TRY(region_array(scratch, n_bytes, 1, &tables));
  TRY(region_array(scratch, rings->n_pairs, sizeof *seen->nexts, &seen->nexts));
  memcpy(tables, s->deficits.tables, n_bytes);
  seen->cells = &s->columns->cells;
  seen->tables = tables;
  for (size_t i = 0; i < rings->n_pairs; i++)
    seen->nexts[i] = rings->pairs[i].next;
  recjpq_deficits_quantise(&s->deficits, recjpq_threshold(s));
  return ERR_OK;
}

/* Search by rings. If scanning is faster, `*is_done` is false, and the scan is ready. */
static err_t search_rings(struct recjpq_search *s, const struct search_batch *batch, const struct recjpq_rule *rule,
                          bool *is_done)
{
  struct recjpq_budget budget;
  struct recjpq_rings rings;
  struct recjpq_visits visits;

  TRY(recjpq_budget_init(s, batch, rule, &budget));
  TRY(recjpq_rings_init(&s->deficits, &s->columns->cells, batch->scratch, &rings));
  TRY(recjpq_visits_init(s, &rings, batch->scratch, &visits));
  *is_done = visit_rings(s, &budget, &rings, &visits);
  if (!*is_done && visits.n_begun > 0)
    TRY(start_scan(s, &rings, batch->scratch));
  return ERR_OK;
}

/* By the faster one of two scans. */
static err_t scan(struct recjpq_search *s, const struct search_batch *batch)
{
  if (recjpq_admits_few(&s->result->admit, batch->n_slots))
    return recjpq_scan_admitted(s, batch->n_slots, batch->scratch);
  recjpq_scan(s, batch->n_slots);
  return ERR_OK;
}

/* Find all items that reach the floor. */
static err_t find_hits(struct recjpq_search *s, const struct search_batch *batch, const struct recjpq_rule *rule)
{
  bool is_done = false;

  if (cells_are_complete(&s->columns->cells) && batch->n_items > rule->scan_items_max && s->floor > -INFINITY) {
    TRY(search_rings(s, batch, rule, &is_done));
    if (!is_done)
      s->result->counts.plan = QUERY_PLAN_SCAN;
  }
  return is_done ? ERR_OK : scan(s, batch);
}

static err_t search_query(const struct recjpq_columns *c, struct search_batch *batch, size_t query,
                          const struct recjpq_rule *rule)
{
  struct recjpq_search s;

  TRY(recjpq_begin(c, batch, query, rule, &s));
  TRY(find_hits(&s, batch, rule));
  return recjpq_guess_failed(&s) ? scan(&s, batch) : ERR_OK;
}

err_t recjpq_search_exact_by(const struct recjpq_columns *c, struct search_batch *batch, const struct recjpq_rule *rule)
{
  for (size_t q = 0; q < batch->n; q++) {
    if (batch->n_items > 0)
      TRY(search_query(c, batch, q, rule));
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}

err_t recjpq_search_exact(const struct columns *columns, struct search_batch *batch)
{
  return recjpq_search_exact_by(recjpq_columns_of(columns), batch, &recjpq_rule_usual);
}
