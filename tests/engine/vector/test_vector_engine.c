/* SPDX-License-Identifier: Apache-2.0 */
/* Searches of vector spaces compared with their formulas in double precision, over awkward catalogues while items come
 * and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { MAX_ITEMS = 2600, MAX_DIM = 160, MAX_BATCH = 8, MAX_EXCLUDED = 12 };

enum model { MODEL_DOT, MODEL_COSINE, MODEL_WEIGHTED, MODEL_MATRIX, MODEL_FACTORS, MODEL_FACTORS_WIDE, N_MODELS };

/* What the engine should hold. Item i is live if is_live[i]; its key is its number. */
struct world {
  struct dice dice;
  enum model model;
  size_t dim;
  float weights[MAX_DIM];
  double w[MAX_DIM][MAX_DIM]; /* bilinear: the matrix */
  double size;                /* its Frobenius norm; for other models the largest weight */
  float vectors[MAX_ITEMS][MAX_DIM];
  bool is_live[MAX_ITEMS];
  size_t n_live;
  struct engine *engine;
  struct searcher *searcher, *other;
  struct temp_dir dir;
};

static uint64_t seed;

static struct span key_of(size_t i, char *text)
{
  return span_of(text, (size_t)sprintf(text, "%05zu", i));
}

static size_t index_of(struct span key)
{
  return strtoul((const char *)key.p, NULL, 10);
}

/* Models -------------------- */

static float *factors_new(struct world *w, size_t r)
{
  float *pq = malloc(2 * w->dim * r * sizeof *pq), *q = pq + w->dim * r;

  for (size_t i = 0; i < w->dim * r; i++) {
    float decay = expf(-6.0f * (float)(i % r) / (float)r);
    pq[i] = dice_float(&w->dice, 1.0f) * decay;
    q[i] = dice_float(&w->dice, 1.0f);
  }
  for (size_t i = 0; i < w->dim; i++)
    for (size_t j = 0; j < w->dim; j++)
      for (size_t k = 0; k < r; k++)
        w->w[i][j] += (double)pq[i * r + k] * (double)q[j * r + k];
  return pq;
}

static void write_matrix(struct world *w, const char *path)
{
  float *matrix = malloc(w->dim * w->dim * sizeof *matrix);
  free(factors_new(w, w->dim)); /* factors with a decaying spectrum */

  for (size_t i = 0; i < w->dim; i++)
    for (size_t j = 0; j < w->dim; j++) {
      matrix[i * w->dim + j] = (float)w->w[i][j];
      w->w[i][j] = (double)matrix[i * w->dim + j];
    }
  vector_file_write_matrix(path, matrix, w->dim, w->dim);
  free(matrix);
}

static void write_factors(struct world *w, const char *path, size_t r)
{
  float *pq = factors_new(w, r);

  vector_file_write_factors(path, pq, w->dim, r, r);
  free(pq);
}

static void write_model(struct world *w, const char *path)
{
  double sum = 0;

  dice_fill(&w->dice, w->weights, w->dim, 3.0f);
  if (w->model == MODEL_DOT || w->model == MODEL_COSINE)
    vector_file_write_plain(path, w->model == MODEL_DOT ? "dot" : "cosine", 0);
  if (w->model == MODEL_WEIGHTED)
    vector_file_write_weights(path, w->weights, w->dim);
  if (w->model == MODEL_MATRIX)
    write_matrix(w, path);
  if (w->model == MODEL_FACTORS)
    write_factors(w, path, w->dim / 3 + 1);
  if (w->model == MODEL_FACTORS_WIDE)
    write_factors(w, path, w->dim + 3);
  for (size_t i = 0; i < w->dim; i++)
    for (size_t j = 0; j < w->dim; j++)
      sum += w->w[i][j] * w->w[i][j];
  w->size = w->model >= MODEL_MATRIX ? sqrt(sum) : w->model == MODEL_WEIGHTED ? 3.0 : 1.0;
}

static bool is_bilinear(const struct world *w)
{
  return w->model >= MODEL_MATRIX;
}

