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

/* Is the device searched still? With backend auto, the processor takes its place if it fails. */
static inline void twins_check_backend(const struct twins *t)
{
  size_t n_failed;

  CHECK(strcmp(engine_backend_name(t->cuda, &n_failed), "cuda") == 0 && n_failed == 0, "the backend is not cuda");
}

/* Open both engines with one space. backend: of the one that searches the device, cuda or auto. */
static inline void twins_open_config(struct twins *t, struct engine_config config, enum engine_backend backend)
{
  config.n_spaces = config.n_workers = 1;
  config.max_batch = TWINS_BATCH_MAX;
  config.isa = isa_detect();
  config.backend = ENGINE_CPU;
  CHECK_OK(engine_open(&config, &t->cpu));
  config.backend = backend;
  CHECK_OK(engine_open(&config, &t->cuda));
  twins_check_backend(t);
  CHECK_OK(engine_share_searches(t->cuda, &(struct engine_threads){ .per_search = 3, .max = 3 })); /* for items */
  CHECK_OK(searcher_open(t->cpu, &t->on_cpu));
  CHECK_OK(searcher_open(t->cuda, &t->on_cuda));
}

static inline void twins_open(struct twins *t, const char *space, const char *model_path, size_t dim, size_t max_items,
                              size_t max_k)
{
  struct engine_space spaces = { .name = space, .model_path = model_path, .dim = dim };

  twins_open_config(t, (struct engine_config){ .spaces = &spaces, .max_items = max_items, .max_k = max_k },
                    ENGINE_CUDA);
}

static inline void twins_close(struct twins *t)
{
  twins_check_backend(t);
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

/* Search a batch with one method on one of the engines. */
static inline void twins_search_on(struct engine *e, struct searcher *s, const struct query *queries, size_t n,
                                   struct answer *answers)
{
  const struct query *pointers[TWINS_BATCH_MAX];
  struct method method;
  size_t space;

  for (size_t i = 0; i < n; i++) {
    CHECK_OK(engine_check_query(e, &queries[i], &space, &method));
    pointers[i] = &queries[i];
  }
  CHECK_OK(searcher_search(s, space, &method, pointers, n, answers));
}

/* Search a batch with one method on both engines. */
static inline void twins_search(struct twins *t, const struct query *queries, size_t n)
{
  twins_search_on(t->cpu, t->on_cpu, queries, n, t->cpu_answers);
  twins_search_on(t->cuda, t->on_cuda, queries, n, t->cuda_answers);
}

static inline bool twins_same_value(const struct value *a, const struct value *b)
{
  if (a->kind != b->kind)
    return false;
  switch (a->kind) {
  case VALUE_NULL:
    return true;
  case VALUE_BOOL:
    return a->is_true == b->is_true;
  case VALUE_INTEGER:
    return a->integer == b->integer;
  case VALUE_NUMBER:
    return memcmp(&a->number, &b->number, sizeof a->number) == 0;
  case VALUE_TEXT:
    return span_equal(a->text, b->text);
  default:
    for (size_t i = 0; a->list.n == b->list.n && i < a->list.n; i++) {
      if (!twins_same_value(&a->list.v[i], &b->list.v[i]))
        return false;
    }
    return a->list.n == b->list.n;
  }
}

/* What hits have beside keys and scores: similarities, values of a max_per, vectors for a merge, and attributes. */
static inline void twins_check_same_details(const struct answer *a, const struct answer *b, size_t q, size_t i)
{
  const struct hit *x = &a->hits[i], *y = &b->hits[i];

  CHECK(!a->is_boosted || memcmp(&x->similarity, &y->similarity, sizeof(float)) == 0,
        "query %zu, hit %zu: similarities %.9g %.9g", q, i, (double)x->similarity, (double)y->similarity);
  CHECK(twins_same_value(&x->value, &y->value), "query %zu, hit %zu: the values of max_per differ", q, i);
  CHECK(x->vector.n == y->vector.n &&
            (x->vector.n == 0 || memcmp(x->vector.v, y->vector.v, x->vector.n * sizeof(float)) == 0),
        "query %zu, hit %zu: the vectors differ", q, i);
  CHECK(x->n_attributes == y->n_attributes, "query %zu, hit %zu: %zu and %zu attributes", q, i, x->n_attributes,
        y->n_attributes);
  for (size_t j = 0; j < x->n_attributes; j++)
    CHECK(span_equal(x->attributes[j].name, y->attributes[j].name) &&
              twins_same_value(&x->attributes[j].value, &y->attributes[j].value),
          "query %zu, hit %zu: attribute %zu differs", q, i, j);
}

/* Check that both gave the same hits, to the last bit of their scores. */
static inline void twins_check_same_hits(const struct twins *t, size_t q)
{
  const struct answer *a = &t->cpu_answers[q], *b = &t->cuda_answers[q];

  CHECK(a->n_hits == b->n_hits, "query %zu: %zu hits on the processor, %zu on the GPU", q, a->n_hits, b->n_hits);
  CHECK(a->is_boosted == b->is_boosted, "query %zu: only one answer is boosted", q);
  for (size_t i = 0; i < a->n_hits; i++) {
    CHECK(span_equal(a->hits[i].key, b->hits[i].key) && memcmp(&a->hits[i].score, &b->hits[i].score, 4) == 0,
          "query %zu, hit %zu: %.*s %.9g on the processor, %.*s %.9g on the GPU", q, i, (int)a->hits[i].key.n,
          (const char *)a->hits[i].key.p, (double)a->hits[i].score, (int)b->hits[i].key.n,
          (const char *)b->hits[i].key.p, (double)b->hits[i].score);
    twins_check_same_details(a, b, q, i);
  }
}

/* Check that both gave the same hits and the same receipt. */
static inline void twins_check_same_query(const struct twins *t, size_t q)
{
  const struct answer *a = &t->cpu_answers[q], *b = &t->cuda_answers[q];

  twins_check_same_hits(t, q);
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
