/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations and queries for items like one, compared with whole answers: the scores must agree to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/keys/key_set.h"
#include "kernels/device.h"
#include "tests/support/two_spaces.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 150, ROUNDS = 12 };

static uint64_t seed;

struct world {
  struct two_spaces two;
  struct two_item items[ITEMS];
  char texts[ITEMS][32];
  struct span keys[ITEMS];
  struct engine *engine;
  struct searcher *searcher;
  struct dice dice;
};

static void put_items(struct world *w)
{
  for (size_t i = 0; i < ITEMS; i++) {
    struct two_item *item = &w->items[i];
    struct part parts[2];
    item->has_pq = dice_below(&w->dice, 5) > 0;
    item->has_mol = dice_below(&w->dice, 5) > 0 || !item->has_pq;
    for (size_t s = 0; s < TWO_SPLITS; s++)
      item->codes[s] = (uint8_t)dice_below(&w->dice, TWO_SUBITEMS);
    dice_fill(&w->dice, item->vector, TWO_MOL_DIM, 1.0f);
    w->keys[i] = two_key(i, w->texts[i]);
    fixture_put(w->engine, w->keys[i], parts, two_parts(item, item->has_pq, item->has_mol, parts));
  }
}

static void open_world(struct world *w, enum engine_backend backend)
{
  memset(w, 0, sizeof *w);
  w->dice = (struct dice){ seed };
  two_spaces_init(&w->two, &w->dice);
  w->two.config.backend = backend;
  assert_ok(engine_open(&w->two.config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  put_items(w);
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  two_spaces_fini(&w->two);
}

static const struct hit *find(const struct hit *hits, size_t n, struct span key)
{
  for (size_t i = 0; i < n; i++) {
    if (span_equal(hits[i].key, key))
      return &hits[i];
  }
  return NULL;
}

static bool is_among(const struct span *keys, size_t n, struct span key)
{
  for (size_t i = 0; i < n; i++) {
    if (span_equal(keys[i], key))
      return true;
  }
  return false;
}

/* All scores of a query without its limits. The caller frees the hits. */
static struct hit *score_all(struct world *w, const struct query *query, size_t *n)
{
  struct query all = *query;
  struct answer answer = { 0 };

  all.k = ITEMS;
  all.method = span_of_str("brute_force");
  if (query->vector.n == TWO_SPLITS * TWO_SPLIT_DIM)
    all.method = span_of_str("default");
  all.n_exclude = all.n_explain = 0;
  all.seen = NULL;
  fixture_search(w->engine, w->searcher, &all, 1, &answer);
  struct hit *hits = calloc(answer.n_hits + 1, sizeof *hits);
  char(*texts)[ITEM_KEY_MAX] = calloc(answer.n_hits + 1, sizeof *texts);
  for (size_t i = 0; i < answer.n_hits; i++) { /* the searcher's next search takes the memory */
    memcpy(texts[i], answer.hits[i].key.p, answer.hits[i].key.n);
    hits[i] = (struct hit){ .key = span_of(texts[i], answer.hits[i].key.n), .score = answer.hits[i].score };
  }
  hits[answer.n_hits].key = span_of(texts, 0);
  *n = answer.n_hits;
  return hits;
}

static void check(const struct query *query, const struct answer *answer, const struct explanation *e,
                  const struct hit *scored)
{
  const struct hit *hit = find(answer->hits, answer->n_hits, e->key);
  bool has_seen = query->seen && is_among(query->seen->keys, query->seen->n, e->key);

  assert_int_equal(e->has_score, scored != NULL);
  if (!scored) {
    assert_true(e->verdict == VERDICT_NO_ITEM || e->verdict == VERDICT_NO_PART);
    return;
  }
  assert_memory_equal(&e->score, &scored->score, sizeof(float));
  if (is_among(query->exclude, query->n_exclude, e->key)) {
    assert_int_equal(e->verdict, VERDICT_EXCLUDED);
  } else if (has_seen) {
    assert_int_equal(e->verdict, VERDICT_SEEN);
  } else if (hit) {
    assert_int_equal(e->verdict, VERDICT_HIT);
    assert_ptr_equal(&answer->hits[e->rank - 1], hit);
  } else {
    assert_int_equal(e->verdict, VERDICT_OUTRANKED);
    assert_true(e->below_last_hit == answer->hits[answer->n_hits - 1].score - e->score);
    assert_true(e->below_last_hit >= 0);
  }
}

static void draw_keys(struct world *w, struct span *keys, size_t n)
{
  for (size_t i = 0; i < n; i++)
    keys[i] = w->keys[dice_below(&w->dice, ITEMS)];
}

static void explain_random_queries(struct world *w, const char *space, const char *method, size_t dim)
{
  for (int round = 0; round < ROUNDS; round++) {
    float vector[TWO_QUERY_DIM];
    struct span exclude[20], keys[QUERY_EXPLAIN_MAX];
    struct answer answer = { 0 };
    size_t n_all;
    dice_fill(&w->dice, vector, dim, 1.0f);
    draw_keys(w, exclude, 20);
    draw_keys(w, keys, QUERY_EXPLAIN_MAX);
    keys[0] = span_of_str("nobody");
    keys[1] = exclude[3];
    keys[2] = exclude[15];
    struct query query = { .space = span_of_str(space),
                           .method = span_of_str(method),
                           .k = (uint32_t)dice_below(&w->dice, 20) + 1,
                           .vector = { vector, dim },
                           .exclude = exclude,
                           .n_exclude = 10,
                           .explain = keys,
                           .n_explain = QUERY_EXPLAIN_MAX };
    struct key_set seen;
    struct region region = { 0 };
    assert_ok(key_set_init(engine_key_hash(w->engine), exclude + 10, 10, &region, &seen));
    if (round % 2)
      query.seen = &seen;
    struct hit *all = score_all(w, &query, &n_all);
    fixture_search(w->engine, w->searcher, &query, 1, &answer);
    assert_int_equal(answer.n_explanations, QUERY_EXPLAIN_MAX);
    for (size_t i = 0; i < QUERY_EXPLAIN_MAX; i++) {
      assert_true(span_equal(answer.explanations[i].key, keys[i]));
      check(&query, &answer, &answer.explanations[i], find(all, n_all, keys[i]));
    }
    free((void *)(uintptr_t)all[n_all].key.p);
    free(all);
    region_fini(&region);
  }
}

static void explain_on(enum engine_backend backend)
{
  struct world w;

  open_world(&w, backend);
  explain_random_queries(&w, "pq", "exact", TWO_SPLITS * TWO_SPLIT_DIM);
  explain_random_queries(&w, "pq", "pqtopk", TWO_SPLITS * TWO_SPLIT_DIM);
  explain_random_queries(&w, "mol", "exact", TWO_QUERY_DIM);
  explain_random_queries(&w, "mol", "brute_force", TWO_QUERY_DIM);
  close_world(&w);
}

static void explanations_agree_with_whole_answers(void **state)
{
  (void)state;
  explain_on(ENGINE_CPU);
}

#ifdef SLUICE_CUDA
static void the_same_on_a_gpu(void **state)
{
  struct device device;

  (void)state;
  if (device_find(&device) != ERR_OK)
    skip();
  explain_on(ENGINE_CUDA);
}
#endif

static void what_an_approximate_method_has_not_found_is_missed(void **state)
{
  struct world w;
  float vector[TWO_QUERY_DIM];
  struct answer answer;
  size_t n_missed = 0, n_all;

  (void)state;
  open_world(&w, ENGINE_CPU);
  for (int round = 0; round < 20 * ROUNDS; round++) {
    struct span keys[QUERY_EXPLAIN_MAX];
    dice_fill(&w.dice, vector, TWO_QUERY_DIM, 1.0f);
    struct query query = { .space = span_of_str("mol"),
                           .method = span_of_str("average(6)"),
                           .k = 5,
                           .vector = { vector, TWO_QUERY_DIM },
                           .explain = keys,
                           .n_explain = 5 };
    struct hit *all = score_all(&w, &query, &n_all);
    for (size_t i = 0; i < 5; i++)
      keys[i] = all[i].key;
    fixture_search(w.engine, w.searcher, &query, 1, &answer);
    for (size_t i = 0; i < 5; i++) { /* the five best are hits, or were missed */
      assert_true(answer.explanations[i].verdict == VERDICT_HIT || answer.explanations[i].verdict == VERDICT_MISSED);
      n_missed += answer.explanations[i].verdict == VERDICT_MISSED;
    }
    free((void *)(uintptr_t)all[n_all].key.p);
    free(all);
  }
  assert_true(n_missed > 0);
  close_world(&w);
}

/* ---- Items like others ---- */

enum { DIM = 5 };

static void items_like_one_are_those_of_its_vector(void **state)
{
  static const char *const similarities[] = { "dot", "cosine" };

  (void)state;
  for (size_t s = 0; s < 2; s++) {
    struct temp_dir dir;
    char path[PATH_MAX], texts[ITEMS][8];
    float vectors[ITEMS][DIM];
    struct engine_space space = { .name = "v", .model_path = path };
    struct engine_config config = { &space, 1, ITEMS, ITEMS, 8, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };
    struct engine *engine;
    struct searcher *searcher;
    struct dice dice = { seed + s };
    temp_dir_init(&dir);
    snprintf(path, sizeof path, "%s/v.safetensors", dir.path);
    vector_file_write_plain(path, similarities[s], DIM);
    assert_ok(engine_open(&config, &engine));
    assert_ok(searcher_open(engine, &searcher));
    for (size_t i = 0; i < ITEMS; i++) {
      dice_fill(&dice, vectors[i], DIM, 1.0f);
      snprintf(texts[i], sizeof texts[i], "%zu", i);
      fixture_put_vector(engine, span_of_str(texts[i]), "v", vectors[i], DIM);
    }
    for (size_t i = 0; i < ITEMS; i += 7) {
      struct span key = span_of_str(texts[i]), both[] = { key, span_of_str("1") };
      struct like one = { key, 1 };
      struct query like = {
        .space = span_of_str("v"), .k = 10, .likes = &one, .n_likes = 1, .exclude = &both[1], .n_exclude = 1
      };
      struct query plain = {
        .space = span_of_str("v"), .k = 10, .vector = { vectors[i], DIM }, .exclude = both, .n_exclude = 2
      };
      struct query queries[] = { like, plain };
      struct answer answers[2];
      fixture_search(engine, searcher, queries, 2, answers);
      assert_int_equal(answers[0].n_hits, 10);
      for (size_t k = 0; k < 10; k++) { /* a row of cosine is normalised: its scores may differ in the last bits */
        assert_true(span_equal(answers[0].hits[k].key, answers[1].hits[k].key));
        assert_true(fabsf(answers[0].hits[k].score - answers[1].hits[k].score) < 1e-5f);
      }
    }
    searcher_close(&searcher);
    engine_close(&engine);
    temp_dir_fini(&dir);
  }
}

static void items_like_one_of_codes_are_those_of_its_centroids(void **state)
{
  struct world w;
  struct answer answers[2], single;
  float unit[TWO_SPLITS * TWO_SPLIT_DIM], vector[TWO_SPLITS * TWO_SPLIT_DIM];

  (void)state;
  open_world(&w, ENGINE_CPU);
  for (size_t i = 0; i < ITEMS; i++) {
    if (!w.items[i].has_pq)
      continue;
    /* The item's score for the d-th unit vector is the d-th number of its vector. */
    for (size_t d = 0; d < TWO_SPLITS * TWO_SPLIT_DIM; d++) {
      memset(unit, 0, sizeof unit);
      unit[d] = 1;
      struct query probe = { .space = span_of_str("pq"), .k = ITEMS, .vector = { unit, TWO_SPLITS * TWO_SPLIT_DIM } };
      fixture_search(w.engine, w.searcher, &probe, 1, &single);
      vector[d] = find(single.hits, single.n_hits, w.keys[i])->score;
    }
    struct like one = { w.keys[i], 1 };
    struct query queries[] = {
      { .space = span_of_str("pq"), .k = 10, .likes = &one, .n_likes = 1 },
      { .space = span_of_str("pq"),
        .k = 10,
        .vector = { vector, TWO_SPLITS * TWO_SPLIT_DIM },
        .exclude = &w.keys[i],
        .n_exclude = 1 },
    };
    fixture_search(w.engine, w.searcher, queries, 2, answers);
    fixture_assert_same_hits(&answers[0], &answers[1]);
  }
  close_world(&w);
}

/* Weights and numbers have few bits, so the mean is exact in any order. */
static void items_like_several_are_those_of_their_mean(void **state)
{
  static const double weights[] = { 2, -0.5, 1.25, 0.25 };
  enum { N = sizeof weights / sizeof *weights };
  struct temp_dir dir;
  char path[PATH_MAX], texts[ITEMS][8];
  float vectors[ITEMS][DIM];
  struct engine *engine;
  struct searcher *searcher;
  struct engine_space space = { .name = "v", .model_path = path };
  struct engine_config config = { .spaces = &space, .n_spaces = 1, .max_items = ITEMS, .max_k = ITEMS, .max_batch = 2 };
  struct dice dice = { seed };

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/v.safetensors", dir.path);
  vector_file_write_plain(path, "dot", DIM);
  assert_ok(engine_open(&config, &engine));
  assert_ok(searcher_open(engine, &searcher));
  for (size_t i = 0; i < ITEMS; i++) {
    for (size_t d = 0; d < DIM; d++)
      vectors[i][d] = (float)dice_below(&dice, 201) - 100;
    snprintf(texts[i], sizeof texts[i], "%zu", i);
    fixture_put_vector(engine, span_of_str(texts[i]), "v", vectors[i], DIM);
  }
  for (int round = 0; round < 20; round++) {
    struct like likes[N + 1] = { [N] = { span_of_str("nobody"), 1000 } };
    struct span excluded[N];
    float mean[DIM] = { 0 };
    for (size_t i = 0; i < N; i++) {
      size_t item = dice_below(&dice, ITEMS); /* the same one may come twice */
      likes[i] = (struct like){ span_of_str(texts[item]), weights[i] };
      excluded[i] = likes[i].key;
      for (size_t d = 0; d < DIM; d++)
        mean[d] += (float)weights[i] * vectors[item][d] / 4;
    }
    struct query queries[] = {
      { .space = span_of_str("v"), .k = 10, .likes = likes, .n_likes = N + 1 },
      { .space = span_of_str("v"), .k = 10, .vector = { mean, DIM }, .exclude = excluded, .n_exclude = N },
    };
    struct answer answers[2] = { 0 };
    fixture_search(engine, searcher, queries, 2, answers);
    assert_int_equal(answers[0].n_hits, 10);
    fixture_assert_same_hits(&answers[0], &answers[1]);
    assert_int_equal(answers[0].n_likes_missing, 1);
    assert_true(span_equal(answers[0].likes_missing[0], span_of_str("nobody")));
    assert_int_equal(answers[1].n_likes_missing, 0);
  }
  searcher_close(&searcher);
  engine_close(&engine);
  temp_dir_fini(&dir);
}

static err_code_t check_like(struct world *w, const struct query *query)
{
  struct method method;
  size_t space;

  return engine_check_query(w->engine, query, &space, &method);
}

static void a_query_like_nothing_is_an_error(void **state)
{
  struct world w;
  float vector[TWO_QUERY_DIM] = { 1 };
  struct like nobody[] = { { span_of_str("nobody"), 1 }, { span_of_str("no one"), 1 } }, without_part = { .weight = 1 };
  struct query queries[] = {
    { .space = span_of_str("pq"), .k = 3, .likes = nobody, .n_likes = 1 },
    { .space = span_of_str("pq"), .k = 3, .vector = { vector, TWO_SPLITS * TWO_SPLIT_DIM } },
    { .space = span_of_str("pq"), .k = 3, .likes = &without_part, .n_likes = 1 },
    { .space = span_of_str("pq"), .k = 3, .likes = nobody, .n_likes = 2 },
  };
  struct answer answers[4] = { 0 };
  size_t i = 0;

  (void)state;
  open_world(&w, ENGINE_CPU);
  while (w.items[i].has_pq)
    i++;
  without_part.key = w.keys[i];
  fixture_search(w.engine, w.searcher, queries, 4, answers);
  assert_int_equal(answers[0].error, ANSWER_BAD_QUERY);
  assert_string_equal(answers[0].error_message, "like: no item has this key");
  assert_int_equal(answers[1].error, ANSWER_OK);
  assert_int_equal(answers[1].n_hits, 3);
  assert_string_equal(answers[2].error_message, "like: the item has no part in this space");
  assert_int_equal(answers[3].error, ANSWER_BAD_QUERY);
  assert_string_equal(answers[3].error_message, "likes: none of these items has a part in this space");
  struct query both = queries[0], mol = { .space = span_of_str("mol"), .k = 3, .likes = nobody, .n_likes = 1 };
  both.vector = queries[1].vector;
  assert_int_equal(check_like(&w, &both), ERR_QUERY);
  assert_non_null(strstr(err_message(), "data of its own"));
  assert_int_equal(check_like(&w, &mol), ERR_QUERY);
  assert_non_null(strstr(err_message(), "a query of a mol space has other data than an item"));
  close_world(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(explanations_agree_with_whole_answers),
#ifdef SLUICE_CUDA
    cmocka_unit_test(the_same_on_a_gpu),
#endif
    cmocka_unit_test(what_an_approximate_method_has_not_found_is_missed),
    cmocka_unit_test(items_like_one_are_those_of_its_vector),
    cmocka_unit_test(items_like_one_of_codes_are_those_of_its_centroids),
    cmocka_unit_test(items_like_several_are_those_of_their_mean),
    cmocka_unit_test(a_query_like_nothing_is_an_error),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
