/* SPDX-License-Identifier: Apache-2.0 */
/* The device operations of a search: one copy to the device, at most one copy back, and one wait for it. Prints the
 * number of operations. Runs only on the model, which counts them. */
#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "tests/gpu/check.h"
#include "tests/support/mol_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 4200, K = 20, BATCH = 2, DIM = 64, SPLITS = 8, SUBITEMS = 256, MANY_EXCLUDED = 2 };

enum { RECJPQ, MOL, BILINEAR, TAILED, N_SPACES }; /* TAILED: bilinear with a tail of small singular values */
static const char *const names[N_SPACES] = { "pq", "mol", "bilinear", "tailed" };

static const struct attribute rank = { { (const uint8_t *)"rank", 4 }, ATTRIBUTE_INTEGER };

static const struct mol_file shape = { 8, 8, 32, 128, DIM, 0, 0.1f };

/* low_rank searches twice and then scores the hits, so it waits three times (engine/cuda/vector_low_rank_cuda.c). */
static const struct ask {
  int space;
  const char *method;
  size_t n_waits;
} asks[] = {
  { RECJPQ, "exact", 1 },         { RECJPQ, "pqtopk", 1 },    { MOL, "exact", 1 },
  { MOL, "two_pass", 1 },         { MOL, "average(300)", 1 }, { MOL, "per_embedding(20)", 1 },
  { MOL, "combined(20,100)", 1 }, { BILINEAR, "exact", 1 },   { BILINEAR, "low_rank(4)", 3 },
  { TAILED, "exact", 1 },
};

struct world {
  struct dice dice;
  struct temp_dir dir;
  char paths[N_SPACES][4096];
  struct engine *engine;
  struct searcher *searcher;
  struct region region;
  size_t n_filters; /* so far: each is another one */
};

static void write_models(struct world *w)
{
  static float centroids[SUBITEMS * DIM], matrix[DIM * DIM];

  temp_dir_init(&w->dir);
  for (int s = 0; s < N_SPACES; s++)
    snprintf(w->paths[s], sizeof w->paths[s], "%s/%s.safetensors", w->dir.path, names[s]);
  dice_fill(&w->dice, centroids, SUBITEMS * DIM, 1.0f);
  model_file_write_recjpq(w->paths[RECJPQ], centroids, SPLITS, SUBITEMS, DIM / SPLITS);
  mol_file_write(w->paths[MOL], &shape, &w->dice);
  dice_fill(&w->dice, matrix, DIM * DIM, 1.0f);
  vector_file_write_matrix(w->paths[BILINEAR], matrix, DIM, DIM);
  for (size_t i = 0; i < DIM * DIM; i++)
    matrix[i] = i % (DIM + 1) == 0 ? expf(-0.5f * (float)(i / DIM)) : 0.0f;
  vector_file_write_matrix(w->paths[TAILED], matrix, DIM, DIM);
}

static void put_items(struct world *w)
{
  static struct item_change changes[ITEMS];
  static struct part parts[ITEMS][N_SPACES];
  static struct attribute_value values[ITEMS];
  static uint8_t codes[ITEMS][SPLITS];
  static float vectors[ITEMS][DIM];
  static char keys[ITEMS][8];

  for (size_t i = 0; i < ITEMS; i++) {
    for (size_t m = 0; m < SPLITS; m++)
      codes[i][m] = (uint8_t)dice_below(&w->dice, SUBITEMS);
    dice_fill(&w->dice, vectors[i], DIM, 1.0f);
    for (int s = 0; s < N_SPACES; s++)
      parts[i][s] = (struct part){ .space = span_of_str(names[s]), .vector = { vectors[i], DIM } };
    parts[i][RECJPQ] = (struct part){ .space = span_of_str(names[RECJPQ]), .codes = span_of(codes[i], SPLITS) };
    changes[i] = (struct item_change){ .key = span_of(keys[i], (size_t)sprintf(keys[i], "%05zu", i)),
                                       .parts = parts[i],
                                       .n_parts = N_SPACES,
                                       .attributes = &values[i],
                                       .n_attributes = 1 };
    values[i] = (struct attribute_value){ rank.name, { .kind = VALUE_INTEGER, .integer = (int64_t)i } };
    CHECK_OK(engine_check_item(w->engine, &changes[i]));
  }
  CHECK_OK(engine_apply(w->engine, changes, ITEMS, NULL, 0));
}

