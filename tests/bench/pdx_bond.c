/* SPDX-License-Identifier: Apache-2.0 */
/* The layout and the three phases of PDX-BOND: start, warm-up, prune. */
#include "tests/bench/pdx_bond.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
  PARTITION = 10240,       /* vectors, as in the paper */
  FIRST_STEP = 2,          /* dimensions of the first step; each step has twice as many as the one before */
  PRUNE_BELOW_PERCENT = 5, /* the paper: 20; here a scattered number costs a cache line */
};

void pdx_bond_open(const float *items, size_t n_items, size_t dim, struct pdx_bond *out)
{
  *out = (struct pdx_bond){ .n_items = n_items, .dim = dim };
  bench_check(mem_array((n_items + PARTITION - 1) / PARTITION * PARTITION, dim * sizeof *out->vectors, &out->vectors));
  bench_check(mem_array(dim, sizeof *out->means, &out->means));
  bench_check(mem_array(dim, sizeof *out->order, &out->order));
  bench_check(mem_array(PARTITION, sizeof *out->partial, &out->partial));
  bench_check(mem_array(PARTITION, sizeof *out->left, &out->left));
  for (size_t i = 0; i < n_items; i++) {
    for (size_t d = 0; d < dim; d++) {
      float x = items[i * dim + d];
      out->vectors[(i / PARTITION * dim + d) * PARTITION + i % PARTITION] = x;
      out->means[d] += (double)x / (double)n_items;
    }
  }
}

void pdx_bond_close(struct pdx_bond *p)
{
  mem_free(&p->vectors);
  mem_free(&p->means);
  mem_free(&p->order);
  mem_free(&p->partial);
  mem_free(&p->left);
}

/* A run of dimensions, in the order of the search, of one partition. */
struct step {
  const float *partition; /* [dim][PARTITION] */
  size_t dim;
  const float *query;
  const struct pdx_dimension *order;
  size_t begin, end;
};

/* Add the dimensions of a step to all partial distances of a partition. */
static inline __attribute__((always_inline)) void add_step(const struct step *s, float *restrict partial)
{
  for (size_t i = s->begin; i < s->end; i++) {
    const float *restrict x = s->partition + s->order[i].number * PARTITION;
    float q = s->query[s->order[i].number];
    for (size_t at = 0; at < PARTITION; at++)
      partial[at] += (q - x[at]) * (q - x[at]);
  }
}

__attribute__((target("avx512f"))) static void add_step_avx512(const struct step *s, float *partial)
{
  add_step(s, partial);
}

__attribute__((target("avx2,fma"))) static void add_step_avx2(const struct step *s, float *partial)
{
  add_step(s, partial);
}

static void add_step_at_best(const struct step *s, float *partial)
{
  if (__builtin_cpu_supports("avx512f"))
    add_step_avx512(s, partial);
  else if (__builtin_cpu_supports("avx2"))
    add_step_avx2(s, partial);
  else
    add_step(s, partial);
}

/* Keep an item if it is among the k best so far. A score is minus the squared distance. */
static void offer(struct truth *best, size_t k, uint32_t id, double score)
{
  if (best->n == k && score <= best->scores[k - 1])
    return;
  size_t at = best->n < k ? best->n++ : k - 1;
  for (; at > 0 && best->scores[at - 1] < score; at--) {
    best->scores[at] = best->scores[at - 1];
    best->ids[at] = best->ids[at - 1];
  }
  best->scores[at] = score;
  best->ids[at] = id;
}

/* List the positions whose partial distance is within the threshold. */
static size_t list_left(struct pdx_bond *p, size_t n, float threshold)
{
  size_t n_left = 0;

  for (size_t i = 0; i < n; i++) {
    p->left[n_left] = (uint32_t)i;
    n_left += p->partial[i] <= threshold;
  }
  return n_left;
}

/* Add a step for the listed positions alone, and drop those that exceed the threshold. */
static size_t prune_step(struct pdx_bond *p, const struct step *s, size_t n_left, float threshold)
{
  size_t n = 0;

  for (size_t i = 0; i < n_left; i++) {
    size_t at = p->left[i];
    float sum = p->partial[at];
    for (size_t d = s->begin; d < s->end; d++) {
      float difference = s->query[s->order[d].number] - s->partition[s->order[d].number * PARTITION + at];
      sum += difference * difference;
    }
    p->partial[at] = sum;
    p->left[n] = (uint32_t)at;
    n += sum <= threshold;
  }
  return n;
}

static void next_step(struct step *s, size_t size)
{
  s->begin = s->end;
  s->end = s->end + size < s->dim ? s->end + size : s->dim;
}

static void search_partition(struct pdx_bond *p, struct step s, size_t first, size_t n, size_t k)
{
  bool is_full = p->best.n == k;
  float threshold = is_full ? (float)-p->best.scores[k - 1] : INFINITY;
  size_t size = is_full ? FIRST_STEP : s.dim, n_left = n;

  memset(p->partial, 0, PARTITION * sizeof *p->partial);
  for (; s.end < s.dim && n_left * 100 > n * PRUNE_BELOW_PERCENT; size *= 2) {
    next_step(&s, size);
    add_step_at_best(&s, p->partial);
    n_left = list_left(p, n, threshold);
  }
  for (; s.end < s.dim && n_left > 0; size *= 2) {
    next_step(&s, size);
    n_left = prune_step(p, &s, n_left, threshold);
  }
  for (size_t i = 0; i < n_left; i++)
    offer(&p->best, k, (uint32_t)(first + p->left[i]), -(double)p->partial[p->left[i]]);
}

static int farthest_first(const void *a, const void *b)
{
  const struct pdx_dimension *x = a, *y = b;

  return (x->from_mean < y->from_mean) - (x->from_mean > y->from_mean);
}

static void order_dimensions(struct pdx_bond *p, const float *query)
{
  for (size_t d = 0; d < p->dim; d++)
    p->order[d] = (struct pdx_dimension){ d, fabs((double)query[d] - p->means[d]) };
  qsort(p->order, p->dim, sizeof *p->order, farthest_first);
}

void pdx_bond_search(struct pdx_bond *p, const float *query, size_t k)
{
  struct step s = { .dim = p->dim, .query = query, .order = p->order };

  p->best.n = 0;
  order_dimensions(p, query);
  for (size_t first = 0; first < p->n_items; first += PARTITION) {
    size_t n = p->n_items - first < PARTITION ? p->n_items - first : PARTITION;
    s.partition = p->vectors + first * p->dim;
    search_partition(p, s, first, n, k);
  }
  for (size_t i = 0; i < p->best.n; i++)
    p->best.scores[i] = 1 + p->best.scores[i] / 2; /* |q - x|^2 = 2 - 2 <q, x> */
}
