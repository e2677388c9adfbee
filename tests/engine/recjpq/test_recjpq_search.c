/* SPDX-License-Identifier: Apache-2.0 */
/* Every RecJPQ method compared with an independent oracle, to the last bit and the last tie, over awkward catalogues
 * while items come, go, change and move. The sizes at which a method changes its strategy are set so low that small
 * catalogues use every strategy. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/method.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_rule.h"
#include "engine/search/search_batch.h"
#include "engine/similarity/similarity.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_SLOTS = 9000, MAX_SPLITS = 9, MAX_SUBITEMS = 256, MAX_DIM = 4, MAX_BATCH = 8 };

struct world {
  struct dice dice;
  struct recjpq_model model;
  struct columns *columns; /* are searched */
  struct columns *other;   /* get the same changes, and are searched in turn with them */
  size_t n_slots;
  uint64_t n_items;
  uint64_t has_part[MAX_SLOTS / 64 + 1];
  uint8_t codes[MAX_SLOTS][MAX_SPLITS];
  uint32_t keys[MAX_SLOTS]; /* keys decide ties; they are not in slot order */
  struct region region;
};

/* One query, the items that it admits, and the expected answer. */
struct request {
  float vector[MAX_SPLITS * MAX_DIM];
  uint64_t words[MAX_SLOTS / 64 + 1]; /* slots that have a part and pass the filter */
  bool has_filter;
  uint32_t excluded[40];
  size_t n_excluded;
  size_t k;
  float min_score;
  double true_scores[MAX_SLOTS];
  double term_sums[MAX_SLOTS];      /* sum of the absolute values of the terms of each score */
  struct topk_entry due[MAX_SLOTS]; /* the expected order: all admitted items, best first */
  size_t n_due;
};

static uint64_t seed;
static const struct world *sorted_world; /* used by compare_entries() */

/* The world -------------------- */

enum draw { DRAW_UNIFORM, DRAW_SKEWED, DRAW_FEW, DRAW_ALL_EQUAL, DRAW_CLUSTERS, DRAW_SPARSE, N_DRAWS };

static uint8_t draw_code(struct world *w, enum draw draw, size_t split, size_t cluster)
{
  size_t b = dice_below(&w->dice, w->model.n_subitems), n = w->model.n_subitems;

  switch (draw) {
  case DRAW_SKEWED:
    return (uint8_t)(b * dice_below(&w->dice, n) / n);
  case DRAW_FEW:
    return (uint8_t)(b % 3 % n);
  case DRAW_ALL_EQUAL:
    return (uint8_t)(n - 1);
  case DRAW_CLUSTERS:
    return (uint8_t)((cluster * 37 + split * 11 + dice_below(&w->dice, 2)) % n);
  case DRAW_SPARSE: /* most sub-items have no items */
    return (uint8_t)(b / 16 * 16);
  default:
    return (uint8_t)b;
  }
}

static void draw_centroids(struct world *w)
{
  size_t n = w->model.n_splits * w->model.split_dim;
  bool is_coarse = dice_below(&w->dice, 3) == 0; /* few values, so many scores are equal */

  assert_true(n * PQ_SUBITEMS <= (size_t)MAX_SPLITS * MAX_DIM * PQ_SUBITEMS);
  for (size_t i = 0; i < n; i++) {
    for (size_t b = 0; b < w->model.n_subitems; b++) {
      float x = dice_float(&w->dice, 1.0f);
      w->model.centroids[i * PQ_SUBITEMS + b] = is_coarse ? rintf(2 * x) : x;
    }
  }
}

static struct world *open_world_with(size_t n_splits, size_t n_subitems, size_t split_dim, uint64_t salt,
                                     bool has_cells)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed + 1000003 * salt;
  w->model = (struct recjpq_model){
    .base = { SIMILARITY_RECJPQ },
    .n_splits = n_splits,
    .n_subitems = n_subitems,
    .split_dim = split_dim,
    .has_cells = has_cells,
  };
  w->model.centroids = calloc(n_splits * split_dim * PQ_SUBITEMS, sizeof(float));
  draw_centroids(w);
  for (uint32_t i = 0; i < MAX_SLOTS; i++)
    w->keys[i] = (uint32_t)(dice_u64(&w->dice) << 14 | i);
  assert_ok(recjpq_columns_cpu.open(&w->model.base, MAX_SLOTS, &w->columns));
  assert_ok(recjpq_columns_cpu.open(&w->model.base, MAX_SLOTS, &w->other));
  if (dice_below(&w->dice, 2)) {
    recjpq_columns_cpu.defer_index(w->columns);
    recjpq_columns_cpu.defer_index(w->other);
  }
  return w;
}

