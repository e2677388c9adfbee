/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of hits: random items change, go and move to other slots. The hits of random queries must show what plain
 * copies of the items have, and be the same hits as those of queries that show nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/hit_attributes.h"
#include "kernels/device.h"
#include "tests/support/attribute_model.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

enum { ITEMS = 600, BATCH = 4, STEPS = 30 };

static const struct subject {
  const char *space;
  bool has_alike_queries;
  const char *methods[5];
} subjects[] = {
  { "dot", true, { "exact", "brute_force" } },
  { "pq", true, { "exact", "pqtopk", "default", "prune(8)", "prune_limited(8,1)" } },
  { "bilinear", false, { "exact", "low_rank(3)" } },
  { "mol", false, { "exact", "two_pass", "combined(5,30)" } },
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static uint64_t seed;

struct item {
  struct model_item attributes;
  char key[8];
  bool is_there;
};

struct world {
  struct temp_dir dir;
  char paths[SUBJECTS][PATH_MAX];
  struct attribute_model model;
  struct item items[ITEMS];
  size_t n_items; /* that are put */
  struct engine *engine;
  struct searcher *searcher, *other;
  bool takes_like; /* queries may ask for items like one */
  struct dice dice;
};

static void write_models(struct world *w)
{
  temp_dir_init(&w->dir);
  for (size_t i = 0; i < SUBJECTS; i++)
    small_model_write(w->dir.path, subjects[i].space, SMALL_REAL, &w->dice, w->paths[i]);
}

static struct world *open_world(struct attributes attributes, enum engine_backend backend)
{
  struct world *w = calloc(1, sizeof *w);
  struct engine_space spaces[SUBJECTS];
  struct engine_config config = { .spaces = spaces,
                                  .n_spaces = SUBJECTS,
                                  .max_items = ITEMS,
                                  .max_k = ITEMS,
                                  .max_batch = BATCH,
                                  .isa = isa_detect(),
                                  .backend = backend,
                                  .n_workers = 2,
                                  .attributes = attributes };

  w->dice.state = seed;
  w->takes_like = backend == ENGINE_CPU;
  write_models(w);
  for (size_t i = 0; i < SUBJECTS; i++)
    spaces[i] = (struct engine_space){ .name = subjects[i].space, .model_path = w->paths[i] };
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  assert_ok(searcher_open(w->engine, &w->other));
  for (size_t i = 0; i < ITEMS; i++)
    snprintf(w->items[i].key, sizeof w->items[i].key, "%zu", i);
  return w;
}

static void close_world(struct world *w)
{
  searcher_close(&w->other);
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  free(w);
}

/* ---- Items ---- */

/* Give a set's texts in no order, with a repetition. */
static void put_set(struct world *w, const struct value *set, struct value *texts, struct value *out)
{
  size_t n = set->list.n;

  for (size_t i = 0; i < n; i++)
    texts[i] = set->list.v[n - 1 - i];
  if (n > 0)
    texts[n++] = set->list.v[dice_below(&w->dice, set->list.n)];
  *out = (struct value){ VALUE_LIST, .list = { texts, n } };
}

/* Change some attributes: others keep their values. Returns how many. */
static size_t draw_attributes(struct world *w, struct item *item, struct value *texts, struct attribute_value *out)
{
  size_t n = 0;

  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    struct value *value = &item->attributes.values[i];
    if (dice_below(&w->dice, 3) == 0)
      continue;
    *value = (struct value){ .kind = VALUE_NULL };
    if (dice_below(&w->dice, 4))
      model_draw_value(&w->model, &w->dice, i, item->attributes.elements, value);
    out[n] = (struct attribute_value){ w->model.attributes[i].name, *value };
    if (value->kind == VALUE_LIST)
      put_set(w, value, texts, &out[n].value);
    n++;
  }
  return n;
}

