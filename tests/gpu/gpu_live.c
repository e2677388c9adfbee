/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads search the device while batches of changes are published, with and without filters. Every answer must
 * be the complete answer of the epoch that it names. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/engine.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

#ifdef SLUICE_CUDA_MODEL
enum { ITEMS = 300, EPOCHS = 60, SEARCHERS = 3 };
#else
enum { ITEMS = 20000, EPOCHS = 2000, SEARCHERS = 4 };
#endif
enum { SPLITS = 2, SUBITEMS = 256, K = 10, BATCH = 5 };

static const struct attribute turn = { { (const uint8_t *)"turn", 4 }, ATTRIBUTE_INTEGER };

static float centroids[SPLITS * SUBITEMS];
static struct engine *engine;
static _Atomic bool is_over;
static _Atomic size_t n_searches;

/* The version of item i in an epoch. It decides the item's codes and whether it is live. A third of the items change in
 * every epoch. */
static size_t version(size_t i, size_t epoch)
{
  return (epoch + i % 3) / 3;
}

static void codes_of(size_t i, size_t epoch, uint8_t *codes)
{
  size_t v = version(i, epoch);

  codes[0] = (uint8_t)((i * 31 + v * 17) % SUBITEMS);
  codes[1] = (uint8_t)((i * 7 + v * 101) % SUBITEMS);
}

static bool is_live(size_t i, size_t epoch)
{
  return (i + version(i, epoch)) % 5 != 0;
}

/* The attribute of an item, which changes with it. */
static size_t turn_of(size_t i, size_t epoch)
{
  return (i * 5 + version(i, epoch)) % 7;
}

static void publish(size_t epoch)
{
  static struct attribute_value values[ITEMS];
  static struct item_change changes[ITEMS];
  static struct part parts[ITEMS];
  static uint8_t codes[ITEMS][SPLITS];
  static char keys[ITEMS][8];
  size_t n = 0;

  for (size_t i = 0; i < ITEMS; i++) {
    if (epoch > 1 && version(i, epoch) == version(i, epoch - 1))
      continue;
    codes_of(i, epoch, codes[n]);
    parts[n] = (struct part){ .space = span_of_str("pq"), .codes = span_of(codes[n], SPLITS) };
    changes[n] = (struct item_change){ .key = span_of(keys[n], (size_t)sprintf(keys[n], "%05zu", i)) };
    changes[n].is_delete = !is_live(i, epoch);
    changes[n].parts = &parts[n];
    changes[n].n_parts = changes[n].is_delete ? 0 : 1;
    values[n] = (struct attribute_value){ turn.name, { .kind = VALUE_INTEGER, .integer = (int64_t)turn_of(i, epoch) } };
    changes[n].attributes = &values[n];
    changes[n].n_attributes = changes[n].n_parts;
    n++;
  }
  CHECK_OK(engine_apply(engine, changes, n, NULL, 0));
}

enum { ALL_TURNS = 7 };

/* Does a query for the turns below `below` admit an item? */
static bool is_admitted(size_t i, size_t epoch, size_t below)
{
  return is_live(i, epoch) && turn_of(i, epoch) < below;
}