/* Usually with cells. */
static struct world *open_world(size_t n_splits, size_t n_subitems, size_t split_dim, uint64_t salt)
{
  struct dice d = { seed + 1000003 * salt + 1 };

  return open_world_with(n_splits, n_subitems, split_dim, salt, dice_below(&d, 4) > 0);
}

static void close_world(struct world *w)
{
  recjpq_columns_cpu.close(&w->columns);
  recjpq_columns_cpu.close(&w->other);
  region_fini(&w->region);
  free(w->model.centroids);
  free(w);
}

static void put(struct world *w, uint32_t slot, enum draw draw)
{
  uint8_t prepared[MAX_SPLITS + 3] = { 0 };
  size_t cluster = dice_below(&w->dice, 5);

  for (size_t m = 0; m < w->model.n_splits; m++)
    prepared[m] = w->codes[slot][m] = draw_code(w, draw, m, cluster);
  bool is_new = !bits_get(w->has_part, slot);
  assert_ok(recjpq_columns_cpu.put(w->columns, slot, is_new, prepared));
  assert_ok(recjpq_columns_cpu.put(w->other, slot, is_new, prepared));
  w->n_items += is_new;
  bits_set(w->has_part, slot);
}

static void drop(struct world *w, uint32_t slot)
{
  if (!bits_get(w->has_part, slot))
    return;
  recjpq_columns_cpu.drop(w->columns, slot);
  recjpq_columns_cpu.drop(w->other, slot);
  bits_clear(w->has_part, slot);
  w->n_items--;
}

/* Delete a slot as the arena does: the last slot moves into the hole. */
static void delete (struct world *w, uint32_t slot)
{
  uint32_t last = (uint32_t)--w->n_slots;

  drop(w, slot);
  if (slot != last && bits_get(w->has_part, last)) {
    recjpq_columns_cpu.move(w->columns, last, slot);
    recjpq_columns_cpu.move(w->other, last, slot);
    memcpy(w->codes[slot], w->codes[last], sizeof w->codes[slot]);
    bits_set(w->has_part, slot);
    bits_clear(w->has_part, last);
  }
  uint32_t key = w->keys[slot];
  w->keys[slot] = w->keys[last];
  w->keys[last] = key;
}

static void swap_columns(struct world *w)
{
  struct columns *columns = w->columns;

  w->columns = w->other;
  w->other = columns;
}

/* If the index is deferred, searches meet no index, a part of it, and all of it, built or copied. */
static void churn(struct world *w, enum draw draw, size_t n_steps)
{
  for (size_t i = dice_below(&w->dice, 4); i > 0; i--)
    assert_ok(recjpq_columns_cpu.continue_index(w->columns, w->other, w->has_part, w->n_slots));
  if (dice_below(&w->dice, 2))
    swap_columns(w);
  for (size_t i = 0; i < n_steps; i++) {
    size_t what = dice_below(&w->dice, 8);
    if (w->n_slots < MAX_SLOTS && (what < 5 || w->n_slots == 0))
      put(w, (uint32_t)w->n_slots++, draw);
    else if (what == 5 && w->n_slots > 0)
      put(w, (uint32_t)dice_below(&w->dice, w->n_slots), draw);
    else if (what == 6 && w->n_slots > 0)
      drop(w, (uint32_t)dice_below(&w->dice, w->n_slots)); /* the item keeps its parts in other spaces */
    else if (w->n_slots > 0)
      delete (w, (uint32_t)dice_below(&w->dice, w->n_slots));
  }
}

/* The oracle -------------------- */

/* Compute a score by its definition: fused products added one by one within each split, then the splits added in order.
 */
