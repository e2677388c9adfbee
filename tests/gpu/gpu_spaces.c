/* SPDX-License-Identifier: Apache-2.0 */
/* Generations of a space that are added, filled, switched to and removed on the device, with parts of their own and
 * with those of another one: answers are those of the processor, and memory of the device is given back. */
#include "engine/engine_spaces.h"
#include "kernels/device.h"
#include "tests/gpu/twins.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 400, DIM = 24, NEW_DIM = 40, N_QUERIES = 6, K = 12 };

static struct twins twins;
static char paths[3][PATH_MAX + 32];

static void put_items(const char *space, size_t dim, size_t first, size_t end)
{
  static float vectors[ITEMS][NEW_DIM];
  static struct part parts[ITEMS];
  static struct item_change changes[ITEMS];
  static char keys[ITEMS][8];

  for (size_t i = first; i < end; i++) {
    dice_fill(&twins.dice, vectors[i], dim, 1.0f);
    parts[i] = (struct part){ .space = span_of_str(space), .vector = { vectors[i], dim } };
    changes[i] = (struct item_change){ .key = span_of(keys[i], (size_t)sprintf(keys[i], "%zu", i)) };
    changes[i].parts = &parts[i];
    changes[i].n_parts = 1;
  }
  twins_apply(&twins, changes + first, end - first);
}

static void check_search(const char *space, size_t dim, uint32_t generation, size_t n_items)
{
  float vectors[N_QUERIES][NEW_DIM];
  struct query queries[N_QUERIES];

  for (size_t q = 0; q < N_QUERIES; q++) {
    dice_fill(&twins.dice, vectors[q], dim, 1.0f);
    queries[q] = (struct query){ .space = span_of_str(space), .k = K, .vector = { vectors[q], dim } };
  }
  twins_search(&twins, queries, N_QUERIES);
  twins_check_same(&twins, N_QUERIES);
  CHECK(twins.cuda_answers[0].generation == generation, "generation %u", twins.cuda_answers[0].generation);
  CHECK(twins.cuda_answers[0].n_hits == (n_items < K ? n_items : K), "%zu hits", twins.cuda_answers[0].n_hits);
}

static err_t try_derive(struct engine *e, uint32_t generation, const char *path, uint32_t parts_of)
{
  const struct engine_space space = { .name = "v", .model_path = path, .generation = generation, .parts_of = parts_of };
  struct engine_model *model = NULL;

  TRY(engine_load_model(&space, &model));
  err_code_t err = engine_add_space(e, &model);
  engine_model_close(&model);
  return err;
}

static err_t try_add(struct engine *e, uint32_t generation, const char *path)
{
  return try_derive(e, generation, path, 0);
}

static void add(uint32_t generation, const char *path)
{
  CHECK_OK(try_add(twins.cpu, generation, path));
  CHECK_OK(try_add(twins.cuda, generation, path));
}

static void switch_to(uint32_t generation)
{
  CHECK_OK(engine_set_current(twins.cpu, span_of_str("v"), generation));
  CHECK_OK(engine_set_current(twins.cuda, span_of_str("v"), generation));
}

static void remove_generation(uint32_t generation)
{
  CHECK_OK(engine_remove_space(twins.cpu, span_of_str("v"), generation));
  CHECK_OK(engine_remove_space(twins.cuda, span_of_str("v"), generation));
}

#ifdef SLUICE_CUDA_MODEL /* a real device is shared */
static size_t free_bytes(void)
{
  size_t bytes = 0;

  CHECK_OK(device_free_bytes(&bytes));
  return bytes;
}
#endif

/* A whole life, twice: the second time in the place of the first. */
static void live(void)
{
#ifdef SLUICE_CUDA_MODEL
  size_t before = free_bytes();
#endif

  add(2, paths[1]);
  check_search("v@2", NEW_DIM, 2, 0);
  put_items("v@2", NEW_DIM, 0, ITEMS / 2);
  check_search("v@2", NEW_DIM, 2, ITEMS / 2);
  check_search("v", DIM, 1, ITEMS);
  put_items("v@2", NEW_DIM, ITEMS / 3, ITEMS);
  switch_to(2);
  check_search("v", NEW_DIM, 2, ITEMS);
  switch_to(1);
  check_search("v", DIM, 1, ITEMS);
#ifdef SLUICE_CUDA_MODEL
  CHECK(free_bytes() < before, "a generation takes memory of the device");
#endif
  remove_generation(2);
  check_search("v", DIM, 1, ITEMS);
#ifdef SLUICE_CUDA_MODEL
  CHECK(free_bytes() == before, "%zu bytes of the device are free, not %zu", free_bytes(), before);
#endif
}

/* A generation that uses the parts of the first one. */
static void share_parts(void)
{
  CHECK_OK(try_derive(twins.cpu, 3, paths[2], 1));
  CHECK_OK(try_derive(twins.cuda, 3, paths[2], 1));
  put_items("v", DIM, 0, ITEMS / 2);
  check_search("v@3", DIM, 3, ITEMS / 2);
  check_search("v", DIM, 1, ITEMS);
  remove_generation(3);
  put_items("v", DIM, ITEMS / 3, ITEMS);
  check_search("v", DIM, 1, ITEMS);
}

#ifdef SLUICE_CUDA_MODEL
/* Leave some bytes of the device free. */
static void leave_free(size_t bytes)
{
  size_t all = (size_t)16 << 30;

  cuda_model_set_memory(all);
  cuda_model_set_memory(all - free_bytes() + bytes);
}

static void check_full(const char *what)
{
  CHECK(try_add(twins.cuda, 2, paths[1]) == ERR_FULL, "%s", what);
  CHECK(strstr(err_message(), "generation 2 of space v needs ") && strstr(err_message(), "; the GPU has "), "%s",
        err_message());
}

/* At a start, generations are added before searchers are opened: they leave them their memory. */
static void leave_room(void)
{
  leave_free(100);
  check_full("a generation fits into 100 bytes");
  check_search("v", DIM, 1, ITEMS);
  searcher_close(&twins.on_cuda);
  leave_free(64 << 20);
  check_full("a generation takes the memory of a searcher");
  leave_free((size_t)1 << 30);
  CHECK_OK(searcher_open(twins.cuda, &twins.on_cuda));
  leave_free(64 << 20);
  CHECK_OK(try_add(twins.cuda, 2, paths[1]));
  check_search("v", DIM, 1, ITEMS);
}
#endif

int main(void)
{
  struct temp_dir dir;

  check_begin("gpu_spaces");
  twins.dice.state = dice_seed();
  temp_dir_init(&dir);
  for (size_t i = 0; i < 3; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/%zu.safetensors", dir.path, i);
    vector_file_write_plain(paths[i], i == 2 ? "cosine" : "dot", i == 1 ? NEW_DIM : DIM);
  }
  twins_open(&twins, "v", paths[0], 0, ITEMS, ITEMS);
  put_items("v", DIM, 0, ITEMS);
  live();
  live();
  share_parts();
#ifdef SLUICE_CUDA_MODEL
  leave_room();
#endif
  twins_close(&twins);
  temp_dir_fini(&dir);
  return check_end("gpu_spaces");
}