/* Check that the answer has the K best items of its epoch that the query admits. */
static void check_answer(const float *vector, size_t below, const struct answer *answer)
{
  size_t n_better = 0, n_live = 0;

  for (size_t i = 0; i < ITEMS && answer->epoch > 0; i++)
    n_live += is_admitted(i, answer->epoch, below);
  CHECK(answer->counts.admitted == n_live, "%zu admitted, not %zu", (size_t)answer->counts.admitted, n_live);
  CHECK(answer->n_hits == (K < n_live ? K : n_live), "%zu hits", answer->n_hits);
  for (size_t h = 0; h < answer->n_hits; h++) {
    size_t i = strtoul((const char *)answer->hits[h].key.p, NULL, 10);
    uint8_t codes[SPLITS];
    codes_of(i, answer->epoch, codes);
    float score = vector[0] * centroids[codes[0]] + vector[1] * centroids[SUBITEMS + codes[1]];
    CHECK(is_admitted(i, answer->epoch, below) && score == answer->hits[h].score, "item %zu of epoch %zu: %g, not %g",
          i, (size_t)answer->epoch, (double)answer->hits[h].score, (double)score);
  }
  for (size_t i = 0; i < ITEMS && answer->n_hits == K; i++) {
    uint8_t codes[SPLITS];
    codes_of(i, answer->epoch, codes);
    n_better +=
        is_admitted(i, answer->epoch, below) &&
        vector[0] * centroids[codes[0]] + vector[1] * centroids[SUBITEMS + codes[1]] > answer->hits[K - 1].score;
  }
  CHECK(n_better < K, "%zu items of epoch %zu are better than the last hit", n_better, (size_t)answer->epoch);
}

static void *search(void *context)
{
  struct dice dice = { (uint64_t)(uintptr_t)context };
  struct region region = { 0 };
  struct searcher *s;

  CHECK_OK(searcher_open(engine, &s));
  while (!atomic_load(&is_over)) {
    struct query queries[BATCH];
    const struct query *pointers[BATCH];
    struct answer answers[BATCH] = { 0 };
    float vectors[BATCH][SPLITS];
    size_t belows[BATCH];
    char filters[BATCH][16];
    struct method method;
    size_t space;
    region_reset(&region);
    for (size_t q = 0; q < BATCH; q++) {
      dice_fill(&dice, vectors[q], SPLITS, 1.0f);
      queries[q] = (struct query){ .space = span_of_str("pq"), .k = K, .vector = { vectors[q], SPLITS } };
      pointers[q] = &queries[q];
      belows[q] = dice_below(&dice, ALL_TURNS + 1);
      if (belows[q] < ALL_TURNS)
        queries[q].filter = span_of(filters[q], (size_t)sprintf(filters[q], "turn < %zu", belows[q]));
      CHECK_OK(engine_check_filter(engine, &queries[q], &region));
      CHECK_OK(engine_check_query(engine, &queries[q], &space, &method));
    }
    CHECK_OK(searcher_search(s, space, &method, pointers, BATCH, answers));
    for (size_t q = 0; q < BATCH; q++)
      check_answer(vectors[q], belows[q], &answers[q]);
    atomic_fetch_add(&n_searches, 1);
  }
  searcher_close(&s);
  region_fini(&region);
  return NULL;
}

int main(void)
{
  struct dice dice = { dice_seed() };
  struct temp_dir dir;
  char path[sizeof dir.path + 32];
  struct engine_space space = { .name = "pq", .model_path = path };
  struct engine_config config = { &space, 1, ITEMS, K, BATCH, isa_detect(), ENGINE_CUDA, 1, { &turn, 1 }, { 0 } };
  pthread_t threads[SEARCHERS];

  check_begin("gpu_live");
  dice_fill(&dice, centroids, SPLITS * SUBITEMS, 1.0f);
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/pq.safetensors", dir.path);
  model_file_write_recjpq(path, centroids, SPLITS, SUBITEMS, 1);
  CHECK_OK(engine_open(&config, &engine));
  for (size_t i = 0; i < SEARCHERS; i++)
    CHECK(pthread_create(&threads[i], NULL, search, (void *)(uintptr_t)(dice_u64(&dice) | 1)) == 0, "no thread");
  size_t n_epochs = check_size(EPOCHS, 12);

  for (size_t epoch = 1; epoch <= n_epochs || atomic_load(&n_searches) <= SEARCHERS; epoch++)
    publish(epoch);
  atomic_store(&is_over, true);
  for (size_t i = 0; i < SEARCHERS; i++)
    pthread_join(threads[i], NULL);
  printf("gpu_live: %zu batches over at least %zu epochs\n", (size_t)n_searches, n_epochs);
  engine_close(&engine);
  temp_dir_fini(&dir);
  return check_end("gpu_live");
}