static float score_of(const struct world *w, const float *vector, const uint8_t *codes, double *true_score,
                      double *term_sum)
{
  float score = 0;

  *true_score = *term_sum = 0;
  for (size_t m = 0; m < w->model.n_splits; m++) {
    float sum = 0;
    for (size_t k = 0; k < w->model.split_dim; k++) {
      float q = vector[m * w->model.split_dim + k];
      float x = w->model.centroids[(m * w->model.split_dim + k) * PQ_SUBITEMS + codes[m]];
      sum = fmaf(q, x, sum);
      *true_score += (double)q * (double)x;
      *term_sum += fabs((double)q * (double)x);
    }
    score = m == 0 ? sum : score + sum;
  }
  return score;
}

static int compare_entries(const void *a, const void *b)
{
  const struct topk_entry *x = a, *y = b;

  if (x->score != y->score)
    return x->score < y->score ? 1 : -1;
  return sorted_world->keys[x->slot] < sorted_world->keys[y->slot] ? -1 : 1;
}

static int order_keys(const void *context, uint32_t a, uint32_t b)
{
  const struct world *w = context;

  return (w->keys[a] > w->keys[b]) - (w->keys[a] < w->keys[b]);
}

static bool is_excluded(const struct request *r, uint32_t slot)
{
  for (size_t i = 0; i < r->n_excluded; i++) {
    if (r->excluded[i] == slot)
      return true;
  }
  return false;
}

/* How much does the query like an item's sub-item in a split? */
static double taste(const struct world *w, const struct request *r, uint32_t slot, size_t split)
{
  double sum = 0;

  for (size_t k = split * w->model.split_dim; k < (split + 1) * w->model.split_dim; k++)
    sum += (double)(r->vector[k] * w->model.centroids[k * PQ_SUBITEMS + w->codes[slot][split]]);
  return sum;
}

/* A filter admits or drops one of several items at random, admits some of the first split's codes, or admits what the
 * query likes less in some split than a random item. */
static void draw_filter(struct world *w, struct request *r)
{
  enum { BY_CODE, BY_TASTE, BY_CHANCE };
  size_t kind = dice_below(&w->dice, 4), one_of = 1 + dice_below(&w->dice, 20), code = dice_below(&w->dice, 3);
  size_t split = dice_below(&w->dice, w->model.n_splits);
  double most = w->n_slots > 0 ? taste(w, r, (uint32_t)dice_below(&w->dice, w->n_slots), split) : 0;
  bool drops_one = dice_below(&w->dice, 2);

  memcpy(r->words, w->has_part, sizeof r->words);
  r->has_filter = dice_below(&w->dice, 2);
  for (uint32_t slot = 0; r->has_filter && slot < w->n_slots; slot++) {
    if (kind == BY_CODE    ? w->codes[slot][0] % 3 != code
        : kind == BY_TASTE ? taste(w, r, slot, split) >= most
                           : (dice_below(&w->dice, one_of) == 0) == drops_one)
      bits_clear(r->words, slot);
  }
}

static void draw_request(struct world *w, struct request *r)
{
  size_t dim = w->model.n_splits * w->model.split_dim, kind = dice_below(&w->dice, 6);
  float scale = kind == 1 ? 1e-18f : kind == 2 ? 1e9f : 1.0f;

  dice_fill(&w->dice, r->vector, dim, scale);
  if (kind == 0) /* every item ties */
    memset(r->vector, 0, sizeof r->vector);
  for (size_t i = w->model.split_dim; kind == 3 && i < dim; i++) /* the first split decides */
    r->vector[i] *= dice_below(&w->dice, 2) ? 1e-3f : 0.0f;
  draw_filter(w, r);
  r->n_excluded = 0;
  if (dice_below(&w->dice, 2)) {
    for (uint32_t slot = 0; slot < w->n_slots && r->n_excluded < 40; slot++) {
      if (bits_get(r->words, slot) && dice_below(&w->dice, 12) == 0)
        r->excluded[r->n_excluded++] = slot;
    }
  }
  size_t ks[] = { 1, 1 + dice_below(&w->dice, 12), 50, MAX_SLOTS };
  r->k = ks[dice_below(&w->dice, 4)];
  r->n_due = 0;
  for (uint32_t slot = 0; slot < w->n_slots; slot++) {
    if (bits_get(r->words, slot) && !is_excluded(r, slot)) {
      float score = score_of(w, r->vector, w->codes[slot], &r->true_scores[slot], &r->term_sums[slot]);
      r->due[r->n_due++] = (struct topk_entry){ score, slot };
    }
  }
  sorted_world = w;
  qsort(r->due, r->n_due, sizeof r->due[0], compare_entries);
  r->min_score = -INFINITY;
}