static void put_item(struct world *w, struct item *item)
{
  struct attribute_value values[MODEL_ATTRIBUTES];
  struct value texts[MODEL_SET_MAX + 1];
  uint8_t codes[SMALL_SPLITS];
  float vector[SMALL_DIM];
  struct part parts[] = { { .space = span_of_str("dot"), .vector = { vector, SMALL_DIM } },
                          { .space = span_of_str("pq"), .codes = span_of(codes, SMALL_SPLITS) },
                          { .space = span_of_str("bilinear"), .vector = { vector, SMALL_DIM } },
                          { .space = span_of_str("mol"), .vector = { vector, SMALL_DIM } } };
  struct item_change change = { .key = span_of_str(item->key), .parts = parts, .attributes = values };

  dice_fill(&w->dice, vector, SMALL_DIM, 1.0f);
  for (size_t m = 0; m < SMALL_SPLITS; m++)
    codes[m] = (uint8_t)dice_below(&w->dice, SMALL_SUBITEMS);
  change.n_parts = item->is_there && dice_below(&w->dice, 2) ? 0 : SUBJECTS;
  change.n_attributes = draw_attributes(w, item, texts, values);
  if (change.n_parts + change.n_attributes == 0)
    return;
  fixture_apply(w->engine, &change, 1);
  item->is_there = true;
}

static void change_items(struct world *w)
{
  for (size_t i = 0; i < w->n_items / 6; i++) {
    struct item *item = &w->items[dice_below(&w->dice, w->n_items)];
    if (dice_below(&w->dice, 4)) {
      put_item(w, item);
    } else if (item->is_there) {
      fixture_delete(w->engine, span_of_str(item->key)); /* the last item moves into its slot */
      item->attributes = (struct model_item){ 0 };
      item->is_there = false;
    }
  }
}

/* ---- Queries ---- */

struct drawn {
  float vectors[BATCH][SMALL_DIM];
  struct like likes[BATCH];
  struct span names[BATCH][MODEL_ATTRIBUTES];
  size_t shown[BATCH][MODEL_ATTRIBUTES]; /* [n_shown] the attributes of these names */
  size_t n_shown[BATCH];
  struct boost boosts[BATCH][2];
  struct query queries[BATCH];
  size_t n;
};

/* Draw names of attributes in any order, each once. */
static void draw_names(struct world *w, struct drawn *d, size_t at)
{
  size_t n = 0;

  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    if (dice_below(&w->dice, 2))
      continue;
    size_t to = dice_below(&w->dice, n + 1);
    d->shown[at][n++] = d->shown[at][to];
    d->shown[at][to] = i;
  }
  for (size_t i = 0; i < n; i++)
    d->names[at][i] = w->model.attributes[d->shown[at][i]].name;
  d->queries[at].attributes = d->names[at];
  d->queries[at].n_attributes = d->n_shown[at] = n;
}

/* Show all attributes, in the order of the configuration. */
static void show_all(struct drawn *d, size_t at)
{
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++)
    d->shown[at][i] = i;
  d->names[at][0] = span_of_str("*");
  d->queries[at].attributes = d->names[at];
  d->queries[at].n_attributes = 1;
  d->n_shown[at] = MODEL_ATTRIBUTES;
}

static const struct item *draw_item(struct world *w)
{
  for (int i = 0; i < 1000; i++) {
    const struct item *item = &w->items[dice_below(&w->dice, w->n_items)];
    if (item->is_there)
      return item;
  }
  fail();
  return NULL;
}

static void draw_query(struct world *w, const struct subject *subject, const char *method, struct drawn *d,
                       struct region *region)
{
  static const uint32_t some_k[] = { 1, 3, 10, 100, ITEMS };
  static const char *const filters[] = { "a", "not has(c)", "b = 't1'", "g in (1790000000001, 1790000000500)", "h = 99" };
  static const char *const limited[] = { "a", "b", "d" };
  size_t at = d->n++;
  struct query *query = &d->queries[at];

  dice_fill(&w->dice, d->vectors[at], SMALL_DIM, 1.0f);
  d->boosts[at][0] = (struct boost){ .weight = 0.5, .filter = span_of_str("a") };
  d->boosts[at][1] = (struct boost){ .weight = 0.25, .attribute = span_of_str("g"), .half_life_ms = 1000 };
  *query = (struct query){ .space = span_of_str(subject->space),
                           .method = span_of_str(method),
                           .k = some_k[dice_below(&w->dice, 5)],
                           .vector = { d->vectors[at], SMALL_DIM },
                           .boosts = d->boosts[at],
                           .has_now = true,
                           .now_unix_ms = 1790000001000 };
  if (w->takes_like && subject->has_alike_queries && dice_below(&w->dice, 4) == 0) {
    d->likes[at] = (struct like){ span_of_str(draw_item(w)->key), 1 };
    query->likes = &d->likes[at];
    query->n_likes = 1;
    query->vector.n = 0;
  }
  if (dice_below(&w->dice, 3) == 0)
    query->filter = span_of_str(filters[dice_below(&w->dice, 5)]);
  if (dice_below(&w->dice, 3) == 0)
    query->max_per = (struct max_per){ span_of_str(limited[dice_below(&w->dice, 3)]), 1 };
  query->n_boosts = dice_below(&w->dice, 3) ? 0 : 1 + dice_below(&w->dice, 2);
  switch (dice_below(&w->dice, 6)) {
  case 0: break; /* nothing is shown */
  case 1: show_all(d, at); break;
  default: draw_names(w, d, at);
  }
  assert_ok(engine_check_filter(w->engine, query, region));
}

