/* SPDX-License-Identifier: Apache-2.0 */
/* Every Mixture-of-Logits method, at every instruction level of this machine, over random and adversarial catalogues
 * that change between searches.
 *
 * Exact methods return the bytes of brute force. Brute force agrees with an oracle in double precision. Approximate
 * methods score exactly the candidates of the paper's definitions. No receipt is violated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <math.h>

#include "engine/engine.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden.h"

enum { MAX_ITEMS = 9500, MAX_COMPONENTS = 8 * 32, MAX_L = 64, MAX_QUERIES = 5, MAX_HIDDEN = 128 };

static struct dice dice;

/* How items are drawn. */
enum kind { KIND_RANDOM, KIND_DUPLICATES, KIND_ZEROS, KIND_CLUSTER, KIND_EQUAL, KIND_OPPOSED, KIND_TINY, N_KINDS };

struct item {
  bool is_live, is_excluded;
  float components[MAX_COMPONENTS], gate[MAX_L];
};

static struct item *items; /* [MAX_ITEMS], by item number */
static float query_components[MAX_QUERIES][MAX_COMPONENTS], query_gates[MAX_QUERIES][MAX_L];
static double (*scores)[MAX_ITEMS]; /* the oracle's scores, [MAX_QUERIES] */

static struct {
  size_t n_query, n_item, dim, n_logits, hidden;
  const float *w1, *b1, *w2, *b2;
  double inv_temperature;
  struct golden *weights;
  struct engine *engines[N_ISAS];
  struct searcher *searchers[N_ISAS];
} world;

/* The oracle -------------------- */

static void normalize(const float *in, size_t n, double *out)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += (double)in[k] * (double)in[k];
  for (size_t k = 0; k < n; k++)
    out[k] = in[k] / fmax(sqrt(sum), 1e-6);
}

static double silu(double x)
{
  return x / (1 + exp(-x));
}

static double oracle_score(const float *query, const float *query_gate, const struct item *item)
{
  double l[MAX_L], hidden[MAX_HIDDEN], num = 0, den = 0;

  for (size_t p = 0; p < world.n_logits; p++) {
    double f[64], g[64];
    normalize(query + p / world.n_item * world.dim, world.dim, f);
    normalize(item->components + p % world.n_item * world.dim, world.dim, g);
    l[p] = 0;
    for (size_t k = 0; k < world.dim; k++)
      l[p] += f[k] * g[k] * world.inv_temperature;
  }
  for (size_t j = 0; j < world.hidden; j++) {
    double sum = world.b1[j];
    for (size_t p = 0; p < world.n_logits; p++)
      sum += l[p] * world.w1[j * world.n_logits + p];
    hidden[j] = silu(sum);
  }
  for (size_t p = 0; p < world.n_logits; p++) {
    double sum = world.b2[p];
    for (size_t j = 0; j < world.hidden; j++)
      sum += hidden[j] * world.w2[p * world.hidden + j];
    double weight = exp(silu((double)query_gate[p] * item->gate[p] + sum));
    num += weight * l[p];
    den += weight;
  }
  return num / den;
}

/* The world -------------------- */

static void open_world(const char *name)
{
  char path[256];
  struct engine_space space = { .name = "space", .model_path = path };

  snprintf(path, sizeof path, "%s/weights.safetensors", name);
  world.weights = golden_open(path);
  world.n_query = (size_t)golden_number(world.weights, "mol.Pq");
  world.n_item = (size_t)golden_number(world.weights, "mol.Px");
  world.dim = (size_t)golden_number(world.weights, "mol.dP");
  world.inv_temperature = 1 / golden_number(world.weights, "mol.temperature");
  world.n_logits = world.n_query * world.n_item;
  world.hidden = golden_extent(world.weights, "_gating_fn._qi_partial_module.1.weight", 0);
  world.w1 = GOLDEN_F32(world.weights, "_gating_fn._qi_partial_module.1.weight", 0, 0);
  world.b1 = GOLDEN_F32(world.weights, "_gating_fn._qi_partial_module.1.bias", 0);
  world.w2 = GOLDEN_F32(world.weights, "_gating_fn._qi_partial_module.3.weight", 0, 0);
  world.b2 = GOLDEN_F32(world.weights, "_gating_fn._qi_partial_module.3.bias", 0);
  snprintf(path, sizeof path, "%s/%s/weights.safetensors", SLUICE_GOLDEN_DIR, name);
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    struct engine_config config = { &space, 1, MAX_ITEMS, MAX_ITEMS, MAX_QUERIES, isa, ENGINE_CPU, 1, { 0 }, { 0 } };
    assert_ok(engine_open(&config, &world.engines[isa]));
    assert_ok(searcher_open(world.engines[isa], &world.searchers[isa]));
  }
  memset(items, 0, MAX_ITEMS * sizeof *items);
}

