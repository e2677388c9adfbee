/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of the bilinear paper, tested on the engine: the Structured Agreement Ranking Task (section 4, Theorem 2)
 * and the error bound of low rank (section 5, Theorem 3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/vector/svd.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { N = 10, INSTANCES = 1000, DOCUMENTS = 4, PAIRS = N * (N - 1) / 2 };

static struct dice dice;

/* A query q and the four documents of the task: two that agree with it on the critical pair, then two that do not. */
struct instance {
  size_t pair[2];
  float query[N];
  float documents[DOCUMENTS][N];
};

static void draw_instance(size_t a, size_t b, struct instance *out)
{
  out->pair[0] = a;
  out->pair[1] = b;
  for (size_t k = 0; k < N; k++) {
    float q = dice_below(&dice, 2) ? 1.0f : -1.0f;
    float agrees = k == a || k == b ? 1.0f : -1.0f; /* e_I0 */
    out->query[k] = out->documents[0][k] = q;
    out->documents[1][k] = q * agrees;
    out->documents[2][k] = -q;
    out->documents[3][k] = -q * agrees;
  }
}

static void draw_pair(size_t *a, size_t *b)
{
  *a = dice_below(&dice, N);
  *b = (*a + 1 + dice_below(&dice, N - 1)) % N;
}

/* One engine that has a space for each model. */
struct bench {
  struct temp_dir dir;
  struct engine *engine;
  struct searcher *searcher;
};

static void open_bench(struct bench *b, void (*write)(const char *path, size_t i), size_t n_spaces)
{
  struct engine_space *spaces = calloc(n_spaces, sizeof *spaces);
  char(*paths)[PATH_MAX] = calloc(n_spaces, sizeof *paths), (*names)[16] = calloc(n_spaces, sizeof *names);
  struct engine_config config = { spaces, n_spaces, 64, 16, 4, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };

  temp_dir_init(&b->dir);
  for (size_t i = 0; i < n_spaces; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/%zu.safetensors", b->dir.path, i);
    snprintf(names[i], sizeof names[i], "%zu", i);
    write(paths[i], i);
    spaces[i] = (struct engine_space){ .name = names[i], .model_path = paths[i] };
  }
  assert_ok(engine_open(&config, &b->engine));
  assert_ok(searcher_open(b->engine, &b->searcher));
  free(spaces);
  free(paths);
  free(names);
}

static void close_bench(struct bench *b)
{
  searcher_close(&b->searcher);
  engine_close(&b->engine);
  temp_dir_fini(&b->dir);
}

/* Put the documents into a space, with the keys d0 to d3, and search. */
static struct answer ask(struct bench *b, const char *space, const struct instance *instance, const char *method)
{
  static const char *const keys[DOCUMENTS] = { "d0", "d1", "d2", "d3" };
  struct item_change changes[DOCUMENTS];
  struct part parts[DOCUMENTS];
  struct answer answer;
  struct query query = {
    .space = span_of_str(space),
    .method = span_of_str(method),
    .k = DOCUMENTS,
    .vector = { instance->query, N },
  };

  for (size_t i = 0; i < DOCUMENTS; i++) {
    parts[i] = (struct part){ .space = span_of_str(space), .vector = { instance->documents[i], N } };
    changes[i] = (struct item_change){ .key = span_of_str(keys[i]), .parts = &parts[i], .n_parts = 1 };
  }
  fixture_apply(b->engine, changes, DOCUMENTS);
  fixture_search(b->engine, b->searcher, &query, 1, &answer);
  assert_int_equal(answer.n_hits, DOCUMENTS);
  return answer;
}

/* Do both documents that agree rank above both that do not? */
static bool is_right(const struct answer *answer)
{
  return answer->hits[0].key.p[1] <= '1' && answer->hits[1].key.p[1] <= '1' &&
         answer->hits[1].score > answer->hits[2].score;
}

/* Theorem 2 (i) -------------------- */

static void pair_of(size_t i, size_t *a, size_t *b)
{
  for (*a = 0, *b = 1; i > 0; i--) {
    if (++*b == N)
      *b = ++*a + 1;
  }
}

/* Write W_I0 = e_a e_a^T + e_b e_b^T, as a matrix or as factors. */
static void write_pair(const char *path, size_t i)
{
  float w[N * N] = { 0 }, pq[2 * N * 2] = { 0 };
  size_t a, b;

  pair_of(i, &a, &b);
  w[a * N + a] = w[b * N + b] = 1;
  pq[a * 2] = pq[b * 2 + 1] = pq[2 * N + a * 2] = pq[2 * N + b * 2 + 1] = 1;
  if (i % 2)
    vector_file_write_matrix(path, w, N, N);
  else
    vector_file_write_factors(path, pq, N, 2, 2);
}

static void rank_two_bilinear_models_rank_every_instance_right(void **state)
{
  static const char *const methods[] = { "exact", "brute_force", "low_rank(2)" };
  size_t n_right = 0, a, b;
  struct bench bench;

  (void)state;
  open_bench(&bench, write_pair, PAIRS);
  for (size_t i = 0; i < INSTANCES; i++) {
    size_t pair = dice_below(&dice, PAIRS);
    struct instance instance;
    char space[16];
    pair_of(pair, &a, &b);
    draw_instance(a, b, &instance);
    snprintf(space, sizeof space, "%zu", pair);
    struct answer answer = ask(&bench, space, &instance, methods[i % 3]);
    n_right += is_right(&answer);
    assert_true(answer.receipt.is_exact);
    for (size_t h = 0; h < DOCUMENTS; h++)
      assert_true(answer.hits[h].score == (h < 2 ? 2.0f : -2.0f));
  }
  assert_int_equal(n_right, INSTANCES);
  close_bench(&bench);
}

/* Theorem 2 (ii) --------------------
 *
 * A pair I is ranked right if its weights A_I are above 0 and above the weights B_I of the others. Let S > 0 be the sum
 * of all weights. Summed over all pairs, (n - 1) S > (n - 1) (n - 2) / 2 S. So n < 4. (The paper says n < 3, but for n
 * = 3 weights of 1 do rank every pair right.) Here n is 10.
 */

enum { RANDOM_MODELS = 12, TRAINED_MODELS = 4, MODELS = RANDOM_MODELS + TRAINED_MODELS, STEPS = 20000 };

/* One step with a margin ranking loss: every document that agrees should score 1 above every document that does not. */
static void train_step(float *v, float rate)
{
  struct instance instance;
  size_t a, b;

  draw_pair(&a, &b);
  draw_instance(a, b, &instance);
  for (size_t good = 0; good < 2; good++) {
    for (size_t bad = 2; bad < DOCUMENTS; bad++) {
      float margin = 0;
      for (size_t k = 0; k < N; k++)
        margin += v[k] * instance.query[k] * (instance.documents[good][k] - instance.documents[bad][k]);
      for (size_t k = 0; k < N && margin < 1; k++)
        v[k] += rate * instance.query[k] * (instance.documents[good][k] - instance.documents[bad][k]);
    }
  }
}

static void write_weights(const char *path, size_t i)
{
  float v[N];

  dice_fill(&dice, v, N, 1.0f);
  if (i == 0)
    for (size_t k = 0; k < N; k++)
      v[k] = 1.0f; /* weights of 1: the plain dot product */
  for (size_t s = 0; i >= RANDOM_MODELS && s < STEPS; s++)
    train_step(v, 0.01f);
  vector_file_write_weights(path, v, N);
}

static void no_weighted_dot_product_ranks_every_pair_right(void **state)
{
  struct bench bench;

  (void)state;
  open_bench(&bench, write_weights, MODELS);
  for (size_t m = 0; m < MODELS; m++) {
    size_t n_right_pairs = 0, a, b;
    char space[16];
    snprintf(space, sizeof space, "%zu", m);
    for (size_t pair = 0; pair < PAIRS; pair++) {
      struct instance instance;
      pair_of(pair, &a, &b);
      draw_instance(a, b, &instance); /* the scores do not depend on q */
      struct answer answer = ask(&bench, space, &instance, "exact");
      n_right_pairs += is_right(&answer);
    }
    assert_true(n_right_pairs < PAIRS);
    if (m == 0)
      assert_int_equal(n_right_pairs, 0); /* weights of 1: the critical pair weighs 2, the others 8 */
  }
  close_bench(&bench);
}

/* Singular values -------------------- */

static double norm_of(const float *v, size_t n)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += (double)v[k] * (double)v[k];
  return sqrt(sum);
}