static struct world *open_world(enum model model, size_t dim, enum isa isa)
{
  struct world *w = calloc(1, sizeof *w);
  char path[sizeof w->dir.path + 32];
  struct engine_space space = { .name = "v", .model_path = path, .dim = model <= MODEL_COSINE ? dim : 0 };
  struct engine_config config = { &space, 1, MAX_ITEMS, 2 * MAX_ITEMS, MAX_BATCH, isa, ENGINE_CPU, 1, { 0 }, { 0 } };

  w->dice.state = seed + model * 1000 + dim;
  w->model = model;
  w->dim = dim;
  temp_dir_init(&w->dir);
  snprintf(path, sizeof path, "%s/v.safetensors", w->dir.path);
  write_model(w, path);
  assert_ok(engine_open(&config, &w->engine));
  assert_ok(searcher_open(w->engine, &w->searcher));
  assert_ok(searcher_open(w->engine, &w->other));
  return w;
}

static void close_world(struct world *w)
{
  searcher_close(&w->searcher);
  searcher_close(&w->other);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  free(w);
}

/* Items -------------------- */

enum draw { DRAW_UNIFORM, DRAW_FEW, DRAW_CLUSTER, DRAW_ZEROS, DRAW_EQUAL, DRAW_SIZES, DRAW_SIGNS, N_DRAWS };

static void draw_vector(struct world *w, enum draw draw, float *v)
{
  struct dice fixed = { .state = 77 + (draw == DRAW_FEW ? dice_below(&w->dice, 5) : 0) };
  float size = powf(10.0f, dice_float(&w->dice, 3.0f));

  for (size_t k = 0; k < w->dim; k++) {
    float base = dice_float(&fixed, 1.0f), own = dice_float(&w->dice, 1.0f);
    switch (draw) {
    case DRAW_FEW:
    case DRAW_EQUAL:
      v[k] = base;
      break;
    case DRAW_CLUSTER:
      v[k] = base + 1e-4f * own;
      break;
    case DRAW_ZEROS:
      v[k] = dice_below(&w->dice, 40) ? 0.0f : own;
      break;
    case DRAW_SIZES:
      v[k] = own * size;
      break;
    case DRAW_SIGNS:
      v[k] = own < 0 ? -1.0f : 1.0f;
      break;
    default:
      v[k] = own;
    }
  }
}

/* Apply several changes in one epoch. */
static void churn(struct world *w, enum draw draw, size_t n_steps)
{
  struct item_change *changes = calloc(n_steps, sizeof *changes);
  struct part *parts = calloc(n_steps, sizeof *parts);
  char(*keys)[16] = calloc(n_steps, sizeof *keys);

  for (size_t s = 0; s < n_steps; s++) {
    size_t i = dice_below(&w->dice, MAX_ITEMS);
    bool is_delete = dice_below(&w->dice, 4) == 0; /* also items that are absent */
    if (!is_delete)
      draw_vector(w, dice_below(&w->dice, 10) ? draw : DRAW_UNIFORM, w->vectors[i]);
    w->n_live += (size_t)(!is_delete && !w->is_live[i]) - (size_t)(is_delete && w->is_live[i]);
    w->is_live[i] = !is_delete;
    parts[s] = (struct part){ .space = span_of_str("v"), .vector = { w->vectors[i], w->dim } };
    changes[s] = (struct item_change){
      .key = key_of(i, keys[s]),
      .is_delete = is_delete,
      .parts = &parts[s],
      .n_parts = is_delete ? 0 : 1,
    };
    fixture_apply(w->engine, &changes[s], 1); /* one by one, if a vector may be drawn twice */
  }
  free(changes);
  free(parts);
  free(keys);
}

