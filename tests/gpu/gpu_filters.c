/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with filters on the device compared with the processor: every method, and filters that admit all items,
 * none, or a part of them, which is drawn, or the best, or the worst, or slots in a row. The queries of a batch have
 * different filters. Meanwhile items expire. */
#include "engine/cuda/device_worker.h"
#include "tests/gpu/subjects.h"
#include "tests/gpu/twins.h"
#include "tests/support/temp_dir.h"

enum {
  ITEMS_MAX = 40000,
  FILTER_BYTES = 80,
  EXCLUDED_MAX = 4,
  BATCH = 40, /* more than DEVICE_WORDS_MAX */
  DRAWS = 10000,
  LIFE_MS = 4000 /* an item that expires is dead after this time */
};

/* DRAW: random below DRAWS, and absent for some items. PLACE: the order in which items came. WORTH: the rank of the
 * item's score for one query. ENDS: when it expires; 1 in 16 items do not. */
enum { DRAW, PLACE, WORTH, ENDS, N_ATTRIBUTES };

static const struct attribute attributes[N_ATTRIBUTES] = {
  [DRAW] = { { (const uint8_t *)"draw", 4 }, ATTRIBUTE_INTEGER },
  [PLACE] = { { (const uint8_t *)"place", 5 }, ATTRIBUTE_INTEGER },
  [WORTH] = { { (const uint8_t *)"worth", 5 }, ATTRIBUTE_INTEGER },
  [ENDS] = { { (const uint8_t *)"ends", 4 }, ATTRIBUTE_TIME },
};

static int64_t now_ms; /* the engines' clock */

static int64_t tell_time(void *context)
{
  (void)context;
  return now_ms;
}

static const struct subject subjects[] = {
  { SUBJECT_DOT, 3000, 24, 0, { 0 }, 2, { "exact", "brute_force" } },
  { SUBJECT_BILINEAR, 2000, SUBJECT_DIM_MAX, 0, { 0 }, 2, { "exact", "brute_force", "low_rank(5)", "low_rank(80)" } },
  { SUBJECT_RECJPQ, 4000, 16, 8, { 0 }, 3, { "exact", "pqtopk", "prune(8)", "prune_limited(8,1)" } },
  { SUBJECT_RECJPQ, 3000, 18, 9, { 0 }, 2, { "default", "exact", "prune_inflated(8,150)" } },
  { SUBJECT_MOL,
    5200,
    8,
    0,
    { 2, 3, 5, 7, 8, 0, 2.0f },
    3,
    { "exact", "brute_force", "two_pass", "average(100)", "average(3000)", "per_embedding(30)", "combined(10,60)" } },
  { SUBJECT_MOL,
    1500,
    8,
    0,
    { 8, 4, 16, 128, 8, 0, 0.17f },
    2,
    { "exact", "two_pass", "average(40)", "per_embedding(10)" } },             /* with bounds */
  { SUBJECT_MOL, 5200, 8, 0, { 8, 4, 16, 128, 8, 0, 0.02f }, 1, { "exact" } }, /* with tight bounds, and seeds */
  { SUBJECT_MOL, 700, 8, 0, { 2, 2, 130, 4, 8, 0, 1.0f }, 2, { "two_pass", "exact", "combined(10,20)" } },
};

struct world {
  struct twins t;
  const struct subject *subject;
  size_t n_items;
  float base[SUBJECT_DIM_MAX]; /* the query that WORTH is of */
  bool has_ties;               /* all items are alike */
  struct temp_dir dir;
};

/* Items -------------------- */

struct made {
  struct part part;
  struct subject_data data;
  char key[SUBJECT_KEY_BYTES];
  struct attribute_value values[N_ATTRIBUTES];
};

static struct attribute_value integer_of(size_t attribute, size_t number)
{
  return (struct attribute_value){ attributes[attribute].name, { .kind = VALUE_INTEGER, .integer = (int64_t)number } };
}

/* Put the item: its part, except for 1 in 16, and its attributes. Its worth is not known yet. */
static struct item_change make_item(struct world *w, size_t i, struct made *item)
{
  struct dice *dice = &w->t.dice;
  struct item_change change = { .parts = &item->part, .attributes = item->values, .is_whole = true };

  subject_draw_data(w->subject, dice, &item->data);
  if (w->has_ties)
    memset(item->data.codes, 0, sizeof item->data.codes);
  item->part = subject_part(w->subject, "s", &item->data);
  change.key = subject_key(i, item->key);
  change.n_parts = w->has_ties || dice_below(dice, 16) > 0;
  if (dice_below(dice, 10))
    item->values[change.n_attributes++] = integer_of(DRAW, dice_below(dice, DRAWS));
  item->values[change.n_attributes++] = integer_of(PLACE, i);
  if (!w->has_ties && dice_below(dice, 16))
    item->values[change.n_attributes++] = integer_of(ENDS, 1 + dice_below(dice, LIFE_MS));
  return change;
}

