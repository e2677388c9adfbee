/* SPDX-License-Identifier: Apache-2.0 */
/* Searches one batch in the front arena: from checked queries to answers, on the first backend that has not failed. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine_state.h"
#include "engine/members.h"

struct searcher {
  struct engine *engine;
  struct region scratch; /* holds one search, answers included */
  struct device_worker *workers[BACKENDS_MAX];
  struct members *members; /* NULL: the engine has no team */
  struct search_pause pause;
  bool is_between; /* searches in the pauses of another searcher, whose thread counts already */
};

static err_t open_workers(struct searcher *s)
{
  struct engine *e = s->engine;

  for (size_t b = atomic_load(&e->backends.first); b < e->backends.n; b++) {
    const struct backend *backend = e->backends.at[b];
    err_code_t err = backend->worker_open ? backend->worker_open(e->max_items, &s->workers[b]) : ERR_OK;
    if (err != ERR_OK)
      TRY(backends_fail(&e->backends, b, err));
  }
  return ERR_OK;
}

err_t searcher_open(struct engine *e, struct searcher **out)
{
  AUTO(searcher_close) struct searcher *s = NULL;

  TRY(mem_array(1, sizeof *s, &s));
  s->engine = e;
  TRY(open_workers(s));
  if (e->team)
    TRY(members_open(e->team, e->threads.per_search, e->max_batch, e->threads.shares_always, &s->members));
  *out = s;
  s = NULL;
  return ERR_OK;
}

void searcher_close(struct searcher **s)
{
  if (!*s)
    return;
  for (size_t b = 0; b < BACKENDS_MAX; b++) {
    if ((*s)->workers[b])
      (*s)->engine->backends.at[b]->worker_close(&(*s)->workers[b]);
  }
  members_close(&(*s)->members);
  region_fini(&(*s)->scratch);
  mem_free(s);
}

void searcher_limit_threads(struct searcher *s, size_t n)
{
  if (s->members)
    members_limit(s->members, n);
}

void searcher_set_pause(struct searcher *s, struct searcher *between, void (*pause)(void *context), void *context)
{
  s->pause = (struct search_pause){ pause, context };
  between->is_between = true;
}

static int rising(const void *a, const void *b)
{
  const uint32_t *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

/* Convert excluded keys to slots of this epoch: only slots that have a part of the space, each once, in rising order.
 */
static err_t find_excluded(const struct arena *arena, const struct arena_space *space, const struct query *query,
                           struct region *region, struct admit *out)
{
  uint32_t *slots;
  size_t n = 0, n_once = 0;

  TRY(region_array(region, query->n_exclude, sizeof *slots, &slots));
  for (size_t i = 0; i < query->n_exclude; i++) {
    uint32_t slot = keys_find(&arena->keys, query->exclude[i]);
    if (slot != KEYS_NONE && space->has_part[slot])
      slots[n++] = slot;
  }
  qsort(slots, n, sizeof *slots, rising);
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || slots[i] != slots[i - 1])
      slots[n_once++] = slots[i];
  }
  *out = (struct admit){ space->has_part, slots, n_once, space->n_items == arena->n_slots && n_once == 0 };
  return ERR_OK;
}

static err_t init_result(const struct arena *arena, const struct arena_space *space, const struct query *query,
                         struct region *region, struct search_result *out)
{
  struct topk_entry *heap;
  size_t k = query->k < arena->n_slots ? query->k : arena->n_slots;

  if (k == 0)
    k = 1; /* an empty catalogue: the heap stays empty */
  TRY(find_excluded(arena, space, query, region, &out->admit));
  TRY(region_array(region, k, sizeof *heap, &heap));
  topk_init(&out->topk, heap, k, keys_order, &arena->keys);
  out->floor = -INFINITY;
  return ERR_OK;
}

static err_t copy_hits(const struct arena *arena, struct search_result *result, struct region *region,
                       struct answer *answer)
{
  answer->n_hits = topk_finish(&result->topk);
  TRY(region_array(region, answer->n_hits, sizeof *answer->hits, &answer->hits));
  for (size_t i = 0; i < answer->n_hits; i++) {
    TRY(region_copy(region, keys_get(&arena->keys, result->topk.heap[i].slot), &answer->hits[i].key));
    answer->hits[i].score = result->topk.heap[i].score;
  }
  return ERR_OK;
}

