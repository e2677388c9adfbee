/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithm 2 of the MoL paper (section 3.2) on the device: dot products find candidates, which are then scored in
 * full.
 *
 * The candidates are the processor's, plus all items that tie with the last one of a list, because the device does not
 * know keys. The receipts are the processor's too (engine/mol/mol_approximate.c). A query with an overflowed list is
 * searched exactly instead.
 */
#include <math.h>

#include "base/size.h"
#include "engine/cuda/mol_cuda.h"
#include "engine/mol/mol_bound.h"
#include "engine/mol/mol_methods.h"
#include "engine/search/receipt.h"

enum { TIED = 1024 /* room for ties among the candidates */ };

struct approximate {
  size_t n_pairs, n_average; /* lengths of the lists; 0: no such lists */
  float *nth_best;           /* [batch->n]: no item outside the candidates has a larger dot product */
  uint32_t *n_found;         /* [batch->n]: candidates */
};

/* The capacity of a query's candidates. */
static size_t room_of(const struct funnel *f)
{
  const struct approximate *a = f->context;
  size_t n_slots = f->batch->n_slots;

  if (a->n_pairs >= n_slots)
    return n_slots;
  return size_min(a->n_pairs * mol_cuda_model(f)->n_logits + a->n_average + TIED, n_slots);
}

static size_t pairs_room(const struct funnel *f)
{
  return size_min(((const struct approximate *)f->context)->n_pairs * mol_cuda_model(f)->n_logits + TIED,
                  f->batch->n_slots);
}

/* Only with candidates of both kinds can an item be found twice. */
static size_t n_seen_words(const struct funnel *f)
{
  const struct approximate *a = f->context;

  return a->n_pairs && a->n_average ? funnel_n_words(f->batch) : 0;
}

static size_t scratch_bytes(const struct funnel *f)
{
  const struct approximate *a = f->context;
  size_t bytes = mol_cuda_work_bytes(f) + room_of(f) * 8 + n_seen_words(f) * sizeof(uint32_t);

  if (a->n_pairs)
    bytes += mol_pairs_cuda_query_bytes(f, (uint32_t)a->n_pairs) + pairs_room(f) * 8;
  if (a->n_average)
    bytes += mol_cuda_average_bytes(f->batch, a->n_average);
  if (mol_cuda_has_bounds(f))
    bytes += room_of(f) * sizeof(float);
  return bytes;
}

/* A group's candidates while they are collected. */
struct finding {
  struct device_lists all;           /* candidates of both kinds, each once */
  struct candidates_origins origins; /* lists that must not have overflowed */
  uint32_t *n_offered;               /* [group->n] zeros: for the lengths of the lists by average */
  uint32_t *seen;                    /* NULL if there are candidates of one kind only */
};

static err_t open_finding(const struct funnel *f, const struct funnel_group *group, struct finding *out)
{
  struct mol_cuda_queries *queries = group->queries;
  struct device_worker *w = funnel_worker(f);
  size_t n_seen = group->n * n_seen_words(f);

  TRY(funnel_lists(w, group->n, room_of(f), &out->all));
  TRY(device_worker_output(w, 2 * group->n, sizeof *out->all.n, &out->all.n, &queries->n_found));
  out->n_offered = out->all.n + group->n; /* cleared together; the host has no use for them */
  TRY(device_fill(w->stream, out->all.n, 0, 2 * group->n * sizeof *out->all.n));
  out->origins.n[0] = out->all.n;
  out->origins.capacity[0] = out->all.capacity;
  out->origins.n[1] = out->n_offered;
  out->origins.capacity[1] = group->lists.capacity;
  if (n_seen == 0)
    return ERR_OK;
  TRY(device_worker_array(w, n_seen, sizeof *out->seen, &out->seen));
  return device_fill(w->stream, out->seen, 0, n_seen * sizeof *out->seen);
}

/* Add the candidates of the pairs. Their scores are set to 0: candidates_add() skips -inf, and theirs are undefined. */
static err_t add_pairs(const struct funnel *f, const struct funnel_group *group, struct finding *finding)
{
  const struct approximate *a = f->context;
  struct device_worker *w = funnel_worker(f);
  struct mol_cuda_queries *queries = group->queries;
  struct mol_pairs_source source = mol_cuda_pairs_source(f, group);
  struct mol_pairs_found found;

  TRY(funnel_lists(w, group->n, pairs_room(f), &found.candidates));
  TRY(device_worker_array(w, group->n, sizeof *found.has_overflowed, &found.has_overflowed));
  TRY(device_worker_output(w, group->n, sizeof *found.nth_best, &found.nth_best, &queries->nth_best));
  finding->origins.n[2] = found.has_overflowed; /* 0 or not, as with a capacity of 0 */
  TRY(mol_pairs_cuda_candidates(f, group, &source, (uint32_t)a->n_pairs, &found));
  TRY(device_fill(w->stream, found.candidates.scores, 0,
                  group->n * found.candidates.capacity * sizeof *found.candidates.scores));
  return candidates_add(w->stream, &found.candidates, NULL, finding->seen, funnel_n_words(f->batch), NULL,
                        &finding->all);
}

/* Keep the candidates that may be among the K best, and score them. K candidates reach the K-th best lower bound, so a
 * candidate whose upper bound is below it cannot be one of the K best. */
