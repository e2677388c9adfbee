/* SPDX-License-Identifier: Apache-2.0 */
/* Device failures, injected at every call that can fail. With `auto` the processor takes over with the same answers.
 * With `cuda` the error is reported, and everything can still be closed. Runs only on the model, which fails on
 * request. */
#include "tests/gpu/check.h"

#include <string.h>

#include "engine/engine_state.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum { ITEMS = 40, SPLITS_MAX = 8, SUBITEMS = 16, K = 7, ROUNDS = 3 };

static char model_path[4096];
static size_t n_splits; /* 8 are scanned by other kernels than 3 */

static const struct attribute rank = { { (const uint8_t *)"rank", 4 }, ATTRIBUTE_INTEGER };

static err_t put_items(struct engine *e, uint8_t salt)
{
  static struct item_change changes[ITEMS];
  static struct part parts[ITEMS];
  static struct attribute_value values[ITEMS];
  static uint8_t codes[ITEMS][SPLITS_MAX];
  static char keys[ITEMS][8];

  for (size_t i = 0; i < ITEMS; i++) {
    for (size_t m = 0; m < n_splits; m++)
      codes[i][m] = (uint8_t)((i * (m + 3) + salt) % SUBITEMS);
    parts[i] = (struct part){ .space = span_of_str("pq"), .codes = span_of(codes[i], n_splits) };
    values[i] = (struct attribute_value){ rank.name, { .kind = VALUE_INTEGER, .integer = (int64_t)i + salt } };
    changes[i] = (struct item_change){ .key = span_of(keys[i], (size_t)sprintf(keys[i], "%03zu", i)),
                                       .parts = &parts[i],
                                       .n_parts = 1,
                                       .attributes = &values[i],
                                       .n_attributes = 1,
                                       .is_delete = (i + salt) % 9 == 0 };
  }
  return engine_apply(e, changes, ITEMS, NULL, 0);
}

struct found {
  size_t n;
  struct {
    char key[4];
    float score;
  } hits[K];
};

static err_t search(struct engine *e, struct searcher *s, struct found *out)
{
  AUTO(region_fini) struct region region = { 0 };
  static const float vector[SPLITS_MAX] = { 1.0f, -0.5f, 0.25f };
  struct query query = { .space = span_of_str("pq"), .k = K, .vector = { vector, n_splits } };
  const struct query *queries[] = { &query };
  struct answer answer = { 0 };
  struct method method;
  size_t space;

  query.filter = span_of_str("rank < 30 or rank > 35"); /* the device makes its words */
  TRY(engine_check_query(e, &query, &space, &method));
  TRY(engine_check_filter(e, &query, &region));
  TRY(searcher_search(s, space, &method, queries, 1, &answer));
  *out = (struct found){ .n = answer.n_hits };
  for (size_t i = 0; i < answer.n_hits; i++) {
    memcpy(out->hits[i].key, answer.hits[i].key.p, 3);
    out->hits[i].score = answer.hits[i].score;
  }
  return ERR_OK;
}

static size_t calls_at_end; /* calls made before closing: errors on close are not reported */

/* Does a device with this memory have room for an empty catalogue of up to a million items? */
static err_t open_large(size_t memory_bytes)
{
  AUTO(engine_close) struct engine *e = NULL;
  struct engine_space space = { .name = "pq", .model_path = model_path };
  struct engine_config config = { &space, 1, 1000000, K, 4, isa_detect(), ENGINE_CUDA, 1, { 0 }, { 0 } };

  cuda_model_set_memory(memory_bytes);
  return engine_open(&config, &e);
}

static err_t fail_for_memory(method_search *by, const struct columns *columns, struct search_batch *batch)
{
  (void)by;
  (void)columns;
  (void)batch;
  FAIL(ERR_MEMORY, "no memory for this batch");
}

/* A search that lacks host memory fails; it does not cost the device. */
static void check_memory(const struct found *expected)
{
  AUTO(engine_close) struct engine *e = NULL;
  AUTO(searcher_close) struct searcher *s = NULL;
  struct engine_space space = { .name = "pq", .model_path = model_path };
  struct engine_config config = { &space, 1, ITEMS, K, 4, isa_detect(), ENGINE_AUTO, 1, { &rank, 1 }, { 0 } };
  struct backend failing;
  struct found found;

  CHECK_OK(engine_open(&config, &e));
  CHECK_OK(searcher_open(e, &s));
  CHECK_OK(put_items(e, 0));
  const struct backend *cuda = e->backends.at[0];
  failing = *cuda;
  failing.search = fail_for_memory;
  e->backends.at[0] = &failing;
  err_code_t err = search(e, s, &found);
  CHECK(err == ERR_MEMORY, "the error is %s", err_text(err));
  e->backends.at[0] = cuda;
  CHECK_OK(search(e, s, &found));
  CHECK(atomic_load(&e->backends.first) == 0, "the device was given up");
  CHECK(memcmp(&found, expected, sizeof found) == 0, "the answers differ");
}

