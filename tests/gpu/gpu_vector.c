/* SPDX-License-Identifier: Apache-2.0 */
/* dot, cosine, weighted_dot and bilinear on the device compared with the processor: every method, on awkward
 * catalogues, while items come and go.
 */
#include "tests/gpu/twins.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 300, MANY = 17000, DIM_MAX = 768, CHANGES_MAX = 400, EXCLUDED_MAX = 5, METHOD_MAX = 32 };

enum model { MODEL_DOT, MODEL_COSINE, MODEL_WEIGHTED, MODEL_MATRIX, MODEL_FACTORS, N_MODELS };

/* How vectors are drawn. */
enum draw { DRAW_UNIFORM, DRAW_FEW, DRAW_EQUAL, DRAW_CLUSTER, DRAW_SIZES, DRAW_EXTREME, DRAW_SPARSE, N_DRAWS };

struct world {
  struct twins twins;
  enum model model;
  size_t dim;
  size_t max_items;
  struct temp_dir dir;
};

static struct span key_of(size_t i, char *text)
{
  return span_of(text, (size_t)sprintf(text, "%05zu", i));
}

static void draw_vector(struct world *w, enum draw draw, float *v)
{
  struct dice *d = &w->twins.dice, fixed = { .state = 77 + (draw == DRAW_FEW ? dice_below(d, 5) : 0) };
  float size = powf(10.0f, dice_float(d, 6.0f));

  for (size_t k = 0; k < w->dim; k++) {
    float base = dice_float(&fixed, 1.0f), own = dice_float(d, 1.0f);
    switch (draw) {
    case DRAW_FEW:
    case DRAW_EQUAL:
      v[k] = base;
      break;
    case DRAW_CLUSTER:
      v[k] = base + 1e-4f * own;
      break;
    case DRAW_SIZES:
      v[k] = own * size;
      break;
    case DRAW_EXTREME: /* from subnormal numbers to the largest valid ones */
      v[k] = own * powf(10.0f, dice_below(d, 2) ? dice_float(d, 9.0f) : -25 + dice_float(d, 20.0f));
      break;
    case DRAW_SPARSE:
      v[k] = dice_below(d, 40) ? 0.0f : own;
      break;
    default:
      v[k] = own;
    }
  }
}

/* Make W = P Q^T with a decaying spectrum. */
static void write_bilinear(struct world *w, const char *path)
{
  size_t n = w->dim, r = w->model == MODEL_MATRIX || n <= 40 ? n : 40;
  float *pq = malloc(2 * n * r * sizeof *pq), *q = pq + n * r, *matrix = calloc(n * n, sizeof *matrix);

  for (size_t i = 0; i < n * r; i++) {
    pq[i] = dice_float(&w->twins.dice, 1.0f) * expf(-6.0f * (float)(i % r) / (float)r);
    q[i] = dice_float(&w->twins.dice, 1.0f);
  }
  for (size_t i = 0; w->model == MODEL_MATRIX && i < n; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k < r; k++)
        matrix[i * n + j] += pq[i * r + k] * q[j * r + k];
  if (w->model == MODEL_MATRIX)
    vector_file_write_matrix(path, matrix, n, n);
  else
    vector_file_write_factors(path, pq, n, r, r);
  free(matrix);
  free(pq);
}

static void open_world(struct world *w, enum model model, size_t dim, size_t max_items, uint64_t seed)
{
  char path[sizeof w->dir.path + 32];
  float weights[DIM_MAX];

  w->model = model;
  w->dim = dim;
  w->max_items = max_items;
  w->twins.dice.state = seed;
  temp_dir_init(&w->dir);
  sprintf(path, "%s/v.safetensors", w->dir.path);
  dice_fill(&w->twins.dice, weights, dim, 3.0f);
  if (model <= MODEL_COSINE)
    vector_file_write_plain(path, model == MODEL_DOT ? "dot" : "cosine", 0);
  else if (model == MODEL_WEIGHTED)
    vector_file_write_weights(path, weights, dim);
  else
    write_bilinear(w, path);
  twins_open(&w->twins, "v", path, model <= MODEL_COSINE ? dim : 0, max_items, max_items);
}

static void close_world(struct world *w)
{
  twins_close(&w->twins);
  temp_dir_fini(&w->dir);
}

