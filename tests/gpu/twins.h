/* SPDX-License-Identifier: Apache-2.0 */
/* Two engines with the same model and items, one on the processor and one on the device. Their answers must be equal.
 */
#ifndef TESTS_GPU_TWINS_H
#define TESTS_GPU_TWINS_H

#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { TWINS_BATCH_MAX = 256 };

struct twins {
  struct dice dice;
  struct engine *cpu, *cuda;
  struct searcher *on_cpu, *on_cuda;
  struct answer cpu_answers[TWINS_BATCH_MAX], cuda_answers[TWINS_BATCH_MAX];
};

static inline void twins_open_attributes(struct twins *t, const char *space, const char *model_path, size_t dim,
                                         size_t max_items, size_t max_k, struct attributes attributes,
                                         struct engine_lifetimes lifetimes)
{
  struct engine_space spaces = { .name = space, .model_path = model_path, .dim = dim };
  struct engine_config config = { .spaces = &spaces,
                                  .n_spaces = 1,
                                  .max_items = max_items,
                                  .max_k = max_k,
                                  .max_batch = TWINS_BATCH_MAX,
                                  .isa = isa_detect(),
                                  .backend = ENGINE_CPU,
                                  .n_workers = 1,
                                  .attributes = attributes,
                                  .lifetimes = lifetimes };
  size_t n_failed;

  CHECK_OK(engine_open(&config, &t->cpu));
  config.backend = ENGINE_CUDA;
  CHECK_OK(engine_open(&config, &t->cuda));
  CHECK(strcmp(engine_backend_name(t->cuda, &n_failed), "cuda") == 0 && n_failed == 0, "the backend is not cuda");
  CHECK_OK(engine_share_searches(t->cuda, &(struct engine_threads){ .per_search = 3, .max = 3 })); /* for items */
  CHECK_OK(searcher_open(t->cpu, &t->on_cpu));
  CHECK_OK(searcher_open(t->cuda, &t->on_cuda));
}

static inline void twins_open(struct twins *t, const char *space, const char *model_path, size_t dim, size_t max_items,
                              size_t max_k)
{
  twins_open_attributes(t, space, model_path, dim, max_items, max_k, (struct attributes){ 0 },
                        (struct engine_lifetimes){ 0 });
}

static inline void twins_close(struct twins *t)
{
  searcher_close(&t->on_cpu);
  searcher_close(&t->on_cuda);
  engine_close(&t->cpu);
  engine_close(&t->cuda);
}

static inline void twins_apply(struct twins *t, const struct item_change *changes, size_t n)
{
  for (size_t i = 0; i < n; i++)
    CHECK_OK(engine_check_item(t->cpu, &changes[i]));
  CHECK_OK(engine_apply(t->cpu, changes, n, NULL, 0));
  CHECK_OK(engine_apply(t->cuda, changes, n, NULL, 0));
}

/* Search a batch with one method on both engines. */
static inline void twins_search(struct twins *t, const struct query *queries, size_t n)
{
  const struct query *pointers[TWINS_BATCH_MAX];
  struct method method;
  size_t space;

  for (size_t i = 0; i < n; i++) {
    CHECK_OK(engine_check_query(t->cpu, &queries[i], &space, &method));
    pointers[i] = &queries[i];
  }
  CHECK_OK(searcher_search(t->on_cpu, space, &method, pointers, n, t->cpu_answers));
  CHECK_OK(searcher_search(t->on_cuda, space, &method, pointers, n, t->cuda_answers));
}

/* Check that both gave the same hits, to the last bit of their scores, and the same receipt. */
static inline void twins_check_same_query(const struct twins *t, size_t q)
{
  const struct answer *a = &t->cpu_answers[q], *b = &t->cuda_answers[q];

  CHECK(a->n_hits == b->n_hits, "query %zu: %zu hits on the processor, %zu on the GPU", q, a->n_hits, b->n_hits);
  for (size_t i = 0; i < a->n_hits; i++)
    CHECK(span_equal(a->hits[i].key, b->hits[i].key) && memcmp(&a->hits[i].score, &b->hits[i].score, 4) == 0,
          "query %zu, hit %zu: %.*s %.9g on the processor, %.*s %.9g on the GPU", q, i, (int)a->hits[i].key.n,
          (const char *)a->hits[i].key.p, (double)a->hits[i].score, (int)b->hits[i].key.n,
          (const char *)b->hits[i].key.p, (double)b->hits[i].score);
  CHECK(a->receipt.is_exact == b->receipt.is_exact && a->receipt.has_bound == b->receipt.has_bound &&
            memcmp(&a->receipt.bound, &b->receipt.bound, sizeof(float)) == 0,
        "query %zu: receipts differ: exact %d %d, bound %.9g %.9g", q, a->receipt.is_exact, b->receipt.is_exact,
        (double)a->receipt.bound, (double)b->receipt.bound);
  CHECK(a->counts.items == b->counts.items, "query %zu: the numbers of items differ", q);
}

static inline void twins_check_same(const struct twins *t, size_t n)
{
  for (size_t q = 0; q < n; q++)
    twins_check_same_query(t, q);
}

#endif
