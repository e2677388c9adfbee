/* SPDX-License-Identifier: Apache-2.0 */
/* Hits by maximal marginal relevance: compared with a choice that is written from its definition. Where vectors are small
 * integers, all of that is exact, so equal values must be equal to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/progress.h"
#include "engine/mmr.h"
#include "kernels/device.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/mol_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 400, DIM = 8, SPLITS = 4, SUBITEMS = 16, BATCH = 4, ROUNDS = 120, LISTS = 3000, LIST_MAX = 30 };

static uint64_t seed;

/* ---- The oracle ---- */

static double dot(const float *a, const float *b, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)a[i] * b[i];
  return sum;
}

static double cosine(struct floats a, struct floats b)
{
  double length = sqrt(dot(a.v, a.v, a.n)) * sqrt(dot(b.v, b.v, b.n));

  return length > 0 ? dot(a.v, b.v, a.n) / length : 0;
}

static double value_of(const struct answer *all, double diversity, const size_t *chosen, size_t n, size_t i)
{
  double best = all->hits[0].score, last = all->hits[all->n_hits - 1].score, closest = -INFINITY;
  double relevance = best > last ? (all->hits[i].score - last) / (best - last) : 1;

  if (n == 0)
    return relevance;
  for (size_t j = 0; j < n; j++)
    closest = fmax(closest, cosine(all->hits[i].vector, all->hits[chosen[j]].vector));
  return (1 - diversity) * relevance - diversity * closest;
}

static bool is_among(const size_t *chosen, size_t n, size_t i)
{
  for (size_t j = 0; j < n; j++) {
    if (chosen[j] == i)
      return true;
  }
  return false;
}

/* Choose among candidates. Returns how many. */
static size_t choose(const struct answer *all, double diversity, size_t k, size_t *chosen)
{
  size_t n = 0;

  while (n < k && n < all->n_hits) {
    size_t found = all->n_hits;
    for (size_t i = 0; i < all->n_hits; i++) {
      if (!is_among(chosen, n, i) && (found == all->n_hits || value_of(all, diversity, chosen, n, i) >
                                                                  value_of(all, diversity, chosen, n, found)))
        found = i;
    }
    chosen[n++] = found;
  }
  return n;
}

/* ---- Lists of candidates ---- */

struct list {
  float numbers[LIST_MAX][DIM];
  char keys[LIST_MAX][24];
  struct hit hits[LIST_MAX];
  struct explanation explanations[LIST_MAX];
};

static void draw_list(struct dice *dice, struct list *list, struct answer *out)
{
  size_t dim = 1 + dice_below(dice, DIM), width = 1 + dice_below(dice, 4);
  float score = (float)dice_below(dice, 100);

  *out = (struct answer){ .hits = list->hits, .n_hits = dice_below(dice, LIST_MAX + 1) };
  for (size_t i = 0; i < out->n_hits; i++) {
    score -= (float)dice_below(dice, width) / 2;
    for (size_t k = 0; k < dim; k++)
      list->numbers[i][k] = (float)dice_below(dice, width) - 1.0f;
    snprintf(list->keys[i], sizeof list->keys[i], "%zu", i);
    list->hits[i] = (struct hit){ .key = span_of_str(list->keys[i]), .score = score, .vector = { list->numbers[i], dim } };
    list->explanations[i] = (struct explanation){ .key = list->hits[i].key, .verdict = VERDICT_HIT, .rank = (uint32_t)i + 1 };
  }
  out->explanations = list->explanations;
  out->n_explanations = out->n_hits;
}

static void assert_explained(const struct answer *all, const struct answer *answer, const size_t *chosen)
{
  for (size_t i = 0; i < all->n_hits; i++) {
    const struct explanation *explanation = &answer->explanations[i];
    bool is_hit = is_among(chosen, answer->n_hits, i);
    assert_int_equal(explanation->verdict, is_hit ? VERDICT_HIT : VERDICT_PASSED_OVER);
    if (is_hit)
      assert_int_equal(chosen[explanation->rank - 1], i);
    else
      assert_int_equal(explanation->rank, 0);
  }
}