/* Draw a least score: none, the score of an item, the next one above it, or one that all items reach, or none. */
static void draw_min_score(struct world *w, struct request *r)
{
  float some = r->n_due > 0 ? r->due[dice_below(&w->dice, 1 + dice_below(&w->dice, r->n_due))].score : 0.0f;
  const float drawn[] = { -INFINITY, -INFINITY, some, some, nextafterf(some, INFINITY), -FLT_MAX, FLT_MAX };

  r->min_score = drawn[dice_below(&w->dice, sizeof drawn / sizeof drawn[0])];
}

/* Searches -------------------- */

/* In the place of a rule: search just the admitted items. */
static const struct recjpq_rule admitted_only;

static void search(struct world *w, const char *method_text, enum isa isa, const struct recjpq_rule *rule,
                   const struct request *requests, size_t n, struct search_result *results)
{
  struct query queries[MAX_BATCH] = { 0 };
  const struct query *pointers[MAX_BATCH];
  struct method method;
  struct search_batch batch = {
    .method = &method, .n = n, .results = results, .n_slots = w->n_slots, .n_items = w->n_items, .scratch = &w->region
  };
  struct prepared_queries *prepared;

  assert_ok(method_parse(span_of_str(method_text), &method));
  assert_ok(methods_verify(&recjpq_methods, "recjpq", &w->model.base, &method));
  assert_ok(kernels_get(isa, &batch.kernels));
  region_reset(&w->region);
  for (size_t i = 0; i < n; i++) {
    struct topk_entry *heap;
    queries[i].vector = (struct floats){ requests[i].vector, w->model.n_splits * w->model.split_dim };
    pointers[i] = &queries[i];
    assert_ok(region_array(&w->region, requests[i].k, sizeof *heap, &heap));
    results[i] =
        (struct search_result){ .admit = { .words = requests[i].words,
                                           .excluded = requests[i].excluded,
                                           .n_excluded = requests[i].n_excluded,
                                           .n_admitted = requests[i].n_due,
                                           .admits_parts = requests[i].n_excluded == 0 && !requests[i].has_filter },
                                .min_score = requests[i].min_score,
                                .floor = requests[i].min_score };
    topk_init(&results[i].topk, heap, requests[i].k, order_keys, w);
  }
  assert_ok(similarity_recjpq.prepare_queries(&w->model.base, batch.kernels, pointers, n, &w->region, &prepared));
  batch.prepared = prepared;
  if (rule == &admitted_only)
    assert_ok(recjpq_search_admitted(w->columns, &batch));
  else if (rule && strcmp(method_text, "pqtopk") == 0)
    assert_ok(recjpq_search_pqtopk_by(recjpq_columns_of(w->columns), &batch, rule));
  else if (rule)
    assert_ok(recjpq_search_exact_by(recjpq_columns_of(w->columns), &batch, rule));
  else
    assert_ok(methods_find(&recjpq_methods, &method)->search.on_cpu(w->columns, &batch));
  for (size_t i = 0; i < n; i++)
    topk_finish(&results[i].topk);
}

static void assert_best(const struct request *r, const struct search_result *result)
{
  size_t n = 0;

  while (n < r->k && n < r->n_due && r->due[n].score >= r->min_score)
    n++;
  assert_true(result->receipt.is_exact);
  assert_int_equal(result->topk.n, n);
  assert_int_equal(result->receipt.has_bound, n < r->n_due);
  if (n < r->n_due)
    assert_true(result->receipt.bound == (n == r->k ? r->due[n - 1].score : r->min_score));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(result->topk.heap[i].slot, r->due[i].slot);
    assert_true(result->topk.heap[i].score == r->due[i].score);
  }
}

/* Assert that canonical scores differ from double precision only by rounding, in proportion to the size of the terms.
 */