/* ---- Comparing ---- */

static void assert_shown(const struct world *w, const struct drawn *d, size_t at, const struct hit *hit)
{
  const struct item *item = &w->items[strtoul((const char *)hit->key.p, NULL, 10)];
  size_t n = 0;

  assert_true(item->is_there && span_equal(hit->key, span_of_str(item->key)));
  for (size_t i = 0; i < d->n_shown[at]; i++) {
    const struct value *wanted = &item->attributes.values[d->shown[at][i]];
    if (wanted->kind == VALUE_NULL)
      continue;
    assert_true(n < hit->n_attributes);
    const struct attribute_value *found = &hit->attributes[n++];
    assert_true(span_equal(found->name, w->model.attributes[d->shown[at][i]].name));
    model_assert_value(&found->value, wanted);
    assert_false(found->value.kind == VALUE_NUMBER && found->value.number == 0 && signbit(found->value.number));
  }
  assert_int_equal(hit->n_attributes, n);
}

/* Search a random batch. Returns how many values its hits show. */
static size_t search_batch(struct world *w, const struct subject *subject, const char *method)
{
  struct answer answers[BATCH] = { 0 }, bare[BATCH] = { 0 };
  struct region region = { 0 };
  struct drawn d = { .n = 0 };
  size_t n = 1 + dice_below(&w->dice, BATCH), n_values = 0;

  for (size_t i = 0; i < n; i++)
    draw_query(w, subject, method, &d, &region);
  fixture_search(w->engine, w->searcher, d.queries, n, answers);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(answers[i].error, ANSWER_OK);
    for (size_t j = 0; j < answers[i].n_hits; j++) {
      assert_shown(w, &d, i, &answers[i].hits[j]);
      n_values += answers[i].hits[j].n_attributes;
    }
    d.queries[i].n_attributes = 0;
  }
  fixture_search(w->engine, w->other, d.queries, n, bare);
  for (size_t i = 0; i < n; i++)
    fixture_assert_same_hits(&answers[i], &bare[i]);
  region_fini(&region);
  return n_values;
}

static void search_on(enum engine_backend backend, size_t n_items, int steps)
{
  struct attribute_model model;
  struct world *w = open_world(model_attributes(&model), backend);
  size_t n_values = 0;

  model_attributes(&w->model);
  w->n_items = n_items;
  for (size_t i = 0; i < n_items; i++)
    put_item(w, &w->items[i]);
  for (int step = 0; step < steps; step++) {
    change_items(w);
    for (size_t s = 0; s < SUBJECTS; s++)
      for (size_t m = 0; m < 5 && subjects[s].methods[m]; m++)
        n_values += search_batch(w, &subjects[s], subjects[s].methods[m]);
  }
  assert_true(n_values > (size_t)steps * 50);
  close_world(w);
}

static void hits_show_what_the_items_have(void **state)
{
  (void)state;
  search_on(ENGINE_CPU, ITEMS, STEPS);
}

#ifdef SLUICE_CUDA
static void the_same_on_a_gpu(void **state)
{
  struct device device;

  (void)state;
  if (device_find(&device) != ERR_OK)
    skip();
  search_on(ENGINE_CUDA, ITEMS / 16, 1);
}
#endif

/* ---- What is refused ---- */

enum { SETS = 16, LARGE_ITEMS = 20 };