static double entry_of(const struct svd *s, size_t rank, size_t i, size_t j)
{
  double sum = 0;

  for (size_t k = 0; k < rank; k++)
    sum += s->sigma[k] * s->u[k * s->n + i] * s->v[k * s->n + j];
  return sum;
}

/* Assert that U and V are orthonormal, that singular values fall, and that the product is the matrix. */
static void assert_svd(const struct svd *s, const double *w)
{
  size_t n = s->n;

  for (size_t k = 0; k < s->rank; k++) {
    assert_true(s->sigma[k] >= 0 && (k == 0 || s->sigma[k] <= s->sigma[k - 1]));
    for (size_t l = 0; l < s->rank; l++) {
      double u = 0, v = 0;
      for (size_t i = 0; i < n; i++) {
        u += s->u[k * n + i] * s->u[l * n + i];
        v += s->v[k * n + i] * s->v[l * n + i];
      }
      assert_true(fabs(u - (k == l)) < 1e-12 * (double)n && fabs(v - (k == l)) < 1e-12 * (double)n);
    }
  }
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      assert_true(fabs(entry_of(s, s->rank, i, j) - w[i * n + j]) <= 1e-13 * (double)n * (s->sigma[0] + 1e-300));
}

static void check_product(size_t n, size_t r)
{
  float *p = malloc(n * r * sizeof *p), *q = malloc(n * r * sizeof *q);
  double *w = calloc(n * n, sizeof *w);
  struct svd svd = { 0 };

  dice_fill(&dice, p, n * r, 1.0f);
  dice_fill(&dice, q, n * r, 1.0f);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k < r; k++)
        w[i * n + j] += (double)p[i * r + k] * (double)q[j * r + k];
  assert_ok(svd_of_product(p, q, n, r, &svd));
  assert_int_equal(svd.rank, r < n ? r : n);
  assert_svd(&svd, w);
  svd_fini(&svd);
  free(p);
  free(q);
  free(w);
}