static void assert_scores_are_true(const struct request *r)
{
  for (size_t i = 0; i < r->n_due; i++) {
    uint32_t slot = r->due[i].slot;
    assert_true(fabs((double)r->due[i].score - r->true_scores[slot]) <= 1e-5 * r->term_sums[slot] + 1e-36);
  }
}

/* Assert that no item that was not returned beats the bound, and that an answer called exact is exact. */
static void assert_receipt_holds(const struct request *r, const struct search_result *result)
{
  size_t at = 0;

  if (result->receipt.is_exact) {
    assert_best(r, result);
    return;
  }
  assert_true(result->receipt.has_bound);
  assert_true(result->topk.n <= r->k);
  for (size_t i = 0; i < r->n_due; i++) { /* both lists are in the same order */
    if (at < result->topk.n && result->topk.heap[at].slot == r->due[i].slot) {
      assert_true(result->topk.heap[at].score == r->due[i].score);
      at++;
    } else {
      assert_true(r->due[i].score <= result->receipt.bound);
      assert_true(r->true_scores[r->due[i].slot] <=
                  (double)result->receipt.bound + 1e-5 * r->term_sums[r->due[i].slot] + 1e-36);
    }
  }
  assert_int_equal(at, result->topk.n);
}

static void check_methods(struct world *w, struct request *requests, size_t n)
{
  static const char *const exact[] = { "default",
                                       "pqtopk",
                                       "exact",
                                       "prune(1)",
                                       "prune(8)",
                                       "prune(256)",
                                       "prune_inflated(8,100)",
                                       "prune_limited(1,1000000)" };
  static const char *const unsafe[] = { "prune_inflated(1,100)",        "prune_inflated(4,150)",
                                        "prune_inflated(1,4000000000)", "prune_limited(1,1)",
                                        "prune_limited(2,3)",           "prune_limited(16,10)" };
  struct search_result results[MAX_BATCH];
  enum isa isa = (enum isa)dice_below(&w->dice, (size_t)isa_detect() + 1);

  for (size_t m = 0; m < sizeof exact / sizeof exact[0]; m++) {
    search(w, exact[m], isa, NULL, requests, n, results);
    for (size_t i = 0; i < n; i++) {
      if (strcmp(exact[m], "prune_inflated(8,100)") == 0)
        assert_receipt_holds(&requests[i], &results[i]); /* the unsafe condition may miss a tie */
      else
        assert_best(&requests[i], &results[i]);
    }
  }
  for (size_t m = 0; m < sizeof unsafe / sizeof unsafe[0]; m++) {
    search(w, unsafe[m], isa, NULL, requests, n, results);
    for (size_t i = 0; i < n; i++)
      assert_receipt_holds(&requests[i], &results[i]);
  }
}

static void check_admitted(struct world *w, struct request *requests, size_t n)
{
  struct search_result results[MAX_BATCH];

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    search(w, "exact", isa, &admitted_only, requests, n, results);
    for (size_t q = 0; q < n; q++)
      assert_best(&requests[q], &results[q]);
  }
}

/* Search by rings, whatever the size of the catalogue, and give up never, at once, or at any point on the way. Hits are
 * gathered in a list or not. */
static void check_rings(struct world *w, struct request *requests, size_t n)
{
  static const size_t slots_per_cell[] = { 0, 1, 4, 20, 100000 };
  struct search_result results[MAX_BATCH];

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    for (size_t i = 0; i < sizeof slots_per_cell / sizeof slots_per_cell[0]; i++) {
      struct recjpq_rule rule = { .warm_up_items_min = 1, .slots_per_cell = slots_per_cell[i] };
      rule.list_k_min = dice_below(&w->dice, 2);
      search(w, "exact", isa, &rule, requests, n, results);
      for (size_t q = 0; q < n; q++)
        assert_best(&requests[q], &results[q]);
    }
  }
}

