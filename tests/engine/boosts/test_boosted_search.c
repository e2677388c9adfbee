/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with boosts: compared with the sums of all items, by an exact search without boosts and by values that the
 * test keeps. Exact methods must agree to the bit; what approximate ones promise must hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/boosts/decay.h"
#include "engine/engine_state.h"
#include "kernels/device.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

/* Enough items that seeds are looked for. */
enum { ITEMS = 20000, BATCH = 4, ROUNDS = 5, COUNTRIES = 12, EXCLUDED = 300 };
enum { KEY_BYTES = 8, KEY_FACTOR = 7919, KEY_PRIME = 20011, CHANGES = 500, EXPLAINED = 8 };

#define NOW 1700000000000

static const struct subject {
  const char *space;
  const char *exact[4];
  const char *approximate[4];
} subjects[] = {
  { "dot", { "exact", "brute_force" }, { 0 } },
  { "pq", { "exact", "pqtopk", "default", "prune(8)" }, { "prune_limited(8,1)" } },
  { "mol", { "exact", "brute_force", "two_pass" }, { "average(1)", "average(60)", "per_embedding(8)", "combined(5,30)" } },
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static uint64_t seed;

struct item {
  struct value values[N_FILTER_ATTRIBUTES];
  float vector[SMALL_DIM];
  uint8_t codes[SMALL_SPLITS];
  char key[KEY_BYTES], country[KEY_BYTES];
};

struct world {
  struct temp_dir dir;
  char paths[SUBJECTS][PATH_MAX];
  struct item items[ITEMS];
  struct engine *engine;
  struct searcher *searcher;
  struct dice dice;
};

static void write_models(struct world *w)
{
  temp_dir_init(&w->dir);
  for (size_t i = 0; i < SUBJECTS; i++)
    small_model_write(w->dir.path, subjects[i].space, SMALL_WHOLE, &w->dice, w->paths[i]);
}

/* Prices are skewed, as popularity is, and often equal. Some times are to come. */
static void draw_values(struct world *w, struct item *item)
{
  struct dice *d = &w->dice;

  snprintf(item->country, sizeof item->country, "c%zu", dice_below(d, 1 + dice_below(d, COUNTRIES)));
  if (dice_below(d, 10))
    item->values[COUNTRY] = (struct value){ .kind = VALUE_TEXT, .text = span_of_str(item->country) };
  if (dice_below(d, 10))
    item->values[YEAR] = (struct value){ .kind = VALUE_INTEGER, .integer = (int64_t)dice_below(d, 9) - 4 };
  if (dice_below(d, 10))
    item->values[AVAILABLE] = (struct value){ .kind = VALUE_BOOL, .is_true = dice_below(d, 2) };
  if (dice_below(d, 10))
    item->values[PRICE] = (struct value){ .kind = VALUE_NUMBER,
                                          .number = dice_below(d, 4) ? 1 / (1e-3 + fabs((double)dice_float(d, 1.0f)))
                                                                     : (double)dice_below(d, 5) };
  if (dice_below(d, 10))
    item->values[EXPIRES] = (struct value){ .kind = VALUE_INTEGER,
                                            .integer = NOW - (int64_t)dice_below(d, 1u << 30) + (1 << 28) };
}

static void draw_item(struct world *w, size_t i)
{
  struct item *item = &w->items[i];
  size_t kind = dice_below(&w->dice, 30);

  *item = (struct item){ 0 };
  snprintf(item->key, sizeof item->key, "%zu", i * KEY_FACTOR % KEY_PRIME);
  draw_values(w, item);
  for (size_t k = 0; k < SMALL_DIM; k++)
    item->vector[k] = (float)((kind * 31 + k * 17) % 11) / 4 - 1.0f + dice_float(&w->dice, 0.3f);
  for (size_t m = 0; m < SMALL_SPLITS; m++)
    item->codes[m] = (uint8_t)(dice_below(&w->dice, 3) ? (kind + m) % SMALL_SUBITEMS : dice_below(&w->dice, SMALL_SUBITEMS));
}

/* Put items first..first+n-1 as they are. */
static void place_items(struct world *w, size_t first, size_t n)
{
  static struct part parts[CHANGES][SUBJECTS];
  static struct attribute_value values[CHANGES][N_FILTER_ATTRIBUTES];
  static struct item_change changes[CHANGES];
  struct attributes all = filter_attributes();

  for (size_t i = 0; i < n; i++) {
    struct item *item = &w->items[first + i];
    parts[i][0] = (struct part){ .space = span_of_str("dot"), .vector = { item->vector, SMALL_DIM } };
    parts[i][1] = (struct part){ .space = span_of_str("pq"), .codes = span_of(item->codes, SMALL_SPLITS) };
    parts[i][2] = (struct part){ .space = span_of_str("mol"), .vector = { item->vector, SMALL_DIM } };
    for (size_t a = 0; a < N_FILTER_ATTRIBUTES; a++)
      values[i][a] = (struct attribute_value){ all.v[a].name, item->values[a] };
    changes[i] = (struct item_change){ .key = span_of_str(item->key), .parts = parts[i], .n_parts = SUBJECTS };
    changes[i].attributes = values[i];
    changes[i].n_attributes = N_FILTER_ATTRIBUTES;
  }
  fixture_apply(w->engine, changes, n);
}

/* Draw and put items first..first+n-1 again. */
static void put_items(struct world *w, size_t first, size_t n)
{
  for (size_t i = 0; i < n; i++)
    draw_item(w, first + i);
  place_items(w, first, n);
}

static void open_world(struct world *w, enum engine_backend backend)
{
  struct engine_space spaces[SUBJECTS];
  struct engine_config config = { .spaces = spaces,
                                  .n_spaces = SUBJECTS,
                                  .max_items = ITEMS,
                                  .max_k = ITEMS,
                                  .max_batch = BATCH,
                                  .isa = isa_detect(),
                                  .backend = backend,
                                  .n_workers = 1,
                                  .attributes = filter_attributes() };

  *w = (struct world){ .dice = { seed } };
  write_models(w);
  for (size_t i = 0; i < SUBJECTS; i++)
    spaces[i] = (struct engine_space){ .name = subjects[i].space, .model_path = w->paths[i] };
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
}

static void fill_world(struct world *w)
{
  for (size_t first = 0; first < ITEMS; first += CHANGES)
    put_items(w, first, CHANGES);
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
}

/* ---- The oracle ---- */

/* Return the item with a key. */
static const struct item *item_of(const struct world *w, struct span key)
{
  static uint16_t of[KEY_PRIME];
  size_t number = 0, is_filled = of[KEY_FACTOR];

  for (size_t i = 0; !is_filled && i < ITEMS; i++)
    of[i * KEY_FACTOR % KEY_PRIME] = (uint16_t)i;
  for (size_t i = 0; i < key.n; i++)
    number = 10 * number + (key.p[i] - (size_t)'0');
  assert_true(span_equal(span_of_str(w->items[of[number]].key), key));
  return &w->items[of[number]];
}

/* The filters of boosts, and which items they admit. */
static const char *const filters[] = { "country = 'c0'", "year > 1 or available", "not has(country)", "year = 99" };

static bool admits(size_t filter, const struct item *item)
{
  const struct value *country = &item->values[COUNTRY], *year = &item->values[YEAR];
  const struct value *available = &item->values[AVAILABLE];

  switch (filter) {
  case 0:
    return country->kind != VALUE_NULL && strcmp(item->country, "c0") == 0;
  case 1:
    return (year->kind != VALUE_NULL && year->integer > 1) || (available->kind != VALUE_NULL && available->is_true);
  case 2:
    return country->kind == VALUE_NULL;
  default:
    return false;
  }
}

static double number_of(const struct value *value)
{
  return value->kind == VALUE_NUMBER ? value->number : (double)value->integer;
}

static double boost_of(const struct query *query, const struct boost *boost, const struct item *item)
{
  struct attributes all = filter_attributes();

  for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
    if (span_equal(boost->filter, span_of_str(filters[i])))
      return admits(i, item) ? boost->weight : 0;
  }
  for (size_t a = 0; a < all.n; a++) {
    const struct value *value = &item->values[a];
    if (!span_equal(all.v[a].name, boost->attribute) || value->kind == VALUE_NULL)
      continue;
    double age = (double)query->now_unix_ms - number_of(value);
    return boost->weight * (a == EXPIRES ? decay(fmax(0, age) / (double)boost->half_life_ms) : number_of(value));
  }
  return 0;
}

