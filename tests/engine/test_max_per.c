/* SPDX-License-Identifier: Apache-2.0 */
/* At most n hits of a value: compared with all hits of the same query, of which crowded ones are left out one by one.
 * Exact methods must agree to the bit; what approximate ones promise must hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/device.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

enum { ITEMS = 900, BATCH = 4, ROUNDS = 80, COUNTRIES = 40, EXCLUDED = 300 };

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
  struct value values[N_FILTER_ATTRIBUTES]; /* of COUNTRY, YEAR and AVAILABLE */
  struct attribute_value attributes[N_FILTER_ATTRIBUTES];
  char key[8], country[8];
  uint8_t codes[SMALL_SPLITS];
  float vector[SMALL_DIM];
  struct part parts[SUBJECTS];
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

/* A few countries have most items, and their items are alike. */
static void draw_values(struct world *w, struct item *item, size_t country)
{
  snprintf(item->country, sizeof item->country, "c%zu", country);
  if (dice_below(&w->dice, 10))
    item->values[COUNTRY] = (struct value){ .kind = VALUE_TEXT, .text = span_of_str(item->country) };
  if (dice_below(&w->dice, 10))
    item->values[YEAR] = (struct value){ .kind = VALUE_INTEGER, .integer = (int64_t)dice_below(&w->dice, 9) - 4 };
  if (dice_below(&w->dice, 10))
    item->values[AVAILABLE] = (struct value){ .kind = VALUE_BOOL, .is_true = dice_below(&w->dice, 2) };
}

/* Return the change, which borrows from the item. */
static struct item_change draw_item(struct world *w, size_t i)
{
  struct attributes all = filter_attributes();
  struct item *item = &w->items[i];
  size_t country = dice_below(&w->dice, 1 + dice_below(&w->dice, COUNTRIES));

