/* SPDX-License-Identifier: Apache-2.0 */
/* The greedy choice. How close each candidate is to the hits so far is kept, so a further hit costs one cosine for each
 * candidate. */
#include "engine/mmr.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/progress.h"
#include "base/size.h"
#include "engine/item_vectors.h"

/* ---- Before the search ---- */

err_t mmr_check(const struct query *query, size_t max_k, const struct space *space, const struct backends *backends)
{
  size_t most = size_min(max_k, QUERY_MMR_MAX);

  if (query->mmr.diversity == 0)
    return ERR_OK;
  if (query->k > most)
    FAIL(ERR_QUERY, "query: k is %u; with mmr it must be from 1 to %zu", query->k, most);
  if (query->mmr.candidates && (query->mmr.candidates < query->k || query->mmr.candidates > most))
    FAIL(ERR_QUERY, "mmr.candidates: %u; it must be from k, which is %u, to %zu", query->mmr.candidates, query->k,
         most);
  if (query->mmr.is_left_open && space->similarity->kind == SIMILARITY_BILINEAR)
    FAIL(ERR_QUERY, "mmr: the catalogue is sharded, and shards may turn the vectors of a bilinear space in different "
                    "ways, so that a merge cannot compare them");
  return item_vectors_check(space, backends, "mmr");
}

err_t mmr_widen(const struct query *query, size_t max_k, struct region *region, const struct query **out)
{
  struct query *copy;

  *out = query;
  if (query->mmr.diversity == 0)
    return ERR_OK;
  TRY(region_array(region, 1, sizeof *copy, &copy));
  *copy = *query;
  copy->k = query_mmr_candidates(query, max_k);
  *out = copy;
  return ERR_OK;
}

/* ---- The choice ---- */

struct candidates {
  const struct hit *hits; /* [n], in order of rank */
  size_t n, dim;
  double *rows;      /* [n][dim] the vectors */
  double *lengths;   /* [n] of the vectors */
  double *relevance; /* [n] */
  double *closest;   /* [n] the largest cosine with a hit so far */
  double *dots;      /* [n] for a call */
  bool *is_taken;    /* [n] */
};

/* What is in the region is zero. */
static void fill_row(struct candidates *c, const struct kernels *kernels, size_t i)
{
  const struct floats *v = &c->hits[i].vector;
  double *row = c->rows + i * c->dim;

  if (v->n != c->dim)
    return;
  for (size_t k = 0; k < c->dim; k++)
    row[k] = v->v[k];
  c->lengths[i] = sqrt(kernels->dot_f64(row, v->v, c->dim));
}

static void fill_relevance(struct candidates *c)
{
  double first = c->hits[0].score, last = c->hits[c->n - 1].score;

  for (size_t i = 0; i < c->n; i++)
    c->relevance[i] = first > last ? (c->hits[i].score - last) / (first - last) : 1;
}

static err_t list_candidates(const struct answer *answer, const struct kernels *kernels, struct region *region,
                             struct candidates *out)
{
  size_t n = answer->n_hits, dim = answer->hits[0].vector.n;

  *out = (struct candidates){ .hits = answer->hits, .n = n, .dim = dim };
  TRY(region_array(region, n * dim, sizeof *out->rows, &out->rows));
  TRY(region_array(region, n, sizeof *out->lengths, &out->lengths));
  TRY(region_array(region, n, sizeof *out->relevance, &out->relevance));
  TRY(region_array(region, n, sizeof *out->closest, &out->closest));
  TRY(region_array(region, n, sizeof *out->dots, &out->dots));
  TRY(region_array(region, n, sizeof *out->is_taken, &out->is_taken));
  for (size_t i = 0; i < n; i++) {
    fill_row(out, kernels, i);
    out->closest[i] = -INFINITY;
  }
  fill_relevance(out);
  return ERR_OK;
}

/* Take a candidate as a hit, and note how close the others are to it. */
static void take(struct candidates *c, const struct kernels *kernels, size_t taken)
{
  const struct floats *v = &c->hits[taken].vector;

  c->is_taken[taken] = true;
  memset(c->dots, 0, c->n * sizeof *c->dots);
  if (c->lengths[taken] > 0)
    kernels->dots_f64(c->rows, c->n, &v->v, 1, c->dim, c->dots);
  for (size_t i = 0; i < c->n; i++) {
    double length = c->lengths[i] * c->lengths[taken];
    c->closest[i] = fmax(c->closest[i], length > 0 ? c->dots[i] / length : 0);
  }
}