/* Guess the first threshold, often too high, in front of rings that end, that give up, and of a scan. */
static void check_guesses(struct world *w, struct request *requests, size_t n)
{
  struct search_result results[MAX_BATCH];
  enum isa isa = (enum isa)dice_below(&w->dice, (size_t)isa_detect() + 1);

  for (size_t i = 0; i < 6; i++) {
    struct recjpq_rule rule = { .warm_up_items_min = 1, .guess_k_min = 1, .guess_items_per_hit = 1 };
    rule.guess_deviations = i % 2 ? 4 : 0;
    rule.list_k_min = dice_below(&w->dice, 2);
    rule.slots_per_cell = i < 2 ? 0 : i < 4 ? 4 : 100000;
    for (size_t m = 0; m < 2; m++) {
      search(w, m == 0 ? "exact" : "pqtopk", isa, &rule, requests, n, results);
      for (size_t q = 0; q < n; q++)
        assert_best(&requests[q], &results[q]);
    }
  }
}

static void every_method_keeps_its_promise_while_items_come_and_go(void **state)
{
  static const size_t shapes[][3] = { { 8, 256, 2 }, { 1, 16, 3 }, { 2, 256, 1 }, { 9, 5, 2 },   { 4, 1, 2 },
                                      { 3, 30, 4 },  { 5, 2, 1 },  { 6, 17, 1 },  { 7, 100, 2 }, { 1, 1, 1 } };
  struct request *requests = calloc(MAX_BATCH, sizeof *requests);

  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (enum draw draw = DRAW_UNIFORM; draw < N_DRAWS; draw++) {
      struct world *w = open_world(shapes[s][0], shapes[s][1], shapes[s][2], s * N_DRAWS + draw);
      for (int round = 0; round < 5; round++) {
        size_t n = 1 + dice_below(&w->dice, MAX_BATCH);
        for (size_t i = 0; i < n; i++) {
          draw_request(w, &requests[i]);
          draw_min_score(w, &requests[i]);
          assert_scores_are_true(&requests[i]);
        }
        check_methods(w, requests, n);
        check_rings(w, requests, n);
        check_guesses(w, requests, n);
        check_admitted(w, requests, n);
        churn(w, draw, round == 0 ? 20 : 200 + dice_below(&w->dice, 600));
      }
      close_world(w);
    }
  }
  free(requests);
}

/* The items in the cells of the first two splits. */
static size_t count_indexed(const struct columns *columns)
{
  const struct cells *cells = &recjpq_columns_of(columns)->cells;
  size_t n = 0;

  for (size_t i = 0; i < cells->n_subitems * cells->n_subitems; i++)
    n += cells->pairs[0].cells[i].n;
  return n;
}

/* The second columns are said to have no items: what they built themselves would be empty. */
static void an_index_that_others_have_is_copied(void **state)
{
  struct world *w = open_world_with(3, 30, 2, 0, true);

  (void)state;
  recjpq_columns_cpu.defer_index(w->columns);
  recjpq_columns_cpu.defer_index(w->other);
  while (w->n_slots < 900)
    put(w, (uint32_t)w->n_slots++, DRAW_UNIFORM);
  while (!recjpq_columns_cpu.has_index(w->other))
    assert_ok(recjpq_columns_cpu.continue_index(w->other, w->columns, w->has_part, w->n_slots));
  while (!recjpq_columns_cpu.has_index(w->columns))
    assert_ok(recjpq_columns_cpu.continue_index(w->columns, w->other, NULL, 0));
  assert_int_equal(count_indexed(w->other), w->n_slots);
  assert_int_equal(count_indexed(w->columns), w->n_slots);
  close_world(w);
}

/* 2^24 + 1.5 rounds to 2^24 + 2. So an item with a lower sum ties with the best one and comes first by its key. A
 * filter that ignored rounding would miss it. */
static void items_that_tie_only_by_rounding_are_found(void **state)
{
  struct world *w = open_world(2, 2, 1, 0);
  struct request r = { .vector = { 1.0f, 1.0f }, .k = 1, .min_score = -INFINITY };
  static const float centroids[2][2] = { { 0x1p24f, 0x1p24f }, { 2.0f, 1.5f } };

  (void)state;
  for (size_t m = 0; m < 2; m++)
    memcpy(w->model.centroids + m * PQ_SUBITEMS, centroids[m], sizeof centroids[m]);
  for (uint32_t slot = 0; slot < 900; slot++) {
    put(w, slot, DRAW_UNIFORM);
    w->keys[slot] = (w->codes[slot][1] == 1 ? 0 : 2000) + slot; /* items with the lower sum have the lower keys */
  }
  w->n_slots = 900;
  memcpy(r.words, w->has_part, sizeof r.words);
  for (uint32_t slot = 0; slot < w->n_slots; slot++) {
    float score = score_of(w, r.vector, w->codes[slot], &r.true_scores[slot], &r.term_sums[slot]);
    r.due[r.n_due++] = (struct topk_entry){ score, slot };
  }
  sorted_world = w;
  qsort(r.due, r.n_due, sizeof r.due[0], compare_entries);
  assert_true(r.due[0].score == 0x1p24f + 2.0f && w->codes[r.due[0].slot][1] == 1);
  check_methods(w, &r, 1);
  check_rings(w, &r, 1);
  close_world(w);
}