static void close_world(void)
{
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    searcher_close(&world.searchers[isa]);
    engine_close(&world.engines[isa]);
  }
  golden_close(&world.weights);
}

/* The key of an item. Keys do not sort in the order of the items. */
static struct span key_of(size_t item, char text[16])
{
  return span_of(text, (size_t)snprintf(text, 16, "%05zu", item * 7919 % 99991));
}

static size_t item_of(struct span key)
{
  size_t number = 0;

  for (size_t i = 0; i < key.n; i++)
    number = number * 10 + (size_t)(key.p[i] - '0');
  for (size_t i = 0; i < MAX_ITEMS; i++) {
    if (i * 7919 % 99991 == number)
      return i;
  }
  fail_msg("no such key");
  return 0;
}

/* The direction that all items of a cluster share. */
static float base[MAX_COMPONENTS];

static void draw_vector(enum kind kind, size_t number, float *out, size_t n)
{
  struct dice pool = { number % 7 };

  switch (kind) {
  case KIND_DUPLICATES:
    dice_fill(&pool, out, n, 1.0f);
    return;
  case KIND_ZEROS:
    dice_fill(&dice, out, n, dice_below(&dice, 2) ? 0.0f : dice_below(&dice, 2) ? 1e-9f : 1.0f);
    return;
  case KIND_CLUSTER:
  case KIND_EQUAL:
  case KIND_OPPOSED:
    dice_fill(&dice, out, n, kind == KIND_EQUAL ? 0.0f : kind == KIND_CLUSTER ? 1e-3f : 0.2f);
    for (size_t k = 0; k < n; k++)
      out[k] += kind == KIND_OPPOSED && number % 8 ? -base[k % world.dim] : base[k % world.dim];
    return;
  case KIND_TINY: /* down to numbers whose squares vanish */
    dice_fill(&dice, out, n, ldexpf(1.0f, -(int)dice_below(&dice, 130)));
    return;
  default:
    dice_fill(&dice, out, n, 1.0f);
  }
}

static void put_item(size_t number, enum kind kind)
{
  struct item *item = &items[number];
  char text[16];

  item->is_live = true;
  draw_vector(kind, number, item->components, world.n_item * world.dim);
  struct dice pool = { number % 7 };
  dice_fill(kind == KIND_DUPLICATES || kind == KIND_EQUAL ? &pool : &dice, item->gate, world.n_logits,
            kind == KIND_EQUAL ? 0.0f : 2.0f);
  struct part part = { .space = span_of_str("space"),
                       .components = { item->components, world.n_item * world.dim },
                       .item_gate = { item->gate, world.n_logits } };
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++)
    fixture_put(world.engines[isa], key_of(number, text), &part, 1);
}

static void delete_item(size_t number)
{
  char text[16];

  items[number].is_live = false;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++)
    fixture_delete(world.engines[isa], key_of(number, text));
}

/* Searches -------------------- */

static size_t n_queries;
static struct span excluded_keys[40];
static char excluded_texts[40][16];
static size_t n_excluded;

static void draw_queries(size_t n_items, enum kind kind)
{
  n_queries = 1 + dice_below(&dice, MAX_QUERIES);
  for (size_t q = 0; q < n_queries; q++) {
    draw_vector(kind == KIND_OPPOSED ? KIND_CLUSTER : (enum kind)dice_below(&dice, N_KINDS), q, query_components[q],
                world.n_query * world.dim);
    dice_fill(&dice, query_gates[q], world.n_logits, 2.0f);
  }
  n_excluded = 0;
  for (size_t i = 0; i < n_items; i++) {
    items[i].is_excluded = n_excluded < 40 && dice_below(&dice, 30) == 0;
    if (items[i].is_excluded) {
      excluded_keys[n_excluded] = key_of(i, excluded_texts[n_excluded]);
      n_excluded++;
    }
  }
  for (size_t q = 0; q < n_queries; q++) {
    for (size_t i = 0; i < n_items; i++)
      scores[q][i] = items[i].is_live && !items[i].is_excluded
                         ? oracle_score(query_components[q], query_gates[q], &items[i])
                         : -INFINITY;
  }
}

