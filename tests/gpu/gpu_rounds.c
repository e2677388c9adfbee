/* SPDX-License-Identifier: Apache-2.0 */
/* Searches that take rounds, or choose among more hits than they return, on the device compared with the processor:
 * queries with boosts, a max_per and mmr in any combination, beside plain ones, with filters, excluded and seen keys,
 * attributes of hits, and explanations. Meanwhile items change. Exact methods must agree to the bit. What an
 * approximate one finds on a device may be better, so its promises are checked against the exact answer. */
#include "engine/keys/key_set.h"
#include "tests/gpu/subjects.h"
#include "tests/gpu/twins.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/temp_dir.h"

/* Of most subjects, the quick size has enough items that searches with boosts look for seeds. */
enum {
  ITEMS_MAX = 40000,
  QUICK_SHARE = 7,
  COUNTRIES = 12,
  COUNTRY_BYTES = 4,
  TAGS_MAX = 2,
  BATCH = 40, /* more than DEVICE_WORDS_MAX */
  EXCLUDED_MAX = 200,
  EXPLAINED_MAX = 6
};

#define NOW 1700000000000

static const struct subject subjects[] = {
  { SUBJECT_DOT, ITEMS_MAX, 24, 0, { 0 }, 2, { "exact", "brute_force" } },
  { SUBJECT_BILINEAR, ITEMS_MAX, 32, 0, { 0 }, 2, { "exact", "brute_force", "low_rank(5)" } },
  { SUBJECT_RECJPQ, ITEMS_MAX, 16, 8, { 0 }, 3, { "exact", "pqtopk", "prune(8)", "prune_limited(8,1)" } },
  { SUBJECT_RECJPQ, ITEMS_MAX, 18, 9, { 0 }, 1, { "default" } },
  { SUBJECT_MOL,
    ITEMS_MAX,
    8,
    0,
    { 2, 3, 5, 7, 8, 0, 2.0f },
    3,
    { "exact", "brute_force", "two_pass", "average(1)", "average(100)", "per_embedding(30)", "combined(10,60)" } },
  { SUBJECT_MOL, ITEMS_MAX / 4, 8, 0, { 8, 4, 16, 128, 8, 0, 0.05f }, 1, { "exact", "average(40)" } }, /* with bounds */
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

struct world {
  struct twins t;
  const struct subject *subject;
  bool has_mmr; /* the items are in the host's memory too */
  size_t n_items;
  struct subject_data countries[COUNTRIES]; /* items are like others of their country */
  char keys[ITEMS_MAX][SUBJECT_KEY_BYTES];
  struct temp_dir dir;
};

/* Items -------------------- */

struct made {
  struct part part;
  struct subject_data data;
  char country[COUNTRY_BYTES];
  struct value tags[TAGS_MAX];
  struct attribute_value values[N_FILTER_ATTRIBUTES];
};

/* Prices are skewed, as popularity is, and often equal. Some times are to come. */
static struct value draw_value(struct dice *dice, size_t attribute, struct made *item)
{
  switch (attribute) {
  case COUNTRY:
    return (struct value){ VALUE_TEXT, .text = span_of_str(item->country) };
  case TAGS:
    return (struct value){ VALUE_LIST, .list = { item->tags, dice_below(dice, TAGS_MAX + 1) } };
  case YEAR:
    return (struct value){ VALUE_INTEGER, .integer = (int64_t)dice_below(dice, 9) - 4 };
  case PRICE:
    if (dice_below(dice, 4) == 0)
      return (struct value){ VALUE_NUMBER, .number = (double)dice_below(dice, 5) };
    return (struct value){ VALUE_NUMBER, .number = 1 / (1e-3 + fabs((double)dice_float(dice, 1.0f))) };
  case EXPIRES:
    return (struct value){ VALUE_INTEGER, .integer = NOW - (int64_t)dice_below(dice, 1u << 30) + (1 << 28) };
  default:
    return (struct value){ VALUE_BOOL, .is_true = dice_below(dice, 2) };
  }
}

/* Draw an item that is like its country, in some cases exactly. */
static void draw_data(struct world *w, size_t country, struct subject_data *out)
{
  const struct subject_data *like = &w->countries[country];
  float difference = dice_below(&w->t.dice, 6) ? 0.3f : 0.0f;

  subject_draw_data(w->subject, &w->t.dice, out);
  for (size_t k = 0; k < w->subject->dim; k++)
    out->vector[k] = like->vector[k] + difference * out->vector[k];
  for (size_t m = 0; m < w->subject->n_splits; m++) {
    if (difference == 0.0f || dice_below(&w->t.dice, 3))
      out->codes[m] = like->codes[m];
  }
}

/* Put the item: its part, except for 1 in 16, and its attributes, except for 1 in 10 of each. The first countries have
 * most items. */
static struct item_change make_item(struct world *w, size_t i, struct made *item)
{
  struct dice *dice = &w->t.dice;
  size_t country = dice_below(dice, 1 + dice_below(dice, COUNTRIES));
  struct item_change change = { .parts = &item->part, .attributes = item->values, .is_whole = true };

  draw_data(w, country, &item->data);
  item->part = subject_part(w->subject, "s", &item->data);
  change.key = span_of_str(w->keys[i]);
  change.n_parts = dice_below(dice, 16) > 0;
  snprintf(item->country, COUNTRY_BYTES, "c%zu", country);
  item->tags[0] = (struct value){ VALUE_TEXT, .text = span_of_str("new") };
  item->tags[1] = (struct value){ VALUE_TEXT, .text = span_of_str("old") };
  for (size_t a = 0; a < N_FILTER_ATTRIBUTES; a++) {
    if (dice_below(dice, 10))
      item->values[change.n_attributes++] =
          (struct attribute_value){ filter_attributes().v[a].name, draw_value(dice, a, item) };
  }
  return change;
}

/* Put n items from `first` on, or delete some of them. */
static void put(struct world *w, size_t first, size_t n, bool deletes)
{
  struct item_change *changes = calloc(n, sizeof *changes);
  struct made *items = calloc(n, sizeof *items);

  for (size_t i = 0; i < n; i++) {
    changes[i] = make_item(w, first + i, &items[i]);
    if (deletes && dice_below(&w->t.dice, 4) == 0)
      changes[i] = (struct item_change){ .key = changes[i].key, .is_delete = true };
  }
  twins_apply(&w->t, changes, n);
  free(changes);
  free(items);
}

/* Queries -------------------- */

struct questions {
  struct query queries[BATCH];
  float vectors[BATCH][SUBJECT_DIM_MAX];
  struct boost boosts[BATCH][QUERY_BOOSTS_MAX];
  struct span excluded[BATCH][EXCLUDED_MAX];
  struct key_set seen[BATCH];
  struct span explained[BATCH][EXPLAINED_MAX];
  struct span shown[BATCH];
  struct region region;
};

static const char *const filters[] = { "country = 'c0'", "country != 'c0'",  "year > 1 or available", "price < 2",
                                       "price > 100",    "not has(country)", "tags has 'new'",        "year = 99" };
enum { FILTERS = sizeof filters / sizeof filters[0] };

/* Weights from those that hardly matter to those beside which nothing else does. */
static struct boost draw_boost(struct dice *dice)
{
  static const char *const attributes[] = { "year", "price", "expires" };
  static const double weights[] = { 0, 1e-6, 0.01, 0.1, 0.3, 1, 3, 100, 1e9 };
  struct boost boost = { .weight = weights[dice_below(dice, 9)] * (dice_below(dice, 3) ? 1 : -1) };
  size_t a = dice_below(dice, 4);

  if (a == 3)
    boost.filter = span_of_str(filters[dice_below(dice, FILTERS)]);
  else
    boost.attribute = span_of_str(attributes[a]);
  if (a == 2)
    boost.half_life_ms = (int64_t)1 << dice_below(dice, 40);
  return boost;
}

static void draw_boosts(struct dice *dice, struct boost *boosts, struct query *query)
{
  query->n_boosts = dice_below(dice, 8) ? dice_below(dice, 4) : dice_below(dice, QUERY_BOOSTS_MAX + 1);
  query->boosts = boosts;
  for (size_t i = 0; i < query->n_boosts; i++)
    boosts[i] = draw_boost(dice);
  query->has_now = true;
  query->now_unix_ms = NOW;
}

/* Exclude no keys, few or many, as a list, as those that a user has seen, or in part as each. */
static void draw_excluded(struct world *w, struct questions *out, size_t q)
{
  struct dice *dice = &w->t.dice;
  struct query *query = &out->queries[q];
  size_t n = dice_below(dice, 2) ? 0 : dice_below(dice, dice_below(dice, 2) ? 9 : EXCLUDED_MAX);

  for (size_t i = 0; i < n; i++)
    out->excluded[q][i] = span_of_str(w->keys[dice_below(dice, w->n_items)]);
  query->exclude = out->excluded[q];
  query->n_exclude = dice_below(dice, 2) ? n : dice_below(dice, n + 1);
  CHECK_OK(key_set_init(engine_key_hash(w->t.cpu), query->exclude + query->n_exclude, n - query->n_exclude,
                        &out->region, &out->seen[q]));
  query->seen = n > query->n_exclude ? &out->seen[q] : NULL;
}

static void draw_explained(struct world *w, struct questions *out, size_t q)
{
  out->queries[q].explain = out->explained[q];
  out->queries[q].n_explain = dice_below(&w->t.dice, 3) ? 0 : dice_below(&w->t.dice, EXPLAINED_MAX + 1);
  for (size_t i = 0; i < EXPLAINED_MAX; i++)
    out->explained[q][i] = span_of_str(w->keys[dice_below(&w->t.dice, w->n_items)]);
}

static void draw_max_per(struct dice *dice, struct query *query)
{
  static const char *const attributes[] = { "country", "country", "year", "available" };
  static const uint32_t some_n[] = { 1, 1, 2, 5, 200 };

  query->max_per = (struct max_per){ span_of_str(attributes[dice_below(dice, 4)]), some_n[dice_below(dice, 5)] };
}

static void draw_mmr(struct world *w, struct query *query)
{
  struct dice *dice = &w->t.dice;
  bool can_be_open = w->subject->kind != SUBJECT_BILINEAR;

  query->k = 1 + (uint32_t)dice_below(dice, 12);
  query->mmr = (struct mmr){ .diversity = 0.1 * (double)(1 + dice_below(dice, 10)),
                             .candidates = query->k + (uint32_t)dice_below(dice, 60),
                             .is_left_open = can_be_open && dice_below(dice, 4) == 0 };
}

static void draw_query(struct world *w, size_t method, struct questions *out, size_t q)
{
  static const uint32_t some_k[] = { 1, 3, 10, 100, ITEMS_MAX };
  struct dice *dice = &w->t.dice;
  struct query *query = &out->queries[q];
  bool is_exact = method < w->subject->n_exact;

  dice_fill(dice, out->vectors[q], w->subject->dim, 1.0f);
  *query = (struct query){ .space = span_of_str("s"),
                           .method = span_of_str(w->subject->methods[method]),
                           .k = some_k[dice_below(dice, is_exact && dice_below(dice, 8) == 0 ? 5 : 4)],
                           .vector = { out->vectors[q], w->subject->dim } };
  draw_boosts(dice, out->boosts[q], query);
  draw_excluded(w, out, q);
  draw_explained(w, out, q);
  if (dice_below(dice, 3) == 0)
    draw_max_per(dice, query);
  if (dice_below(dice, 3) == 0)
    query->filter = span_of_str(filters[dice_below(dice, FILTERS)]);
  if (w->has_mmr && is_exact && dice_below(dice, 2))
    draw_mmr(w, query);
  out->shown[q] = span_of_str("*");
  query->attributes = &out->shown[q];
  query->n_attributes = query->k < ITEMS_MAX && dice_below(dice, 3) == 0;
  CHECK_OK(engine_check_filter(w->t.cuda, query, &out->region));
}

/* Comparing -------------------- */

static void check_explained(const struct twins *t, size_t q)
{
  const struct answer *a = &t->cpu_answers[q], *b = &t->cuda_answers[q];

  for (size_t i = 0; i < a->n_explanations; i++) {
    const struct explanation *x = &a->explanations[i], *y = &b->explanations[i];
    CHECK(x->verdict == y->verdict && x->rank == y->rank && x->has_score == y->has_score &&
              memcmp(&x->score, &y->score, sizeof(float)) == 0 &&
              memcmp(&x->below_last_hit, &y->below_last_hit, sizeof(float)) == 0,
          "query %zu: the explanations of %.*s differ: verdicts %d %d", q, (int)x->key.n, (const char *)x->key.p,
          (int)x->verdict, (int)y->verdict);
  }
}

static void check_exact(const struct twins *t, size_t q)
{
  const struct counts *a = &t->cpu_answers[q].counts, *b = &t->cuda_answers[q].counts;

  CHECK(t->cpu_answers[q].error == ANSWER_OK && t->cuda_answers[q].error == ANSWER_OK, "query %zu has an error", q);
  twins_check_same_query(t, q);
  CHECK(a->admitted == b->admitted || !a->has_admitted || !b->has_admitted, "query %zu: %zu admitted, not %zu", q,
        (size_t)b->admitted, (size_t)a->admitted);
  check_explained(t, q);
}

static const struct hit *find_hit(const struct answer *answer, struct span key)
{
  for (size_t i = 0; i < answer->n_hits; i++) {
    if (span_equal(answer->hits[i].key, key))
      return &answer->hits[i];
  }
  return NULL;
}

static size_t count_value(const struct answer *answer, const struct value *value)
{
  size_t n = 0;

  for (size_t i = 0; i < answer->n_hits; i++)
    n += value->kind != VALUE_NULL && twins_same_value(&answer->hits[i].value, value);
  return n;
}

/* Look at the best item that an approximate answer lacks, and that its max_per does not leave out. It is not above the
 * bound. The method may not have computed its score, so that may be rounded differently. */
static void check_bound(const struct query *query, const struct answer *exact, const struct answer *answer)
{
  for (size_t i = 0; i < exact->n_hits; i++) {
    const struct hit *hit = &exact->hits[i];
    float slack = 1e-4f * fmaxf(1.0f, fabsf(hit->score));
    if (find_hit(answer, hit->key) || (query->max_per.n && count_value(answer, &hit->value) >= query->max_per.n))
      continue;
    CHECK(answer->receipt.has_bound && hit->score <= answer->receipt.bound + slack, "%.*s scores %.9g, the bound is %g",
          (int)hit->key.n, (const char *)hit->key.p, (double)hit->score, (double)answer->receipt.bound);
    return; /* the others are not better */
  }
}

/* What holds for every method, with the exact answer of the processor. */
static void check_promises(const struct twins *t, const struct query *query, size_t q)
{
  const struct answer *exact = &t->cpu_answers[q], *answer = &t->cuda_answers[q];

  if (answer->receipt.is_exact) {
    twins_check_same_hits(t, q);
    return;
  }
  CHECK(answer->n_hits <= exact->n_hits, "query %zu: %zu hits, of %zu", q, answer->n_hits, exact->n_hits);
  for (size_t i = 0; i < answer->n_hits; i++) {
    const struct hit *hit = &answer->hits[i], *same = find_hit(exact, hit->key);
    CHECK(hit->score <= exact->hits[i].score, "query %zu: hit %zu is better than the exact one", q, i);
    CHECK(!same || memcmp(&same->score, &hit->score, sizeof(float)) == 0, "query %zu: hit %zu scores %.9g", q, i,
          (double)hit->score);
  }
  check_bound(query, exact, answer);
}

static void search_exactly(struct world *w, struct questions *questions, size_t n)
{
  twins_search(&w->t, questions->queries, n);
  for (size_t q = 0; q < n; q++)
    check_exact(&w->t, q);
}

static void search_approximately(struct world *w, struct questions *questions, size_t n)
{
  struct twins *t = &w->t;

  twins_search_on(t->cuda, t->on_cuda, questions->queries, n, t->cuda_answers);
  for (size_t q = 0; q < n; q++)
    questions->queries[q].method = span_of_str("exact");
  twins_search_on(t->cpu, t->on_cpu, questions->queries, n, t->cpu_answers);
  for (size_t q = 0; q < n; q++)
    check_promises(t, &questions->queries[q], q);
}

/* Worlds -------------------- */

/* Search a random batch with one method. */
static void search_batch(struct world *w, size_t method, size_t n)
{
  static struct questions questions;

  for (size_t q = 0; q < n; q++)
    draw_query(w, method, &questions, q);
  if (method < w->subject->n_exact)
    search_exactly(w, &questions, n);
  else
    search_approximately(w, &questions, n);
  region_fini(&questions.region);
}

static struct world *open_world(const struct subject *subject, enum engine_backend backend, uint64_t seed)
{
  static struct world w;
  char path[sizeof w.dir.path + 32];
  struct engine_space space = { "s", path, .dim = subject->kind == SUBJECT_DOT ? subject->dim : 0 };
  struct engine_config config = { .spaces = &space, .max_k = ITEMS_MAX, .attributes = filter_attributes() };

  w = (struct world){ .subject = subject, .has_mmr = backend == ENGINE_AUTO, .t.dice.state = seed };
  w.n_items = config.max_items = subject->n_items / check_size(1, QUICK_SHARE);
  temp_dir_init(&w.dir);
  sprintf(path, "%s/m.safetensors", w.dir.path);
  subject_write_model(subject, path, &w.t.dice);
  twins_open_config(&w.t, config, backend);
  for (size_t i = 0; i < COUNTRIES; i++)
    subject_draw_data(subject, &w.t.dice, &w.countries[i]);
  for (size_t i = 0; i < w.n_items; i++)
    subject_key(i, w.keys[i]);
  put(&w, 0, w.n_items, false);
  return &w;
}

static void check_subject(const struct subject *subject, enum engine_backend backend, uint64_t seed)
{
  struct world *w = open_world(subject, backend, seed);
  struct dice *dice = &w->t.dice;

  for (size_t round = 0; round < check_size(2, 1); round++) {
    size_t n_changed = 1 + dice_below(dice, w->n_items / 8);
    put(w, dice_below(dice, w->n_items - n_changed), n_changed, true); /* some items move to other slots */
    for (size_t m = 0; m < SUBJECT_METHODS_MAX && subject->methods[m]; m++)
      search_batch(w, m, 1 + dice_below(dice, dice_below(dice, 8) ? 4 : BATCH));
  }
  twins_close(&w->t);
  temp_dir_fini(&w->dir);
}

/* With the quick size, each subject has one of the backends. */
int main(void)
{
  static const enum engine_backend backends[] = { ENGINE_CUDA, ENGINE_AUTO };
  uint64_t seed = dice_seed();
  size_t n_runs = check_size(2, 1);

  check_begin("gpu_rounds");
  for (size_t s = 0; s < SUBJECTS; s++) {
    for (size_t run = 0; run < n_runs; run++)
      check_subject(&subjects[s], backends[(seed + s + run) % 2], seed + n_runs * s + run);
  }
  return check_end("gpu_rounds");
}