/* A searcher for what nobody waits for, that the device has no room for, does not cost the device. */
static void check_aside(const struct found *expected)
{
  AUTO(engine_close) struct engine *e = NULL;
  AUTO(searcher_close) struct searcher *s = NULL, *aside = NULL;
  struct engine_space space = { .name = "pq", .model_path = model_path };
  struct engine_config config = { &space, 1, ITEMS, K, 4, isa_detect(), ENGINE_AUTO, 2, { &rank, 1 }, { 0 } };
  struct found found;

  CHECK_OK(engine_open(&config, &e));
  CHECK_OK(searcher_open(e, &s));
  CHECK_OK(put_items(e, 0));
  cuda_model_fail_after(1);
  err_code_t err = searcher_open_aside(e, &aside);
  cuda_model_fail_after(0);
  CHECK(err == ERR_DEVICE && !aside, "the error is %s", err_text(err));
  CHECK(atomic_load(&e->backends.first) == 0, "the device was given up");
  CHECK_OK(search(e, s, &found));
  CHECK(memcmp(&found, expected, sizeof found) == 0, "the answers differ");
  CHECK_OK(searcher_open_aside(e, &aside));
  CHECK_OK(search(e, aside, &found));
  CHECK(memcmp(&found, expected, sizeof found) == 0, "the answers aside differ");
}

/* Open an engine and run it for some rounds. Each round puts items and answers a query, into found[round]. */
static err_t live(enum engine_backend backend, struct found *found, const char **name)
{
  AUTO(engine_close) struct engine *e = NULL;
  AUTO(searcher_close) struct searcher *s = NULL;
  struct engine_space space = { .name = "pq", .model_path = model_path };
  struct engine_config config = { &space, 1, ITEMS, K, 4, isa_detect(), backend, 1, { &rank, 1 }, { 0 } };
  size_t n_failed;

  TRY(engine_open(&config, &e));
  TRY(searcher_open(e, &s));
  for (uint8_t round = 0; round < ROUNDS; round++) {
    TRY(put_items(e, round));
    TRY(search(e, s, &found[round]));
  }
  *name = engine_backend_name(e, &n_failed);
  calls_at_end = cuda_model_calls();
  return ERR_OK;
}

static void write_model(struct temp_dir *dir)
{
  float centroids[SPLITS_MAX * SUBITEMS];

  for (size_t i = 0; i < n_splits * SUBITEMS; i++)
    centroids[i] = (float)(i * 37 % 101) / 101.0f;
  temp_dir_init(dir);
  snprintf(model_path, sizeof model_path, "%s/pq.safetensors", dir->path);
  model_file_write_recjpq(model_path, centroids, n_splits, SUBITEMS, 1);
}

/* Let each call that can fail do so. */
static void check_calls(void)
{
  struct found expected[ROUNDS], found[ROUNDS];
  struct temp_dir dir;
  const char *name;

  write_model(&dir);
  CHECK_OK(live(ENGINE_CPU, expected, &name));
  size_t n_calls = cuda_model_calls();
  CHECK_OK(live(ENGINE_AUTO, found, &name));
  CHECK(strcmp(name, "cuda") == 0, "%s was searched", name);
  CHECK(memcmp(found, expected, sizeof found) == 0, "the answers differ");
  n_calls = calls_at_end - n_calls;
  check_memory(&expected[0]);
  check_aside(&expected[0]);
  CHECK(n_calls > 50, "only %zu calls were counted", n_calls);
  for (size_t n = 1; n <= n_calls; n++) {
    cuda_model_fail_after(n);
    CHECK_OK(live(ENGINE_AUTO, found, &name));
    CHECK(strcmp(name, "cpu") == 0, "after call %zu failed, %s was searched", n, name);
    CHECK(memcmp(found, expected, sizeof found) == 0, "after call %zu failed, the answers differ", n);
    cuda_model_fail_after(n);
    err_code_t err = live(ENGINE_CUDA, found, &name);
    CHECK(err == ERR_DEVICE, "after call %zu failed, the error is %s", n, err_text(err));
  }
  cuda_model_fail_after(0);
  temp_dir_fini(&dir);
}

int main(void)
{
  struct found found[ROUNDS];
  struct temp_dir dir;
  const char *name;

  check_begin("gpu_failure");
  n_splits = SPLITS_MAX;
  check_calls();
  n_splits = 3;
  check_calls();

  /* A catalogue that does not fit into the device's memory. */
  write_model(&dir);
  cuda_model_set_memory(100);
  err_code_t err = live(ENGINE_CUDA, found, &name);
  CHECK(err == ERR_CONFIG && strstr(err_message(), "the GPU has"), "%s", err_message());
  CHECK_OK(live(ENGINE_AUTO, found, &name));
  CHECK(strcmp(name, "cpu") == 0, "%s was searched", name);
  temp_dir_fini(&dir);

  /* Room for the arenas, but not for a worker's memory too. */
  write_model(&dir);
  cuda_model_set_memory((size_t)64 << 20);
  err = live(ENGINE_CUDA, found, &name);
  CHECK(err == ERR_CONFIG && strstr(err_message(), "and the workers"), "%s", err_message());

  /* A million items of 2 bytes, with 36 bytes of a worker each, need less than 0.5 GiB, however bytes are rounded. */
  CHECK_OK(open_large((size_t)1 << 30));
  cuda_model_set_memory((size_t)16 << 30);

  /* A driver that is older than the runtime is named as the reason. */
  cuda_model_set_driver(12040);
  err = live(ENGINE_CUDA, found, &name);
  CHECK(err == ERR_CONFIG && strstr(err_message(), "the NVIDIA driver supports CUDA 12.4, but this build needs 13.0"),
        "%s", err_message());
  cuda_model_set_driver(0);
  err = live(ENGINE_CUDA, found, &name);
  CHECK(err == ERR_CONFIG && strstr(err_message(), "libcuda was not found"), "%s", err_message());
  CHECK_OK(live(ENGINE_AUTO, found, &name));
  CHECK(strcmp(name, "cpu") == 0, "%s was searched", name);
  temp_dir_fini(&dir);
  return check_end("gpu_failure");
}