/* Items whose attributes take more than 1 MiB each. */
static void put_large_items(struct world *w, const struct attributes *attributes)
{
  static char texts[ATTRIBUTE_SET_MAX][ATTRIBUTE_TEXT_MAX];
  struct value set[ATTRIBUTE_SET_MAX];
  struct attribute_value values[SETS];
  const float vector[SMALL_DIM] = { 1 };
  struct part part = { .space = span_of_str("dot"), .vector = { vector, SMALL_DIM } };

  memset(texts, 'x', sizeof texts);
  for (size_t i = 0; i < ATTRIBUTE_SET_MAX; i++) {
    texts[i][0] = (char)('a' + i % 26);
    texts[i][1] = (char)('a' + i / 26);
    set[i] = (struct value){ VALUE_TEXT, .text = span_of(texts[i], ATTRIBUTE_TEXT_MAX) };
  }
  for (size_t i = 0; i < SETS; i++)
    values[i] = (struct attribute_value){ attributes->v[i].name, { VALUE_LIST, .list = { set, ATTRIBUTE_SET_MAX } } };
  for (size_t i = 0; i < LARGE_ITEMS; i++) {
    struct item_change change = { .key = span_of_str(w->items[i].key), .parts = &part, .n_parts = 1 };
    change.attributes = values;
    change.n_attributes = SETS;
    fixture_apply(w->engine, &change, 1);
  }
}

static void hits_with_too_much_to_show_are_refused_but_not_those_of_other_queries(void **state)
{
  struct attribute list[SETS];
  struct attributes attributes = { list, SETS };
  struct span names[SETS];
  const float vector[SMALL_DIM] = { 1 };
  struct query asked = { .space = span_of_str("dot"),
                         .k = LARGE_ITEMS / 2,
                         .vector = { vector, SMALL_DIM },
                         .attributes = names,
                         .n_attributes = SETS };
  struct query queries[BATCH] = { asked, asked, asked, asked };
  struct answer answers[BATCH] = { 0 };
  static char letters[SETS][2];

  (void)state;
  for (size_t i = 0; i < SETS; i++) {
    letters[i][0] = (char)('a' + i);
    names[i] = span_of_str(letters[i]);
    list[i] = (struct attribute){ names[i], ATTRIBUTE_KEYWORDS };
  }
  struct world *w = open_world(attributes, ENGINE_CPU);
  put_large_items(w, &attributes);
  queries[1].k = queries[2].k = LARGE_ITEMS;
  queries[2].n_attributes = SETS / 2;
  fixture_search(w->engine, w->searcher, queries, BATCH, answers);
  assert_int_equal(answers[1].error, ANSWER_BAD_QUERY);
  assert_int_equal(answers[1].n_hits, 0);
  assert_non_null(strstr(answers[1].error_message, "attributes: those of the hits take more than 16 MiB"));
  for (size_t i = 0; i < BATCH; i++) {
    if (i == 1)
      continue;
    assert_int_equal(answers[i].error, ANSWER_OK);
    assert_int_equal(answers[i].n_hits, queries[i].k);
    assert_int_equal(answers[i].hits[queries[i].k - 1].n_attributes, queries[i].n_attributes);
    assert_int_equal(answers[i].hits[0].attributes[0].value.list.n, ATTRIBUTE_SET_MAX);
  }
  close_world(w);
}

static void assert_refused(const struct world *w, const char *first, const char *second, const char *reason)
{
  const float vector[SMALL_DIM] = { 1 };
  struct span names[] = { span_of_str(first), span_of_str(second) };
  const struct query query = { .space = span_of_str("dot"), .k = 1, .vector = { vector, SMALL_DIM }, .attributes = names,
                               .n_attributes = 2 };
  struct method method;
  size_t space;

  assert_fails(engine_check_query(w->engine, &query, &space, &method), ERR_QUERY, reason);
}

static void names_that_are_wrong_are_refused(void **state)
{
  struct world *w = open_world(filter_attributes(), ENGINE_CPU);

  (void)state;
  assert_refused(w, "country", "prize", "attributes[1]: \"prize\" is not an attribute; the nearest is 'price'");
  assert_refused(w, "", "price", "attributes[0]: \"\" is not an attribute");
  assert_refused(w, "price", "*", "attributes[1]: \"*\" stands for all of them: give it alone");
  assert_refused(w, "tags", "tags", "attributes[1]: 'tags' occurs twice");
  close_world(w);
  w = open_world((struct attributes){ 0 }, ENGINE_CPU);
  assert_refused(w, "country", "price", "attributes[0]: the configuration has no attributes");
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_show_what_the_items_have),
#ifdef SLUICE_CUDA
    cmocka_unit_test(the_same_on_a_gpu),
#endif
    cmocka_unit_test(hits_with_too_much_to_show_are_refused_but_not_those_of_other_queries),
    cmocka_unit_test(names_that_are_wrong_are_refused),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