  *item = (struct item){ 0 };
  snprintf(item->key, sizeof item->key, "%zu", i * 7919 % 10007);
  draw_values(w, item, country);
  for (size_t k = 0; k < SMALL_DIM; k++)
    item->vector[k] = (float)((country * 31 + k * 17) % 11) / 4 - 1.0f + dice_float(&w->dice, 0.3f);
  for (size_t m = 0; m < SMALL_SPLITS; m++)
    item->codes[m] = (uint8_t)(dice_below(&w->dice, 3) ? (country + m) % SMALL_SUBITEMS : dice_below(&w->dice, SMALL_SUBITEMS));
  for (size_t a = 0; a < N_FILTER_ATTRIBUTES; a++)
    item->attributes[a] = (struct attribute_value){ all.v[a].name, item->values[a] };
  item->parts[0] = (struct part){ .space = span_of_str("dot"), .vector = { item->vector, SMALL_DIM } };
  item->parts[1] = (struct part){ .space = span_of_str("pq"), .codes = span_of(item->codes, SMALL_SPLITS) };
  item->parts[2] = (struct part){ .space = span_of_str("mol"), .vector = { item->vector, SMALL_DIM } };
  return (struct item_change){ .key = span_of_str(item->key),
                               .parts = item->parts,
                               .n_parts = SUBJECTS,
                               .attributes = item->attributes,
                               .n_attributes = N_FILTER_ATTRIBUTES };
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

static void put_items(struct world *w)
{
  static struct item_change changes[ITEMS];

  for (size_t i = 0; i < ITEMS; i++)
    changes[i] = draw_item(w, i);
  fixture_apply(w->engine, changes, ITEMS);
  for (size_t round = 0; round < 12; round++) { /* items move, and change */
    size_t first = dice_below(&w->dice, ITEMS);
    for (size_t i = 0; i < ITEMS / 36; i++)
      changes[i] = draw_item(w, (first + 7 * i) % ITEMS);
    fixture_apply(w->engine, changes, ITEMS / 36);
  }
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
}

/* ---- The oracle ---- */

static const struct item *item_of(const struct world *w, struct span key)
{
  for (size_t i = 0; i < ITEMS; i++) {
    if (span_equal(span_of_str(w->items[i].key), key))
      return &w->items[i];
  }
  fail();
  return NULL;
}

static bool same_value(const struct value *a, const struct value *b)
{
  return a->kind == b->kind && (a->kind == VALUE_TEXT      ? span_equal(a->text, b->text)
                                : a->kind == VALUE_INTEGER ? a->integer == b->integer
                                                           : a->is_true == b->is_true);
}

/* The hits of a query without a limit, best first, in memory of their own. */
struct ranking {
  char keys[ITEMS][8];
  struct hit hits[ITEMS];
  size_t n;
};

static void rank_all(struct world *w, const struct query *query, size_t attribute, struct ranking *out)
{
  struct query all = *query;
  struct answer answer = { 0 };

  all.k = ITEMS;
  all.max_per.n = 0;
  all.n_explain = 0;
  all.method = span_of_str("exact");
  fixture_search(w->engine, w->searcher, &all, 1, &answer);
  out->n = answer.n_hits;
  for (size_t i = 0; i < out->n; i++) {
    struct hit *hit = &out->hits[i];
    assert_int_equal(answer.hits[i].value.kind, VALUE_NULL);
    *hit = answer.hits[i];
    memcpy(out->keys[i], hit->key.p, hit->key.n);
    hit->key.p = (const uint8_t *)out->keys[i];
    hit->value = item_of(w, hit->key)->values[attribute];
  }
}

static size_t count_value(const struct hit *hits, size_t n, const struct value *value)
{
  size_t count = 0;

  for (size_t i = 0; i < n; i++)
    count += value->kind != VALUE_NULL && same_value(&hits[i].value, value);
  return count;
}

/* Choose hits one by one. Returns their number. */
static size_t choose(const struct ranking *all, const struct query *query, struct hit *out)
{
  size_t n = 0;

  for (size_t i = 0; i < all->n && n < query->k; i++) {
    if (count_value(out, n, &all->hits[i].value) < query->max_per.n)
      out[n++] = all->hits[i];
  }
  return n;
}

static bool has_hit(const struct answer *answer, struct span key)
{
  for (size_t i = 0; i < answer->n_hits; i++) {
    if (span_equal(answer->hits[i].key, key))
      return true;
  }
  return false;
}

/* ---- Comparing ---- */

static void assert_exact(const struct query *query, const struct ranking *all, const struct answer *answer)
{
  struct hit expected[ITEMS];
  size_t n = choose(all, query, expected);

  assert_int_equal(answer->n_hits, n);
  for (size_t i = 0; i < n; i++) {
    assert_true(span_equal(answer->hits[i].key, expected[i].key));
    assert_memory_equal(&answer->hits[i].score, &expected[i].score, sizeof(float));
  }
}

/* What holds for every method. Bounds hold up to the rounding of a score that the method itself has not computed. */
static void assert_promises(const struct query *query, const struct ranking *all, const struct answer *answer)
{
  assert_true(answer->n_hits <= query->k);
  for (size_t i = 0; i < answer->n_hits; i++) {
    const struct hit *hit = &answer->hits[i];
    assert_true(i == 0 || hit[-1].score > hit->score ||
                (hit[-1].score == hit->score && span_compare(hit[-1].key, hit->key) < 0));
    assert_true(count_value(answer->hits, i, &hit->value) < query->max_per.n);
  }
  for (size_t i = 0; i < all->n; i++) {
    const struct hit *hit = &all->hits[i];
    if (has_hit(answer, hit->key) || count_value(answer->hits, answer->n_hits, &hit->value) == query->max_per.n)
      continue;
    assert_true(answer->receipt.has_bound);
    assert_true(hit->score <= answer->receipt.bound + 1e-4f);
  }
  if (answer->receipt.is_exact)
    assert_exact(query, all, answer);
}

static void assert_values(struct world *w, size_t attribute, const struct answer *answer)
{
  for (size_t i = 0; i < answer->n_hits; i++)
    assert_true(same_value(&answer->hits[i].value, &item_of(w, answer->hits[i].key)->values[attribute]));
}

static void assert_explained(const struct query *query, const struct answer *answer, const struct ranking *all,
                             size_t n_crowded[1])
{
  for (size_t i = 0; i < answer->n_explanations; i++) {
    const struct explanation *e = &answer->explanations[i];
    const struct hit *last = &answer->hits[answer->n_hits - 1];
    size_t at = 0;
    while (at < all->n && !span_equal(all->hits[at].key, e->key))
      at++;
    if (at == all->n) {
      assert_true(e->verdict < VERDICT_HIT);
    } else if (has_hit(answer, e->key)) {
      assert_int_equal(e->verdict, VERDICT_HIT);
    } else if (answer->n_hits == query->k && all->hits[at].score < last->score) {
      assert_int_equal(e->verdict, VERDICT_OUTRANKED);
    } else if (answer->n_hits < query->k || all->hits[at].score > last->score) {
      assert_int_equal(e->verdict, VERDICT_CROWDED_OUT);
      n_crowded[0]++;
    }
  }
}

/* ---- Queries ---- */

struct drawn {
  float vectors[BATCH][SMALL_DIM];
  struct span excluded[BATCH][EXCLUDED];
  struct span explained[BATCH][QUERY_EXPLAIN_MAX];
  struct query queries[BATCH];
  size_t attributes[BATCH];
  size_t n;
};

static void draw_query(struct world *w, const char *space, const char *method, struct drawn *d, struct region *region)
{
  static const uint32_t some_k[] = { 1, 3, 10, 100, ITEMS }, some_n[] = { 1, 1, 2, 5, 200 };
  static const size_t some_attributes[] = { COUNTRY, YEAR, AVAILABLE };
  static const char *const filters[] = { "country != 'c0'", "year > 1 or available", "not has(country)", "year = 99" };
  size_t i = d->n++, attribute = some_attributes[dice_below(&w->dice, 3)];
  struct query *query = &d->queries[i];

  d->attributes[i] = attribute;
  dice_fill(&w->dice, d->vectors[i], SMALL_DIM, 1.0f);
  *query = (struct query){ .space = span_of_str(space),
                           .method = span_of_str(method),
                           .k = some_k[dice_below(&w->dice, 5)],
                           .vector = { d->vectors[i], SMALL_DIM },
                           .exclude = d->excluded[i],
                           .explain = d->explained[i] };
  if (dice_below(&w->dice, 5))
    query->max_per = (struct max_per){ filter_attributes().v[attribute].name, some_n[dice_below(&w->dice, 5)] };
  if (dice_below(&w->dice, 3) == 0)
    query->filter = span_of_str(filters[dice_below(&w->dice, 4)]);
  query->n_exclude = dice_below(&w->dice, 3) ? 0 : dice_below(&w->dice, dice_below(&w->dice, 2) ? 9 : EXCLUDED);
  query->n_explain = dice_below(&w->dice, 2) ? 0 : QUERY_EXPLAIN_MAX;
  for (size_t x = 0; x < EXCLUDED; x++)
    d->excluded[i][x] = span_of_str(w->items[dice_below(&w->dice, ITEMS)].key);
  for (size_t x = 0; x < QUERY_EXPLAIN_MAX; x++)
    d->explained[i][x] = span_of_str(w->items[dice_below(&w->dice, ITEMS)].key);
  assert_ok(engine_check_filter(w->engine, query, region));
}

/* Keep hits and explanations: the next search takes their memory. */
static struct answer keep(const struct answer *from, struct region *region)
{
  struct answer copy = *from;
  struct hit *hits;
  struct explanation *explanations;

