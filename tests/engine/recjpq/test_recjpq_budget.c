/* SPDX-License-Identifier: Apache-2.0 */
/* When `exact` gives its rings up for a scan: what the choice costs, beside the better one of the two ways. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/size.h"
#include "engine/recjpq/recjpq_begin.h"
#include "engine/recjpq/recjpq_budget.h"
#include "engine/recjpq/recjpq_visits.h"
#include "engine/similarity/similarity.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { ITEMS = 100000, SPLITS = 6, SUBITEMS = 64, DIM = 4, K = 10, QUERIES = 60 };

struct world {
  struct dice dice;
  struct recjpq_model model;
  struct columns *columns;
  const struct kernels *kernels;
  uint64_t admitted[ITEMS / 64 + 1];
  uint64_t n_admitted;
  struct region region;
};

/* One query. All costs are in cells. */
struct outcome {
  size_t rings; /* of going on to the end */
  size_t scan;
  size_t choice; /* of the rings until the budget ended them, and of the scan if it did */
};

static void draw_items(struct world *w)
{
  uint8_t codes[SPLITS];

  for (uint32_t slot = 0; slot < ITEMS; slot++) {
    size_t cluster = dice_below(&w->dice, 500);
    for (size_t m = 0; m < SPLITS; m++)
      codes[m] = (uint8_t)((cluster * 37 + m * 11 * cluster + dice_below(&w->dice, 12)) % SUBITEMS);
    assert_ok(recjpq_columns_cpu.put(w->columns, slot, true, codes));
  }
}

static int order_slots(const void *context, uint32_t a, uint32_t b)
{
  (void)context;
  return (a > b) - (a < b);
}

static struct world *open_world(uint64_t seed)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed;
  w->model = (struct recjpq_model){ .base = { SIMILARITY_RECJPQ },
                                    .n_splits = SPLITS,
                                    .n_subitems = SUBITEMS,
                                    .split_dim = DIM,
                                    .has_cells = true };
  w->model.centroids = calloc((size_t)SPLITS * DIM * PQ_SUBITEMS, sizeof(float));
  for (size_t i = 0; i < (size_t)SPLITS * DIM; i++) {
    for (size_t b = 0; b < SUBITEMS; b++)
      w->model.centroids[i * PQ_SUBITEMS + b] = dice_float(&w->dice, 1.0f);
  }
  assert_ok(kernels_get(isa_detect(), &w->kernels));
  assert_ok(recjpq_columns_cpu.open(&w->model.base, ITEMS, &w->columns));
  draw_items(w);
  return w;
}

static void close_world(struct world *w)
{
  recjpq_columns_cpu.close(&w->columns);
  region_fini(&w->region);
  free(w->model.centroids);
  free(w);
}

/* Admit a share of the items, drawn at random. */
static void draw_filter(struct world *w, double share)
{
  memset(w->admitted, 0, sizeof w->admitted);
  w->n_admitted = 0;
  for (size_t slot = 0; slot < ITEMS; slot++) {
    if (dice_float(&w->dice, 1.0f) < (float)(2 * share - 1)) {
      bits_set(w->admitted, slot);
      w->n_admitted++;
    }
  }
}

/* What a search's rings have cost. */
static size_t cost(const struct recjpq_search *s, size_t n_visited)
{
  return n_visited + (s->admits_most ? 0 : s->result->counts.candidates);
}

/* Visit all rings, and note what they had cost when the budget ended them. */
static struct outcome visit(struct recjpq_search *s, struct recjpq_budget *budget, struct recjpq_rings *rings,
                            struct recjpq_visits *visits)
{
  const uint8_t *limit = &s->deficits.limit;
  struct outcome out = { .scan = budget->n_scan };
  bool is_over = false;