static void fill(struct world *w, enum draw draw, size_t n)
{
  struct item_change *changes = calloc(n, sizeof *changes);
  struct part *parts = calloc(n, sizeof *parts);
  char(*keys)[16] = calloc(n, sizeof *keys);

  for (size_t i = 0; i < n; i++) {
    draw_vector(w, draw, w->vectors[i]);
    w->n_live += !w->is_live[i];
    w->is_live[i] = true;
    parts[i] = (struct part){ .space = span_of_str("v"), .vector = { w->vectors[i], w->dim } };
    changes[i] = (struct item_change){ .key = key_of(i, keys[i]), .parts = &parts[i], .n_parts = 1 };
  }
  fixture_apply(w->engine, changes, n);
  free(changes);
  free(parts);
  free(keys);
}

/* Scores -------------------- */

static double norm_of(const float *v, size_t n)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += (double)v[k] * (double)v[k];
  return sqrt(sum);
}

/* Compute the row vector that an item is multiplied with. */
static void weigh(const struct world *w, const float *q, double *out)
{
  for (size_t j = 0; j < w->dim; j++) {
    out[j] = w->model == MODEL_WEIGHTED ? (double)q[j] * (double)w->weights[j] : (double)q[j];
    if (w->model == MODEL_COSINE)
      out[j] = norm_of(q, w->dim) > 0 ? (double)q[j] / norm_of(q, w->dim) : 0;
    if (!is_bilinear(w))
      continue;
    out[j] = 0;
    for (size_t i = 0; i < w->dim; i++)
      out[j] += (double)q[i] * w->w[i][j];
  }
}

static double score_of(const struct world *w, const double *weighed, size_t item)
{
  const float *v = w->vectors[item];
  double sum = 0, norm = norm_of(v, w->dim);

  for (size_t k = 0; k < w->dim; k++)
    sum += weighed[k] * (double)v[k];
  return w->model == MODEL_COSINE ? (norm > 0 ? sum / norm : 0) : sum;
}

/* One query and the oracle's scores. */
struct question {
  float vector[MAX_DIM];
  char excluded_text[MAX_EXCLUDED][16];
  struct span excluded[MAX_EXCLUDED];
  size_t n_excluded;
  size_t n_admitted;
  double scores[MAX_ITEMS];   /* -inf if not admitted */
  float canonical[MAX_ITEMS]; /* scores as brute force returns them */
  double tolerance;
  struct query query;
};

static void ask(struct world *w, enum draw draw, size_t k, struct question *out)
{
  double weighed[MAX_DIM], largest = 0;

  draw_vector(w, dice_below(&w->dice, 6) ? draw : DRAW_UNIFORM, out->vector);
  if (dice_below(&w->dice, 12) == 0)
    memset(out->vector, 0, sizeof out->vector); /* every item ties */
  weigh(w, out->vector, weighed);
  out->n_admitted = w->n_live;
  for (size_t i = 0; i < MAX_ITEMS; i++) {
    out->scores[i] = w->is_live[i] ? score_of(w, weighed, i) : -INFINITY;
    if (w->is_live[i])
      largest = fmax(largest, w->model == MODEL_COSINE ? 1.0 : norm_of(w->vectors[i], w->dim));
  }
  out->tolerance = 2e-6 * w->size * largest * (w->model == MODEL_COSINE ? 1.0 : norm_of(out->vector, w->dim));
  out->n_excluded = dice_below(&w->dice, 3) ? 0 : dice_below(&w->dice, MAX_EXCLUDED);
  for (size_t e = 0; e < out->n_excluded; e++) {
    size_t i = dice_below(&w->dice, MAX_ITEMS); /* also absent keys, and one key twice */
    out->excluded[e] = key_of(i, out->excluded_text[e]);
    out->n_admitted -= isfinite(out->scores[i]) ? 1 : 0;
    out->scores[i] = -INFINITY;
  }
  out->query = (struct query){
    .space = span_of_str("v"),
    .k = (uint32_t)k,
    .vector = { out->vector, w->dim },
    .exclude = out->excluded,
    .n_exclude = out->n_excluded,
  };
}