static void hits_are_chosen_by_the_definition(void **state)
{
  struct dice dice = { seed };
  struct region region = { 0 };
  struct list list;

  (void)state;
  for (size_t round = 0; round < LISTS; round++) {
    const double diversities[] = { 0.25, 0.5, 0.75, 1, 1e-9, 0.1 + dice_float(&dice, 0.1f) + 1e-6 };
    double diversity = diversities[dice_below(&dice, 6)];
    size_t k = 1 + dice_below(&dice, LIST_MAX), chosen[LIST_MAX];
    const struct kernels *kernels;
    struct answer all, answer;
    if (kernels_get((enum isa)dice_below(&dice, N_ISAS), &kernels) != ERR_OK)
      continue; /* this machine has not got the level */
    draw_list(&dice, &list, &all);
    size_t n = choose(&all, diversity, k, chosen);
    answer = all;
    assert_ok(mmr_choose(kernels, diversity, k, &region, &answer));
    assert_int_equal(answer.n_hits, n);
    for (size_t i = 0; i < n; i++) {
      assert_true(span_equal(answer.hits[i].key, all.hits[chosen[i]].key));
      assert_memory_equal(&answer.hits[i].score, &all.hits[chosen[i]].score, sizeof(float));
      assert_int_equal(answer.hits[i].vector.n, 0);
    }
    assert_explained(&all, &answer, chosen);
    region_reset(&region);
  }
  region_fini(&region);
}

static void count_note(void *context)
{
  (*(size_t *)context)++;
}

/* Random directions: hardly a candidate is compared with fewer than all hits. */
static void a_long_choice_says_that_it_goes_on(void **state)
{
  enum { N = 300, HITS = 100 };
  static float numbers[N][DIM];
  static struct hit hits[N];
  struct dice dice = { seed };
  struct region region = { 0 };
  struct answer answer = { .hits = hits, .n_hits = N };
  size_t n_notes = 0;
  const struct kernels *kernels;

  (void)state;
  for (size_t i = 0; i < N; i++) {
    for (size_t k = 0; k < DIM; k++)
      numbers[i][k] = dice_float(&dice, 1);
    hits[i] = (struct hit){ .key = span_of_str("a"), .score = -(float)i / N, .vector = { numbers[i], DIM } };
  }
  assert_ok(kernels_get(isa_detect(), &kernels));
  progress_listener_set((struct progress_listener){ count_note, &n_notes });
  assert_ok(mmr_choose(kernels, 0.9, HITS, &region, &answer));
  progress_listener_set((struct progress_listener){ 0 });
  assert_in_range(n_notes, 3, HITS);
  region_fini(&region);
}

static void vectors_of_other_lengths_count_as_zeros(void **state)
{
  static const float a[] = { 1, 0 }, b[] = { 1, 0, 0 };
  struct hit hits[] = { { .key = span_of_str("a"), .score = 2, .vector = { a, 2 } },
                        { .key = span_of_str("b"), .score = 1, .vector = { a, 2 } },
                        { .key = span_of_str("c"), .score = 1, .vector = { b, 3 } } };
  struct answer answer = { .hits = hits, .n_hits = 3 };
  struct region region = { 0 };
  const struct kernels *kernels;

  (void)state;
  assert_ok(kernels_get(isa_detect(), &kernels));
  assert_ok(mmr_choose(kernels, 0.5, 2, &region, &answer));
  assert_true(span_equal(answer.hits[1].key, span_of_str("c")));
  region_fini(&region);
}

/* ---- Searches ---- */

static const struct subject {
  const char *space;
  const char *methods[4];
} subjects[] = {
  { "dot", { "exact", "brute_force" } },
  { "bilinear", { "exact", "brute_force", "low_rank(4)" } },
  { "pq", { "exact", "pqtopk", "prune(8)", "prune_limited(8,1)" } },
  { "mol", { "exact", "brute_force", "average(60)", "combined(5,30)" } },
};
enum { DOT = 0, PQ = 2, SUBJECTS = sizeof subjects / sizeof subjects[0] };

struct world {
  struct temp_dir dir;
  char paths[SUBJECTS][PATH_MAX];
  char keys[ITEMS][8];
  float vectors[ITEMS][DIM];
  uint8_t codes[ITEMS][SPLITS];
  float centroids[SPLITS * SUBITEMS * (DIM / SPLITS)];
  struct engine *engine;
  struct searcher *searcher;
  struct dice dice;
};

