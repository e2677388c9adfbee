/* SPDX-License-Identifier: Apache-2.0 */
/* Searches one batch in the front arena: from checked queries to answers, on the first backend that has not failed. */
#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"
#include "engine/admission/admission.h"
#include "engine/engine_state.h"
#include "engine/explain.h"
#include "engine/like.h"
#include "engine/search/members.h"

struct searcher {
  struct engine *engine;
  struct region scratch; /* holds one search, answers included */
  struct device_worker *workers[BACKENDS_MAX];
  struct members *members; /* NULL: the engine has no team */
  struct search_pause pause;
  bool is_uncounted; /* its searches take no thread from others */
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
  /* A GPU needs no members. Where the processor is its substitute, that needs them. */
  if (e->team && e->backends.at[e->backends.n - 1]->kind == BACKEND_CPU)
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

void searcher_set_pause(struct searcher *s, struct searcher *between, void (*pause)(void *context), void *context)
{
  s->pause = (struct search_pause){ pause, context };
  between->is_uncounted = true;
}

void searcher_set_aside(struct searcher *s)
{
  members_close(&s->members);
  s->is_uncounted = true;
}

static err_t init_result(const struct arena *arena, const struct query *query, const struct admit *admit,
                         struct region *region, struct search_result *out)
{
  struct topk_entry *heap;
  size_t k = query->k < arena->n_slots ? query->k : arena->n_slots;

  if (k == 0)
    k = 1; /* an empty catalogue: the heap stays empty */
  out->admit = *admit;
  TRY(region_array(region, k, sizeof *heap, &heap));
  topk_init(&out->topk, heap, k, keys_order, &arena->keys);
  out->floor = -INFINITY;
  return ERR_OK;
}

enum { HITS_AHEAD = 16 }; /* hits until a prefetched key is read */

/* The keys of hits are scattered in memory. Prefetch where they are before the hits are sorted, and then the first ones
 * themselves. */
static size_t sort_hits(const struct keys *keys, struct topk *hits)
{
  size_t n;

  for (size_t i = 0; i < hits->n; i++)
    keys_prefetch_place(keys, hits->heap[i].slot);
  n = topk_finish(hits);
  for (size_t i = 0; i < size_min(n, HITS_AHEAD); i++)
    keys_prefetch_text(keys, hits->heap[i].slot);
  return n;
}

static err_t copy_hits(const struct arena *arena, struct search_result *result, struct region *region,
                       struct answer *answer)
{
  const struct topk_entry *hits = result->topk.heap;