static void catalogues_of_several_blocks_keep_the_promise_too(void **state)
{
  struct request *requests = calloc(MAX_BATCH, sizeof *requests);

  (void)state;
  for (enum draw draw = DRAW_UNIFORM; draw < N_DRAWS; draw++) {
    struct world *w = open_world(8, 256, 2, 100 + draw);
    while (w->n_slots < MAX_SLOTS)
      put(w, (uint32_t)w->n_slots++, draw);
    for (size_t i = 0; i < MAX_BATCH; i++) {
      draw_request(w, &requests[i]);
      draw_min_score(w, &requests[i]);
    }
    check_methods(w, requests, MAX_BATCH);
    check_rings(w, requests, MAX_BATCH);
    check_guesses(w, requests, MAX_BATCH);
    check_admitted(w, requests, MAX_BATCH);
    close_world(w);
  }
  free(requests);
}

/* Search with prune_limited until prune_inflated, after as many steps, would stop. */
static void search_until_inflated(struct world *w, int step, int percent, const struct request *r,
                                  struct search_result *result)
{
  char method[64];

  for (size_t n = 1; n <= w->model.n_splits * w->model.n_subitems; n++) {
    snprintf(method, sizeof method, "prune_limited(%d,%zu)", step, n);
    search(w, method, ISA_REF, NULL, r, 1, result);
    if (result->receipt.is_exact)
      return;
    if (result->topk.n < r->k)
      continue;
    float threshold = result->topk.heap[r->k - 1].score;
    if (result->receipt.bound <= threshold + ((float)percent / 100.0f - 1.0f) * fabsf(threshold))
      return;
  }
  fail_msg("prune_limited never ends");
}

static void check_inflated(struct world *w, int step, int percent, const struct request *r)
{
  struct search_result result, due;
  char method[64];

  search_until_inflated(w, step, percent, r, &due);
  snprintf(method, sizeof method, "prune_inflated(%d,%d)", step, percent);
  search(w, method, ISA_REF, NULL, r, 1, &result);
  assert_int_equal(result.receipt.is_exact, due.receipt.is_exact);
  assert_true(result.receipt.bound == due.receipt.bound);
  assert_int_equal(result.topk.n, due.topk.n);
  if (!due.receipt.is_exact)
    assert_int_equal(result.counts.scored, due.counts.scored);
}

static void an_inflated_threshold_ends_the_search_at_once(void **state)
{
  static const int rows[][2] = { { 1, 100 }, { 1, 101 }, { 4, 120 }, { 8, 150 }, { 2, 300 } };
  struct world *w = open_world_with(6, 32, 2, 3000, true);
  struct request *r = calloc(1, sizeof *r);

  (void)state;
  while (w->n_slots < 900)
    put(w, (uint32_t)w->n_slots++, DRAW_UNIFORM);
  while (!recjpq_columns_cpu.has_index(w->columns))
    assert_ok(recjpq_columns_cpu.continue_index(w->columns, w->other, w->has_part, w->n_slots));
  for (int round = 0; round < 20; round++) {
    draw_request(w, r);
    r->k = round % 2 ? r->k : 1 + r->n_due * 3 / 4; /* the threshold is below 0 */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
      check_inflated(w, rows[i][0], rows[i][1], r);
  }
  free(r);
  close_world(w);
}