static void write_models(struct world *w)
{
  struct mol_file mol = { .n_query = 2, .n_item = 3, .dim = 4, .hidden = 8, .vector_dim = DIM, .weight = 1.0f };
  float matrix[DIM * DIM];

  temp_dir_init(&w->dir);
  for (size_t i = 0; i < SUBJECTS; i++)
    snprintf(w->paths[i], sizeof w->paths[i], "%s/%s.safetensors", w->dir.path, subjects[i].space);
  dice_fill(&w->dice, matrix, DIM * DIM, 1.0f);
  dice_fill(&w->dice, w->centroids, sizeof w->centroids / sizeof w->centroids[0], 1.0f);
  vector_file_write_plain(w->paths[0], "dot", DIM);
  vector_file_write_matrix(w->paths[1], matrix, DIM, DIM);
  model_file_write_recjpq(w->paths[2], w->centroids, SPLITS, SUBITEMS, DIM / SPLITS);
  mol_file_write(w->paths[3], &mol, &w->dice);
}

/* Some items are the same but for their keys. */
static void draw_item(struct world *w, size_t i)
{
  size_t twin = dice_below(&w->dice, 4) || i == 0 ? i : dice_below(&w->dice, i);

  snprintf(w->keys[i], sizeof w->keys[i], "%zu", i * 7919 % 10007);
  for (size_t k = 0; k < DIM; k++)
    w->vectors[i][k] = twin < i ? w->vectors[twin][k] : dice_float(&w->dice, 1.0f);
  for (size_t m = 0; m < SPLITS; m++)
    w->codes[i][m] = twin < i ? w->codes[twin][m] : (uint8_t)dice_below(&w->dice, SUBITEMS);
}

static void put_items(struct world *w)
{
  struct item_change *changes = calloc(ITEMS, sizeof *changes);
  struct part(*parts)[SUBJECTS] = calloc(ITEMS, sizeof *parts);
  struct attribute_value *years = calloc(ITEMS, sizeof *years);

  for (size_t i = 0; i < ITEMS; i++) {
    draw_item(w, i);
    for (size_t s = 0; s < SUBJECTS; s++)
      parts[i][s] = (struct part){ .space = span_of_str(subjects[s].space), .vector = { w->vectors[i], DIM } };
    parts[i][PQ].vector = (struct floats){ 0 };
    parts[i][PQ].codes = span_of(w->codes[i], SPLITS);
    years[i] = (struct attribute_value){ span_of_str("year"), { VALUE_INTEGER, .integer = (int64_t)dice_below(&w->dice, 40) } };
    changes[i] = (struct item_change){ .key = span_of_str(w->keys[i]),
                                       .parts = parts[i],
                                       .n_parts = SUBJECTS,
                                       .attributes = &years[i],
                                       .n_attributes = 1 };
  }
  fixture_apply(w->engine, changes, ITEMS);
  free(changes);
  free(parts);
  free(years);
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
  put_items(w);
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
}

/* Candidates in memory of their own. */
struct found {
  struct hit hits[ITEMS];
  char keys[ITEMS][8];
  float numbers[ITEMS][DIM * 4];
  struct answer answer;
};

static void keep(const struct answer *answer, struct found *out)
{
  out->answer = *answer;
  out->answer.hits = out->hits;
  for (size_t i = 0; i < answer->n_hits; i++) {
    struct hit *hit = &out->hits[i];
    *hit = answer->hits[i];
    memcpy(out->keys[i], hit->key.p, hit->key.n);
    hit->key.p = (const uint8_t *)out->keys[i];
    assert_in_range(hit->vector.n, 0, DIM * 4);
    if (hit->vector.n > 0)
      memcpy(out->numbers[i], hit->vector.v, hit->vector.n * sizeof(float));
    hit->vector.v = out->numbers[i];
  }
}

static size_t item_of(const struct world *w, struct span key)
{
  for (size_t i = 0; i < ITEMS; i++) {
    if (span_equal(span_of_str(w->keys[i]), key))
      return i;
  }
  fail();
  return ITEMS;
}