/* Apply a batch of puts and deletes. An item may be put, deleted and put again in the same batch. */
static void churn(struct world *w, enum draw draw, size_t n)
{
  static struct item_change changes[CHANGES_MAX];
  static struct part parts[CHANGES_MAX];
  static float vectors[CHANGES_MAX][DIM_MAX];
  static char keys[CHANGES_MAX][16];
  struct dice *d = &w->twins.dice;

  for (size_t i = 0; i < n; i++) {
    draw_vector(w, dice_below(d, 10) ? draw : DRAW_UNIFORM, vectors[i]);
    parts[i] = (struct part){ .space = span_of_str("v"), .vector = { vectors[i], w->dim } };
    changes[i] = (struct item_change){ .key = key_of(dice_below(d, ITEMS), keys[i]), .parts = &parts[i], .n_parts = 1 };
    if (dice_below(d, 4) == 0)
      changes[i] = (struct item_change){ .key = changes[i].key, .is_delete = true };
  }
  twins_apply(&w->twins, changes, n);
}

/* Searches -------------------- */

struct questions {
  struct query queries[TWINS_BATCH_MAX];
  float vectors[TWINS_BATCH_MAX][DIM_MAX];
  struct span excluded[TWINS_BATCH_MAX][EXCLUDED_MAX];
  char keys[TWINS_BATCH_MAX][EXCLUDED_MAX][16];
};

static void ask(struct world *w, enum draw draw, size_t n, size_t k, const char *method, struct questions *out)
{
  struct dice *d = &w->twins.dice;

  for (size_t q = 0; q < n; q++) {
    draw_vector(w, dice_below(d, 4) ? draw : DRAW_UNIFORM, out->vectors[q]);
    if (dice_below(d, 12) == 0)
      memset(out->vectors[q], 0, sizeof out->vectors[q]); /* every item ties */
    out->queries[q] = (struct query){ .space = span_of_str("v"),
                                      .method = span_of_str(method),
                                      .k = (uint32_t)(1 + dice_below(d, k)),
                                      .vector = { out->vectors[q], w->dim },
                                      .exclude = out->excluded[q],
                                      .n_exclude = dice_below(d, EXCLUDED_MAX) };
    for (size_t e = 0; e < out->queries[q].n_exclude; e++)
      out->excluded[q][e] = key_of(dice_below(d, ITEMS), out->keys[q][e]);
  }
}

static void search(struct world *w, enum draw draw, size_t n, size_t k, const char *method)
{
  static struct questions questions;

  ask(w, draw, n, k, method, &questions);
  twins_search(&w->twins, questions.queries, n);
  twins_check_same(&w->twins, n);
}

static bool is_among(const struct answer *answer, struct span key)
{
  for (size_t i = 0; i < answer->n_hits; i++) {
    if (span_equal(answer->hits[i].key, key))
      return true;
  }
  return false;
}

/* Check a low_rank receipt against the ranking of all items under W. It must be exact if and only if the hits are the
 * first items of the ranking. Otherwise its bound is the best score that was not returned. If that score ties with the
 * last hit and only the item's key puts it before, the bound is the next float.
 */
static void check_receipt(const struct answer *given, const struct answer *all, size_t k)
{
  bool is_exact = true;
  size_t first_out = 0;

  CHECK(given->n_hits == (k < all->n_hits ? k : all->n_hits), "%zu hits", given->n_hits);
  for (size_t i = 0; i < given->n_hits; i++)
    is_exact = is_exact && span_equal(given->hits[i].key, all->hits[i].key);
  CHECK(given->receipt.is_exact == is_exact, "exact: %d", given->receipt.is_exact);
  CHECK(given->receipt.has_bound == (given->n_hits < all->n_hits), "bounded: %d", given->receipt.has_bound);
  while (first_out < all->n_hits && is_among(given, all->hits[first_out].key))
    first_out++;
  if (first_out == all->n_hits)
    return;
  float last = given->hits[given->n_hits - 1].score, bound = all->hits[first_out].score;
  bound = bound == last && !is_exact ? nextafterf(bound, INFINITY) : fmaxf(bound, last);
  CHECK(given->receipt.bound == bound, "a bound of %.9g, not %.9g", (double)given->receipt.bound, (double)bound);
}