/* Put n items from `first` on, or delete some of them. */
static void put(struct world *w, size_t first, size_t n, bool deletes)
{
  struct item_change *changes = calloc(n, sizeof *changes);
  struct made *items = calloc(n, sizeof *items);

  for (size_t i = 0; i < n; i++) {
    changes[i] = make_item(w, first + i, &items[i]);
    if (deletes && dice_below(&w->t.dice, 2))
      changes[i] = (struct item_change){ .key = changes[i].key, .is_delete = true };
  }
  twins_apply(&w->t, changes, n);
  free(changes);
  free(items);
}

/* Set each item's worth to its rank in the answer to the base query. */
static void rank_items(struct world *w)
{
  struct query query = { .space = span_of_str("s"), .k = (uint32_t)w->n_items, .vector = { w->base, w->subject->dim } };
  struct item_change *changes = calloc(w->n_items, sizeof *changes);
  struct attribute_value *values = calloc(w->n_items, sizeof *values);
  const struct answer *answer = &w->t.cpu_answers[0];

  query.method = span_of_str("exact");
  twins_search(&w->t, &query, 1);
  for (size_t i = 0; i < answer->n_hits; i++) {
    values[i] = integer_of(WORTH, i);
    changes[i] = (struct item_change){ .key = answer->hits[i].key, .attributes = &values[i], .n_attributes = 1 };
  }
  twins_apply(&w->t, changes, answer->n_hits);
  free(changes);
  free(values);
}

/* Queries -------------------- */

struct questions {
  struct query queries[BATCH];
  float vectors[BATCH][SUBJECT_DIM_MAX];
  char filters[BATCH][FILTER_BYTES];
  struct span excluded[BATCH][EXCLUDED_MAX];
  char keys[BATCH][EXCLUDED_MAX][SUBJECT_KEY_BYTES];
};

enum { FILTERS = 14 };

static void draw_filter(struct world *w, size_t which, char *text)
{
  static const size_t draws[] = { 5000, 1000, 100, 10, 0 };
  size_t n = w->n_items, first = dice_below(&w->t.dice, n);

  if (which < sizeof draws / sizeof draws[0])
    sprintf(text, "draw < %zu", draws[which]);
  else if (which == 5)
    sprintf(text, "has(place)"); /* all */
  else if (which == 6)
    sprintf(text, "worth >= %zu", n / 2); /* the worse half, and so on */
  else if (which == 7)
    sprintf(text, "worth >= %zu", n * 7 / 8);
  else if (which == 8)
    sprintf(text, "worth < %zu", n / 2);
  else if (which == 9)
    sprintf(text, "worth < %zu", n / 20);
  else if (which == 10)
    sprintf(text, "worth between %zu and %zu", n / 4, n * 3 / 4);
  else if (which == 11)
    sprintf(text, "place between %zu and %zu", first, first + n / 3); /* slots in a row */
  else if (which == 12)
    sprintf(text, "draw < %zu", dice_below(&w->t.dice, DRAWS));
  else
    sprintf(text, "not has(draw) or worth >= %zu", n / 3);
}

/* Draw queries. `which` is the filter of all of them; FILTERS: others for each, or none. */
static void ask(struct world *w, struct region *region, size_t n, size_t which, struct questions *out)
{
  static const uint32_t some_k[] = { 1, 3, 10, 50, 700, ITEMS_MAX };
  struct dice *dice = &w->t.dice;
  size_t n_ks = dice_below(dice, 4) ? 4 : sizeof some_k / sizeof some_k[0]; /* large ones leave other steps out */

  region_reset(region);
  for (size_t q = 0; q < n; q++) {
    struct query *query = &out->queries[q];
    dice_fill(dice, out->vectors[q], w->subject->dim, dice_below(dice, 2) ? 1.0f : 0.1f);
    for (size_t k = 0; k < w->subject->dim; k++)
      out->vectors[q][k] += w->base[k];
    *query = (struct query){ .space = span_of_str("s"),
                             .k = some_k[dice_below(dice, n_ks)],
                             .vector = { out->vectors[q], w->subject->dim },
                             .exclude = out->excluded[q],
                             .n_exclude = dice_below(dice, 2) ? 0 : dice_below(dice, EXCLUDED_MAX + 1) };
    for (size_t e = 0; e < query->n_exclude; e++)
      out->excluded[q][e] = subject_key(dice_below(dice, w->n_items), out->keys[q][e]);
    draw_filter(w, which < FILTERS ? which : dice_below(dice, FILTERS), out->filters[q]);
    if (which < FILTERS || dice_below(dice, 5))
      query->filter = span_of_str(out->filters[q]);
    CHECK_OK(engine_check_filter(w->t.cuda, query, region));
  }
}