/* Return the candidate that is to be the next hit; one is left. While there are no hits, `closest` of all is -infinity,
 * so all have the same value, and the first one is it. */
static size_t find_next(const struct candidates *c, double diversity)
{
  double best = -INFINITY;
  size_t found = c->n;

  for (size_t i = 0; i < c->n; i++) {
    double value = (1 - diversity) * c->relevance[i] - diversity * c->closest[i];
    if (!c->is_taken[i] && (found == c->n || value > best)) {
      best = value;
      found = i;
    }
  }
  return found;
}

/* ---- The answer ---- */

/* Give explained candidates their rank among the hits, or say that others were chosen. */
static void explain_again(struct answer *answer)
{
  for (size_t i = 0; i < answer->n_explanations; i++) {
    struct explanation *explanation = &answer->explanations[i];
    if (explanation->verdict != VERDICT_HIT)
      continue;
    size_t at = 0;
    while (at < answer->n_hits && !span_equal(answer->hits[at].key, explanation->key))
      at++;
    explanation->verdict = at < answer->n_hits ? VERDICT_HIT : VERDICT_PASSED_OVER;
    explanation->rank = at < answer->n_hits ? (uint32_t)at + 1 : 0;
  }
}

/* Choose the n hits of an answer that has at least as many candidates.
 *
 * chosen   [n]
 * scratch  for the call
 */
static err_t choose(const struct kernels *kernels, double diversity, size_t n, const struct search_pause *pause,
                    struct region *scratch, const struct answer *answer, struct hit *chosen)
{
  struct candidates c;

  TRY(list_candidates(answer, kernels, scratch, &c));
  for (size_t i = 0; i < n; i++) {
    size_t next = find_next(&c, diversity);
    chosen[i] = c.hits[next];
    chosen[i].vector = (struct floats){ 0 };
    if (i + 1 < n)
      take(&c, kernels, next);
    progress_note();
    if (pause && pause->call)
      pause->call(pause->context);
  }
  return ERR_OK;
}

static void set_hits(struct hit *chosen, size_t n, struct answer *answer)
{
  answer->hits = chosen;
  answer->n_hits = n;
  explain_again(answer);
}

err_t mmr_choose(const struct kernels *kernels, double diversity, size_t k, struct region *region,
                 struct answer *answer)
{
  size_t n = size_min(k, answer->n_hits);
  struct hit *chosen;

  if (n == 0)
    return ERR_OK;
  TRY(region_array(region, n, sizeof *chosen, &chosen));
  struct region_mark mark = region_mark(region);
  TRY(choose(kernels, diversity, n, NULL, region, answer, chosen));
  region_rewind(region, mark);
  set_hits(chosen, n, answer);
  return ERR_OK;
}

static err_t read_vectors(const struct arena *arena, const struct arena_space *space, struct region *region,
                          struct answer *answer)
{
  for (size_t i = 0; i < answer->n_hits; i++) {
    struct hit *hit = &answer->hits[i];
    TRY(item_vectors_read(arena, space, hit->slot, region, &hit->vector));
    assert(hit->vector.n > 0); /* mmr_check() has looked */
  }
  return ERR_OK;
}

err_t mmr_finish(const struct arena *arena, const struct arena_space *space, const struct kernels *kernels,
                 const struct query *query, const struct search_pause *pause, struct region *region,
                 struct answer *answer)
{
  size_t n = size_min(query->k, answer->n_hits);
  struct hit *chosen;

  if (query->mmr.is_left_open || n == 0)
    return read_vectors(arena, space, region, answer);
  TRY(region_array(region, n, sizeof *chosen, &chosen));
  struct region_mark mark = region_mark(region);
  TRY(read_vectors(arena, space, region, answer));
  TRY(choose(kernels, query->mmr.diversity, n, pause, region, answer, chosen));
  region_rewind(region, mark);
  set_hits(chosen, n, answer);
  return ERR_OK;
}
