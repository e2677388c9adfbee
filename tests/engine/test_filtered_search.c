/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with filters. With a filter, a catalogue answers like one that holds just the admitted items, to the bit.
 * That holds for every method but the unsafe ones, and whatever the history of the items. The same is true of items
 * that are expired or embargoed, for queries with and without a filter, and of excluded keys, whether there are few or
 * many, and also if they are just the best items. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/filter/filter.h"
#include "engine/keys/key_set.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_clauses.h"
#include "tests/support/filter_matches.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

enum {
  ITEMS = 4000,
  BATCH = 4,
  EXCLUDED_FEW = 20,
  EXCLUDED = 1500, /* enough that they are looked up during the search */
  ROUNDS = 60,
  MEMBERS = 3,
  TAGS = 3,
  LATEST_MS = 1000, /* times are at most this much later than FIRST_MS */
};

static const struct space_methods {
  const char *space;
  const char *methods[8];
} subjects[] = {
  { "dot", { "exact", "brute_force" } },
  { "bilinear", { "exact", "brute_force", "low_rank(3)" } },
  { "pq", { "exact", "pqtopk", "default", "prune(8)" } },
  { "mol", { "exact", "brute_force", "two_pass", "average(300)", "per_embedding(40)", "combined(20,100)" } },
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static uint64_t seed;
static struct temp_dir dir;
static char paths[SUBJECTS][PATH_MAX];

static int write_models(void **state)
{
  struct dice dice = { seed };

  (void)state;
  temp_dir_init(&dir);
  for (size_t i = 0; i < SUBJECTS; i++)
    small_model_write(dir.path, subjects[i].space, SMALL_WHOLE, &dice, paths[i]);
  return 0;
}

static int remove_models(void **state)
{
  (void)state;
  temp_dir_fini(&dir);
  return 0;
}

static int64_t tell_time(void *now_ms)
{
  return *(const int64_t *)now_ms;
}

/* lifetimes  all zeros: items do not expire */
static struct engine *open_engine(struct engine_lifetimes lifetimes)
{
  struct engine_space spaces[SUBJECTS];
  struct engine_config config = { .spaces = spaces,
                                  .n_spaces = SUBJECTS,
                                  .max_items = ITEMS,
                                  .max_k = 2 * ITEMS,
                                  .max_batch = BATCH,
                                  .isa = isa_detect(),
                                  .attributes = { attributes, N_ATTRIBUTES },
                                  .lifetimes = lifetimes };
  struct engine_threads threads = { .per_search = MEMBERS, .max = MEMBERS, .shares_always = true };
  struct engine *e;

  for (size_t i = 0; i < SUBJECTS; i++)
    spaces[i] = (struct engine_space){ .name = subjects[i].space, .model_path = paths[i] };
  assert_ok(engine_open(&config, &e));
  assert_ok(engine_share_searches(e, &threads));
  return e;
}

/* Items -------------------- */

/* What an item should be. */
struct item {
  bool is_live;
  bool has_parts[SUBJECTS];
  float vector[SMALL_DIM];
  uint8_t codes[SMALL_SPLITS];
  struct value values[N_ATTRIBUTES]; /* VALUE_NULL: absent */
  struct value tags[TAGS];
};

struct world {
  struct dice dice;
  struct item items[ITEMS];
  bool has_lifetimes;
  int64_t now_ms;
  struct engine *engine;
};

static struct value text_value(const char *text)
{
  return (struct value){ .kind = VALUE_TEXT, .text = span_of_str(text) };
}

/* A set: sorted, each text once. */
static struct value draw_tags(struct dice *dice, struct value elements[TAGS])
{
  size_t n = 0;

  for (size_t i = 0; i < sizeof tags / sizeof tags[0] && n < TAGS; i++) {
    if (dice_below(dice, 4) == 0)
      elements[n++] = text_value(tags[i]);
  }
  return (struct value){ .kind = VALUE_LIST, .list = { elements, n } };
}

/* Draw a value. The set of an item lies in `elements`. */
static struct value draw_value(struct dice *dice, size_t attribute, struct value elements[TAGS])
{
  switch (attribute) {
  case COUNTRY: /* the first is in 1 of 500 items */
    return text_value(countries[dice_below(dice, 500) == 0 ? 0 : 1 + dice_below(dice, 5)]);
  case TAG_SET:
    return draw_tags(dice, elements);
  case PRICE:
    return (struct value){ .kind = VALUE_NUMBER, .number = (double)dice_below(dice, 400) / 4 };
  case YEAR:
    return (struct value){ .kind = VALUE_INTEGER, .integer = 1950 + (int64_t)dice_below(dice, 80) };
  case AVAILABLE:
    return (struct value){ .kind = VALUE_BOOL, .is_true = dice_below(dice, 2) };
  default:
    return (struct value){ .kind = VALUE_INTEGER, .integer = FIRST_MS + (int64_t)dice_below(dice, LATEST_MS) };
  }
}

static struct span key_of(size_t i, char text[8])
{
  return span_of(text, (size_t)sprintf(text, "%zu", i * 7919 % 10007));
}

static void put(struct engine *e, size_t i, const struct item *item, const struct attribute_value *values, size_t n)
{
  struct part parts[SUBJECTS];
  struct item_change change = { .parts = parts, .attributes = (struct attribute_value *)values, .n_attributes = n };
  char text[8];

  for (size_t s = 0; item && s < SUBJECTS; s++) {
    if (!item->has_parts[s])
      continue;
    parts[change.n_parts] = (struct part){ .space = span_of_str(subjects[s].space) };
    if (s == 2)
      parts[change.n_parts++].codes = span_of(item->codes, SMALL_SPLITS);
    else
      parts[change.n_parts++].vector = (struct floats){ item->vector, SMALL_DIM };
  }
  change.key = key_of(i, text);
  fixture_apply(e, &change, 1);
}

static void insert(struct world *w, size_t i)
{
  struct item *item = &w->items[i];
  struct attribute_value values[N_ATTRIBUTES];
  size_t n = 0;

  *item = (struct item){ .is_live = true };
  for (size_t k = 0; k < SMALL_DIM; k++)
    item->vector[k] = dice_below(&w->dice, 20) ? (float)dice_below(&w->dice, 3) - 1.0f : dice_float(&w->dice, 4.0f);
  for (size_t m = 0; m < SMALL_SPLITS; m++)
    item->codes[m] = (uint8_t)dice_below(&w->dice, SMALL_SUBITEMS);
  for (size_t s = 0; s < SUBJECTS; s++)
    item->has_parts[s] = dice_below(&w->dice, 12) > 0;
  for (size_t a = 0; a < N_ATTRIBUTES; a++) {
    if (dice_below(&w->dice, 8) == 0)
      continue;
    item->values[a] = draw_value(&w->dice, a, item->tags);
    values[n++] = (struct attribute_value){ attributes[a].name, item->values[a] };
  }
  put(w->engine, i, item, values, n);
}

/* Change or remove one attribute of an item, and nothing else. */
static void change_attribute(struct world *w, size_t i)
{
  struct item *item = &w->items[i];
  size_t a = dice_below(&w->dice, N_ATTRIBUTES);
  struct value value = { 0 };

  if (dice_below(&w->dice, 4) > 0)
    value = draw_value(&w->dice, a, item->tags);
  item->values[a] = value;
  put(w->engine, i, NULL, &(struct attribute_value){ attributes[a].name, value }, 1);
}

static void remove_item(struct world *w, size_t i)
{
  char text[8];

  w->items[i].is_live = false;
  fixture_delete(w->engine, key_of(i, text));
}

static void churn(struct world *w, size_t n)
{
  for (size_t step = 0; step < n; step++) {
    size_t i = dice_below(&w->dice, ITEMS), what = dice_below(&w->dice, 6);
    if (!w->items[i].is_live)
      insert(w, i);
    else if (what == 0)
      remove_item(w, i);
    else
      change_attribute(w, i);
  }
}

/* Questions -------------------- */

struct question {
  const struct space_methods *subject;
  size_t space; /* index of the subject */
  size_t n;
  float vectors[BATCH][SMALL_DIM];
  char filters[BATCH][FILTER_BYTES];
  char excluded_text[BATCH][EXCLUDED][8];
  struct span excluded[BATCH][EXCLUDED];
  struct key_set seen[BATCH];
  struct query queries[BATCH];
};

static struct span copy_key(struct span key, char text[8])
{
  memcpy(text, key.p, key.n);
  return span_of(text, key.n);
}

/* Exclude a query's best items. */
static size_t exclude_best(struct world *w, struct searcher *searcher, struct question *q, size_t i)
{
  struct query best = q->queries[i];
  struct answer answer;
  size_t n = 0;

  best.k = (uint32_t)dice_below(&w->dice, EXCLUDED) + 1;
  fixture_search(w->engine, searcher, &best, 1, &answer);
  for (; n < answer.n_hits; n++)
    q->excluded[i][n] = copy_key(answer.hits[n].key, q->excluded_text[i][n]);
  return n;
}

/* Exclude random items, of which some are not there any more, or come twice. */
static size_t exclude_any(struct world *w, struct question *q, size_t i)
{
  size_t n = dice_below(&w->dice, dice_below(&w->dice, 2) ? EXCLUDED : EXCLUDED_FEW);

  for (size_t x = 0; x < n; x++)
    q->excluded[i][x] = key_of(dice_below(&w->dice, ITEMS), q->excluded_text[i][x]);
  return n;
}

/* Exclude no items, random ones or the best ones: as a list, as those that a user has seen, or in part as each. */
static void draw_excluded(struct world *w, struct searcher *searcher, struct region *region, struct question *q,
                          size_t i)
{
  struct query *query = &q->queries[i];
  size_t kind = dice_below(&w->dice, 4), n = 0;

  if (kind > 0)
    n = kind == 1 ? exclude_best(w, searcher, q, i) : exclude_any(w, q, i);
  query->exclude = q->excluded[i];
  query->n_exclude = dice_below(&w->dice, 2) ? n : dice_below(&w->dice, n + 1);
  assert_ok(key_set_init(engine_key_hash(w->engine), query->exclude + query->n_exclude, n - query->n_exclude, region,
                         &q->seen[i]));
  query->seen = n > query->n_exclude ? &q->seen[i] : NULL;
}

static void draw_question(struct world *w, struct searcher *searcher, struct region *region, struct question *q)
{
  static const uint32_t some_k[] = { 1, 3, 10, 100, 2000, 2 * ITEMS };
  struct dice *dice = &w->dice;
  size_t n_methods = 0;

  q->space = dice_below(dice, SUBJECTS);
  q->subject = &subjects[q->space];
  while (n_methods < 8 && q->subject->methods[n_methods])
    n_methods++;
  const char *method = q->subject->methods[dice_below(dice, n_methods)];
  q->n = 1 + dice_below(dice, BATCH);
  for (size_t i = 0; i < q->n; i++) {
    for (size_t k = 0; k < SMALL_DIM; k++)
      q->vectors[i][k] = dice_float(dice, 1.0f);
    if (i > 0 && dice_below(dice, 3) == 0) /* queries share a filter */
      memcpy(q->filters[i], q->filters[i - 1], sizeof q->filters[i]);
    else
      draw_filter(dice, q->filters[i]);
    q->queries[i] = (struct query){
      .space = span_of_str(q->subject->space),
      .method = span_of_str(method),
      .k = some_k[dice_below(dice, sizeof some_k / sizeof some_k[0])],
      .vector = { q->vectors[i], SMALL_DIM },
      .filter = dice_below(dice, w->has_lifetimes ? 2 : 6) ? span_of_str(q->filters[i]) : (struct span){ 0 },
    };
    assert_ok(engine_check_filter(w->engine, &q->queries[i], region));
    draw_excluded(w, searcher, region, q, i);
  }
}

/* Is an item neither expired nor embargoed? */
static bool is_alive(const struct world *w, const struct item *item)
{
  const struct value *begin = &item->values[NOT_BEFORE], *end = &item->values[EXPIRES];

  return !w->has_lifetimes || ((begin->kind == VALUE_NULL || begin->integer <= w->now_ms) &&
                               (end->kind == VALUE_NULL || w->now_ms < end->integer));
}

/* Mark the items that a query excludes. */
static void mark_excluded(const struct question *q, size_t i, bool is_excluded[ITEMS])
{
  const struct query *query = &q->queries[i];
  size_t n = query->n_exclude + (query->seen ? query->seen->n : 0);
  size_t numbers[10007];
  char text[8];

  memset(is_excluded, 0, ITEMS * sizeof *is_excluded);
  for (size_t item = 0; item < ITEMS; item++)
    numbers[strtoul((const char *)key_of(item, text).p, NULL, 10)] = item;
  for (size_t x = 0; x < n; x++) {
    memcpy(text, q->excluded[i][x].p, q->excluded[i][x].n);
    text[q->excluded[i][x].n] = 0;
    is_excluded[numbers[strtoul(text, NULL, 10)]] = true;
  }
}

/* Fill an engine with the items that a query admits. Returns how many have a part of the space. */
static size_t put_admitted(const struct world *w, const struct question *q, size_t question, struct engine *e)
{
  const struct query *query = &q->queries[question];
  bool is_excluded[ITEMS];
  size_t n = 0;

  mark_excluded(q, question, is_excluded);
  for (size_t i = 0; i < ITEMS; i++) {
    const struct item *item = &w->items[i];
    if (!item->is_live || !is_alive(w, item) || (query->tree && !filter_matches(query->tree, item->values)))
      continue;
    if (is_excluded[i])
      continue;
    put(e, i, item, NULL, 0);
    n += item->has_parts[q->space];
  }
  return n;
}

/* The bound of an approximate answer may depend on items that are not admitted: they widen the sketches' error. */
static bool same_receipt(const struct query *query, const struct receipt *a, const struct receipt *b)
{
  bool is_prune = query->method.p[0] == 'p' && query->method.p[1] == 'r'; /* exact, though it has an argument */
  bool is_exact = is_prune || !memchr(query->method.p, '(', query->method.n);

  if (!is_exact)
    return true;
  return a->is_exact && b->is_exact && a->has_bound == b->has_bound &&
         memcmp(&a->bound, &b->bound, sizeof a->bound) == 0;
}

static size_t n_unknown; /* answers that do not say how many items are admitted: keys were looked up late */

/* Compare a query's answer with that of an engine without the items that its filter does not admit. */
static void compare_query(struct world *w, const struct question *q, size_t i, const struct answer *answer)
{
  struct engine *plain = open_engine((struct engine_lifetimes){ 0 });
  struct searcher *searcher;
  struct query query = q->queries[i];
  struct answer expected;
  size_t n_admitted = put_admitted(w, q, i, plain);

  query.filter = query.tree_key = (struct span){ 0 };
  query.tree = NULL;
  query.n_exclude = 0;
  query.seen = NULL;
  assert_ok(searcher_open(plain, &searcher));
  fixture_search(plain, searcher, &query, 1, &expected);
  if (answer->n_hits != expected.n_hits || !same_receipt(&query, &answer->receipt, &expected.receipt))
    fail_msg("%.*s, %.*s, k %u, filter %s: %zu hits, not %zu, or another receipt", (int)query.space.n, query.space.p,
             (int)query.method.n, query.method.p, query.k, q->filters[i], answer->n_hits, expected.n_hits);
  fixture_assert_same_hits(answer, &expected);
  n_unknown += !answer->counts.has_admitted;
  if (answer->counts.has_admitted)
    assert_int_equal(answer->counts.admitted, n_admitted);
  searcher_close(&searcher);
  engine_close(&plain);
}

/* With several members, each searches one or two queries of a batch; a searcher without others all of them at once. */
static void ask(struct world *w)
{
  static struct question q;
  struct region region = { 0 };
  struct searcher *searchers[2];
  struct answer answers[BATCH];

  assert_ok(searcher_open(w->engine, &searchers[0]));
  assert_ok(searcher_open_aside(w->engine, &searchers[1]));
  for (size_t round = 0; round < ROUNDS; round++) {
    struct searcher *searcher = searchers[dice_below(&w->dice, 2)];
    churn(w, 100);
    w->now_ms = FIRST_MS + (int64_t)(round * LATEST_MS / ROUNDS);
    assert_ok(engine_pass_time(w->engine));
    region_reset(&region);
    draw_question(w, searcher, &region, &q);
    if (dice_below(&w->dice, 2)) /* then the engine knows the filters */
      fixture_search(w->engine, searcher, q.queries, q.n, answers);
    fixture_search(w->engine, searcher, q.queries, q.n, answers);
    for (size_t i = 0; i < q.n; i++) {
      compare_query(w, &q, i, &answers[i]);
      assert_int_equal(answers[i].has_time, w->has_lifetimes);
    }
  }
  for (size_t i = 0; i < 2; i++)
    searcher_close(&searchers[i]);
  region_fini(&region);
}

static void a_filtered_catalogue_answers_like_one_of_the_admitted_items(void **state)
{
  static struct world w;
  struct engine_filters filters;

  (void)state;
  w.dice.state = seed + 1;
  w.engine = open_engine((struct engine_lifetimes){ 0 });
  for (size_t i = 0; i < ITEMS; i++)
    insert(&w, i);
  n_unknown = 0;
  ask(&w);
  assert_true(n_unknown > 0);
  engine_filters_get(w.engine, &filters);
  assert_true(filters.n_known > 0 && filters.n_known <= filters.n_evaluated);
  engine_close(&w.engine);
}

static void a_catalogue_answers_like_one_of_the_items_that_are_alive(void **state)
{
  static struct world w;

  (void)state;
  w.dice.state = seed + 2;
  w.has_lifetimes = true;
  w.now_ms = FIRST_MS;
  w.engine = open_engine((struct engine_lifetimes){ "not_before", "expires", { tell_time, &w.now_ms } });
  for (size_t i = 0; i < ITEMS; i++)
    insert(&w, i);
  ask(&w);
  engine_close(&w.engine);
}

/* How was a search done? */
static enum query_plan plan_of(struct engine *e, struct searcher *searcher, const char *space, const char *method,
                               const char *filter)
{
  float vector[SMALL_DIM] = { 1.0f, 2.0f };
  struct query query = { .space = span_of_str(space),
                         .method = span_of_str(method),
                         .k = 10,
                         .vector = { vector, SMALL_DIM },
                         .filter = span_of_str(filter) };
  struct region region = { 0 };
  struct answer answer;

  assert_ok(engine_check_filter(e, &query, &region));
  fixture_search(e, searcher, &query, 1, &answer);
  region_fini(&region);
  return answer.counts.plan;
}

static void the_counts_say_how_a_query_was_searched(void **state)
{
  static const char all[] = "available or not available", many[] = "year >= 1960", few[] = "country = 'at'";
  static const struct {
    const char *space, *method, *filter;
    enum query_plan plan;
  } rows[] = {
    { "dot", "exact", all, QUERY_PLAN_ALL },     { "dot", "exact", many, QUERY_PLAN_MASKED },
    { "dot", "exact", few, QUERY_PLAN_MASKED },  { "pq", "exact", all, QUERY_PLAN_ALL },
    { "pq", "exact", many, QUERY_PLAN_MASKED },  { "pq", "exact", few, QUERY_PLAN_FEW },
    { "pq", "pqtopk", few, QUERY_PLAN_FEW },     { "mol", "exact", few, QUERY_PLAN_MASKED },
    { "mol", "average(300)", all, QUERY_PLAN_ALL }, { "mol", "average(300)", many, QUERY_PLAN_MASKED },
    { "mol", "average(300)", few, QUERY_PLAN_FEW },
  };
  static struct world w;
  struct searcher *searcher;

  (void)state;
  w.dice.state = seed + 3;
  w.engine = open_engine((struct engine_lifetimes){ 0 });
  for (size_t i = 0; i < ITEMS; i++)
    insert(&w, i);
  assert_ok(searcher_open(w.engine, &searcher));
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    enum query_plan plan = plan_of(w.engine, searcher, rows[i].space, rows[i].method, rows[i].filter);
    if (plan != rows[i].plan)
      fail_msg("%s, %s, %s: plan %d, not %d", rows[i].space, rows[i].method, rows[i].filter, plan, rows[i].plan);
  }
  searcher_close(&searcher);
  engine_close(&w.engine);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_filtered_catalogue_answers_like_one_of_the_admitted_items),
    cmocka_unit_test(a_catalogue_answers_like_one_of_the_items_that_are_alive),
    cmocka_unit_test(the_counts_say_how_a_query_was_searched),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, write_models, remove_models);
}
