/* SPDX-License-Identifier: Apache-2.0 */
/* The greedy choice. A candidate's value can only fall while hits are added. So one whose last known value is below
 * that of another candidate is not compared with the newest hits yet (Minoux 1978, "Accelerated greedy algorithms"). */
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

/* Less than any cosine. */
#define COSINE_MIN (-1.001)

struct candidates {
  const struct hit *hits; /* [n], in order of rank */
  size_t n, dim;
  double *lengths;       /* [n] of the vectors */
  double *relevance;     /* [n] */
  double *closest;       /* [n] the largest cosine with a hit that it was compared with */
  size_t *n_compared;    /* [n] it was compared with so many of `taken` */
  bool *is_taken;        /* [n] */
  const float **taken;   /* [n_taken] vectors of the hits so far whose length is not 0 */
  double *taken_lengths; /* [n_taken] */
  size_t n_taken;
  double closest_min; /* 0 if the length of a hit so far is 0: its cosines are. Else -infinity */
  double *row;        /* [dim] for a call */
  double *dots;       /* [n] for a call */
  size_t n_dots;      /* since others had a turn */
};

enum { DOTS_AT_A_TIME = 1024 };

/* Convert a vector for the kernels. */
static void load_row(const struct candidates *c, size_t i)
{
  for (size_t k = 0; k < c->dim; k++)
    c->row[k] = c->hits[i].vector.v[k];
}

/* A vector of another length than the first one's counts as zeros. */
static double length_of(const struct candidates *c, const struct kernels *kernels, size_t i)
{
  const struct floats *v = &c->hits[i].vector;

  if (v->n != c->dim)
    return 0;
  load_row(c, i);
  return sqrt(kernels->dot_f64(c->row, v->v, c->dim));
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

  *out = (struct candidates){ .hits = answer->hits, .n = n, .dim = dim, .closest_min = -INFINITY };
  TRY(region_array(region, n, sizeof *out->lengths, &out->lengths));
  TRY(region_array(region, n, sizeof *out->relevance, &out->relevance));
  TRY(region_array(region, n, sizeof *out->closest, &out->closest));
  TRY(region_array(region, n, sizeof *out->n_compared, &out->n_compared));
  TRY(region_array(region, n, sizeof *out->is_taken, &out->is_taken));
  TRY(region_array(region, n, sizeof *out->taken, &out->taken));
  TRY(region_array(region, n, sizeof *out->taken_lengths, &out->taken_lengths));
  TRY(region_array(region, dim, sizeof *out->row, &out->row));
  TRY(region_array(region, n, sizeof *out->dots, &out->dots));
  fill_relevance(out);
  for (size_t i = 0; i < n; i++) {
    out->lengths[i] = length_of(out, kernels, i);
    out->closest[i] = COSINE_MIN;
  }
  return ERR_OK;
}

/* Take a candidate as a hit. */
static void take(struct candidates *c, size_t i)
{
  c->is_taken[i] = true;
  if (c->lengths[i] > 0) {
    c->taken[c->n_taken] = c->hits[i].vector.v;
    c->taken_lengths[c->n_taken++] = c->lengths[i];
  } else {
    c->closest_min = 0;
  }
}

/* Compare a candidate with the hits that it was not compared with. */
static void compare(struct candidates *c, const struct kernels *kernels, size_t i)
{
  size_t from = c->n_compared[i], n = c->n_taken - from;

  if (n == 0)
    return;
  memset(c->dots, 0, n * sizeof *c->dots);
  if (c->lengths[i] > 0) {
    load_row(c, i);
    kernels->dots_f64(c->row, 1, c->taken + from, n, c->dim, c->dots);
  }
  for (size_t j = 0; j < n; j++) {
    double length = c->lengths[i] * c->taken_lengths[from + j];
    c->closest[i] = fmax(c->closest[i], length > 0 ? c->dots[j] / length : 0);
  }
  c->n_compared[i] = c->n_taken;
  c->n_dots += n;
}

static void give_turn(struct candidates *c, const struct search_pause *pause)
{
  c->n_dots = 0;
  progress_note();
  if (pause && pause->call)
    pause->call(pause->context);
}

/* The value of a candidate as a further hit; at least that, if it was not compared with all hits so far. */
static double value_of(const struct candidates *c, double diversity, size_t i)
{
  return (1 - diversity) * c->relevance[i] - diversity * fmax(c->closest[i], c->closest_min);
}

/* Return the candidate that is to be the next hit: the first one of the largest value. One is left. */
static size_t find_next(struct candidates *c, const struct kernels *kernels, double diversity,
                        const struct search_pause *pause)
{
  double best = -INFINITY;
  size_t found = c->n;

  for (size_t i = 0; i < c->n; i++) {
    if (c->is_taken[i] || (found < c->n && value_of(c, diversity, i) <= best))
      continue;
    compare(c, kernels, i);
    if (c->n_dots >= DOTS_AT_A_TIME)
      give_turn(c, pause);
    double value = value_of(c, diversity, i);
    if (found == c->n || value > best) {
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
    size_t next = i ? find_next(&c, kernels, diversity, pause) : 0; /* the first hit is the most relevant one */
    chosen[i] = c.hits[next];
    chosen[i].vector = (struct floats){ 0 };
    take(&c, next);
  }
  give_turn(&c, pause); /* many short choices are a long one */
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