  answer->n_hits = sort_hits(&arena->keys, &result->topk);
  TRY(region_array(region, answer->n_hits, sizeof *answer->hits, &answer->hits));
  for (size_t i = 0; i < answer->n_hits; i++) {
    if (i + HITS_AHEAD < answer->n_hits)
      keys_prefetch_text(&arena->keys, hits[i + HITS_AHEAD].slot);
    TRY(region_copy(region, keys_get(&arena->keys, hits[i].slot), &answer->hits[i].key));
    answer->hits[i].score = hits[i].score;
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

/* Queries of a batch that are searched in the same way. */
struct group {
  const struct query **queries; /* [n] */
  const struct admit **admits;  /* [n] */
  struct answer **answers;      /* [n] */
  size_t n;
};

enum {
  GROUP_ALL,      /* the method's search */
  GROUP_FEW,      /* the same on a GPU, for queries that admit few items */
  GROUP_ADMITTED, /* on a processor, just the admitted items */
  N_GROUPS
};

struct search {
  struct searcher *searcher;
  const struct arena *arena;
  const struct arena_space *in; /* what is searched */
  size_t backend;
  const struct method *method;
  const struct method_row *row;
  struct admission admission;
  size_t n; /* queries */
  struct group groups[N_GROUPS];
};

static err_t write_answers(const struct search *s, const struct group *group, const struct search_batch *batch)
{
  struct position *watermark;
  struct span space; /* a copy: the space may be removed before the answer is sent */

  TRY(copy_watermark(s->arena, batch->scratch, &watermark));
  TRY(region_copy(batch->scratch, span_of_str(s->in->space->name), &space));
  for (size_t i = 0; i < batch->n; i++) {
    struct answer *answer = group->answers[i];
    TRY(copy_hits(s->arena, &batch->results[i], batch->scratch, answer));
    answer->error = ANSWER_OK;
    answer->explanations = NULL;
    answer->n_explanations = 0;
    answer->space = space;
    answer->generation = s->in->space->generation;
    memcpy(answer->model, s->in->space->digest, ANSWER_MODEL_DIGITS);
    answer->model[ANSWER_MODEL_DIGITS] = 0;
    answer->method = *batch->method;
    answer->receipt = batch->results[i].receipt;
    answer->counts = batch->results[i].counts;
    answer->epoch = s->arena->epoch;
    answer->has_time = !lifetimes_plan_is_empty(&s->arena->lifetimes.plan);
    answer->time_unix_ms = s->arena->lifetimes.time_ms;
    answer->watermark = watermark;
    answer->n_watermark = s->arena->n_watermark;
  }
  return ERR_OK;
}

static const struct backend *backend_of(const struct search *s)
{
  return s->searcher->engine->backends.at[s->backend];
}

static err_t run(const struct search *s, int kind, struct search_batch *batch)
{
  const struct columns *columns = s->in->on[s->backend];
  const struct backend *on = backend_of(s);

  if (kind == GROUP_ADMITTED)
    return on->search(s->row->search_admitted, columns, batch);
  if (s->searcher->members && on->kind == BACKEND_CPU)
    return members_search(s->searcher->members, s->row, columns, batch);
  return on->search(on->search_of(s->row), columns, batch);
}

/* Run the query's side of the model: here, or what is left of it for a device that runs it. */
static err_t prepare_queries(const struct search *s, const struct group *group, struct search_batch *batch)
{
  const struct space *space = s->in->space;
  const struct columns_ops *ops = s->in->on[s->backend]->ops;
  struct prepared_queries *prepared;

  TRY((ops->prepare_queries ? ops->prepare_queries : space->similarity->prepare_queries)(
      space->model, batch->kernels, group->queries, group->n, batch->scratch, &prepared));
  batch->prepared = prepared;
  return ERR_OK;
}

static err_t search_group(const struct search *s, int kind)
{
  struct searcher *searcher = s->searcher;
  const struct group *group = &s->groups[kind];
  const struct space *space = s->in->space;
  struct search_batch batch = {
    .kernels = searcher->engine->kernels,
    .worker = searcher->workers[s->backend],
    .attributes = s->arena->copies[s->backend],
    .method = s->method,
    .n = group->n,
    .prepared_bytes = space->similarity->prepared_query_bytes,
    .n_slots = s->arena->n_slots,
    .n_items = s->in->n_items,
    .admits_few = kind == GROUP_FEW,
    .scratch = &searcher->scratch,
    .pause = &searcher->pause,
  };

  TRY(region_array(batch.scratch, group->n, sizeof *batch.results, &batch.results));
  for (size_t i = 0; i < group->n; i++)
    TRY(init_result(s->arena, group->queries[i], group->admits[i], batch.scratch, &batch.results[i]));
  TRY(prepare_queries(s, group, &batch));
  TRY(run(s, kind, &batch));
  for (size_t i = 0; i < group->n; i++)
    batch.results[i].counts.scores_admitted = kind != GROUP_ALL;
  return write_answers(s, group, &batch);
}

/* How many threads may share the search of a batch? That of admitted items alone has one. */
static size_t members_of(const struct search *s)
{
  size_t n = s->searcher->members && s->row->items_per_member > 0 ? s->searcher->engine->threads.per_search : 1;

  return s->row->queries_per_claim > 0 && s->n < n ? s->n : n;
}

/* Does a query admit so few items that scoring them all is faster, and gives the same answer? */
static bool admits_few(const struct search *s, const struct admit *admit)
{
  const struct method *method = s->method;
  uint32_t n_candidates = 0;

  if (!s->row->search_admitted)
    return false;
  size_t n_items = s->row->items_per_admitted;
  if (n_items > 0)
    return admit->n_admitted * n_items * members_of(s) <= s->in->n_items;
  for (unsigned i = 0; i < method->n_args; i++)
    n_candidates = method->args[i] > n_candidates ? method->args[i] : n_candidates;
  return admit->n_admitted <= n_candidates;
}

/* Does a query admit all items of the space but those that it excludes? */
static bool admits_space(const struct search *s, const struct query *query)
{
  return !query->tree && arena_space_n_alive(s->in) == s->in->n_items;
}

/* Choose how to search a query. The counts decide; the answer is the same. */
static int choose_group(const struct search *s, const struct query *query, const struct admit *admit)
{
  const struct backend *backend = backend_of(s);

  assert(query->filter.n == 0 || query->tree); /* engine_check_filter() has parsed it */
  if (backend->admits_few)
    return backend->admits_few(admit, s->in->n_items) ? GROUP_FEW : GROUP_ALL;
  if (admits_space(s, query))
    return GROUP_ALL;
  return admits_few(s, admit) ? GROUP_ADMITTED : GROUP_ALL;
}

/* Its place in the arena. */
static size_t place_of(const struct search *s)
{
  return (size_t)(s->in - s->arena->spaces);
}

static err_t init_group(struct region *region, size_t n, struct group *group)
{
  group->n = 0;
  TRY(region_array(region, n, sizeof *group->queries, &group->queries));
  TRY(region_array(region, n, sizeof *group->admits, &group->admits));
  return region_array(region, n, sizeof *group->answers, &group->answers);
}

/* Replace the queries that ask for items like one. A query without such an item is answered with an error. */
static err_t resolve(const struct search *s, const struct query *const *queries, size_t n, struct answer *answers,
                     const struct query *const **out)
{
  struct region *region = &s->searcher->scratch;
  const struct query **resolved;

  TRY(region_array(region, n, sizeof *resolved, &resolved));
  for (size_t i = 0; i < n; i++) {
    const char *problem = NULL;
    resolved[i] = queries[i];
    if (queries[i]->like.n)
      TRY(like_resolve(s->arena, place_of(s), queries[i], region, &resolved[i], &problem));
    answers[i].error = problem ? ANSWER_BAD_QUERY : ANSWER_OK;
    answers[i].error_message = problem;
  }
  *out = resolved;
  return ERR_OK;
}

/* Can the search make words of filters? The choice of how to search a query then rests on a bound of what it admits,
 * until the bits are kept on the host. An exact answer is the same either way. That of an approximate method is not:
 * with few admitted items it would be exact for one of two equal queries. */
static bool makes_words(const struct search *s)
{
  return s->arena->copies[s->backend] && s->row->is_exact;
}

/* Divide the batch into groups. */
static err_t divide(struct search *s, const struct query *const *queries, size_t n, struct answer *answers)
{
  const struct admission_target target = { .arena = s->arena,
                                           .space = place_of(s),
                                           .cache = s->searcher->engine->filters,
                                           .checks_late = s->row->checks_late && backend_of(s)->kind == BACKEND_CPU,
                                           .makes_words = makes_words(s) };
  struct region *region = &s->searcher->scratch;

  TRY(admission_find(&target, queries, n, region, &s->admission));
  for (int kind = 0; kind < N_GROUPS; kind++)
    TRY(init_group(region, n, &s->groups[kind]));
  for (size_t i = 0; i < n; i++) {
    const struct admit *admit = &s->admission.admits[i];
    if (answers[i].error)
      continue;
    struct group *group = &s->groups[choose_group(s, queries[i], admit)];
    group->queries[group->n] = queries[i];
    group->admits[group->n] = admit;
    group->answers[group->n++] = &answers[i];
  }
  return ERR_OK;
}

/* Score a few items for a query: those that `scored` admits. The scores are those of hits. */
static err_t score_items(const struct search *s, const struct query *query, const struct admit *scored,
                         struct answer *out)
{
  static const struct method exact = { .name = "exact" };
  struct search among = *s;
  struct query asked = *query;
  const struct query *queries[] = { &asked };
  const struct backend *backend = backend_of(s);

  asked.k = QUERY_EXPLAIN_MAX;
  among.method = &exact;
  among.row = methods_find(s->in->space->similarity->methods, &exact);
  int kind = backend->admits_few && backend->admits_few(scored, s->in->n_items) ? GROUP_FEW
             : !backend->admits_few && among.row->search_admitted               ? GROUP_ADMITTED
                                                                                : GROUP_ALL;
  among.groups[kind] = (struct group){ queries, &scored, &out, 1 };
  return search_group(&among, kind);
}

static err_t explain(const struct search *s, const struct query *query, const struct admit *admit,
                     struct answer *answer)
{
  const struct explain of = { s->arena, place_of(s), query, admit };
  struct explanation *explanations;
  struct answer scores = { 0 };
  struct admit scored;

  TRY(explain_begin(&of, &s->searcher->scratch, &explanations, &scored));
  if (scored.n_admitted > 0)
    TRY(score_items(s, query, &scored, &scores));
  explain_finish(&of, answer, scores.hits, scores.n_hits, explanations);
  answer->explanations = explanations;
  answer->n_explanations = query->n_explain;
  return ERR_OK;
}

static err_t search_arena(struct search *s, const struct query *const *queries, size_t n, struct answer *answers)
{
  TRY(resolve(s, queries, n, answers, &queries));
  TRY(divide(s, queries, n, answers));
  for (int kind = 0; kind < N_GROUPS; kind++) {
    if (s->groups[kind].n > 0)
      TRY(search_group(s, kind));
  }
  for (size_t i = 0; i < n; i++) {
    if (queries[i]->n_explain > 0 && !answers[i].error)
      TRY(explain(s, queries[i], &s->admission.admits[i], &answers[i]));
  }
  return ERR_OK;
}

/* Find the space that the queries were checked for. */
static err_t find_number(const struct arena *arena, size_t number, const struct arena_space **out)
{
  ARENA_FOR_EACH_SPACE (arena, in) {
    if (in->space->number != (number & ~ENGINE_PINNED))
      continue;
    if (!in->is_current && !(number & ENGINE_PINNED))
      FAIL(ERR_SPACE_CHANGED, "space %s has another generation now", in->space->name);
    *out = in;
    return ERR_OK;
  }
  FAIL(ERR_SPACE_CHANGED, "a generation of the space was removed");
}

/* Search on the first backend that has not failed. If its device fails now, the next one takes over. Other errors, such
 * as too little memory for one batch, say nothing about the next search. */
static err_t search_backends(struct searcher *searcher, const struct arena *arena, size_t space,
                             const struct method *method, const struct query *const *queries, size_t n,
                             struct answer *answers)
{
  struct backends *backends = &searcher->engine->backends;
  struct search s = { .searcher = searcher, .arena = arena, .method = method, .n = n };

  TRY(find_number(arena, space, &s.in));
  s.row = methods_find(s.in->space->similarity->methods, method);
  assert(s.row); /* engine_check_query() has verified it */
  for (;;) {
    s.backend = atomic_load(&backends->first);
    region_reset(&searcher->scratch);
    err_code_t err = search_arena(&s, queries, n, answers);
    admission_release(&s.admission);
    if (err != ERR_DEVICE)
      return err;
    TRY(backends_fail(backends, s.backend, err));
  }
}

err_t searcher_search(struct searcher *s, size_t space, const struct method *method, const struct query *const *queries,
                      size_t n, struct answer *answers)
{
  assert(n >= 1 && n <= s->engine->max_batch);
  const struct arena *front = pair_acquire(s->engine->pair);
  bool is_counted = s->engine->team && !s->is_uncounted;
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
