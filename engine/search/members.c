/* SPDX-License-Identifier: Apache-2.0 */
/* The members' batches, and the merging of their heaps. If members claim queries instead of steps, nothing is merged.
 */
#include "engine/search/members.h"

#include <assert.h>
#include <sched.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "engine/search/receipt.h"

struct member {
  bool has_begun;
  struct err_kept failure; /* messages belong to threads */
  struct region scratch;
  struct search_batch batch;
};

struct members {
  struct share share;
  struct member *at; /* [n_max] */
  size_t n_max;
  bool shares_always;
  _Atomic size_t n_begun;       /* helpers */
  _Atomic bool is_open;         /* members may begin */
  const struct method_row *row; /* of the current search */
  const struct columns *columns;
  const struct search_batch *batch; /* what all members copy; nobody writes it until all have returned, except that each
                                     * writes the results of the queries that it claims */
};

err_t members_open(struct team *team, size_t n_max, size_t max_batch, bool shares_always, struct members **out)
{
  AUTO(members_close) struct members *m = NULL;

  TRY(mem_array(1, sizeof *m, &m));
  m->share.search.team = team;
  m->share.steps_one_by_one = m->shares_always = shares_always;
  m->n_max = n_max;
  TRY(mem_array(n_max, sizeof *m->at, &m->at));
  TRY(mem_array(max_batch, sizeof *m->share.floors, &m->share.floors));
  *out = m;
  m = NULL;
  return ERR_OK;
}

void members_close(struct members **m)
{
  if (!*m)
    return;
  for (size_t i = 0; i < (*m)->n_max; i++)
    region_fini(&(*m)->at[i].scratch);
  mem_free(&(*m)->at);
  mem_free(&(*m)->share.floors);
  mem_free(m);
}

/* The calling thread uses the heaps of the batch, but results of its own: helpers may begin at any time, and copy those
 * of the batch. */
static err_t copy_results(const struct search_batch *from, struct search_result **out)
{
  TRY(region_array(from->scratch, from->n, sizeof **out, out));
  memcpy(*out, from->results, from->n * sizeof **out);
  return ERR_OK;
}

static err_t make_results(const struct search_batch *from, struct region *scratch, struct search_batch *out)
{
  region_reset(scratch);
  out->scratch = scratch;
  TRY(region_array(scratch, from->n, sizeof *out->results, &out->results));
  for (size_t q = 0; q < from->n; q++) {
    const struct search_result *result = &from->results[q];
    struct topk_entry *heap;
    TRY(region_array(scratch, result->topk.k, sizeof *heap, &heap));
    out->results[q] =
        (struct search_result){ .admit = result->admit, .min_score = result->min_score, .floor = result->floor };
    topk_init(&out->results[q].topk, heap, result->topk.k, result->topk.order, result->topk.context);
  }
  return ERR_OK;
}

/* Claim queries until none is left, and search them. */
static err_t search_queries(struct members *m, size_t number)
{
  struct search_batch claims = { .pause = m->batch->pause, .share = &m->share, .member = number };
  struct region *scratch = number == 0 ? m->batch->scratch : &m->at[number].scratch;
  size_t n_members = share_members_max(&claims), n_evenly = (m->batch->n + n_members - 1) / n_members;
  struct share_steps steps;

  if (number > 0)
    region_reset(scratch);
  while (share_claim(&claims, 0, m->batch->n, size_min(n_evenly, m->row->queries_per_claim), &steps)) {
    struct search_batch slice = search_batch_slice(m->batch, steps.first, steps.end - steps.first);
    struct region_mark mark = region_mark(scratch);
    slice.scratch = scratch;
    slice.member = number;
    TRY(m->row->search.on_cpu(m->columns, &slice));
    region_rewind(scratch, mark);
  }
  return ERR_OK;
}

