/* SPDX-License-Identifier: Apache-2.0 */
/* Searches that threads share: whatever the number of threads and their timing, the answer is the same to the bit. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/engine_fixture.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

enum {
  ITEMS = 9000, /* several steps of every method */
  BATCH = 5,
  EXCLUDED = 20,
  ROUNDS = 150,
  LIVE_ROUNDS = 40,
  N_ENGINES = 4,
  MEMBERS = 7,
};

static const size_t threads_per_search[N_ENGINES] = { 1, 2, 3, MEMBERS };

static const struct space_methods {
  const char *space;
  const char *methods[8];
} subjects[] = {
  { "dot", { "exact", "brute_force" } },
  { "bilinear", { "exact", "brute_force", "low_rank(3)" } },
  { "pq", { "exact", "pqtopk", "default", "prune(8)", "prune_inflated(8,120)", "prune_limited(8,3)" } },
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

static struct engine *open_shared_engine(size_t per_search, size_t n_threads)
{
  struct engine_space spaces[SUBJECTS];
  struct engine_config config = {
    spaces, SUBJECTS, ITEMS, 2 * ITEMS, BATCH, isa_detect(), ENGINE_CPU, 0, { 0 }, { 0 }
  };
  struct engine_threads threads = { .per_search = per_search, .max = n_threads, .shares_always = true };
  struct engine *e;

  for (size_t i = 0; i < SUBJECTS; i++)
    spaces[i] = (struct engine_space){ .name = subjects[i].space, .model_path = paths[i] };
  assert_ok(engine_open(&config, &e));
  assert_ok(engine_share_searches(e, &threads));
  return e;
}

static struct searcher *open_searcher(struct engine *e)
{
  struct searcher *s;

  assert_ok(searcher_open(e, &s));
  return s;
}

/* A searcher that shares nothing, in an engine whose other searchers do. */
static struct searcher *open_aside(struct engine *e)
{
  struct searcher *s;

  assert_ok(searcher_open_aside(e, &s));
  return s;
}

/* Catalogues -------------------- */

static struct span key_of(size_t i, char text[8])
{
  return span_of(text, (size_t)sprintf(text, "%zu", i * 7919 % 10007));
}

/* Most vectors have few distinct numbers, so that many items tie. */
static void draw_vector(struct dice *dice, float *v)
{
  bool is_rare = dice_below(dice, 20) == 0;

  for (size_t k = 0; k < SMALL_DIM; k++)
    v[k] = is_rare ? dice_float(dice, 4.0f) : (float)dice_below(dice, 3) - 1.0f;
}

/* Put or delete n random items in one epoch of each engine. Some items lack the parts of some spaces. */
static void churn(struct engine *const *engines, size_t n_engines, struct dice *dice, size_t n, bool deletes)
{
  struct item_change *changes = calloc(n, sizeof *changes);
  struct part(*parts)[SUBJECTS] = calloc(n, sizeof *parts);
  float(*vectors)[SMALL_DIM] = calloc(n, sizeof *vectors);
  uint8_t(*codes)[SMALL_SPLITS] = calloc(n, sizeof *codes);
  char(*keys)[8] = calloc(n, sizeof *keys);

  for (size_t i = 0; i < n; i++) {
    struct item_change *change = &changes[i];
    change->key = key_of(deletes ? dice_below(dice, ITEMS) : i, keys[i]);
    change->is_delete = deletes && dice_below(dice, 3) == 0;
    change->parts = parts[i];
    draw_vector(dice, vectors[i]);
    for (size_t m = 0; m < SMALL_SPLITS; m++)
      codes[i][m] = (uint8_t)dice_below(dice, SMALL_SUBITEMS);
    for (size_t s = 0; s < SUBJECTS && !change->is_delete; s++) {
      if (dice_below(dice, 12) == 0 && s + 1 < SUBJECTS)
        continue;
      parts[i][change->n_parts] = (struct part){ .space = span_of_str(subjects[s].space) };
      if (s == 2)
        parts[i][change->n_parts++].codes = span_of(codes[i], SMALL_SPLITS);
      else
        parts[i][change->n_parts++].vector = (struct floats){ vectors[i], SMALL_DIM };
    }
  }
  for (size_t i = 0; i < n_engines; i++)
    fixture_apply(engines[i], changes, n);
  free(changes);
  free(parts);
  free(vectors);
  free(codes);
  free(keys);
}

/* Questions -------------------- */

struct question {
  const char *method;
  size_t n;
  float vectors[BATCH][SMALL_DIM];
  char excluded_text[EXCLUDED][8];
  struct span excluded[EXCLUDED];
  struct query queries[BATCH];
};

static void draw_question(struct dice *dice, struct question *q)
{
  static const uint32_t some_k[] = { 1, 3, 10, 100, 2000, 2 * ITEMS };
  const struct space_methods *subject = &subjects[dice_below(dice, SUBJECTS)];
  size_t n_methods = 0;

  while (n_methods < 8 && subject->methods[n_methods])
    n_methods++;
  q->method = subject->methods[dice_below(dice, n_methods)];
  q->n = 1 + dice_below(dice, BATCH);
  for (size_t i = 0; i < EXCLUDED; i++)
    q->excluded[i] = key_of(dice_below(dice, ITEMS), q->excluded_text[i]);
  for (size_t i = 0; i < q->n; i++) {
    draw_vector(dice, q->vectors[i]);
    q->queries[i] = (struct query){
      .space = span_of_str(subject->space),
      .method = span_of_str(q->method),
      .k = some_k[dice_below(dice, sizeof some_k / sizeof some_k[0])],
      .vector = { q->vectors[i], SMALL_DIM },
      .exclude = q->excluded,
      .n_exclude = dice_below(dice, 2) ? 0 : dice_below(dice, EXCLUDED),
    };
  }
}

static void assert_same(const struct question *q, size_t n_threads, const struct answer *a, const struct answer *b)
{
  for (size_t i = 0; i < q->n; i++) {
    bool is_same = a[i].n_hits == b[i].n_hits && a[i].counts.items == b[i].counts.items &&
                   a[i].receipt.is_exact == b[i].receipt.is_exact &&
                   a[i].receipt.has_bound == b[i].receipt.has_bound &&
                   memcmp(&a[i].receipt.bound, &b[i].receipt.bound, sizeof a[i].receipt.bound) == 0;
    if (!is_same)
      fail_msg("%s by %zu threads: %zu hits, not %zu, or another receipt", q->method, n_threads, b[i].n_hits,
               a[i].n_hits);
    fixture_assert_same_hits(&a[i], &b[i]);
  }
}

static void any_number_of_threads_gives_the_same_answers(void **state)
{
  struct dice dice = { seed + 1 };
  struct engine *engines[N_ENGINES]; /* of the same items */
  struct searcher *searchers[N_ENGINES], *aside;
  struct answer expected[BATCH], answers[BATCH];
  struct question q;

  (void)state;
  for (size_t i = 0; i < N_ENGINES; i++) {
    engines[i] = open_shared_engine(threads_per_search[i], MEMBERS);
    searchers[i] = open_searcher(engines[i]);
  }
  aside = open_aside(engines[N_ENGINES - 1]);
  for (size_t round = 0; round < ROUNDS; round++) {
    if (round == 10) /* before, the catalogue is empty */
      churn(engines, N_ENGINES, &dice, ITEMS, false);
    else if (round % 10 == 0)
      churn(engines, N_ENGINES, &dice, 200, true);
    draw_question(&dice, &q);
    fixture_search(engines[0], searchers[0], q.queries, q.n, expected);
    for (size_t i = 1; i < N_ENGINES; i++) {
      fixture_search(engines[i], searchers[i], q.queries, q.n, answers);
      assert_same(&q, threads_per_search[i], expected, answers);
    }
    fixture_search(engines[N_ENGINES - 1], aside, q.queries, q.n, answers);
    assert_same(&q, 1, expected, answers);
  }
  searcher_close(&aside);
  for (size_t i = 0; i < N_ENGINES; i++) {
    searcher_close(&searchers[i]);
    engine_close(&engines[i]);
  }
}

/* A thread that searches by one thread and by several, and compares where both saw the same epoch. */
struct client {
  struct engine *engine;
  struct dice dice;
  struct searcher *one, *shared;
  _Atomic size_t n_compared;
  pthread_t thread;
};

static void *compare(void *context)
{
  struct client *c = context;
  struct answer expected[BATCH], answers[BATCH];
  struct question q;

  while (atomic_load(&c->n_compared) < LIVE_ROUNDS) {
    draw_question(&c->dice, &q);
    fixture_search(c->engine, c->one, q.queries, q.n, expected);
    fixture_search(c->engine, c->shared, q.queries, q.n, answers);
    if (answers[0].epoch != expected[0].epoch)
      continue;
    assert_same(&q, MEMBERS, expected, answers);
    atomic_fetch_add(&c->n_compared, 1);
  }
  return NULL;
}

/* More threads search than may: helpers give way all the time. */
static void threads_share_searches_while_items_change_and_others_search(void **state)
{
  enum { CLIENTS = 2 };
  struct dice dice = { seed + 2 };
  struct engine *e = open_shared_engine(MEMBERS, 3);
  struct client clients[CLIENTS] = { { .engine = e, .dice = { seed + 3 } }, { .engine = e, .dice = { seed + 4 } } };

  (void)state;
  churn(&e, 1, &dice, ITEMS, false);
  for (size_t i = 0; i < CLIENTS; i++) {
    clients[i].one = open_aside(e);
    clients[i].shared = open_searcher(e);
    assert_int_equal(pthread_create(&clients[i].thread, NULL, compare, &clients[i]), 0);
  }
  while (atomic_load(&clients[0].n_compared) < LIVE_ROUNDS || atomic_load(&clients[1].n_compared) < LIVE_ROUNDS)
    churn(&e, 1, &dice, 20, true);
  for (size_t i = 0; i < CLIENTS; i++) {
    pthread_join(clients[i].thread, NULL);
    searcher_close(&clients[i].one);
    searcher_close(&clients[i].shared);
  }
  engine_close(&e);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_number_of_threads_gives_the_same_answers),
    cmocka_unit_test(threads_share_searches_while_items_change_and_others_search),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, write_models, remove_models);
}