/* Assert that hits are in order, that none comes twice, that each has its score, and that the receipt holds. */
static void assert_sound(const struct question *q, const struct answer *answer)
{
  uint8_t *is_returned = calloc(MAX_ITEMS, 1);
  double rest = -INFINITY; /* the best score of an item that was not returned */

  assert_int_equal(answer->n_hits, q->query.k < q->n_admitted ? q->query.k : q->n_admitted);
  for (size_t i = 0; i < answer->n_hits; i++) {
    size_t index = index_of(answer->hits[i].key);
    double wanted = q->scores[index];
    assert_false(is_returned[index]);
    is_returned[index] = 1;
    if (!(fabs(wanted - (double)answer->hits[i].score) <= q->tolerance))
      fail_msg("hit %zu scores %.9g, not %.9g", i, (double)answer->hits[i].score, wanted);
    if (i > 0 && answer->hits[i].score == answer->hits[i - 1].score)
      assert_true(span_compare(answer->hits[i - 1].key, answer->hits[i].key) < 0);
    else if (i > 0)
      assert_true(answer->hits[i].score < answer->hits[i - 1].score);
  }
  assert_int_equal(answer->receipt.has_bound, q->query.k < q->n_admitted);
  for (size_t i = 0; i < MAX_ITEMS; i++)
    rest = fmax(rest, is_returned[i] ? -INFINITY : q->scores[i]);
  if (answer->receipt.is_exact && answer->n_hits)
    assert_true(rest <= (double)answer->hits[answer->n_hits - 1].score + q->tolerance);
  for (size_t i = 0; i < MAX_ITEMS && answer->receipt.has_bound; i++)
    assert_true(is_returned[i] || q->canonical[i] <= answer->receipt.bound); /* exact to the last bit */
  free(is_returned);
}

/* Get brute force's scores of all items and check that they are close to the oracle's. */
static void score_all(struct world *w, struct question *q)
{
  struct query query = q->query;
  struct answer answer;

  query.k = 2 * MAX_ITEMS;
  query.method = span_of_str("brute_force");
  fixture_search(w->engine, w->other, &query, 1, &answer);
  assert_int_equal(answer.n_hits, q->n_admitted);
  for (size_t i = 0; i < MAX_ITEMS; i++)
    q->canonical[i] = -INFINITY;
  for (size_t i = 0; i < answer.n_hits; i++)
    q->canonical[index_of(answer.hits[i].key)] = answer.hits[i].score;
}

static void assert_same_answer(const struct answer *a, const struct answer *b)
{
  fixture_assert_same_hits(a, b);
  assert_int_equal(a->receipt.is_exact, b->receipt.is_exact);
  assert_int_equal(a->receipt.has_bound, b->receipt.has_bound);
  assert_memory_equal(&a->receipt.bound, &b->receipt.bound, sizeof(float));
}

static void check_method(struct world *w, struct question *questions, size_t n, const char *method,
                         const struct answer *exact)
{
  struct query queries[MAX_BATCH];
  struct answer answers[MAX_BATCH], alone;
  struct searcher *searcher;
  size_t one = dice_below(&w->dice, n);

  assert_ok(searcher_open(w->engine, &searcher));
  for (size_t i = 0; i < n; i++) {
    queries[i] = questions[i].query;
    queries[i].method = span_of_str(method);
  }
  fixture_search(w->engine, searcher, queries, n, answers);
  fixture_search(w->engine, w->other, &queries[one], 1, &alone);
  assert_same_answer(&answers[one], &alone);
  assert_int_equal(answers[one].counts.scored, alone.counts.scored);
  for (size_t i = 0; i < n; i++) {
    assert_sound(&questions[i], &answers[i]);
    assert_int_equal(answers[i].counts.items, w->n_live);
    if (answers[i].receipt.is_exact)
      fixture_assert_same_hits(&answers[i], &exact[i]);
    if (!strchr(method, '('))
      assert_same_answer(&answers[i], &exact[i]);
  }
  searcher_close(&searcher);
}