static float score_of(const struct query *query, const struct item *item, float similarity)
{
  double sum = 0;

  for (size_t i = 0; i < query->n_boosts; i++)
    sum += boost_of(query, &query->boosts[i], item);
  return (float)((double)similarity + sum);
}

/* All items that a query admits, best first. */
struct ranking {
  struct hit hits[ITEMS];
  size_t n;
};

static int compare_hits(const void *a, const void *b)
{
  const struct hit *x = a, *y = b;

  return x->score != y->score ? (x->score > y->score ? -1 : 1) : span_compare(x->key, y->key);
}

static void rank_all(struct world *w, const struct query *query, struct ranking *out)
{
  struct query all = *query;
  struct answer answer = { 0 };

  all.k = ITEMS;
  all.max_per.n = 0;
  all.n_boosts = 0;
  all.n_explain = 0;
  all.method = span_of_str("exact");
  fixture_search(w->engine, w->searcher, &all, 1, &answer);
  assert_false(answer.is_boosted);
  out->n = answer.n_hits;
  for (size_t i = 0; i < out->n; i++) {
    const struct item *item = item_of(w, answer.hits[i].key);
    float similarity = answer.hits[i].score;
    out->hits[i] = (struct hit){ .key = span_of_str(item->key),
                                 .score = score_of(query, item, similarity),
                                 .similarity = similarity,
                                 .value = item->values[COUNTRY] };
  }
  qsort(out->hits, out->n, sizeof *out->hits, compare_hits);
}