/* The vectors are the items'. */
static void assert_vectors(const struct world *w, const char *space, const struct answer *all)
{
  for (size_t i = 0; i < all->n_hits; i++) {
    size_t item = item_of(w, all->hits[i].key);
    const struct floats *v = &all->hits[i].vector;
    if (!strcmp(space, "dot"))
      assert_memory_equal(v->v, w->vectors[item], sizeof w->vectors[item]);
    for (size_t k = 0; !strcmp(space, "pq") && k < DIM; k++) {
      size_t split = k / (DIM / SPLITS), sub = w->codes[item][split];
      assert_true(v->v[k] == w->centroids[(split * SUBITEMS + sub) * (DIM / SPLITS) + k % (DIM / SPLITS)]);
    }
    if (!strcmp(space, "mol"))
      assert_float_equal(dot(v->v, v->v, v->n), 3, 1e-4); /* components of length 1 */
  }
}

/* Find the candidates of a query, with their vectors. Those of a bilinear space are turned when they are read, which
 * changes no cosine of one with a matrix of full rank. */
static void find_candidates(struct world *w, const struct query *query, const struct query *wide, struct found *out)
{
  bool is_bilinear = span_equal(query->space, span_of_str("bilinear"));
  struct query open = *query;
  struct answer answer = { 0 };

  fixture_search(w->engine, w->searcher, wide, 1, &answer);
  keep(&answer, out);
  if (is_bilinear) {
    for (size_t i = 0; i < out->answer.n_hits; i++)
      out->hits[i].vector = (struct floats){ w->vectors[item_of(w, out->hits[i].key)], DIM };
    return;
  }
  open.mmr.is_left_open = true;
  fixture_search(w->engine, w->searcher, &open, 1, &answer);
  fixture_assert_same_hits(&answer, &out->answer);
  keep(&answer, out);
}

static void assert_ranks(const struct answer *answer)
{
  for (size_t i = 0; i < answer->n_explanations; i++) {
    const struct explanation *e = &answer->explanations[i];
    if (e->verdict == VERDICT_HIT)
      assert_true(span_equal(answer->hits[e->rank - 1].key, e->key));
  }
}

/* One random query: its candidates are what the same query without mmr finds, and its hits are chosen among them. */
static void check_query(struct world *w, struct found *all)
{
  const struct subject *subject = &subjects[dice_below(&w->dice, SUBJECTS)];
  const char *method = subject->methods[dice_below(&w->dice, 4)];
  uint32_t k = 1 + (uint32_t)dice_below(&w->dice, 12);
  struct boost boost = { .weight = 0.02, .attribute = span_of_str("year") };
  struct span explain[3], exclude[2];
  struct like likes[2];
  float vector[DIM];
  size_t chosen[ITEMS];
  struct answer answers[2] = { 0 };
  struct query query = { .space = span_of_str(subject->space),
                         .method = span_of_str(method ? method : "exact"),
                         .k = k,
                         .vector = { vector, DIM },
                         .exclude = exclude,
                         .n_exclude = dice_below(&w->dice, 3),
                         .explain = explain,
                         .n_explain = dice_below(&w->dice, 4),
                         .boosts = &boost,
                         .n_boosts = dice_below(&w->dice, 4) == 0,
                         .mmr = { .diversity = 0.5, .candidates = k + (uint32_t)dice_below(&w->dice, 40) } };

  dice_fill(&w->dice, vector, DIM, 1.0f);
  for (size_t i = 0; i < 2; i++)
    exclude[i] = span_of_str(w->keys[dice_below(&w->dice, ITEMS)]);
  for (size_t i = 0; i < 3; i++)
    explain[i] = span_of_str(w->keys[dice_below(&w->dice, ITEMS)]);
  if (dice_below(&w->dice, 4) == 0)
    query.max_per = (struct max_per){ span_of_str("year"), 1 };
  if (subject == &subjects[DOT] && dice_below(&w->dice, 3) == 0) {
    query.vector = (struct floats){ 0 };
    for (size_t i = 0; i < 2; i++)
      likes[i] = (struct like){ span_of_str(w->keys[dice_below(&w->dice, ITEMS)]), 1 };
    query.likes = likes;
    query.n_likes = 1 + dice_below(&w->dice, 2);
  }
  struct query both[] = { query, query };
  both[1].k = query.mmr.candidates;
  both[1].mmr = (struct mmr){ 0 };
  find_candidates(w, &query, &both[1], all);
  assert_vectors(w, subject->space, &all->answer);
  fixture_search(w->engine, w->searcher, both, 2, answers);
  fixture_assert_same_hits(&answers[1], &all->answer);
  assert_int_equal(answers[0].n_hits, choose(&all->answer, query.mmr.diversity, k, chosen));
  for (size_t i = 0; i < answers[0].n_hits; i++)
    assert_true(span_equal(answers[0].hits[i].key, all->hits[chosen[i]].key));
  assert_int_equal(answers[0].receipt.is_exact, answers[1].receipt.is_exact);
  assert_int_equal(answers[0].receipt.has_bound, answers[1].receipt.has_bound);
  assert_true(answers[0].receipt.bound == answers[1].receipt.bound);
  assert_ranks(&answers[0]);
}