static void open_world(struct world *w)
{
  struct engine_space spaces[N_SPACES];
  struct engine_config config = {
    spaces, N_SPACES, ITEMS, K, BATCH, isa_detect(), ENGINE_CUDA, 1, { &rank, 1 }, { 0 }
  };

  write_models(w);
  for (int s = 0; s < N_SPACES; s++)
    spaces[s] = (struct engine_space){ .name = names[s], .model_path = w->paths[s] };
  CHECK_OK(engine_open(&config, &w->engine));
  CHECK_OK(searcher_open(w->engine, &w->searcher));
  put_items(w);
}

static void close_world(struct world *w)
{
  region_fini(&w->region);
  searcher_close(&w->searcher);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
}

enum with { NOTHING, EXCLUDED, FILTERS };

/* The queries of a batch have different filters, which nobody has asked for before. So the device makes their words if
 * the method is exact, and they need no copy. */
static void add_filter(struct world *w, struct query *query, char *text, size_t size)
{
  query->filter = span_of(text, (size_t)snprintf(text, size, "rank >= %zu", w->n_filters++));
  CHECK_OK(engine_check_filter(w->engine, query, &w->region));
}

/* One to the device and one back for each wait. But the hits of RecJPQ are not copied; of filters, the numbers of
 * admitted items are. */
static size_t n_copies_due(const struct ask *ask, enum with with)
{
  return ask->space == RECJPQ && with != FILTERS ? 1 : 2 * ask->n_waits;
}

static void check_ask(struct world *w, const struct ask *ask, enum with with)
{
  static const char *const excluded_keys[MANY_EXCLUDED] = { "00007", "04321" };
  struct span excluded[MANY_EXCLUDED];
  struct query made[BATCH];
  const struct query *queries[BATCH];
  struct answer answers[BATCH] = { 0 };
  float vectors[BATCH][DIM];
  char filters[BATCH][32];
  struct method method;
  size_t space;

  region_reset(&w->region);
  for (size_t e = 0; e < MANY_EXCLUDED; e++)
    excluded[e] = span_of_str(excluded_keys[e]);
  for (size_t q = 0; q < BATCH; q++) {
    dice_fill(&w->dice, vectors[q], DIM, 1.0f);
    made[q] = (struct query){ .space = span_of_str(names[ask->space]),
                              .method = span_of_str(ask->method),
                              .k = K,
                              .vector = { vectors[q], DIM },
                              .exclude = excluded,
                              .n_exclude = with == EXCLUDED || (with == FILTERS && q > 0) ? MANY_EXCLUDED : 0 };
    if (with == FILTERS)
      add_filter(w, &made[q], filters[q], sizeof filters[q]);
    queries[q] = &made[q];
    CHECK_OK(engine_check_query(w->engine, &made[q], &space, &method));
  }
  size_t n_calls = cuda_model_calls(), n_waits = cuda_model_waits(), n_copies = cuda_model_copies();
  CHECK_OK(searcher_search(w->searcher, space, &method, queries, BATCH, answers));
  n_calls = cuda_model_calls() - n_calls;
  n_waits = cuda_model_waits() - n_waits;
  n_copies = cuda_model_copies() - n_copies;
  printf("%-9s %-18s %-10s %zu operations, %zu waits\n", names[ask->space], ask->method,
         (const char *const[]){ "", "excluding", "filtered" }[with], n_calls - n_waits, n_waits);
  CHECK(n_waits == ask->n_waits, "%zu waits, not %zu", n_waits, ask->n_waits);
  CHECK(n_copies == n_copies_due(ask, with), "%zu copies, but %zu waits", n_copies, n_waits);
  for (size_t q = 0; q < BATCH; q++)
    CHECK(answers[q].n_hits == K, "%zu hits", answers[q].n_hits);
}

/* The device makes no words for approximate methods. */
static bool is_exact(const char *method)
{
  return strchr(method, '(') == NULL;
}

int main(void)
{
  static struct world w;

  check_begin("gpu_steps");
  w.dice.state = dice_seed();
  open_world(&w);
  for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
    check_ask(&w, &asks[i], NOTHING);
    check_ask(&w, &asks[i], EXCLUDED);
    if (is_exact(asks[i].method))
      check_ask(&w, &asks[i], FILTERS);
  }
  close_world(&w);
  return check_end("gpu_steps");
}