/* The sample is the first 1,024 slots: the next ones would begin at 17 times as many. */
static void the_items_of_a_sample_count_as_scored(void **state)
{
  const struct recjpq_rule rule = {
    .warm_up_items_min = 1, .guess_k_min = 1, .guess_items_per_hit = 1, .guess_deviations = 4
  };
  struct world *w = open_world(8, 64, 2, 2000);
  struct request *r = calloc(1, sizeof *r);
  struct search_result result;

  (void)state;
  while (w->n_slots < MAX_SLOTS)
    put(w, (uint32_t)w->n_slots++, DRAW_UNIFORM);
  do
    draw_request(w, r);
  while (r->has_filter || r->n_excluded > 0 || r->k != 50 || r->due[0].score == 0);
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    search(w, "pqtopk", isa, &rule, r, 1, &result);
    assert_best(r, &result);
    assert_in_range(result.counts.candidates, r->k, MAX_SLOTS - 1024);
    assert_int_equal(result.counts.scored, result.counts.candidates + 1024);
  }
  free(r);
  close_world(w);
}

/* Assert that a search does the same work with the worst item excluded, whenever it gives the rings up. */
static void check_worst_excluded(struct world *w, struct request r[2])
{
  r[1] = r[0];
  r[1].excluded[r[1].n_excluded++] = r[1].due[--r[1].n_due].slot;
  for (size_t slots_per_cell = 1; slots_per_cell < 40; slots_per_cell++) {
    struct recjpq_rule rule = { .warm_up_items_min = 1, .slots_per_cell = slots_per_cell };
    struct search_result results[2];
    search(w, "exact", isa_detect(), &rule, r, 2, results);
    assert_int_equal(results[0].counts.candidates, results[1].counts.candidates);
    assert_int_equal(results[0].counts.scored, results[1].counts.scored);
    assert_int_equal(results[0].counts.plan, results[1].counts.plan);
  }
}

static void an_excluded_key_does_not_change_the_plan(void **state)
{
  struct world *w = open_world(8, 64, 2, 1000);
  struct request *r = calloc(2, sizeof *r);

  (void)state;
  while (w->n_slots < MAX_SLOTS)
    put(w, (uint32_t)w->n_slots++, DRAW_UNIFORM);
  for (int round = 0; round < 10; round++) {
    do
      draw_request(w, &r[0]);
    while (r[0].has_filter || r[0].n_excluded > 0 || r[0].k != 50 || r[0].due[0].score == 0);
    check_worst_excluded(w, r);
  }
  free(r);
  close_world(w);
}

/* With a scan that costs nothing, the cells are given up, unless the first threshold leaves none. */
static void a_search_that_gives_up_its_cells_says_so(void **state)
{
  const struct recjpq_rule keeps_on = { .warm_up_items_min = 1 };
  const struct recjpq_rule gives_up = { .warm_up_items_min = 1, .slots_per_cell = 100 * MAX_SLOTS };
  struct world *w = open_world_with(8, 64, 2, 3000, true);
  struct request *r = calloc(1, sizeof *r);
  struct search_result result;
  size_t n_given_up = 0;

  (void)state;
  while (w->n_slots < MAX_SLOTS)
    put(w, (uint32_t)w->n_slots++, DRAW_UNIFORM);
  while (!recjpq_columns_cpu.has_index(w->columns))
    assert_ok(recjpq_columns_cpu.continue_index(w->columns, w->other, w->has_part, w->n_slots));
  for (int round = 0; round < 20; round++) {
    draw_request(w, r);
    search(w, "exact", isa_detect(), &keeps_on, r, 1, &result);
    assert_int_equal(result.counts.plan, QUERY_PLAN_MASKED);
    search(w, "exact", isa_detect(), &gives_up, r, 1, &result);
    n_given_up += result.counts.plan == QUERY_PLAN_SCAN;
  }
  assert_true(n_given_up > 0);
  free(r);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_method_keeps_its_promise_while_items_come_and_go),
    cmocka_unit_test(an_index_that_others_have_is_copied),
    cmocka_unit_test(items_that_tie_only_by_rounding_are_found),
    cmocka_unit_test(catalogues_of_several_blocks_keep_the_promise_too),
    cmocka_unit_test(an_inflated_threshold_ends_the_search_at_once),
    cmocka_unit_test(the_items_of_a_sample_count_as_scored),
    cmocka_unit_test(an_excluded_key_does_not_change_the_plan),
    cmocka_unit_test(a_search_that_gives_up_its_cells_says_so),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
