/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads search the device at the same time, in batches of different sizes. Every query's answer must equal
 * the one that it gets alone, to the last bit.
 */
#include <pthread.h>
#include <string.h>

#include "engine/engine.h"
#include "tests/gpu/check.h"
#include "tests/support/mol_file.h"
#include "tests/support/temp_dir.h"

#ifdef SLUICE_CUDA_MODEL
enum { ITEMS = 200, QUERIES = 12, ROUNDS = 3 };
#else
enum { ITEMS = 50000, QUERIES = 40, ROUNDS = 100 };
#endif
enum { K = 10, DIM = 5, THREADS = 3 };

static const struct mol_file shape = { 8, 8, 32, 128, DIM, 0, 0.1f };
static const char *const methods[] = { "exact", "two_pass", "average(60)", "per_embedding(3)", "combined(2,30)" };
enum { METHODS = sizeof methods / sizeof methods[0] };

static struct engine *engine;
static size_t n_items, n_queries; /* ITEMS and QUERIES, or fewer under sanitizers */
static float vectors[QUERIES][DIM];

struct alone {
  size_t n;
  struct {
    char key[8];
    float score;
  } hits[K];
};

static struct alone alone[METHODS][QUERIES];

static void put_items(struct dice *dice)
{
  struct item_change *changes = calloc(n_items, sizeof *changes);
  struct part *parts = calloc(n_items, sizeof *parts);
  float(*items)[DIM] = calloc(n_items, sizeof *items);
  char(*keys)[8] = calloc(n_items, sizeof *keys);

  for (size_t i = 0; i < n_items; i++) {
    dice_fill(dice, items[i], DIM, 1.0f);
    parts[i] = (struct part){ .space = span_of_str("mol"), .vector = { items[i], DIM } };
    changes[i] = (struct item_change){ .key = span_of(keys[i], (size_t)sprintf(keys[i], "%06zu", i)),
                                       .parts = &parts[i],
                                       .n_parts = 1 };
  }
  CHECK_OK(engine_apply(engine, changes, n_items, NULL, 0));
  free(changes);
  free(parts);
  free(items);
  free(keys);
}

/* Search n queries from `first` on, wrapping around at the end. */
static void search(struct searcher *s, size_t m, size_t first, size_t n, struct answer *answers)
{
  const struct query *pointers[QUERIES];
  struct query queries[QUERIES];
  struct method method;
  size_t space;

  for (size_t i = 0; i < n; i++) {
    queries[i] = (struct query){ .space = span_of_str("mol"),
                                 .method = span_of_str(methods[m]),
                                 .k = K,
                                 .vector = { vectors[(first + i) % n_queries], DIM } };
    pointers[i] = &queries[i];
    CHECK_OK(engine_check_query(engine, &queries[i], &space, &method));
  }
  CHECK_OK(searcher_search(s, space, &method, pointers, n, answers));
}

static void search_alone(void)
{
  struct searcher *s;

  CHECK_OK(searcher_open(engine, &s));
  for (size_t m = 0; m < METHODS; m++) {
    for (size_t q = 0; q < n_queries; q++) {
      struct alone *out = &alone[m][q];
      struct answer answer = { 0 };
      search(s, m, q, 1, &answer);
      out->n = answer.n_hits;
      for (size_t i = 0; i < answer.n_hits; i++) {
        memcpy(out->hits[i].key, answer.hits[i].key.p, answer.hits[i].key.n);
        out->hits[i].score = answer.hits[i].score;
      }
    }
  }
  searcher_close(&s);
}

static void check_answer(size_t m, size_t q, const struct answer *answer)
{
  const struct alone *due = &alone[m][q];

  CHECK(answer->n_hits == due->n, "%s, query %zu: %zu hits, alone %zu", methods[m], q, answer->n_hits, due->n);
  for (size_t i = 0; i < due->n; i++)
    CHECK(memcmp(answer->hits[i].key.p, due->hits[i].key, answer->hits[i].key.n) == 0 &&
              memcmp(&answer->hits[i].score, &due->hits[i].score, sizeof(float)) == 0,
          "%s, query %zu, hit %zu is %.*s %.9g, alone %s %.9g", methods[m], q, i, (int)answer->hits[i].key.n,
          (const char *)answer->hits[i].key.p, (double)answer->hits[i].score, due->hits[i].key,
          (double)due->hits[i].score);
}

static void *search_together(void *context)
{
  struct dice dice = { (uint64_t)(uintptr_t)context };
  struct answer answers[QUERIES] = { 0 };
  struct searcher *s;

  CHECK_OK(searcher_open(engine, &s));
  for (size_t round = 0; round < check_size(ROUNDS, 2); round++) {
    for (size_t m = 0; m < METHODS; m++) {
      size_t first = dice_below(&dice, n_queries), n = 1 + dice_below(&dice, n_queries);
      search(s, m, first, n, answers);
      for (size_t i = 0; i < n; i++)
        check_answer(m, (first + i) % n_queries, &answers[i]);
    }
  }
  searcher_close(&s);
  return NULL;
}

int main(void)
{
  struct dice dice = { dice_seed() };
  struct temp_dir dir;
  char path[sizeof dir.path + 32];
  struct engine_space space = { .name = "mol", .model_path = path };
  struct engine_config config = { &space, 1, ITEMS, K, QUERIES, isa_detect(), ENGINE_CUDA, 1, { 0 }, { 0 } };
  pthread_t threads[THREADS];

  check_begin("gpu_threads");
  n_items = check_size(ITEMS, ITEMS < 2000 ? ITEMS : 2000);
  n_queries = check_size(QUERIES, 6);
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/mol.safetensors", dir.path);
  mol_file_write(path, &shape, &dice);
  CHECK_OK(engine_open(&config, &engine));
  put_items(&dice);
  for (size_t q = 0; q < n_queries; q++)
    dice_fill(&dice, vectors[q], DIM, 1.0f);
  search_alone();
  for (size_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, search_together, (void *)(uintptr_t)(dice_u64(&dice) | 1)) == 0,
          "no thread");
  for (size_t i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  engine_close(&engine);
  temp_dir_fini(&dir);
  return check_end("gpu_threads");
}