/* Choose the best hits one by one, with at most max_per of a country. Returns their number. */
static size_t choose(const struct ranking *all, const struct query *query, struct hit *out)
{
  size_t n = 0;

  for (size_t i = 0; i < all->n && n < query->k; i++) {
    const struct hit *hit = &all->hits[i];
    uint32_t n_same = 0;
    for (size_t j = 0; query->max_per.n && hit->value.kind != VALUE_NULL && j < n; j++)
      n_same += out[j].value.kind != VALUE_NULL && span_equal(out[j].value.text, hit->value.text);
    if (!query->max_per.n || n_same < query->max_per.n)
      out[n++] = *hit;
  }
  return n;
}

/* ---- Comparing ---- */

static void assert_exact(const struct query *query, const struct ranking *all, const struct answer *answer)
{
  static struct hit expected[ITEMS];
  size_t n = choose(all, query, expected);

  assert_int_equal(answer->n_hits, n);
  for (size_t i = 0; i < n; i++) {
    assert_true(span_equal(answer->hits[i].key, expected[i].key));
    assert_memory_equal(&answer->hits[i].score, &expected[i].score, sizeof(float));
    if (query->n_boosts > 0)
      assert_memory_equal(&answer->hits[i].similarity, &expected[i].similarity, sizeof(float));
  }
}

static bool has_hit(const struct answer *answer, struct span key)
{
  for (size_t i = 0; i < answer->n_hits; i++) {
    if (span_equal(answer->hits[i].key, key))
      return true;
  }
  return false;
}

/* What holds for every method. Bounds hold up to the rounding of a score that the method itself has not computed. */
static void assert_promises(const struct query *query, const struct ranking *all, const struct answer *answer)
{
  assert_true(answer->n_hits <= query->k);
  assert_true(answer->is_boosted == (query->n_boosts > 0));
  if (answer->is_boosted)
    assert_int_equal(answer->now_unix_ms, query->now_unix_ms);
  for (size_t i = 1; i < answer->n_hits; i++)
    assert_true(compare_hits(&answer->hits[i - 1], &answer->hits[i]) < 0);
  if (!query->max_per.n)
    assert_true(answer->receipt.has_bound == (answer->n_hits < all->n) || !answer->is_boosted);
  for (size_t i = 0; !query->max_per.n && i < all->n; i++) {
    const struct hit *hit = &all->hits[i];
    if (has_hit(answer, hit->key))
      continue;
    assert_true(answer->receipt.has_bound);
    assert_true(hit->score <= answer->receipt.bound + 1e-4f * fmaxf(1.0f, fabsf(hit->score)));
    break; /* the others are not better */
  }
  if (answer->receipt.is_exact)
    assert_exact(query, all, answer);
}