static void search(enum isa isa, const char *method, size_t k, size_t first, size_t n, struct answer *answers)
{
  struct query queries[MAX_QUERIES];

  for (size_t q = 0; q < n; q++)
    queries[q] = (struct query){ .space = span_of_str("space"),
                                 .method = span_of_str(method),
                                 .k = (uint32_t)k,
                                 .components = { query_components[first + q], world.n_query * world.dim },
                                 .query_gate = { query_gates[first + q], world.n_logits },
                                 .exclude = excluded_keys,
                                 .n_exclude = n_excluded };
  fixture_search(world.engines[isa], world.searchers[isa], queries, n, answers);
}

/* All admitted items, ranked by the engine's own f32 scores: brute force with a large K. */
struct ranking {
  size_t n;
  size_t *items;
  float *scores;
};

static struct ranking full_ranking(size_t q)
{
  struct answer answer;
  struct ranking r;

  search(isa_detect(), "brute_force", MAX_ITEMS, q, 1, &answer);
  r.n = answer.n_hits;
  r.items = calloc(r.n + 1, sizeof *r.items);
  r.scores = calloc(r.n + 1, sizeof *r.scores);
  for (size_t i = 0; i < r.n; i++) {
    r.items[i] = item_of(answer.hits[i].key);
    r.scores[i] = answer.hits[i].score;
    assert_true(fabs(answer.hits[i].score - scores[q][r.items[i]]) <= 1e-4);
  }
  return r;
}

static void ranking_free(struct ranking *r)
{
  free(r->items);
  free(r->scores);
}

/* Assert that the hits are the first k candidates of the ranking. is_candidate NULL: all items are candidates. */
static void assert_hits(const struct answer *answer, const struct ranking *r, size_t k, const uint8_t *is_candidate)
{
  size_t at = 0;

  for (size_t i = 0; i < r->n && at < k; i++) {
    if (is_candidate && !is_candidate[r->items[i]])
      continue;
    assert_true(at < answer->n_hits);
    assert_int_equal(item_of(answer->hits[at].key), r->items[i]);
    assert_memory_equal(&answer->hits[at].score, &r->scores[i], sizeof(float));
    at++;
  }
  assert_int_equal(answer->n_hits, at);
}

/* Check a receipt against the ranking: no item that was not returned scores above the bound, not even by the last bit,
 * and an answer that is called exact is exact. No bound is above the highest logit that there can be. */
static void assert_receipt(const struct answer *answer, const struct ranking *r, size_t k)
{
  uint8_t *is_returned = calloc(MAX_ITEMS, 1);
  float best_left = -INFINITY;

  for (size_t i = 0; i < answer->n_hits; i++) {
    size_t item = item_of(answer->hits[i].key);
    assert_false(is_returned[item]);
    is_returned[item] = 1;
  }
  for (size_t i = 0; i < r->n; i++)
    best_left = is_returned[r->items[i]] ? best_left : fmaxf(best_left, r->scores[i]);
  free(is_returned);
  assert_true(answer->receipt.has_bound || answer->n_hits == r->n);
  if (answer->receipt.has_bound) {
    assert_true(best_left <= answer->receipt.bound);
    assert_true(answer->receipt.bound <= world.inv_temperature * (1 + 1e-4));
  }
  if (answer->receipt.is_exact) {
    assert_int_equal(answer->n_hits, k < r->n ? k : r->n);
    assert_true(answer->n_hits == 0 || best_left <= answer->hits[answer->n_hits - 1].score);
  }
}

/* Candidates by definition -------------------- */

static const float *sorted_dots;

static int best_dot_first(const void *a, const void *b)
{
  const size_t *x = a, *y = b;
  char texts[2][16];

  if (sorted_dots[*x] != sorted_dots[*y])
    return sorted_dots[*x] < sorted_dots[*y] ? 1 : -1;
  struct span kx = key_of(*x, texts[0]), ky = key_of(*y, texts[1]);
  return memcmp(kx.p, ky.p, kx.n);
}

static void mark_best(const float *dots, const struct ranking *r, size_t n, uint8_t *is_candidate)
{
  size_t *order = calloc(r->n + 1, sizeof *order);

  memcpy(order, r->items, r->n * sizeof *order);
  sorted_dots = dots;
  qsort(order, r->n, sizeof *order, best_dot_first);
  for (size_t i = 0; i < n && i < r->n; i++)
    is_candidate[order[i]] = 1;
  free(order);
}