static err_t copy_watermark(const struct arena *arena, struct region *region, struct position **out)
{
  TRY(region_array(region, arena->n_watermark, sizeof **out, out));
  if (arena->n_watermark)
    memcpy(*out, arena->watermark, arena->n_watermark * sizeof **out);
  return ERR_OK;
}

static err_t write_answers(const struct arena *arena, const struct space *space, const struct search_batch *batch,
                           struct answer *answers)
{
  struct position *watermark;

  TRY(copy_watermark(arena, batch->scratch, &watermark));
  for (size_t i = 0; i < batch->n; i++) {
    struct answer *answer = &answers[i];
    TRY(copy_hits(arena, &batch->results[i], batch->scratch, answer));
    answer->space = span_of_str(space->name);
    answer->method = *batch->method;
    answer->receipt = batch->results[i].receipt;
    answer->counts = batch->results[i].counts;
    answer->epoch = arena->epoch;
    answer->watermark = watermark;
    answer->n_watermark = arena->n_watermark;
  }
  return ERR_OK;
}

static err_t search_arena(struct searcher *s, const struct arena *arena, size_t backend, size_t space,
                          const struct method *method, const struct query *const *queries, size_t n,
                          struct answer *answers)
{
  const struct arena_space *columns = &arena->spaces[space];
  const struct space *model = &s->engine->spaces[space];
  struct search_batch batch = {
    .kernels = s->engine->kernels,
    .worker = s->workers[backend],
    .method = method,
    .n = n,
    .n_slots = arena->n_slots,
    .n_items = columns->n_items,
    .scratch = &s->scratch,
    .pause = &s->pause,
  };
  const struct method_row *row = methods_find(model->similarity->methods, method);
  const struct backend *on = s->engine->backends.at[backend];
  struct prepared_queries *prepared;

  assert(row); /* engine_check_query() has verified it */
  TRY(region_array(&s->scratch, n, sizeof *batch.results, &batch.results));
  for (size_t i = 0; i < n; i++)
    TRY(init_result(arena, columns, queries[i], &s->scratch, &batch.results[i]));
  TRY(model->similarity->prepare_queries(model->model, s->engine->kernels, queries, n, &s->scratch, &prepared));
  batch.prepared = prepared;
  if (s->members && on->kind == BACKEND_CPU)
    TRY(members_search(s->members, row, columns->on[backend], &batch));
  else
    TRY(on->search(row->search[on->kind], columns->on[backend], &batch));
  return write_answers(arena, model, &batch, answers);
}

/* Search on the first backend that has not failed. If it fails now, the next one takes over. */
static err_t search_backends(struct searcher *s, const struct arena *arena, size_t space, const struct method *method,
                             const struct query *const *queries, size_t n, struct answer *answers)
{
  for (;;) {
    size_t backend = atomic_load(&s->engine->backends.first);
    region_reset(&s->scratch);
    err_code_t err = search_arena(s, arena, backend, space, method, queries, n, answers);
    if (err == ERR_OK)
      return ERR_OK;
    TRY(backends_fail(&s->engine->backends, backend, err));
  }
}

err_t searcher_search(struct searcher *s, size_t space, const struct method *method, const struct query *const *queries,
                      size_t n, struct answer *answers)
{
  assert(n >= 1 && n <= s->engine->max_batch);
  const struct arena *front = pair_acquire(s->engine->pair);
  bool is_counted = s->engine->team && !s->is_between;
  int64_t begin = clock_now_ns();

  if (is_counted)
    team_enter(s->engine->team);
  err_code_t err = search_backends(s, front, space, method, queries, n, answers);
  if (is_counted)
    team_leave(s->engine->team);
  pair_release(s->engine->pair, front);
  uint32_t searched_us = (uint32_t)((clock_now_ns() - begin) / CLOCK_NS_PER_US);
  for (size_t i = 0; err == ERR_OK && i < n; i++)
    answers[i].searched_us = searched_us;
  return err;
}