  assert_ok(region_array(region, from->n_hits + 1, sizeof *hits, &hits));
  assert_ok(region_array(region, from->n_explanations + 1, sizeof *explanations, &explanations));
  for (size_t i = 0; i < from->n_hits; i++) {
    hits[i] = from->hits[i];
    assert_ok(region_copy(region, from->hits[i].key, &hits[i].key));
    if (hits[i].value.kind == VALUE_TEXT)
      assert_ok(region_copy(region, from->hits[i].value.text, &hits[i].value.text));
  }
  for (size_t i = 0; i < from->n_explanations; i++)
    explanations[i] = from->explanations[i];
  copy.hits = hits;
  copy.explanations = explanations;
  return copy;
}

/* Search a random batch, and check each answer. */
static void search_batch(struct world *w, const char *space, const char *method, bool is_exact, size_t n_crowded[1])
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
    struct query *query = &d.queries[i];
    rank_all(w, query, d.attributes[i], &all);
    if (query->max_per.n)
      assert_values(w, d.attributes[i], &answers[i]);
    else
      query->max_per.n = ITEMS; /* no limit */
    assert_int_equal(answers[i].error, ANSWER_OK);
    assert_promises(query, &all, &answers[i]);
    assert_true(answers[i].counts.scored <= answers[i].counts.items);
    assert_true(answers[i].receipt.is_exact || !is_exact);
    if (is_exact && answers[i].counts.has_admitted)
      assert_int_equal(answers[i].counts.admitted, all.n);
    if (is_exact && answers[i].n_hits > 0)
      assert_explained(query, &answers[i], &all, n_crowded);
  }
  region_fini(&region);
}

/* Returns how many explanations said that an item is crowded out. */
static size_t search_on(enum engine_backend backend, int rounds)
{
  struct world *w = calloc(1, sizeof *w);
  size_t n_crowded = 0;

  open_world(w, backend);
  put_items(w);
  for (int round = 0; round < rounds; round++) {
    for (size_t s = 0; s < SUBJECTS; s++) {
      for (size_t m = 0; m < 4 && subjects[s].exact[m]; m++)
        search_batch(w, subjects[s].space, subjects[s].exact[m], true, &n_crowded);
      for (size_t m = 0; m < 4 && subjects[s].approximate[m]; m++)
        search_batch(w, subjects[s].space, subjects[s].approximate[m], false, &n_crowded);
    }
  }
  close_world(w);
  free(w);
  return n_crowded;
}