static void assert_explained(const struct query *query, const struct answer *answer, const struct ranking *all)
{
  for (size_t i = 0; i < answer->n_explanations; i++) {
    const struct explanation *e = &answer->explanations[i];
    size_t at = 0;
    while (at < all->n && !span_equal(all->hits[at].key, e->key))
      at++;
    if (at == all->n) {
      assert_true(e->verdict < VERDICT_HIT);
      continue;
    }
    assert_true(e->has_score);
    assert_memory_equal(&e->score, &all->hits[at].score, sizeof(float));
    if (!query->max_per.n)
      assert_int_equal(e->verdict, at < query->k ? VERDICT_HIT : VERDICT_OUTRANKED);
  }
}

/* ---- Queries ---- */

struct drawn {
  float vectors[BATCH][SMALL_DIM];
  struct boost boosts[BATCH][QUERY_BOOSTS_MAX];
  struct span excluded[BATCH][EXCLUDED];
  struct span explained[BATCH][EXPLAINED];
  struct query queries[BATCH];
  size_t n;
};

/* Weights from those that hardly matter to those beside which nothing else does. */
static void draw_boost(struct dice *d, struct boost *out)
{
  static const char *const attributes[] = { "year", "price", "expires" };
  static const double weights[] = { 0, 1e-6, 0.01, 0.1, 0.3, 1, 3, 100, 1e9 };
  size_t a = dice_below(d, 4);

  *out = (struct boost){ .weight = weights[dice_below(d, 9)] * (dice_below(d, 3) ? 1 : -1) };
  if (a == 3)
    out->filter = span_of_str(filters[dice_below(d, 4)]);
  else
    out->attribute = span_of_str(attributes[a]);
  if (a == 2)
    out->half_life_ms = (int64_t)1 << dice_below(d, 40);
}

static void draw_query(struct world *w, const char *space, const char *method, struct drawn *d, struct region *region)
{
  static const uint32_t some_k[] = { 1, 3, 10, 100, ITEMS };
  static const char *const some_filters[] = { "country != 'c0'", "price < 2", "year = 99" };
  struct dice *dice = &w->dice;
  size_t i = d->n++;
  struct query *query = &d->queries[i];

  dice_fill(dice, d->vectors[i], SMALL_DIM, 1.0f);
  *query = (struct query){ .space = span_of_str(space),
                           .method = span_of_str(method),
                           .k = some_k[dice_below(dice, dice_below(dice, 8) ? 4 : 5)],
                           .vector = { d->vectors[i], SMALL_DIM },
                           .boosts = d->boosts[i],
                           .n_boosts = dice_below(dice, 8) ? dice_below(dice, 4) : dice_below(dice, QUERY_BOOSTS_MAX + 1),
                           .now_unix_ms = NOW,
                           .exclude = d->excluded[i],
                           .explain = d->explained[i] };
  for (size_t b = 0; b < query->n_boosts; b++)
    draw_boost(dice, &query->boosts[b]);
  if (dice_below(dice, 5) == 0)
    query->max_per = (struct max_per){ span_of_str("country"), 1 + (uint32_t)dice_below(dice, 3) };
  if (dice_below(dice, 3) == 0)
    query->filter = span_of_str(some_filters[dice_below(dice, 3)]);
  query->n_exclude = dice_below(dice, 3) ? 0 : dice_below(dice, dice_below(dice, 2) ? 9 : EXCLUDED);
  query->n_explain = dice_below(dice, 2) ? 0 : EXPLAINED;
  for (size_t x = 0; x < EXCLUDED; x++)
    d->excluded[i][x] = span_of_str(w->items[dice_below(dice, ITEMS)].key);
  for (size_t x = 0; x < EXPLAINED; x++)
    d->explained[i][x] = span_of_str(w->items[dice_below(dice, ITEMS)].key);
  assert_ok(engine_check_filter(w->engine, query, region));
}

/* Keep hits and explanations: the next search takes their memory. */
static struct answer keep(const struct answer *from, struct region *region)
{
  struct answer copy = *from;

  assert_ok(region_array(region, from->n_hits + 1, sizeof *copy.hits, &copy.hits));
  assert_ok(region_array(region, from->n_explanations + 1, sizeof *copy.explanations, &copy.explanations));
  for (size_t i = 0; i < from->n_hits; i++) {
    copy.hits[i] = from->hits[i];
    assert_ok(region_copy(region, from->hits[i].key, &copy.hits[i].key));
  }
  for (size_t i = 0; i < from->n_explanations; i++)
    copy.explanations[i] = from->explanations[i];
  return copy;
}