static void check_searches(struct world *w, enum draw draw, size_t k)
{
  static const char *const methods[] = { "brute_force", "low_rank(1)", "low_rank(3)", "low_rank(20)", "low_rank(40)" };
  size_t n = 1 + dice_below(&w->dice, MAX_BATCH);
  struct question *questions = calloc(n, sizeof *questions);
  struct query queries[MAX_BATCH];
  struct answer answers[MAX_BATCH];

  for (size_t i = 0; i < n; i++) {
    ask(w, draw, k, &questions[i]);
    score_all(w, &questions[i]);
    queries[i] = questions[i].query;
  }
  fixture_search(w->engine, w->searcher, queries, n, answers);
  for (size_t i = 0; i < n; i++) {
    assert_sound(&questions[i], &answers[i]);
    assert_true(answers[i].receipt.is_exact);
  }
  for (size_t m = 0; m < (is_bilinear(w) ? sizeof methods / sizeof methods[0] : 1); m++) {
    if (m == 0 || strtoul(strchr(methods[m], '(') + 1, NULL, 10) <= w->dim)
      check_method(w, questions, n, methods[m], answers);
  }
  free(questions);
}

static void check_world(enum model model, size_t dim, enum draw draw)
{
  struct world *w = open_world(model, dim, isa_detect());

  check_searches(w, draw, 5); /* an empty catalogue */
  churn(w, draw, 30);
  check_searches(w, draw, 7);
  check_searches(w, draw, 2 * MAX_ITEMS);
  fill(w, draw, MAX_ITEMS - dice_below(&w->dice, 100));
  for (int round = 0; round < 3; round++) {
    check_searches(w, draw, 1 + dice_below(&w->dice, 30));
    churn(w, draw, 40);
  }
  check_searches(w, draw, 300 + dice_below(&w->dice, 1000));
  check_searches(w, draw, 2 * MAX_ITEMS);
  close_world(w);
}

/* The thread sanitizer finds nothing in a single thread, and needs minutes for what else takes seconds: do less. */
#ifdef __SANITIZE_THREAD__
enum { DRAW_STEP = N_DRAWS - 1 };
#else
enum { DRAW_STEP = 2 };
#endif

static void every_method_holds_what_it_says_while_items_come_and_go(void **state)
{
  static const size_t dims[] = { 1, 7, 33, MAX_DIM };

  (void)state;
  for (enum model model = MODEL_DOT; model < N_MODELS; model++)
    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
      for (enum draw draw = d % 2; draw < N_DRAWS; draw += DRAW_STEP)
        check_world(model, dims[d], draw);
}

/* The hits of a few searches, to compare instruction levels. */
enum { LEVEL_SEARCHES = 6, LEVEL_K = 40 };

static void collect(enum model model, enum isa isa, float *scores, uint64_t *scored)
{
  struct world *w = open_world(model, 150, isa);
  struct question *question = calloc(1, sizeof *question);
  struct answer answer;

  fill(w, DRAW_UNIFORM, 2000);
  for (size_t i = 0; i < LEVEL_SEARCHES; i++) {
    ask(w, DRAW_UNIFORM, LEVEL_K, question);
    if (is_bilinear(w) && i % 2)
      question->query.method = span_of_str("low_rank(11)");
    fixture_search(w->engine, w->searcher, &question->query, 1, &answer);
    scored[i] = answer.counts.scored;
    scores[i * (LEVEL_K + 1)] = answer.receipt.bound;
    for (size_t h = 0; h < LEVEL_K; h++)
      scores[i * (LEVEL_K + 1) + 1 + h] = answer.hits[h].score;
  }
  free(question);
  close_world(w);
}

static void every_isa_gives_the_same_bytes(void **state)
{
  static float wanted[LEVEL_SEARCHES * (LEVEL_K + 1)], found[LEVEL_SEARCHES * (LEVEL_K + 1)];
  uint64_t wanted_scored[LEVEL_SEARCHES], scored[LEVEL_SEARCHES];

  (void)state;
  for (enum model model = MODEL_DOT; model < N_MODELS; model++) {
    collect(model, ISA_REF, wanted, wanted_scored);
    for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) {
      collect(model, isa, found, scored);
      assert_memory_equal(found, wanted, sizeof wanted);
      assert_memory_equal(scored, wanted_scored, sizeof scored);
    }
  }
}