static float dot(const float *a, const float *b, size_t n)
{
  float sum = 0.0f;

  for (size_t k = 0; k < n; k++)
    sum = fmaf(a[k], b[k], sum);
  return sum;
}

static void mean(const float *components, size_t n, float *out)
{
  for (size_t k = 0; k < world.dim; k++) {
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
      sum += components[i * world.dim + k];
    out[k] = sum / (float)n;
  }
}

/* n_pairs, n_average   lengths of the lists; 0: no such list */
static uint8_t *candidates_of(size_t q, const struct ranking *r, size_t n_pairs, size_t n_average)
{
  uint8_t *is_candidate = calloc(MAX_ITEMS, 1);
  float *dots = calloc(MAX_ITEMS, sizeof *dots), f[MAX_COMPONENTS], f_mean[64], g_mean[64];
  float(*g)[MAX_COMPONENTS] = calloc(r->n + 1, sizeof *g);

  memcpy(f, query_components[q], sizeof f);
  kernels_normalize(f, world.n_query, world.dim, 1e-6f);
  mean(f, world.n_query, f_mean);
  for (size_t i = 0; i < r->n; i++) {
    memcpy(g[i], items[r->items[i]].components, sizeof g[i]);
    kernels_normalize(g[i], world.n_item, world.dim, 1e-6f);
  }
  for (size_t p = 0; n_pairs && p < world.n_logits; p++) {
    for (size_t i = 0; i < r->n; i++)
      dots[r->items[i]] = dot(f + p / world.n_item * world.dim, g[i] + p % world.n_item * world.dim, world.dim);
    mark_best(dots, r, n_pairs, is_candidate);
  }
  for (size_t i = 0; n_average && i < r->n; i++) {
    mean(g[i], world.n_item, g_mean);
    dots[r->items[i]] = dot(f_mean, g_mean, world.dim);
  }
  if (n_average)
    mark_best(dots, r, n_average, is_candidate);
  free(g);
  free(dots);
  return is_candidate;
}

static size_t count_of(const uint8_t *is_candidate)
{
  size_t n = 0;

  for (size_t i = 0; i < MAX_ITEMS; i++)
    n += is_candidate[i];
  return n;
}

/* Checks -------------------- */

static void check_exact_methods(size_t k)
{
  static const char *const methods[] = { "brute_force", "two_pass", "exact", "" };
  struct answer answers[MAX_QUERIES];

  for (size_t q = 0; q < n_queries; q++) {
    struct ranking r = full_ranking(q);
    for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
      for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
        bool is_alone = (q + m) % 2 == 0;
        search(isa, methods[m], k, is_alone ? q : 0, is_alone ? 1 : n_queries, answers);
        const struct answer *answer = &answers[is_alone ? 0 : q];
        assert_hits(answer, &r, k, NULL);
        assert_true(answer->receipt.is_exact);
        assert_receipt(answer, &r, k);
        assert_true(answer->counts.scored <= answer->counts.items);
      }
    }
    ranking_free(&r);
  }
}

static void check_approximate(size_t k, size_t n_pairs, size_t n_average)
{
  struct answer answers[MAX_QUERIES];
  char method[64];

  snprintf(method, sizeof method, "combined(%zu,%zu)", n_pairs, n_average);
  if (!n_pairs)
    snprintf(method, sizeof method, "average(%zu)", n_average);
  if (!n_average)
    snprintf(method, sizeof method, "per_embedding(%zu)", n_pairs);
  for (size_t q = 0; q < n_queries; q++) {
    struct ranking r = full_ranking(q);
    uint8_t *is_candidate = candidates_of(q, &r, n_pairs, n_average);
    for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
      bool is_alone = (q + isa) % 2 == 0;
      search(isa, method, k, is_alone ? q : 0, is_alone ? 1 : n_queries, answers);
      const struct answer *answer = &answers[is_alone ? 0 : q];
      assert_hits(answer, &r, k, is_candidate);
      assert_int_equal(answer->counts.candidates, count_of(is_candidate));
      assert_true(answer->receipt.is_exact || count_of(is_candidate) < r.n); /* none is left out */
      assert_receipt(answer, &r, k);
    }
    free(is_candidate);
    ranking_free(&r);
  }
}

static void check_all(size_t n_items, enum kind kind)
{
  draw_queries(n_items, kind);
  check_exact_methods(1 + dice_below(&dice, 12));
  check_exact_methods(1 + dice_below(&dice, n_items + 20));
  for (int i = 0; i < 3; i++) {
    size_t n_pairs = i == 1 ? 0 : 1 + dice_below(&dice, dice_below(&dice, 3) ? 20 : n_items + 20);
    size_t n_average = i == 0 ? 0 : 1 + dice_below(&dice, dice_below(&dice, 3) ? 30 : n_items + 20);
    check_approximate(1 + dice_below(&dice, 30), n_pairs, n_average);
  }
}