/* Search again for sums that reach one of those that are due. */
static void search_above(struct world *w, const struct query *query, const struct ranking *all)
{
  static struct hit expected[ITEMS];
  size_t n = choose(all, query, expected), n_due = 0;
  struct query above = *query;
  struct answer answer = { 0 };

  above.n_explain = 0;
  above.has_min_score = true;
  above.min_score = n > 0 ? expected[dice_below(&w->dice, n)].score : 0.0f;
  while (n_due < n && expected[n_due].score >= above.min_score)
    n_due++;
  fixture_search(w->engine, w->searcher, &above, 1, &answer);
  assert_true(answer.receipt.is_exact);
  assert_int_equal(answer.n_hits, n_due);
  for (size_t i = 0; i < n_due; i++)
    assert_true(span_equal(answer.hits[i].key, expected[i].key) && answer.hits[i].score == expected[i].score);
}

/* Search a random batch, and check each answer. */
static void search_batch(struct world *w, const char *space, const char *method, bool is_exact)
{
  static struct ranking all;
  struct drawn d = { .n = 0 };
  struct answer answers[BATCH] = { 0 };
  struct region region = { 0 };
  size_t n = 1 + dice_below(&w->dice, BATCH);

  for (size_t i = 0; i < n; i++)
    draw_query(w, space, method, &d, &region);
  fixture_search(w->engine, w->searcher, d.queries, n, answers);
  for (size_t i = 0; i < n; i++)
    answers[i] = keep(&answers[i], &region);
  for (size_t i = 0; i < n; i++) {
    const struct query *query = &d.queries[i];
    rank_all(w, query, &all);
    assert_int_equal(answers[i].error, ANSWER_OK);
    assert_promises(query, &all, &answers[i]);
    assert_true(answers[i].counts.scored <= answers[i].counts.items);
    assert_true(answers[i].receipt.is_exact || !is_exact);
    if (is_exact && answers[i].counts.has_admitted)
      assert_int_equal(answers[i].counts.admitted, all.n);
    if (answers[i].receipt.is_exact)
      assert_explained(query, &answers[i], &all);
    if (is_exact)
      search_above(w, query, &all);
  }
  region_fini(&region);
}

static void search_on(enum engine_backend backend, int rounds)
{
  struct world *w = calloc(1, sizeof *w);

  open_world(w, backend);
  fill_world(w);
  for (int round = 0; round < rounds; round++) {
    for (size_t s = 0; s < SUBJECTS; s++) {
      for (size_t m = 0; m < 4 && subjects[s].exact[m]; m++)
        search_batch(w, subjects[s].space, subjects[s].exact[m], true);
      for (size_t m = 0; m < 4 && subjects[s].approximate[m]; m++)
        search_batch(w, subjects[s].space, subjects[s].approximate[m], false);
    }
    put_items(w, dice_below(&w->dice, ITEMS - CHANGES), CHANGES);
  }
  close_world(w);
  free(w);
}

static void hits_are_the_best_sums(void **state)
{
  (void)state;
  search_on(ENGINE_CPU, ROUNDS);
}

#ifdef SLUICE_CUDA
static void the_same_on_a_gpu(void **state)
{
  struct device device;

  (void)state;
  if (device_find(&device) != ERR_OK)
    skip();
  search_on(ENGINE_CUDA, 1);
}
#endif

static uint64_t count_evaluated(const struct world *w)
{
  struct filter_cache_stats stats;

  filter_cache_get_stats(w->engine->filters, &stats);
  return stats.n_evaluated;
}

static void equal_filters_are_evaluated_once(void **state)
{
  struct world *w = calloc(1, sizeof *w);
  const float one[SMALL_DIM] = { 1 };
  struct boost boost = { .weight = 100, .filter = span_of_str("year = 99") }; /* nobody has it, so all are looked at */
  struct query query = { .space = span_of_str("dot"), .k = 10, .vector = { one, SMALL_DIM }, .boosts = &boost, .n_boosts = 1 };
  struct query queries[BATCH];
  struct answer answers[BATCH] = { 0 };
  struct region region = { 0 };

  (void)state;
  open_world(w, ENGINE_CPU);
  fill_world(w);
  assert_ok(engine_check_filter(w->engine, &query, &region));
  for (size_t i = 0; i < BATCH; i++)
    queries[i] = query;
  assert_int_equal(count_evaluated(w), 0);
  fixture_search(w->engine, w->searcher, queries, BATCH, answers);
  assert_int_equal(count_evaluated(w), 1);
  fixture_search(w->engine, w->searcher, queries, BATCH, answers);
  assert_int_equal(count_evaluated(w), 1);
  region_fini(&region);
  close_world(w);
  free(w);
}