static void a_decomposition_gives_its_matrix_back(void **state)
{
  static const size_t sizes[] = { 1, 2, 3, 17, 64 };

  (void)state;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    size_t n = sizes[s];
    double *w = calloc(n * n, sizeof *w), *copy = calloc(n * n, sizeof *w);
    struct svd svd = { 0 };
    for (int kind = 0; kind < 3; kind++) { /* 0: random; 1: of rank one; 2: zero */
      for (size_t i = 0; i < n * n; i++)
        w[i] = copy[i] = kind == 0 ? (double)dice_float(&dice, 1.0f) : kind == 1 ? (double)(i / n + 1) : 0;
      assert_ok(svd_of_matrix(copy, n, &svd));
      assert_int_equal(svd.rank, kind == 0 ? n : 1);
      assert_svd(&svd, w);
      svd_fini(&svd);
    }
    free(w);
    free(copy);
    for (size_t r = 1; r <= n + 2; r += 1 + n / 4)
      check_product(n, r);
  }
}

/* Theorem 3 -------------------- */

static double product_of(const struct svd *s, size_t rank, const float *q, const float *d)
{
  double sum = 0;

  for (size_t k = 0; k < rank; k++) {
    double a = 0, b = 0;
    for (size_t i = 0; i < s->n; i++) {
      a += (double)q[i] * s->u[k * s->n + i];
      b += (double)d[i] * s->v[k * s->n + i];
    }
    sum += s->sigma[k] * a * b;
  }
  return sum;
}

