/* SPDX-License-Identifier: Apache-2.0 */
/* Whole Mixture-of-Logits searches that bound scores first: they return the same hits and score fewer items. Each level
 * with a mol_bounds() is tested; without one the tests are skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/engine_state.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden.h"

static struct dice dice;
static struct kernels kernels; /* those of the level that is tested; checks may change them */

enum { MAX_ITEMS = 10000, N_QUERIES = 3, K_MAX = 300, MAX_COMPONENTS = 8 * 32, MAX_L = 64 };

struct world {
  struct engine *engine;
  struct searcher *searcher;
  size_t n_query, n_item, dim, n_logits;
};

/* Open a world of a level that has bounds. */
static struct world world_open(const char *golden, enum isa isa)
{
  char path[256];
  struct engine_space space = { .name = "space", .model_path = path };
  struct engine_config config = { &space, 1, MAX_ITEMS, K_MAX, N_QUERIES, isa, ENGINE_CPU, 1, { 0 }, { 0 } };
  struct world w;

  snprintf(path, sizeof path, "%s/weights.safetensors", golden);
  struct golden *weights = golden_open(path);
  w.n_query = (size_t)golden_number(weights, "mol.Pq");
  w.n_item = (size_t)golden_number(weights, "mol.Px");
  w.dim = (size_t)golden_number(weights, "mol.dP");
  w.n_logits = w.n_query * w.n_item;
  golden_close(&weights);
  snprintf(path, sizeof path, "%s/%s/weights.safetensors", SLUICE_GOLDEN_DIR, golden);
  assert_ok(engine_open(&config, &w.engine));
  kernels = *w.engine->kernels;
  w.engine->kernels = &kernels;
  assert_ok(searcher_open(w.engine, &w.searcher));
  return w;
}

static void world_close(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
}

/* How items are drawn: all random, a few drawn often, all nearly the same, zeros among them. */
enum kind { KIND_RANDOM, KIND_DUPLICATES, KIND_CLUSTER, KIND_ZEROS, N_KINDS };

static void draw(enum kind kind, float *out, size_t n, float scale)
{
  struct dice pool = { dice_below(&dice, 5) };

  dice_fill(kind == KIND_DUPLICATES ? &pool : &dice, out, n, kind == KIND_CLUSTER ? 1e-3f : scale);
  for (size_t i = 0; kind == KIND_CLUSTER && i < n; i++)
    out[i] += (float)(i % 7) - 3.0f;
  if (kind == KIND_ZEROS && dice_below(&dice, 2))
    memset(out, 0, n * sizeof *out);
}

static struct span key_of(size_t item, char text[16])
{
  return span_of(text, (size_t)snprintf(text, 16, "%05zu", item * 7919 % 99991));
}

static void put_items(struct world *w, size_t n, enum kind kind)
{
  float components[MAX_COMPONENTS], gate[MAX_L];
  char text[16];

  for (size_t i = 0; i < n; i++) {
    draw(kind, components, w->n_item * w->dim, 1.0f);
    draw(kind, gate, w->n_logits, 2.0f);
    struct part part = { .space = span_of_str("space"),
                         .components = { components, w->n_item * w->dim },
                         .item_gate = { gate, w->n_logits } };
    fixture_put(w->engine, key_of(i, text), &part, 1);
  }
  for (size_t i = 0; i < n; i += 1 + dice_below(&dice, 20))
    fixture_delete(w->engine, key_of(i, text));
}