/* Neither similarities nor boosts decide alone: the best sums have a bit less of both. After the first round a third of
 * the items is left, so seeds are searched. */
static void the_best_of_both_are_found(void **state)
{
  static struct ranking all;
  struct world *w = calloc(1, sizeof *w);
  const float one[SMALL_DIM] = { 1 };
  struct boost boost = { .weight = 1, .attribute = span_of_str("price") };
  struct query query = { .space = span_of_str("dot"), .k = 100, .vector = { one, SMALL_DIM }, .boosts = &boost, .n_boosts = 1 };
  struct answer answer = { 0 };
  struct region region = { 0 };

  (void)state;
  open_world(w, ENGINE_CPU);
  for (size_t i = 0; i < ITEMS; i++) {
    struct item *item = &w->items[i];
    snprintf(item->key, sizeof item->key, "%zu", i * KEY_FACTOR % KEY_PRIME);
    item->vector[0] = dice_float(&w->dice, 1);
    item->values[PRICE] = (struct value){ .kind = VALUE_NUMBER, .number = (double)dice_float(&w->dice, 1) };
  }
  w->items[7].values[PRICE].number = 1e6; /* one value far off does not make the others count less */
  for (size_t first = 0; first < ITEMS; first += CHANGES)
    place_items(w, first, CHANGES);
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_true(answer.counts.scored < ITEMS / 4);
  answer = keep(&answer, &region);
  assert_true(answer.receipt.is_exact && answer.receipt.has_bound);
  assert_true(answer.receipt.bound == answer.hits[99].score);
  rank_all(w, &query, &all);
  assert_exact(&query, &all, &answer);
  region_fini(&region);
  close_world(w);
  free(w);
}

/* ---- Where items lie ---- */

/* Delete all items, and put them in another order. */
static void move_items(struct world *w)
{
  static struct item_change changes[ITEMS];

  for (size_t i = 0; i < ITEMS; i++)
    changes[i] = (struct item_change){ .key = span_of_str(w->items[i].key), .is_delete = true };
  fixture_apply(w->engine, changes, ITEMS);
  for (size_t first = ITEMS; first > 0; first -= CHANGES)
    place_items(w, first - CHANGES, CHANGES);
}

static void assert_same(const struct answer *a, const struct answer *b)
{
  fixture_assert_same_hits(a, b);
  assert_int_equal(a->receipt.is_exact, b->receipt.is_exact);
  assert_int_equal(a->receipt.has_bound, b->receipt.has_bound);
}

/* Approximate methods find other items if they are asked for other ones. */
static void answers_do_not_depend_on_where_items_lie(void **state)
{
  enum { METHODS = 5, QUERIES = 12 };
  static const char *const methods[METHODS] = { "exact", "average(1)", "average(60)", "per_embedding(8)", "combined(5,30)" };
  static struct drawn drawn[METHODS * QUERIES];
  static struct answer before[METHODS * QUERIES];
  struct world *w = calloc(1, sizeof *w);
  struct region region = { 0 };
  struct answer answer;

  (void)state;
  memset(drawn, 0, sizeof drawn);
  open_world(w, ENGINE_CPU);
  fill_world(w);
  for (size_t i = 0; i < METHODS * QUERIES; i++) {
    draw_query(w, "mol", methods[i % METHODS], &drawn[i], &region);
    answer = (struct answer){ 0 };
    fixture_search(w->engine, w->searcher, drawn[i].queries, 1, &answer);
    before[i] = keep(&answer, &region);
  }
  move_items(w);
  for (size_t i = 0; i < METHODS * QUERIES; i++) {
    answer = (struct answer){ 0 };
    fixture_search(w->engine, w->searcher, drawn[i].queries, 1, &answer);
    assert_same(&before[i], &answer);
  }
  region_fini(&region);
  close_world(w);
  free(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_are_the_best_sums),
#ifdef SLUICE_CUDA
    cmocka_unit_test(the_same_on_a_gpu),
#endif
    cmocka_unit_test(equal_filters_are_evaluated_once),
    cmocka_unit_test(the_best_of_both_are_found),
    cmocka_unit_test(answers_do_not_depend_on_where_items_lie),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