/* The device scores more items than the processor: the answer is exact, and no hit is worse. */
static void check_better(const struct twins *t, size_t q, const char *filter)
{
  const struct answer *a = &t->cpu_answers[q], *b = &t->cuda_answers[q];

  CHECK(b->receipt.is_exact && b->n_hits >= a->n_hits, "%s: exact: %d, %zu hits, %zu on the processor", filter,
        b->receipt.is_exact, b->n_hits, a->n_hits);
  for (size_t i = 0; i < a->n_hits; i++)
    CHECK(b->hits[i].score >= a->hits[i].score, "%s: hit %zu is worse", filter, i);
}

/* The same hits; the receipt of low_rank is the device's own and must not be worse. */
static void check_low_rank(struct twins *t, size_t q, const char *filter)
{
  const struct receipt *a = &t->cpu_answers[q].receipt, *b = &t->cuda_answers[q].receipt;

  CHECK(a->has_bound == b->has_bound && b->is_exact >= a->is_exact && (!a->has_bound || b->bound <= a->bound),
        "%s: bounds %.9g %.9g", filter, (double)a->bound, (double)b->bound);
  t->cuda_answers[q].receipt = *a;
  twins_check_same_query(t, q);
}

static void check_approximate(struct world *w, size_t q, const char *filter)
{
  const struct counts *a = &w->t.cpu_answers[q].counts, *b = &w->t.cuda_answers[q].counts;

  if (w->subject->kind == SUBJECT_RECJPQ || b->plan == QUERY_PLAN_FEW)
    check_better(&w->t, q, filter);
  else if (w->subject->kind == SUBJECT_BILINEAR)
    check_low_rank(&w->t, q, filter);
  else if (b->candidates > a->candidates) /* lists overflowed, or many items are asked for */
    check_better(&w->t, q, filter);
  else
    twins_check_same_query(&w->t, q);
}

static void search(struct world *w, struct questions *questions, size_t n, size_t method)
{
  struct twins *t = &w->t;

  for (size_t q = 0; q < n; q++)
    questions->queries[q].method = span_of_str(w->subject->methods[method]);
  twins_search(&w->t, questions->queries, n);
  for (size_t q = 0; q < n; q++) {
    const char *filter = questions->filters[q];
    const struct counts *a = &t->cpu_answers[q].counts, *b = &t->cuda_answers[q].counts;
    CHECK(b->has_admitted && b->admitted == a->admitted, "%s: %zu admitted, not %zu", filter, (size_t)b->admitted,
          (size_t)a->admitted);
    if (method < w->subject->n_exact)
      twins_check_same_query(t, q);
    else
      check_approximate(w, q, filter);
  }
}

/* Worlds -------------------- */

static struct world *open_world(const struct subject *subject, size_t n_items, bool has_ties, uint64_t seed)
{
  static struct world w;
  char path[sizeof w.dir.path + 32];
  struct engine_space space = { "s", path, .dim = subject->kind == SUBJECT_DOT ? subject->dim : 0 };

  w = (struct world){ .subject = subject, .n_items = n_items, .has_ties = has_ties, .t.dice.state = seed };
  now_ms = 1;
  temp_dir_init(&w.dir);
  sprintf(path, "%s/m.safetensors", w.dir.path);
  subject_write_model(subject, path, &w.t.dice);
  dice_fill(&w.t.dice, w.base, subject->dim, 1.0f);
  twins_open_config(&w.t,
                    (struct engine_config){ .spaces = &space,
                                            .max_items = n_items,
                                            .max_k = ITEMS_MAX,
                                            .attributes = { attributes, N_ATTRIBUTES },
                                            .lifetimes = { .expires = "ends", .clock = { tell_time, NULL } } },
                    ENGINE_CUDA);
  put(&w, 0, n_items, false);
  return &w;
}

static void close_world(struct world *w)
{
  twins_close(&w->t);
  temp_dir_fini(&w->dir);
}

static void pass_time(struct world *w, int64_t ms)
{
  now_ms += ms;
  CHECK_OK(engine_pass_time(w->t.cpu));
  CHECK_OK(engine_pass_time(w->t.cuda));
}

/* Search with one method, with filters that are drawn. */
static void search_once(struct world *w, struct region *region, size_t n, size_t method)
{
  static struct questions questions;

  ask(w, region, n, dice_below(&w->t.dice, 2) ? FILTERS : dice_below(&w->t.dice, FILTERS), &questions);
  search(w, &questions, n, method);
}