/* Search all queries by both methods. Returns the number of items that `exact` scored. */
static uint64_t check_searches(struct world *w, size_t n_items, size_t k)
{
  static float components[N_QUERIES][MAX_COMPONENTS], gates[N_QUERIES][MAX_L];
  char texts[20][16];
  struct span excluded[20];
  struct query queries[N_QUERIES];
  struct answer answers[N_QUERIES], brute[1];
  uint64_t scored = 0;
  struct searcher *other;

  for (size_t i = 0; i < 20; i++)
    excluded[i] = key_of(dice_below(&dice, n_items), texts[i]);
  for (size_t q = 0; q < N_QUERIES; q++) {
    draw(dice_below(&dice, 2) ? KIND_RANDOM : KIND_CLUSTER, components[q], w->n_query * w->dim, 1.0f);
    draw(KIND_RANDOM, gates[q], w->n_logits, 2.0f);
    queries[q] = (struct query){ .space = span_of_str("space"),
                                 .method = span_of_str("exact"),
                                 .k = (uint32_t)k,
                                 .components = { components[q], w->n_query * w->dim },
                                 .query_gate = { gates[q], w->n_logits },
                                 .exclude = excluded,
                                 .n_exclude = 20 };
  }
  assert_ok(searcher_open(w->engine, &other));
  fixture_search(w->engine, w->searcher, queries, N_QUERIES, answers);
  for (size_t q = 0; q < N_QUERIES; q++) {
    queries[q].method = span_of_str("brute_force");
    fixture_search(w->engine, other, &queries[q], 1, brute);
    fixture_assert_same_hits(&answers[q], &brute[0]);
    assert_true(answers[q].receipt.is_exact);
    assert_int_equal(answers[q].receipt.has_bound, brute[0].receipt.has_bound);
    assert_true(answers[q].receipt.bound == brute[0].receipt.bound);
    scored += answers[q].counts.scored;
  }
  searcher_close(&other);
  return scored;
}

/* Approximate methods use bounds too: only the number of scored items changes. */
static void check_approximate(struct world *w, size_t n_items, size_t k)
{
  static const char *const methods[] = { "average(60)", "average(700)", "per_embedding(4)", "combined(2,300)",
                                         "two_pass" };
  float components[MAX_COMPONENTS], gate[MAX_L];
  struct answer with[1], without[1];
  struct query query = { .space = span_of_str("space"),
                         .k = (uint32_t)k,
                         .components = { components, w->n_query * w->dim },
                         .query_gate = { gate, w->n_logits } };
  struct searcher *other;

  draw(KIND_RANDOM, components, w->n_query * w->dim, 1.0f);
  draw(KIND_RANDOM, gate, w->n_logits, 2.0f);
  assert_ok(searcher_open(w->engine, &other));
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
    query.method = span_of_str(methods[i]);
    fixture_search(w->engine, w->searcher, &query, 1, with);
    struct kernels kept = kernels;
    kernels.mol_bounds = NULL;
    kernels.mol_screen = NULL;
    fixture_search(w->engine, other, &query, 1, without);
    kernels = kept;
    fixture_assert_same_hits(&with[0], &without[0]);
    assert_int_equal(with[0].counts.candidates, without[0].counts.candidates);
    assert_true(with[0].receipt.bound == without[0].receipt.bound);
    assert_true(with[0].counts.scored <= without[0].counts.scored);
    assert_true(without[0].counts.scored <= n_items);
  }
  searcher_close(&other);
}

static void check_world(const char *golden, enum isa isa, size_t n_items, size_t n_rounds)
{
  for (int kind = 0; kind < N_KINDS; kind++) {
    struct world w = world_open(golden, isa);
    put_items(&w, n_items, (enum kind)kind);
    for (size_t i = 0; i < n_rounds; i++) {
      size_t k = i == 0 ? 1 : 1 + dice_below(&dice, K_MAX);
      uint64_t scored = check_searches(&w, n_items, k);
      check_approximate(&w, n_items, k);
      print_message("%s, %s, %zu items, kind %d, k %zu: %.1f%% of the scores\n", isa_name(isa), golden, n_items, kind, k,
                    100.0 * (double)scored / (double)(N_QUERIES * n_items));
    }
    world_close(&w);
  }
}

static bool has_bounds(enum isa isa)
{
  const struct kernels *k = NULL;

  return kernels_get(isa, &k) == ERR_OK && k->mol_bounds;
}

static void searches_with_bounds_return_what_those_without_return(void **state)
{
  (void)state;
  if (!has_bounds(isa_detect()))
    skip();
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    if (!has_bounds(isa))
      continue;
    check_world("small_uid", isa, 3000, 4);
    check_world("edge", isa, 1500, 4);
    check_world("books", isa, 1000, 2);
  }
}

static void exact_searches_score_only_what_bounds_leave(void **state)
{
  struct world w;

  (void)state;
  if (!has_bounds(isa_detect()))
    skip();
  w = world_open("books", isa_detect());
  put_items(&w, MAX_ITEMS, KIND_RANDOM);
  assert_true(check_searches(&w, MAX_ITEMS, 10) < N_QUERIES * MAX_ITEMS / 4);
  world_close(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(searches_with_bounds_return_what_those_without_return),
    cmocka_unit_test(exact_searches_score_only_what_bounds_leave),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