/* Check that the hits are the processor's. The receipts are the device's own and must not be worse. */
static void check_low_rank(struct world *w, struct questions *questions, size_t n)
{
  static struct receipt receipts[TWINS_BATCH_MAX];
  struct twins *t = &w->twins;
  const struct query *pointers[TWINS_BATCH_MAX];
  struct method brute_force;
  size_t space, ks[TWINS_BATCH_MAX];

  twins_search(t, questions->queries, n);
  for (size_t q = 0; q < n; q++) {
    const struct receipt *cpu = &t->cpu_answers[q].receipt;
    receipts[q] = t->cuda_answers[q].receipt;
    CHECK(receipts[q].has_bound == cpu->has_bound && receipts[q].is_exact >= cpu->is_exact, "query %zu", q);
    CHECK(!cpu->has_bound || receipts[q].bound <= cpu->bound, "query %zu: a bound of %.9g, on the processor %.9g", q,
          (double)receipts[q].bound, (double)cpu->bound);
    t->cuda_answers[q].receipt = *cpu;
  }
  twins_check_same(t, n);
  for (size_t q = 0; q < n; q++) {
    t->cuda_answers[q].receipt = receipts[q];
    ks[q] = questions->queries[q].k;
    questions->queries[q].k = (uint32_t)w->max_items;
    questions->queries[q].method = span_of_str("brute_force");
    CHECK_OK(engine_check_query(t->cpu, &questions->queries[q], &space, &brute_force));
    pointers[q] = &questions->queries[q];
  }
  CHECK_OK(searcher_search(t->on_cpu, space, &brute_force, pointers, n, t->cpu_answers));
  for (size_t q = 0; q < n; q++)
    check_receipt(&t->cuda_answers[q], &t->cpu_answers[q], ks[q]);
}

static void search_low_rank(struct world *w, enum draw draw, size_t n, size_t k, size_t rank)
{
  static struct questions questions;
  char text[METHOD_MAX];

  sprintf(text, "low_rank(%zu)", rank);
  ask(w, draw, n, k, text, &questions);
  check_low_rank(w, &questions, n);
}

/* Open engines for bilinear with W = diag(d). d [n] */
static void open_diagonal(struct world *w, const float *d, size_t n, uint64_t seed)
{
  char path[sizeof w->dir.path + 32];
  float *matrix = calloc(n * n, sizeof *matrix);

  for (size_t i = 0; i < n; i++)
    matrix[i * n + i] = d[i];
  *w = (struct world){ .model = MODEL_MATRIX, .dim = n, .max_items = ITEMS, .twins.dice.state = seed };
  temp_dir_init(&w->dir);
  sprintf(path, "%s/v.safetensors", w->dir.path);
  vector_file_write_matrix(path, matrix, n, n);
  twins_open(&w->twins, "v", path, 0, ITEMS, ITEMS);
  free(matrix);
}

/* Two items have the same score, and W_1 prefers the one with the second key. The answer is not exact, although no
 * score is above the one returned. */
static void check_tie_by_key(void)
{
  static const float diagonal[2] = { 2, 1 }, vectors[2][2] = { { 0, 2 }, { 1, 0 } }, ones[2] = { 1, 1 };
  static struct world w;
  static struct questions questions;
  struct item_change changes[2];
  struct part parts[2];
  char keys[2][16];

  open_diagonal(&w, diagonal, 2, 1);
  for (size_t i = 0; i < 2; i++) {
    parts[i] = (struct part){ .space = span_of_str("v"), .vector = { vectors[i], 2 } };
    changes[i] = (struct item_change){ .key = key_of(i, keys[i]), .parts = &parts[i], .n_parts = 1 };
  }
  twins_apply(&w.twins, changes, 2);
  ask(&w, DRAW_UNIFORM, 1, 1, "low_rank(1)", &questions);
  memcpy(questions.vectors[0], ones, sizeof ones);
  questions.queries[0].n_exclude = 0;
  check_low_rank(&w, &questions, 1);
  CHECK(w.twins.cuda_answers[0].hits[0].score == 2.0f && !w.twins.cuda_answers[0].receipt.is_exact, "not as meant");
  close_world(&w);
}

/* For half of the items, nearly the whole score comes from the tail, the numbers without halves. For the others it is
 * small and comes from the numbers with halves. Only the tail shows that the former may be among the best. */
