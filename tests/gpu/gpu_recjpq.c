/* SPDX-License-Identifier: Apache-2.0 */
/* RecJPQ on the device compared with the processor: every method, on awkward catalogues, while items come and go. */
#include "tests/gpu/twins.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum { ITEMS = 900, MANY = 40000, SPLITS_MAX = 64, DIM_MAX = 4, CHANGES_MAX = 600, EXCLUDED_MAX = 5 };

/* How codes are drawn. */
enum draw { DRAW_UNIFORM, DRAW_FEW, DRAW_ALL_EQUAL, N_DRAWS };

static const struct shape {
  size_t n_splits, n_subitems, split_dim;
} shapes[] = { { 8, 256, 4 }, { 1, 16, 3 }, { 9, 5, 2 }, { 64, 256, 1 } };

static struct span key_of(size_t i, char *text)
{
  return span_of(text, (size_t)sprintf(text, "%05zu", i));
}

/* Apply a batch of puts and deletes. An item may be put, deleted and put again in the same batch. */
static void churn(struct twins *t, const struct shape *shape, enum draw draw, size_t n)
{
  static struct item_change changes[CHANGES_MAX];
  static struct part parts[CHANGES_MAX];
  static uint8_t codes[CHANGES_MAX][SPLITS_MAX];
  static char keys[CHANGES_MAX][16];

  for (size_t i = 0; i < n; i++) {
    for (size_t m = 0; m < shape->n_splits; m++)
      codes[i][m] =
          (uint8_t)(draw == DRAW_ALL_EQUAL ? 0
                                           : dice_below(&t->dice, shape->n_subitems) % (draw == DRAW_FEW ? 3 : 256));
    parts[i] = (struct part){ .space = span_of_str("pq"), .codes = span_of(codes[i], shape->n_splits) };
    changes[i] =
        (struct item_change){ .key = key_of(dice_below(&t->dice, ITEMS), keys[i]), .parts = &parts[i], .n_parts = 1 };
    if (dice_below(&t->dice, 3) == 0)
      changes[i] = (struct item_change){ .key = changes[i].key, .is_delete = true };
  }
  twins_apply(t, changes, n);
}

/* k: at least `least` and at most `most` */
static void search(struct twins *t, const struct shape *shape, size_t n, size_t least, size_t most, const char *method)
{
  static struct query queries[TWINS_BATCH_MAX];
  static float vectors[TWINS_BATCH_MAX][SPLITS_MAX * DIM_MAX];
  static struct span excluded[TWINS_BATCH_MAX][EXCLUDED_MAX];
  static char keys[TWINS_BATCH_MAX][EXCLUDED_MAX][16];
  size_t dim = shape->n_splits * shape->split_dim;

  for (size_t q = 0; q < n; q++) {
    dice_fill(&t->dice, vectors[q], dim, dice_below(&t->dice, 8) ? 1.0f : 0.0f); /* zeros: every item ties */
    queries[q] = (struct query){ .space = span_of_str("pq"),
                                 .method = span_of_str(method),
                                 .k = (uint32_t)(least + dice_below(&t->dice, most - least + 1)),
                                 .vector = { vectors[q], dim },
                                 .exclude = excluded[q],
                                 .n_exclude = dice_below(&t->dice, EXCLUDED_MAX) };
    for (size_t e = 0; e < queries[q].n_exclude; e++)
      excluded[q][e] = key_of(dice_below(&t->dice, ITEMS), keys[q][e]);
  }
  twins_search(t, queries, n);
  twins_check_same(t, n);
}

static void write_model(struct twins *t, const struct shape *shape, struct temp_dir *dir, char *path)
{
  static float centroids[SPLITS_MAX * 256 * DIM_MAX];

  dice_fill(&t->dice, centroids, shape->n_splits * shape->n_subitems * shape->split_dim, 1.0f);
  temp_dir_init(dir);
  sprintf(path, "%s/pq.safetensors", dir->path);
  model_file_write_recjpq(path, centroids, shape->n_splits, shape->n_subitems, shape->split_dim);
}

/* More items with the same score than a list can keep: the query is searched again range by range. */
static void check_many_ties(size_t n_splits, uint64_t seed)
{
  static struct item_change changes[MANY];
  static struct part parts[MANY];
  static char keys[MANY][16];
  static const uint8_t codes[SPLITS_MAX] = { 3, 4 };
  const struct shape shape = { n_splits, 5, 2 };
  static struct twins t;
  struct temp_dir dir;
  char path[sizeof dir.path + 32];

  t.dice.state = seed;
  write_model(&t, &shape, &dir, path);
  twins_open(&t, "pq", path, 0, MANY, 1000);
  for (size_t i = 0; i < MANY; i++) {
    parts[i] = (struct part){ .space = span_of_str("pq"), .codes = span_of(codes, n_splits) };
    changes[i] = (struct item_change){ .key = key_of((i * 7919) % MANY, keys[i]), .parts = &parts[i], .n_parts = 1 };
  }
  twins_apply(&t, changes, MANY);
  search(&t, &shape, 3, 1, 1000, "exact");
  search(&t, &shape, 1, 1, 100, "exact");
  twins_close(&t);
  temp_dir_fini(&dir);
}

static void check_shape(const struct shape *shape, enum draw draw, uint64_t seed)
{
  static const char *const methods[] = { "exact", "pqtopk", "default", "prune(8)" };
  static struct twins t;
  struct temp_dir dir;
  char path[sizeof dir.path + 32];

  t.dice.state = seed;
  write_model(&t, shape, &dir, path);
  twins_open(&t, "pq", path, 0, ITEMS, 1000);
  search(&t, shape, 3, 1, 5, "exact"); /* an empty catalogue */
  for (size_t round = 0; round < check_size(5, 2); round++) {
    churn(&t, shape, draw, 1 + dice_below(&t.dice, round < 3 ? CHANGES_MAX - 1 : 3));
    for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++)
      search(&t, shape, 1 + dice_below(&t.dice, m == 0 ? 40 : 4), 1, round % 2 ? 1000 : 20, methods[m]);
  }
  search(&t, shape, 1, 511, 512, "exact"); /* as many hits as are not sorted, or sorted, on the device */
  if (shape->n_splits == SPLITS_MAX && draw == DRAW_UNIFORM) /* more queries than the worker's inputs hold at once */
    search(&t, shape, check_size(TWINS_BATCH_MAX, 40), 1, 20, "exact");
  twins_close(&t);
  temp_dir_fini(&dir);
}

int main(void)
{
  uint64_t seed = dice_seed();

  check_begin("gpu_recjpq");
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (enum draw draw = DRAW_UNIFORM; draw < N_DRAWS; draw++)
      check_shape(&shapes[s], draw, seed + s * N_DRAWS + draw);
  }
  check_many_ties(2, seed);
  check_many_ties(8, seed); /* packed */
#ifdef SLUICE_CUDA_MODEL
  for (size_t kib = 99; kib < 200; kib += 64) { /* cards with less shared memory */
    cuda_model_set_shared(kib * 1024);
    check_shape(&shapes[0], DRAW_UNIFORM, seed + 200);
    check_shape(&shapes[3], DRAW_UNIFORM, seed + 201);
  }
#endif
  return check_end("gpu_recjpq");
}