static void searches_choose_among_what_they_find(void **state)
{
  struct world *w = calloc(1, sizeof *w);
  struct found *all = calloc(1, sizeof *all);

  (void)state;
  open_world(w, ENGINE_CPU);
  for (int round = 0; round < ROUNDS; round++)
    check_query(w, all);
  close_world(w);
  free(all);
  free(w);
}

/* An item that is nearly the best one's twin gives way to another one. */
/* Each query of a batch gives others a turn, however short it is. */
static void others_have_turns_between_queries_with_mmr(void **state)
{
  struct world w = { .dice = { seed } };
  struct query queries[BATCH];
  struct answer answers[BATCH];
  float vector[DIM];
  size_t n_pauses[2] = { 0 };
  struct searcher *between;

  (void)state;
  open_world(&w, ENGINE_CPU);
  assert_ok(searcher_open(w.engine, &between));
  dice_fill(&w.dice, vector, DIM, 1.0f);
  for (size_t with_mmr = 0; with_mmr < 2; with_mmr++) {
    for (size_t q = 0; q < BATCH; q++)
      queries[q] = (struct query){ .space = span_of_str("dot"),
                                   .k = with_mmr ? 2 : 10,
                                   .vector = { vector, DIM },
                                   .mmr = { .diversity = with_mmr ? 0.5 : 0, .candidates = 10 } };
    searcher_set_pause(w.searcher, between, count_note, &n_pauses[with_mmr]);
    fixture_search(w.engine, w.searcher, queries, BATCH, answers);
  }
  assert_int_equal(n_pauses[1], n_pauses[0] + BATCH);
  searcher_close(&between);
  close_world(&w);
}

static void twins_are_passed_over(void **state)
{
  static const float best[] = { 1, 0 }, twin[] = { 1, 0.001f }, other[] = { 0.5f, 0.8f }, query_vector[] = { 1, 0.1f };
  struct world *w = calloc(1, sizeof *w);
  struct engine_space space = { .name = "two", .model_path = w->paths[0] };
  struct engine_config config = { &space, 1, 10, 10, 1, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };
  struct span explain[] = { span_of_str("twin"), span_of_str("other") };
  struct query query = { .space = span_of_str("two"), .method = span_of_str("exact"), .k = 2, .vector = { query_vector, 2 },
                         .explain = explain, .n_explain = 2, .mmr = { .diversity = 0.7, .candidates = 3 } };
  struct answer answer = { 0 };

  (void)state;
  temp_dir_init(&w->dir);
  snprintf(w->paths[0], sizeof w->paths[0], "%s/two.safetensors", w->dir.path);
  vector_file_write_plain(w->paths[0], "dot", 2);
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  fixture_put_vector(w->engine, span_of_str("best"), "two", best, 2);
  fixture_put_vector(w->engine, span_of_str("twin"), "two", twin, 2);
  fixture_put_vector(w->engine, span_of_str("other"), "two", other, 2);
  fixture_search(w->engine, w->searcher, &query, 1, &answer);
  assert_int_equal(answer.n_hits, 2);
  assert_true(span_equal(answer.hits[0].key, span_of_str("twin"))); /* 1.0001 against 1 */
  assert_true(span_equal(answer.hits[1].key, span_of_str("other")));
  assert_int_equal(answer.explanations[0].rank, 1);
  assert_int_equal(answer.explanations[1].verdict, VERDICT_HIT);
  assert_int_equal(answer.explanations[1].rank, 2);
  assert_true(answer.receipt.is_exact && !answer.receipt.has_bound);
  close_world(w);
  free(w);
}