static void check_tails(uint64_t seed)
{
  enum { DIM = 64, FRONT = 32 };
  static struct world w;
  static struct item_change changes[ITEMS];
  static struct part parts[ITEMS];
  static float vectors[ITEMS][DIM];
  static char keys[ITEMS][16];
  float diagonal[DIM];

  for (size_t k = 0; k < DIM; k++)
    diagonal[k] = k < 8 ? 1.0f : 0.02f;
  open_diagonal(&w, diagonal, DIM, seed);
  for (size_t i = 0; i < ITEMS; i++) {
    if (i % 2)
      dice_fill(&w.twins.dice, vectors[i], FRONT, 0.001f);
    else
      dice_fill(&w.twins.dice, vectors[i] + FRONT, DIM - FRONT, 1.0f);
    parts[i] = (struct part){ .space = span_of_str("v"), .vector = { vectors[i], DIM } };
    changes[i] = (struct item_change){ .key = key_of(i, keys[i]), .parts = &parts[i], .n_parts = 1 };
  }
  twins_apply(&w.twins, changes, ITEMS);
  search(&w, DRAW_UNIFORM, 8, 4, "exact");
  search_low_rank(&w, DRAW_UNIFORM, 4, 4, 16);
  search_low_rank(&w, DRAW_UNIFORM, 4, 4, 40);
  close_world(&w);
}

static void check_model(enum model model, size_t dim, enum draw draw, size_t n_rounds, uint64_t seed)
{
  static struct world w;
  size_t most = dim > 200 ? 60 : CHANGES_MAX;

  open_world(&w, model, dim, ITEMS, seed);
  search(&w, draw, 3, 5, "exact"); /* an empty catalogue */
  if (model >= MODEL_MATRIX)
    search_low_rank(&w, draw, 2, 5, 1);
  for (size_t round = 0; round < n_rounds; round++) {
    size_t k = round % 2 ? ITEMS : 15;
    churn(&w, draw, 1 + dice_below(&w.twins.dice, round < 2 ? most - 1 : 3));
    search(&w, draw, 1 + dice_below(&w.twins.dice, round ? 8 : 40), k, "exact");
    search(&w, draw, 1 + dice_below(&w.twins.dice, 3), k, "brute_force");
    if (model >= MODEL_MATRIX) {
      search_low_rank(&w, draw, 1 + dice_below(&w.twins.dice, 4), k, round % 2 ? dim : 1);
      search_low_rank(&w, draw, 1 + dice_below(&w.twins.dice, 4), k, 1 + dice_below(&w.twins.dice, dim));
    }
  }
  close_world(&w);
}

/* More items with the same score than a list can keep: the query is searched again range by range. */
static void check_many_ties(enum model model, uint64_t seed)
{
  static struct item_change changes[MANY];
  static struct part parts[MANY];
  static char keys[MANY][16];
  static struct world w;
  static float vector[3];

  open_world(&w, model, 3, MANY, seed);
  draw_vector(&w, DRAW_EQUAL, vector);
  for (size_t i = 0; i < MANY; i++) {
    parts[i] = (struct part){ .space = span_of_str("v"), .vector = { vector, 3 } };
    changes[i] = (struct item_change){ .key = key_of((i * 7919) % MANY, keys[i]), .parts = &parts[i], .n_parts = 1 };
  }
  twins_apply(&w.twins, changes, MANY);
  search(&w, DRAW_UNIFORM, 1, 1000, "exact");
  if (model >= MODEL_MATRIX)
    search_low_rank(&w, DRAW_UNIFORM, 1, 1000, 1);
  close_world(&w);
}

/* Run every way of drawing with one dimension. The model of a device is slow: other dimensions run one way of drawing.
 */
static void check_all_draws(enum model model, size_t dim, uint64_t seed)
{
#ifdef SLUICE_CUDA_MODEL
  bool is_all = dim == 33;
#else
  bool is_all = true;
#endif

  for (enum draw draw = DRAW_UNIFORM; draw < N_DRAWS; draw++) {
    if (is_all || (seed + dim + model) % N_DRAWS == draw)
      check_model(model, dim, draw, 3, seed + 1000 * model + 10 * dim + draw);
  }
}

int main(void)
{
  static const size_t dims[] = { 1, 3, 16, 33, 64, 130 };
  uint64_t seed = dice_seed();
  size_t step = check_size(1, 3);

  check_begin("gpu_vector");
  check_tie_by_key();
  check_tails(seed);
  for (enum model model = MODEL_DOT; model < N_MODELS; model++) {
    for (size_t i = seed % step; i < sizeof dims / sizeof dims[0]; i += step)
      check_all_draws(model, dims[i], seed);
    if (model != MODEL_MATRIX)
      check_model(model, 768, DRAW_UNIFORM, 1, seed + model);
  }
  check_many_ties(MODEL_DOT, seed);
  check_many_ties(MODEL_MATRIX, seed);
#ifdef SLUICE_CUDA_MODEL
  cuda_model_set_shared(99 * 1024); /* a smaller card */
  check_model(MODEL_DOT, 768, DRAW_UNIFORM, 1, seed + 200);
#endif
  return check_end("gpu_vector");
}