/* The few best of the worse half: every floor of other items is above their scores. */
static void check_worse_half(struct world *w, struct region *region, size_t method)
{
  static struct questions questions;

  ask(w, region, 2, 6, &questions);
  for (size_t q = 0; q < 2; q++) {
    memcpy(questions.vectors[q], w->base, sizeof w->base);
    questions.queries[q].k = q == 0 ? 1 : 3;
  }
  search(w, &questions, 2, method);
}

static void check_subject(const struct subject *subject, uint64_t seed)
{
  static struct questions questions;
  struct world *w = open_world(subject, subject->n_items / check_size(1, 3), false, seed);
  struct region region = { 0 };

  put(w, w->n_items / 3, w->n_items / 4, true); /* some items move to other slots */
  rank_items(w);
  for (size_t m = 0; m < SUBJECT_METHODS_MAX && subject->methods[m]; m++) {
    check_worse_half(w, &region, m);
    for (size_t round = 0; round < check_size(4, 1); round++) {
      search_once(w, &region, 1 + dice_below(&w->t.dice, subject->kind == SUBJECT_MOL ? 4 : round ? 12 : BATCH), m);
      if (round > 1)
        pass_time(w, (int64_t)dice_below(&w->t.dice, 100));
    }
  }
  pass_time(w, LIFE_MS); /* now few are alive: they are few even without a filter */
  for (size_t m = 0; m < SUBJECT_METHODS_MAX && subject->methods[m]; m++)
    search_once(w, &region, 3, m);
  if (subject->kind == SUBJECT_DOT) {
    ask(w, &region, BATCH, 12, &questions); /* more filters than the device keeps */
    search(w, &questions, BATCH, 0);
  }
  region_fini(&region);
  close_world(w);
}

/* More admitted items with the same score than a list can keep: the query is searched again range by range. */
static void check_many_ties(uint64_t seed)
{
  static struct questions questions;
  struct world *w = open_world(&subjects[2], ITEMS_MAX, true, seed);
  struct region region = { 0 };

  for (size_t which = 0; which < 2; which++) {
    ask(w, &region, 2, which == 0 ? 0 : 11, &questions);
    search(w, &questions, 2, 0);
  }
  ask(w, &region, 2, 0, &questions);
  snprintf(questions.filters[0], FILTER_BYTES, "draw < 8000");
  questions.queries[0].filter = span_of_str(questions.filters[0]);
  CHECK_OK(engine_check_filter(w->t.cuda, &questions.queries[0], &region));
  search(w, &questions, 2, 0);
  region_fini(&region);
  close_world(w);
}

/* The words of filters on the device -------------------- */

enum { SLOTS = 1000, WORDS = (SLOTS + 63) / 64 };

static void check_words_on_device(struct device_worker *w, const uint64_t *device, const uint64_t *expected)
{
  uint64_t *host;

  CHECK_OK(device_alloc_host(WORDS, sizeof *host, &host));
  CHECK_OK(device_copy_out(w->stream, host, device, WORDS * sizeof *host));
  CHECK_OK(device_wait(w->stream));
  CHECK(memcmp(host, expected, WORDS * sizeof *host) == 0, "other words");
  device_free_host(&host);
}

static void check_words(uint64_t seed)
{
  static uint64_t words[2 * DEVICE_WORDS_MAX][WORDS];
  struct device_worker *w;
  struct dice dice = { seed };
  const uint64_t *device;

  CHECK_OK(device_worker_open(SLOTS, &w));
  for (size_t i = 0; i < 2 * DEVICE_WORDS_MAX; i++) {
    for (size_t k = 0; k < WORDS; k++)
      words[i][k] = dice_u64(&dice);
  }
  for (size_t round = 0; round < 400; round++) {
    size_t i = dice_below(&dice, round % 100 < 50 ? DEVICE_WORDS_MAX : 2 * DEVICE_WORDS_MAX);
    uint64_t n_sent = w->words.n_sent;
    CHECK_OK(device_worker_words(w, words[i], SLOTS, i < 4 ? 0 : i, &device)); /* the first ones are not kept */
    check_words_on_device(w, device, words[i]);
    CHECK(i >= 4 || w->words.n_sent == n_sent + 1, "words without an id were not sent");
    n_sent = w->words.n_sent;
    CHECK_OK(device_worker_words(w, words[i], SLOTS, i < 4 ? 0 : i, &device));
    CHECK(i < 4 || w->words.n_sent == n_sent, "words were sent again");
    check_words_on_device(w, device, words[i]);
  }
  device_worker_close(&w);
}

int main(void)
{
  uint64_t seed = dice_seed();

  check_begin("gpu_filters");
  check_words(seed);
  for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++)
    check_subject(&subjects[s], seed + s);
  check_many_ties(seed + 100);
  return check_end("gpu_filters");
}