/* ---- What is refused ---- */

static void assert_refused(const struct world *w, uint32_t k, uint32_t candidates, const char *reason)
{
  const float vector[DIM] = { 1 };
  const struct query query = { .space = span_of_str("dot"), .k = k, .vector = { vector, DIM },
                               .mmr = { .diversity = 0.5, .candidates = candidates } };
  struct method method;
  size_t space;

  assert_int_equal(engine_check_query(w->engine, &query, &space, &method), ERR_QUERY);
  assert_non_null(strstr(err_message(), reason));
}

static void candidates_are_five_times_as_many_unless_that_is_too_many(void **state)
{
  const struct query few = { .k = 7 }, many = { .k = 300 }, most = { .k = QUERY_MMR_MAX };
  const struct query told = { .k = 7, .mmr = { .candidates = 9 } };

  (void)state;
  assert_int_equal(query_mmr_candidates(&few, 10000), 35);
  assert_int_equal(query_mmr_candidates(&few, 30), 30);
  assert_int_equal(query_mmr_candidates(&many, 10000), QUERY_MMR_MAX);
  assert_int_equal(query_mmr_candidates(&most, 10000), QUERY_MMR_MAX);
  assert_int_equal(query_mmr_candidates(&told, 10000), 9);
}

/* In shards, the answer of a bilinear space would be of vectors that cannot be compared. */
static void vectors_that_shards_may_turn_are_refused(void **state)
{
  const float vector[DIM] = { 1 };
  struct query query = { .space = span_of_str("bilinear"), .k = 1, .vector = { vector, DIM }, .mmr = { .diversity = 0.5, .candidates = 5 } };
  struct world *w = calloc(1, sizeof *w);
  struct method method;
  size_t space;

  (void)state;
  open_world(w, ENGINE_CPU);
  assert_ok(engine_check_query(w->engine, &query, &space, &method));
  query.mmr.is_left_open = true;
  assert_int_equal(engine_check_query(w->engine, &query, &space, &method), ERR_QUERY);
  assert_non_null(strstr(err_message(), "mmr: the catalogue is sharded"));
  close_world(w);
  free(w);
}

static void too_many_and_too_few_candidates_are_refused(void **state)
{
  struct world *w = calloc(1, sizeof *w);

  (void)state;
  open_world(w, ENGINE_CPU);
  assert_refused(w, 5, 4, "mmr.candidates: 4; it must be from k, which is 5, to 400");
  assert_refused(w, 5, 401, "mmr.candidates: 401; it must be from k, which is 5, to 400");
  close_world(w);
  free(w);
}

#ifdef SLUICE_CUDA
static void search_on_a_gpu(enum engine_backend backend, bool is_refused)
{
  struct world *w = calloc(1, sizeof *w);
  struct found *all = calloc(1, sizeof *all);

  open_world(w, backend);
  if (is_refused)
    assert_refused(w, 1, 5, "mmr: the items are in the memory of a GPU only (engine.backend: cuda)");
  else
    for (int round = 0; round < ROUNDS / 4; round++)
      check_query(w, all);
  close_world(w);
  free(all);
  free(w);
}

static void items_in_both_memories_can_be_compared(void **state)
{
  struct device device;

  (void)state;
  if (device_find(&device) != ERR_OK)
    skip();
  search_on_a_gpu(ENGINE_AUTO, false);
  search_on_a_gpu(ENGINE_CUDA, true);
}
#endif

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_are_chosen_by_the_definition),
    cmocka_unit_test(a_long_choice_says_that_it_goes_on),
    cmocka_unit_test(vectors_of_other_lengths_count_as_zeros),
    cmocka_unit_test(searches_choose_among_what_they_find),
    cmocka_unit_test(others_have_turns_between_queries_with_mmr),
    cmocka_unit_test(twins_are_passed_over),
    cmocka_unit_test(candidates_are_five_times_as_many_unless_that_is_too_many),
    cmocka_unit_test(vectors_that_shards_may_turn_are_refused),
    cmocka_unit_test(too_many_and_too_few_candidates_are_refused),
#ifdef SLUICE_CUDA
    cmocka_unit_test(items_in_both_memories_can_be_compared),
#endif
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