/* Search what this member claims of the whole batch. */
static err_t search_steps(struct members *m, size_t number)
{
  struct member *member = &m->at[number];

  member->batch = *m->batch;
  member->batch.member = number;
  member->batch.share = &m->share;
  member->batch.results = NULL;
  if (number == 0)
    TRY(copy_results(m->batch, &member->batch.results));
  else
    TRY(make_results(m->batch, &member->scratch, &member->batch));
  return m->row->search.on_cpu(m->columns, &member->batch);
}

/* Let no member begin before all are there, so that a test has them all. */
static void meet(struct members *m, size_t number)
{
  if (number > 0)
    atomic_fetch_add(&m->n_begun, 1);
  while (number == 0 && atomic_load(&m->n_begun) + 1 < m->share.search.n_members)
    sched_yield();
  if (number == 0)
    atomic_store(&m->is_open, true);
  while (!atomic_load(&m->is_open))
    sched_yield();
}

static void work(void *context, size_t number)
{
  struct members *m = context;
  struct member *member = &m->at[number];

  member->has_begun = true;
  if (m->shares_always)
    meet(m, number);
  err_keep(m->row->queries_per_claim ? search_queries(m, number) : search_steps(m, number), &member->failure);
  if (member->failure.code != ERR_OK)
    share_abandon(&m->share);
}

static void merge(const struct search_batch *from, struct search_batch *to)
{
  for (size_t q = 0; q < to->n; q++) {
    const struct search_result *result = &from->results[q];
    for (size_t i = 0; i < result->topk.n; i++)
      topk_push(&to->results[q].topk, result->topk.heap[i].score, result->topk.heap[i].slot);
    to->results[q].counts.scored += result->counts.scored;
    to->results[q].counts.candidates += result->counts.candidates;
  }
}

static err_t verify_all(const struct members *m)
{
  for (size_t i = 0; i < m->share.search.n_members; i++) {
    if (m->at[i].has_begun)
      TRY(err_give_back(&m->at[i].failure));
  }
  return ERR_OK;
}

static void merge_all(struct members *m, struct search_batch *batch)
{
  for (size_t i = 0; i < m->share.search.n_members; i++) {
    struct member *member = &m->at[i];
    if (i == 0)
      memcpy(batch->results, member->batch.results, batch->n * sizeof *batch->results);
    else if (member->has_begun)
      merge(&member->batch, batch);
  }
  for (size_t q = 0; q < batch->n; q++)
    receipt_exact(&batch->results[q], batch->n_items);
}

/* How many members pay? */
static size_t choose_n_members(const struct members *m, const struct method_row *row, const struct search_batch *batch)
{
  assert(row->items_per_member > 0);
  size_t n_max = row->queries_per_claim ? size_min(m->n_max, batch->n) : m->n_max;
  size_t n = (size_t)batch->n_items * batch->n / row->items_per_member;

  return m->shares_always ? n_max : size_min(n, n_max);
}

err_t members_search(struct members *m, const struct method_row *row, const struct columns *columns,
                     struct search_batch *batch)
{
  struct share *share = &m->share;

  share->search.n_max = choose_n_members(m, row, batch);
  if (share->search.n_max < 2)
    return row->search.on_cpu(columns, batch);
  m->row = row;
  m->columns = columns;
  m->batch = batch;
  for (size_t i = 0; i < m->n_max; i++)
    m->at[i].has_begun = false;
  for (size_t job = 0; job < SHARE_JOBS; job++)
    atomic_store(&share->n_claimed[job], 0);
  for (size_t q = 0; q < batch->n; q++)
    atomic_store(&share->floors[q], -INFINITY);
  atomic_store(&m->n_begun, 0);
  atomic_store(&m->is_open, false);
  share->search.work = work;
  share->search.context = m;
  team_begin(&share->search);
  work(m, 0);
  team_end(&share->search);
  TRY(verify_all(m));
  if (!row->queries_per_claim)
    merge_all(m, batch);
  return ERR_OK;
}