static void hits_are_the_best_that_are_possible(void **state)
{
  (void)state;
  assert_true(search_on(ENGINE_CPU, ROUNDS) > 0);
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

/* A round finds only items of one value, round after round. */
static void a_value_with_all_of_the_best_items_leaves_room_for_others(void **state)
{
  enum { VALUES = 6 };
  struct world *w = calloc(1, sizeof *w);
  const float one[SMALL_DIM] = { 1 };
  struct query query = { .space = span_of_str("dot"),
                         .k = 10,
                         .vector = { one, SMALL_DIM },
                         .max_per = { span_of_str("year"), 2 } };
  struct answer answer = { 0 };

  (void)state;
  open_world(w, ENGINE_CPU);
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_int_equal(answer.n_hits, 0);
  assert_true(answer.receipt.is_exact && !answer.receipt.has_bound);
  for (size_t i = 0; i < ITEMS; i++) {
    struct attribute_value year = { span_of_str("year"), { .kind = VALUE_INTEGER, .integer = (int64_t)(i % VALUES) } };
    const float vector[SMALL_DIM] = { (float)(i % VALUES) + (float)i * 0x1p-12f };
    struct part part = { .space = span_of_str("dot"), .vector = { vector, SMALL_DIM } };
    char key[8];
    snprintf(key, sizeof key, "%zu", i);
    struct item_change change = { .key = span_of_str(key), .parts = &part, .n_parts = 1 };
    change.attributes = &year;
    change.n_attributes = 1;
    fixture_apply(w->engine, &change, 1);
  }
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_int_equal(answer.n_hits, 10);
  for (size_t i = 0; i < answer.n_hits; i++)
    assert_int_equal(answer.hits[i].value.integer, VALUES - 1 - i / 2);
  query.max_per.n = 1;
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_int_equal(answer.n_hits, VALUES);
  assert_true(answer.receipt.is_exact && !answer.receipt.has_bound);
  close_world(w);
  free(w);
}

static void a_method_that_finds_few_hits_is_not_asked_for_ever(void **state)
{
  struct world *w = calloc(1, sizeof *w);
  const float one[SMALL_DIM] = { 1 };
  struct query query = { .space = span_of_str("mol"),
                         .method = span_of_str("average(1)"),
                         .k = 100,
                         .vector = { one, SMALL_DIM },
                         .max_per = { span_of_str("country"), 99 } };
  struct answer answer = { 0 };

  (void)state;
  open_world(w, ENGINE_CPU);
  put_items(w);
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_in_range(answer.n_hits, 2, 8);
  assert_true(!answer.receipt.is_exact && answer.receipt.has_bound);
  query.max_per.n = 100; /* nothing can be crowded out */
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_int_equal(answer.n_hits, 1);
  close_world(w);
  free(w);
}

/* ---- What is refused ---- */

static void assert_refused(const struct world *w, struct max_per max_per, const char *reason)
{
  const float vector[SMALL_DIM] = { 1 };
  const struct query query = { .space = span_of_str("dot"), .k = 1, .vector = { vector, SMALL_DIM }, .max_per = max_per };
  struct method method;
  size_t space;

  assert_int_equal(engine_check_query(w->engine, &query, &space, &method), ERR_QUERY);
  assert_non_null(strstr(err_message(), reason));
}

static void attributes_of_other_types_are_refused(void **state)
{
  struct world *w = calloc(1, sizeof *w);

  (void)state;
  open_world(w, ENGINE_CPU);
  assert_refused(w, (struct max_per){ span_of_str("contry"), 1 }, "\"contry\" is not an attribute; the nearest is 'country'");
  assert_refused(w, (struct max_per){ span_of_str("tags"), 1 }, "'tags' is of type keywords; it must be of type keyword");
  assert_refused(w, (struct max_per){ span_of_str("price"), 1 }, "'price' is of type number");
  assert_refused(w, (struct max_per){ span_of_str("expires"), 1 }, "'expires' is of type time");
  close_world(w);
  free(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_are_the_best_that_are_possible),
#ifdef SLUICE_CUDA
    cmocka_unit_test(the_same_on_a_gpu),
#endif
    cmocka_unit_test(a_value_with_all_of_the_best_items_leaves_room_for_others),
    cmocka_unit_test(a_method_that_finds_few_hits_is_not_asked_for_ever),
    cmocka_unit_test(attributes_of_other_types_are_refused),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