static void the_error_of_rank_r_is_within_theorem_3_which_is_tight(void **state)
{
  enum { DIM = 24 };
  double w[DIM * DIM];
  float q[DIM], d[DIM];
  struct svd svd = { 0 };

  (void)state;
  for (size_t i = 0; i < DIM * DIM; i++)
    w[i] = (double)dice_float(&dice, 1.0f);
  assert_ok(svd_of_matrix(w, DIM, &svd));
  for (size_t r = 1; r < DIM; r++) {
    for (int i = 0; i < 200; i++) {
      dice_fill(&dice, q, DIM, 1.0f);
      dice_fill(&dice, d, DIM, 1.0f);
      double error = product_of(&svd, DIM, q, d) - product_of(&svd, r, q, d);
      assert_true(fabs(error) <= svd.sigma[r] * norm_of(q, DIM) * norm_of(d, DIM));
    }
    for (size_t k = 0; k < DIM; k++) {
      q[k] = (float)svd.u[r * DIM + k];
      d[k] = (float)svd.v[r * DIM + k];
    }
    double error = product_of(&svd, DIM, q, d) - product_of(&svd, r, q, d);
    assert_true(fabs(error - svd.sigma[r]) < 1e-5 * svd.sigma[r]);
  }
  svd_fini(&svd);
}

/* Write a diagonal model: the tightest case for the receipts of low_rank(), because an item can lie completely outside
 * W_r. */
static void write_diagonal(const char *path, size_t i)
{
  float w[N * N] = { 0 };

  (void)i;
  for (size_t k = 0; k < N; k++)
    w[k * N + k] = (float)(N - k);
  vector_file_write_matrix(path, w, N, N);
}

static void a_receipt_of_low_rank_bounds_what_lies_in_the_next_direction(void **state)
{
  struct bench b;

  (void)state;
  open_bench(&b, write_diagonal, 1);
  for (size_t r = 1; r < N; r++) {
    float seen[N] = { 0 }, unseen[N] = { 0 }, q[N] = { 0 };
    char method[24];
    seen[0] = 0.001f; /* ranked first by W_r and last by W */
    unseen[r] = 1;    /* W_r scores it 0, W scores it sigma_(r+1) */
    q[0] = q[r] = 1;
    fixture_put_vector(b.engine, span_of_str("seen"), "0", seen, N);
    fixture_put_vector(b.engine, span_of_str("unseen"), "0", unseen, N);
    snprintf(method, sizeof method, "low_rank(%zu)", r);
    struct query query = { .space = span_of_str("0"), .method = span_of_str(method), .k = 1, .vector = { q, N } };
    struct answer answer;
    fixture_search(b.engine, b.searcher, &query, 1, &answer);
    assert_true(span_equal(answer.hits[0].key, span_of_str("seen")));
    assert_false(answer.receipt.is_exact);
    assert_true(answer.receipt.bound >= (float)(N - r) && answer.receipt.bound < 1.02f * (float)(N - r));
  }
  close_bench(&b);
}

static void write_zeros(const char *path, size_t i)
{
  float w[N * N] = { 0 };

  (void)i;
  vector_file_write_matrix(path, w, N, N);
}

/* Their projections are 0, so none is similar to another: docs/diversity.md. */
static void items_of_a_model_of_zeros_do_not_resemble_each_other(void **state)
{
  static const char *const keys[] = { "a", "b", "c" };
  struct bench b;
  struct answer answer;
  float q[N] = { 1 };

  (void)state;
  open_bench(&b, write_zeros, 1);
  for (size_t i = 0; i < 3; i++) {
    float v[N] = { 0 };
    v[i == 2] = 1; /* "a" and "b" are the same */
    fixture_put_vector(b.engine, span_of_str(keys[i]), "0", v, N);
  }
  struct query query = { .space = span_of_str("0"), .k = 3, .vector = { q, N }, .mmr = { .diversity = 0.7 } };
  fixture_search(b.engine, b.searcher, &query, 1, &answer);
  for (size_t i = 0; i < 3; i++)
    assert_true(span_equal(answer.hits[i].key, span_of_str(keys[i])));
  close_bench(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rank_two_bilinear_models_rank_every_instance_right),
    cmocka_unit_test(no_weighted_dot_product_ranks_every_pair_right),
    cmocka_unit_test(a_decomposition_gives_its_matrix_back),
    cmocka_unit_test(the_error_of_rank_r_is_within_theorem_3_which_is_tight),
    cmocka_unit_test(items_of_a_model_of_zeros_do_not_resemble_each_other),
    cmocka_unit_test(a_receipt_of_low_rank_bounds_what_lies_in_the_next_direction),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