static void exact_search_scores_a_small_part_of_the_items(void **state)
{
  (void)state;
  for (enum model model = MODEL_DOT; model < N_MODELS; model++) {
    struct world *w = open_world(model, MAX_DIM, isa_detect());
    struct question *question = calloc(1, sizeof *question);
    uint64_t n_scored = 0;
    fill(w, DRAW_UNIFORM, MAX_ITEMS);
    for (int i = 0; i < 10; i++) {
      struct answer answer;
      ask(w, DRAW_UNIFORM, 5, question);
      if (norm_of(question->vector, w->dim) == 0)
        continue;
      fixture_search(w->engine, w->searcher, &question->query, 1, &answer);
      n_scored += answer.counts.scored;
    }
    assert_in_range(n_scored, 1, MAX_ITEMS);
    free(question);
    close_world(w);
  }
}

/* There are more candidates than can be kept, so some are scored during the scan. */
static void items_that_are_all_alike_are_all_scored_and_ordered_by_key(void **state)
{
  (void)state;
  for (enum model model = MODEL_DOT; model < N_MODELS; model++) {
    struct world *w = open_world(model, 40, isa_detect());
    struct question *question = calloc(1, sizeof *question);
    struct answer answer;
    fill(w, DRAW_EQUAL, MAX_ITEMS);
    ask(w, DRAW_UNIFORM, 5, question);
    question->query.n_exclude = 0;
    fixture_search(w->engine, w->searcher, &question->query, 1, &answer);
    assert_int_equal(answer.counts.scored, MAX_ITEMS);
    assert_int_equal(answer.n_hits, 5);
    for (size_t i = 0; i < 5; i++)
      assert_int_equal(index_of(answer.hits[i].key), i);
    free(question);
    close_world(w);
  }
}

static void methods_and_shapes_that_do_not_fit_are_refused_with_the_reason(void **state)
{
  struct world *dot = open_world(MODEL_DOT, 4, ISA_REF), *bilinear = open_world(MODEL_MATRIX, 4, ISA_REF);
  float v[5] = { 1, 2, 3, 4, 5 };
  uint8_t code = 1;
  struct query query = { .space = span_of_str("v"), .k = 1, .vector = { v, 4 }, .method = span_of_str("low_rank(2)") };
  struct part part = { .space = span_of_str("v"), .vector = { v, 5 } };
  struct item_change change = { .key = span_of_str("k"), .parts = &part, .n_parts = 1 };
  struct method method;
  size_t space;

  (void)state;
  assert_fails(engine_check_query(dot->engine, &query, &space, &method), ERR_METHOD, "use exact or brute_force");
  assert_ok(engine_check_query(bilinear->engine, &query, &space, &method));
  query.method = span_of_str("low_rank(5)");
  assert_fails(engine_check_query(bilinear->engine, &query, &space, &method), ERR_METHOD, "R from 1 to 4");
  query = (struct query){ .space = span_of_str("v"), .k = 1, .vector = { v, 3 } };
  assert_fails(engine_check_query(dot->engine, &query, &space, &method), ERR_QUERY,
               "3 numbers where the model needs 4");
  assert_fails(engine_check_item(dot->engine, &change), ERR_ITEM, "5 numbers where the model needs 4");
  part = (struct part){ .space = span_of_str("v"), .vector = { v, 4 }, .codes = span_of(&code, 1) };
  assert_fails(engine_check_item(dot->engine, &change), ERR_ITEM, "codes is given");
  close_world(dot);
  close_world(bilinear);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_method_holds_what_it_says_while_items_come_and_go),
    cmocka_unit_test(every_isa_gives_the_same_bytes),
    cmocka_unit_test(exact_search_scores_a_small_part_of_the_items),
    cmocka_unit_test(items_that_are_all_alike_are_all_scored_and_ordered_by_key),
    cmocka_unit_test(methods_and_shapes_that_do_not_fit_are_refused_with_the_reason),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