static void change_catalogue(size_t n_items, size_t n_changes, enum kind kind)
{
  for (size_t i = 0; i < n_changes; i++) {
    size_t number = dice_below(&dice, n_items);
    if (items[number].is_live && dice_below(&dice, 2))
      delete_item(number);
    else
      put_item(number, dice_below(&dice, 3) ? kind : (enum kind)dice_below(&dice, N_KINDS));
  }
}

static void check_world(const char *name, enum kind kind, size_t n_items)
{
  open_world(name);
  dice_fill(&dice, base, MAX_COMPONENTS, 1.0f);
  check_all(n_items, kind); /* an empty catalogue */
  for (size_t i = 0; i < n_items; i++)
    put_item(i, kind);
  check_all(n_items, kind);
  change_catalogue(n_items, 1 + n_items / 4, kind);
  check_all(n_items, kind);
  for (size_t i = 3; i < n_items; i++) {
    if (items[i].is_live)
      delete_item(i);
  }
  check_all(n_items, kind); /* fewer live items than K and N */
  close_world();
}

static void every_method_keeps_its_promise_over_changing_catalogues(void **state)
{
  (void)state;
  for (enum kind kind = 0; kind < N_KINDS; kind++) {
    check_world("edge", kind, 40 + dice_below(&dice, 300));
    check_world("edge", kind, 1 + dice_below(&dice, 30));
  }
  check_world("books", KIND_RANDOM, 200);
}

/* Catalogues that are large beside the lists of `two_pass`, so that its first pass is not skipped. */
static void two_pass_is_exact_when_its_lists_are_short(void **state)
{
  enum { N = 1500 };

  (void)state;
  for (enum kind kind = 0; kind < N_KINDS; kind++) {
    open_world("edge");
    dice_fill(&dice, base, MAX_COMPONENTS, 1.0f);
    for (size_t i = 0; i < N; i++)
      put_item(i, kind);
    draw_queries(N, kind);
    check_exact_methods(1 + dice_below(&dice, 4));
    change_catalogue(N, N / 4, kind);
    draw_queries(N, kind);
    check_exact_methods(1 + dice_below(&dice, 4));
    close_world();
  }
}

/* The catalogue is large enough for `exact` to start from seeds, and most of its items can be dropped without a score.
 */
static void exact_drops_what_cannot_enter(void **state)
{
  enum { N = 9000 };
  struct answer answer;

  (void)state;
  open_world("edge");
  dice_fill(&dice, base, MAX_COMPONENTS, 1.0f);
  for (size_t i = 0; i < N; i++)
    put_item(i, KIND_OPPOSED);
  draw_queries(N, KIND_OPPOSED);
  n_queries = 1;
  check_exact_methods(10);
  search(isa_detect(), "exact", 10, 0, 1, &answer);
  assert_true(answer.counts.scored < N / 2);
  search(isa_detect(), "two_pass", 10, 0, 1, &answer);
  assert_true(answer.counts.scored < N / 2);
  check_approximate(10, 30, 0);
  check_approximate(10, 10, 300);
  close_world();
}

/* The first slots are taken for a sample of all. All 256 good items are in them, fewer than a list has entries. */
static void lists_are_complete_though_the_first_slots_mislead(void **state)
{
  enum { N = 9000, GOOD = 256, LISTED = 500 };

  (void)state;
  open_world("edge");
  dice_fill(&dice, base, MAX_COMPONENTS, 1.0f);
  for (size_t i = 0; i < N; i++)
    put_item(i, i < GOOD ? KIND_CLUSTER : KIND_RANDOM);
  draw_queries(N, KIND_OPPOSED);
  n_queries = 1;
  check_approximate(10, LISTED, 0);
  check_approximate(10, 0, LISTED);
  close_world();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_method_keeps_its_promise_over_changing_catalogues),
    cmocka_unit_test(two_pass_is_exact_when_its_lists_are_short),
    cmocka_unit_test(exact_drops_what_cannot_enter),
    cmocka_unit_test(lists_are_complete_though_the_first_slots_mislead),
  };

  dice.state = dice_seed();
  items = calloc(MAX_ITEMS, sizeof *items);
  scores = calloc(MAX_QUERIES, sizeof *scores);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
