/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses how each query of a batch is searched, and searches those of one way together. */
#include "engine/search_groups.h"

#include <assert.h>
#include <math.h>

#include "base/size.h"

/* ---- Dividing ---- */

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

/* Does a query admit all items of the space but those that it excludes? Later rounds do not. */
static bool admits_space(const struct search *s, const struct query *query, const struct admit *admit)
{
  bool is_narrowed = query_takes_rounds(query) && admit_leaves_out(admit, s->in->n_items);

  return !query->tree && !is_narrowed && arena_space_n_alive(s->in) == s->in->n_items;
}

/* Choose how to search a query. The counts decide; the answer is the same. */
static enum group_kind choose_group(const struct search *s, const struct query *query, const struct admit *admit)
{
  const struct backend *backend = search_backend(s);

  assert(query->filter.n == 0 || query->tree); /* engine_check_filter() has parsed it */
  if (backend->admits_few)
    return backend->admits_few(admit, s->in->n_items) ? GROUP_FEW : GROUP_ALL;
  if (admits_space(s, query, admit))
    return GROUP_ALL;
  return admits_few(s, admit) ? GROUP_ADMITTED : GROUP_ALL;
}

err_t search_groups_init(struct region *region, size_t n, struct group *out)
{
  out->n = 0;
  TRY(region_array(region, n, sizeof *out->queries, &out->queries));
  TRY(region_array(region, n, sizeof *out->admits, &out->admits));
  return region_array(region, n, sizeof *out->answers, &out->answers);
}

/* Can the search make words of filters? The choice of how to search a query then rests on a bound of what it admits,
 * until the bits are kept on the host. An exact answer is the same either way. That of an approximate method is not:
 * with few admitted items it would be exact for one of two equal queries. */
static bool makes_words(const struct search *s)
{
  return s->arena->copies[s->backend] && s->row->is_exact;
}

struct admission_target search_groups_target(const struct search *s)
{
  return (struct admission_target){ .arena = s->arena,
                                    .space = search_place(s),
                                    .cache = s->searcher->engine->filters,
                                    .checks_late = s->row->checks_late && search_backend(s)->kind == BACKEND_CPU,
                                    .makes_words = makes_words(s) };
}

err_t search_groups_admit(struct search *s, const struct query *const *queries, size_t n)
{
  const struct admission_target target = search_groups_target(s);

  return admission_find(&target, queries, n, &s->searcher->scratch, &s->admission);
}

/* Divide queries into groups by the way in which they are searched. */
static err_t divide(struct search *s, const struct group *all)
{
  s->n = all->n;
  for (enum group_kind kind = 0; kind < N_GROUPS; kind++)
    TRY(search_groups_init(&s->searcher->scratch, all->n, &s->groups[kind]));
  for (size_t i = 0; i < all->n; i++) {
    struct group *group = &s->groups[choose_group(s, all->queries[i], all->admits[i])];
    group->queries[group->n] = all->queries[i];
    group->admits[group->n] = all->admits[i];
    group->answers[group->n++] = all->answers[i];
  }
  return ERR_OK;
}

/* ---- Searching ---- */

/* Only exact methods skip items that score too little: of the others, the hits would depend on it. */
static float min_score_of(const struct search *s, const struct query *query)
{
  return query->has_min_score && s->row->is_exact ? query->min_score : -INFINITY;
}

static err_t init_result(const struct search *s, const struct query *query, const struct admit *admit,
                         struct region *region, struct search_result *out)
{
  const struct arena *arena = s->arena;
  struct topk_entry *heap;
  size_t k = query->k < arena->n_slots ? query->k : arena->n_slots;

  if (k == 0)
    k = 1; /* an empty catalogue: the heap stays empty */
  out->admit = *admit;
  TRY(region_array(region, k, sizeof *heap, &heap));
  topk_init(&out->topk, heap, k, keys_order, &arena->keys);
  out->min_score = out->floor = min_score_of(s, query);
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
    answer->hits[i].slot = hits[i].slot;
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

static err_t run(const struct search *s, enum group_kind kind, struct search_batch *batch)
{
  const struct columns *columns = s->in->on[s->backend];
  const struct backend *on = search_backend(s);

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

/* `counts` are those of the search, which has noted if it gave up. */
static enum query_plan plan_of(enum group_kind kind, const struct counts *counts)
{
  if (kind != GROUP_ALL)
    return QUERY_PLAN_FEW;
  if (counts->plan == QUERY_PLAN_MASKED && counts->has_admitted && counts->admitted == counts->items)
    return QUERY_PLAN_ALL;
  return counts->plan;
}

err_t search_groups_search(const struct search *s, enum group_kind kind)
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
    TRY(init_result(s, group->queries[i], group->admits[i], batch.scratch, &batch.results[i]));
  TRY(prepare_queries(s, group, &batch));
  TRY(run(s, kind, &batch));
  for (size_t i = 0; i < group->n; i++)
    batch.results[i].counts.plan = plan_of(kind, &batch.results[i].counts);
  return write_answers(s, group, &batch);
}

err_t search_groups_search_all(struct search *s, const struct group *all)
{
  TRY(divide(s, all));
  for (enum group_kind kind = 0; kind < N_GROUPS; kind++) {
    if (s->groups[kind].n > 0)
      TRY(search_groups_search(s, kind));
  }
  return ERR_OK;
}