static err_t keep_by_bounds(const struct funnel *f, const struct funnel_group *group, const struct finding *finding)
{
  const struct device_lists *all = &finding->all;
  struct device_worker *w = funnel_worker(f);
  struct mol_bounds_input input = mol_cuda_bound_input(f, group);
  struct device_lists by_lowers = *all;

  TRY(device_worker_array(w, group->n * all->capacity, sizeof *by_lowers.scores, &by_lowers.scores));
  TRY(mol_bounds_lists(w->stream, &input, all, by_lowers.scores));
  TRY(lists_threshold(w->stream, &by_lowers, (struct lists_ranks){ group->ranks, 0 }, group->floors));
  TRY(candidates_add(w->stream, all, group->floors, NULL, 0, &finding->origins, &group->lists));
  return mol_cuda_score(f, group, &group->lists);
}

static err_t keep_by_scores(const struct funnel *f, const struct funnel_group *group, const struct finding *finding)
{
  TRY(mol_cuda_score(f, group, &finding->all));
  return candidates_add(funnel_worker(f)->stream, &finding->all, NULL, NULL, 0, &finding->origins, &group->lists);
}

/* Put the candidates and their scores into group->lists. A list is marked as overflowed if any list before it was. */
static err_t append(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                    const float *floors)
{
  const struct approximate *a = f->context;
  struct finding finding = { 0 };

  (void)range; /* always all slots */
  (void)floors;
  TRY(open_finding(f, group, &finding));
  if (a->n_average)
    TRY(mol_cuda_candidates_of_average(f, group, a->n_average, true, finding.seen, &finding.all, finding.n_offered));
  if (a->n_pairs)
    TRY(add_pairs(f, group, &finding));
  return mol_cuda_has_bounds(f) ? keep_by_bounds(f, group, &finding) : keep_by_scores(f, group, &finding);
}

static void collect(const struct funnel *f, const struct funnel_group *group)
{
  const struct approximate *a = f->context;
  const struct mol_cuda_queries *queries = group->queries;

  memcpy(a->n_found + group->first, queries->n_found, group->n * sizeof *a->n_found);
  if (queries->nth_best)
    memcpy(a->nth_best + group->first, queries->nth_best, group->n * sizeof *a->nth_best);
}

static void receipt(const struct funnel *f, size_t q, bool is_exact)
{
  const struct approximate *a = f->context;
  const struct mol_query *query = mol_queries_of(f->batch->prepared) + q;
  struct search_result *result = &f->batch->results[q];
  uint64_t n_items = f->batch->n_items;

  if (!is_exact)
    result->counts.scored = a->n_found[q];
  result->counts.candidates = result->counts.scored;
  if (is_exact)
    receipt_exact(result, n_items);
  else
    receipt_bounded(result, n_items, result->admit.n_admitted - result->counts.scored,
                    mol_bound_score_from_dot(&mol_cuda_model(f)->shape, query, a->nth_best[q]));
}

static const struct funnel_ops ops = { .upload = mol_cuda_upload,
                                       .query_bytes = mol_cuda_query_bytes,
                                       .scratch_bytes = scratch_bytes,
                                       .floor = funnel_no_floor, /* append() needs none */
                                       .append = append,
                                       .exhaust = mol_cuda_append_scores,
                                       .collect = collect,
                                       .receipt = receipt };

/* Every item is a candidate. */
static err_t search_all(const struct columns *columns, struct search_batch *batch)
{
  TRY(mol_cuda_search_exact(columns, batch));
  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].counts.candidates = batch->results[q].admit.n_admitted;
  return ERR_OK;
}

/* The most items that a query of the batch admits. */
static uint64_t most_admitted(const struct search_batch *batch)
{
  uint64_t n_most = 0;

  for (size_t q = 0; q < batch->n; q++)
    n_most = batch->results[q].admit.n_admitted > n_most ? batch->results[q].admit.n_admitted : n_most;
  return n_most;
}

/* n_pairs, n_average: lengths of the lists; 0: no such lists. */
static err_t search(const struct columns *columns, struct search_batch *batch, uint32_t n_pairs, uint32_t n_average)
{
  const struct device_columns *c = device_columns_of(columns);
  struct approximate a = { .n_pairs = n_pairs, .n_average = n_average };
  struct funnel f = { .columns = c, .batch = batch, .ops = &ops, .context = &a };

  uint64_t n_most = most_admitted(batch);
  if (batch->admits_few || n_pairs >= n_most || n_average >= n_most)
    return search_all(columns, batch);
  TRY(region_array(batch->scratch, batch->n, sizeof *a.nth_best, &a.nth_best));
  TRY(region_array(batch->scratch, batch->n, sizeof *a.n_found, &a.n_found));
  for (size_t q = 0; q < batch->n; q++)
    a.nth_best[q] = INFINITY;
  f.n_candidates = room_of(&f);
  if (n_average && mol_cuda_average_room(batch, n_average) > f.n_candidates)
    f.n_candidates = mol_cuda_average_room(batch, n_average);
  return funnel_search(&f);
}

err_t mol_cuda_search_average(const struct columns *columns, struct search_batch *batch)
{
  return search(columns, batch, 0, batch->method->args[0]);
}

err_t mol_cuda_search_per_embedding(const struct columns *columns, struct search_batch *batch)
{
  return search(columns, batch, batch->method->args[0], 0);
}

err_t mol_cuda_search_combined(const struct columns *columns, struct search_batch *batch)
{
  return search(columns, batch, batch->method->args[0], batch->method->args[1]);
}