  for (int left = recjpq_rings_left(rings, *limit); left > 0; left = recjpq_rings_left(rings, *limit)) {
    struct recjpq_ring_pair *p = recjpq_rings_cheapest(rings);
    if (!is_over && recjpq_budget_is_due(budget, s, visits->n_begun, p->next_cells)) {
      recjpq_visits_finish(visits);
      is_over = !recjpq_budget_allows(budget, s, rings, visits->n_begun);
      out.choice = is_over ? cost(s, visits->n_begun) + out.scan : 0;
    }
    recjpq_visits_ring(visits, p, recjpq_rings_end(p, left));
  }
  recjpq_visits_finish(visits);
  out.rings = cost(s, visits->n_begun);
  out.choice = is_over ? out.choice : out.rings;
  return out;
}

static struct outcome search(struct world *w, const float *vector, const struct recjpq_rule *rule)
{
  struct query query = { .vector = { vector, SPLITS * DIM } };
  const struct query *pointer = &query;
  struct topk_entry heap[K];
  struct search_result result = { .admit = { .words = w->admitted, .n_admitted = w->n_admitted },
                                  .min_score = -INFINITY,
                                  .floor = -INFINITY };
  struct search_batch batch = { .n = 1,
                                .results = &result,
                                .n_slots = ITEMS,
                                .n_items = ITEMS,
                                .kernels = w->kernels,
                                .scratch = &w->region };
  struct prepared_queries *prepared;
  struct recjpq_search s;
  struct recjpq_budget budget;
  struct recjpq_rings rings;
  struct recjpq_visits visits;

  region_reset(&w->region);
  topk_init(&result.topk, heap, K, order_slots, NULL);
  assert_ok(similarity_recjpq.prepare_queries(&w->model.base, w->kernels, &pointer, 1, &w->region, &prepared));
  batch.prepared = prepared;
  assert_ok(recjpq_begin(recjpq_columns_of(w->columns), &batch, 0, rule, &s));
  assert_true(s.floor > -INFINITY);
  assert_ok(recjpq_budget_init(&s, &batch, rule, &budget));
  assert_ok(recjpq_rings_init(&s.deficits, &s.columns->cells, &w->region, &rings));
  assert_ok(recjpq_visits_init(&s, &rings, &w->region, &visits));
  return visit(&s, &budget, &rings, &visits);
}

/* Return what random queries cost in all, and add up what the better way would, and how many gave their rings up. */
static struct outcome search_all(struct world *w, const struct recjpq_rule *rule, size_t *best, size_t *n_scans)
{
  struct outcome sum = { 0 };
  float vector[SPLITS * DIM];

  for (size_t q = 0; q < QUERIES; q++) {
    dice_fill(&w->dice, vector, sizeof vector / sizeof vector[0], 1.0f);
    struct outcome o = search(w, vector, rule);
    sum.rings += o.rings;
    sum.scan += o.scan;
    sum.choice += o.choice;
    *best += size_min(o.rings, o.scan);
    *n_scans += o.choice != o.rings;
  }
  return sum;
}

/* Where rings cost a quarter of a scan, where they cost fifteen scans, and between. In 60 runs the choice cost up to
 * 1.11 times the better way without a filter, and up to 1.40 times with one. */
static void the_choice_costs_little_more_than_the_better_way(void **state)
{
  static const double shares[] = { 1, 0.5, 0.2, 0.1 };
  static const size_t slots_per_cell[] = { 80, 160, 320, 640, 1280 };
  struct world *w = open_world(dice_seed());

  (void)state;
  for (size_t f = 0; f < sizeof shares / sizeof shares[0]; f++) {
    size_t n_scans = 0;
    draw_filter(w, shares[f]);
    for (size_t c = 0; c < sizeof slots_per_cell / sizeof slots_per_cell[0]; c++) {
      const struct recjpq_rule rule = { .warm_up_items_min = 1, .slots_per_cell = slots_per_cell[c] };
      size_t best = 0;
      struct outcome sum = search_all(w, &rule, &best, &n_scans);
      assert_in_range(sum.choice * 100, best * 100, best * (shares[f] == 1 ? 125 : 155));
    }
    assert_in_range(n_scans, QUERIES, 4 * QUERIES); /* no way is always taken */
  }
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_choice_costs_little_more_than_the_better_way),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
