/* SPDX-License-Identifier: Apache-2.0 */
/* Searches one batch in the front arena: from checked queries to answers, on the first backend that has not failed. */
#include <assert.h>

#include "base/attributes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/boosts/boosts.h"
#include "engine/explain.h"
#include "engine/hit_attributes.h"
#include "engine/like.h"
#include "engine/min_score.h"
#include "engine/mmr.h"
#include "engine/search_rounds.h"

/* Memory that a searcher keeps for its next search. Hardly any batch takes more. */
enum { KEPT_BYTES = 256 << 20 };

static err_t open_workers(struct searcher *s)
{
  struct engine *e = s->engine;

  for (size_t b = atomic_load(&e->backends.first); b < e->backends.n; b++) {
    const struct backend *backend = e->backends.at[b];
    err_code_t err = backend->worker_open ? backend->worker_open(e->max_items, &s->workers[b]) : ERR_OK;
    if (err != ERR_OK)
      TRY(s->is_aside ? err : backends_fail(&e->backends, b, err));
  }
  return ERR_OK;
}

static err_t open_searcher(struct engine *e, bool is_aside, struct searcher **out)
{
  AUTO(searcher_close) struct searcher *s = NULL;

  TRY(mem_array(1, sizeof *s, &s));
  s->engine = e;
  s->is_aside = s->is_uncounted = is_aside;
  atomic_fetch_add(&e->n_searchers, 1); /* searcher_close() takes it off */
  TRY(open_workers(s));
  /* A GPU needs no members. Where the processor is its substitute, that needs them. */
  if (e->team && !is_aside && e->backends.at[e->backends.n - 1]->kind == BACKEND_CPU)
    TRY(members_open(e->team, e->threads.per_search, e->max_batch, e->threads.shares_always, &s->members));
  *out = s;
  s = NULL;
  return ERR_OK;
}

err_t searcher_open(struct engine *e, struct searcher **out)
{
  return open_searcher(e, false, out);
}

err_t searcher_open_aside(struct engine *e, struct searcher **out)
{
  return open_searcher(e, true, out);
}

void searcher_close(struct searcher **s)
{
  if (!*s)
    return;
  for (size_t b = 0; b < BACKENDS_MAX; b++) {
    if ((*s)->workers[b])
      (*s)->engine->backends.at[b]->worker_close(&(*s)->workers[b]);
  }
  atomic_fetch_sub(&(*s)->engine->n_searchers, 1);
  members_close(&(*s)->members);
  region_fini(&(*s)->scratch);
  region_fini(&(*s)->kept);
  mem_free(s);
}

void searcher_set_pause(struct searcher *s, struct searcher *between, void (*pause)(void *context), void *context)
{
  s->pause = (struct search_pause){ pause, context };
  between->is_uncounted = true;
}

/* Replace the queries that ask for items like others, which are answered with an error if there is none, and those
 * whose hits are chosen among more candidates. */
static err_t resolve(const struct search *s, const struct query *const *queries, size_t n, struct answer *answers,
                     const struct query *const **out)
{
  struct region *region = &s->searcher->scratch;
  const struct query **resolved;

  TRY(region_array(region, n, sizeof *resolved, &resolved));
  for (size_t i = 0; i < n; i++) {
    const char *problem = NULL;
    resolved[i] = queries[i];
    if (queries[i]->n_likes)
      TRY(like_resolve(s->arena, search_place(s), queries[i], region, &resolved[i], &answers[i], &problem));
    answers[i].error = problem ? ANSWER_BAD_QUERY : ANSWER_OK;
    answers[i].error_message = problem;
    if (!problem)
      TRY(mmr_widen(resolved[i], s->searcher->engine->max_k, region, &resolved[i]));
  }
  *out = resolved;
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
  const struct backend *backend = search_backend(s);

  asked.k = QUERY_EXPLAIN_MAX;
  asked.has_min_score = false;
  among.method = &exact;
  among.row = methods_find(s->in->space->similarity->methods, &exact);
  enum group_kind kind = backend->admits_few && backend->admits_few(scored, s->in->n_items) ? GROUP_FEW
                         : !backend->admits_few && among.row->search_admitted               ? GROUP_ADMITTED
                                                                                            : GROUP_ALL;
  among.groups[kind] = (struct group){ queries, &scored, &out, 1 };
  return search_groups_search(&among, kind);
}

static err_t explain(const struct search *s, const struct query *query, const struct admit *admit,
                     struct answer *answer)
{
  const struct attributes *attributes = &s->searcher->engine->attributes;
  size_t attribute = attributes_find(attributes, query->max_per.attribute, 0);
  const struct explain of = { s->arena, search_place(s), query, attribute, admit };
  struct explanation *explanations;
  struct answer scores = { 0 };
  struct boosts boosts;
  struct admit scored;

  TRY(explain_begin(&of, &s->searcher->scratch, &explanations, &scored));
  if (scored.n_admitted > 0)
    TRY(score_items(s, query, &scored, &scores));
  if (query->n_boosts > 0) {
    TRY(boosts_bind(s->arena, attributes, query, &s->searcher->scratch, &boosts));
    boosts_add(&boosts, scores.hits, scores.n_hits);
  }
  explain_finish(&of, answer, scores.hits, scores.n_hits, explanations);
  answer->explanations = explanations;
  answer->n_explanations = query->n_explain;
  return ERR_OK;
}

static err_t show_attributes(const struct search *s, const struct query *query, struct answer *answer)
{
  const char *problem;

  TRY(hit_attributes_copy(s->arena, &s->searcher->engine->attributes, query, &s->searcher->scratch, answer, &problem));
  if (problem) {
    answer->error = ANSWER_BAD_QUERY;
    answer->error_message = problem;
    answer->n_hits = 0;
  }
  return ERR_OK;
}

static err_t search_arena(struct search *s, const struct query *const *queries, size_t n, struct answer *answers)
{
  const struct query *const *resolved;

  TRY(resolve(s, queries, n, answers, &resolved));
  TRY(search_groups_admit(s, resolved, n));
  TRY(search_rounds(s, resolved, n, answers));
  for (size_t i = 0; i < n; i++) {
    if (answers[i].error)
      continue;
    min_score_cut(resolved[i], &answers[i]);
    if (queries[i]->n_explain > 0)
      TRY(explain(s, resolved[i], &s->admission.admits[i], &answers[i]));
    if (queries[i]->mmr.diversity > 0)
      TRY(mmr_finish(s->arena, s->in, s->searcher->engine->kernels, queries[i], &s->searcher->pause,
                     &s->searcher->scratch, &answers[i]));
    if (queries[i]->n_attributes > 0)
      TRY(show_attributes(s, queries[i], &answers[i]));
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
  struct search s = { .searcher = searcher, .arena = arena, .method = method };

  TRY(find_number(arena, space, &s.in));
  s.row = methods_find(s.in->space->similarity->methods, method);
  assert(s.row); /* engine_check_query() has verified it */
  for (;;) {
    s.backend = atomic_load(&backends->first);
    region_trim(&searcher->scratch, KEPT_BYTES);
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
