/* SPDX-License-Identifier: Apache-2.0 */
/* The common hits are found by sorting both lists by key. In the order of the first list, their ranks in the second one
 * are a permutation: each inversion of it is a pair of hits in opposite orders. */
#include "daemon/shadow/shadow_measures.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct place {
  struct span key;
  size_t rank;
};

static int compare_keys(const void *a, const void *b)
{
  return span_compare(((const struct place *)a)->key, ((const struct place *)b)->key);
}

static err_t sort_by_key(const struct hit *hits, size_t n, struct region *region, struct place **out)
{
  TRY(region_array(region, n, sizeof **out, out));
  for (size_t i = 0; i < n; i++)
    (*out)[i] = (struct place){ hits[i].key, i };
  if (n > 0)
    qsort(*out, n, sizeof **out, compare_keys);
  return ERR_OK;
}

/* Write the ranks in b of the hits of both, in the order of a.
 *
 * by_rank  [n_a] zeros; afterwards the rank in b of each hit of a, from 1 on; 0: b does not have it
 */
static size_t match(const struct place *a, size_t n_a, const struct place *b, size_t n_b, size_t *by_rank,
                    size_t *ranks)
{
  size_t n = 0;

  for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
    int order = span_compare(a[i].key, b[j].key);
    if (order == 0)
      by_rank[a[i].rank] = b[j].rank + 1;
    i += order <= 0;
    j += order >= 0;
  }
  for (size_t i = 0; i < n_a; i++) {
    if (by_rank[i])
      ranks[n++] = by_rank[i];
  }
  return n;
}

/* Merge two sorted runs of `v` into `to`. Returns the pairs that were in the wrong order. */
static uint64_t merge(const size_t *v, size_t middle, size_t n, size_t *to)
{
  uint64_t n_inverted = 0;

  for (size_t i = 0, j = middle, t = 0; t < n; t++) {
    bool takes_left = j == n || (i < middle && v[i] < v[j]);
    if (!takes_left)
      n_inverted += middle - i;
    to[t] = takes_left ? v[i++] : v[j++];
  }
  return n_inverted;
}

/* Sort `v` [n] in longer and longer runs, and count the inversions. */
static uint64_t count_inversions(size_t *v, size_t *scratch, size_t n)
{
  uint64_t n_inverted = 0;

  for (size_t run = 1; run < n; run *= 2) {
    for (size_t first = 0; first < n; first += 2 * run) {
      size_t left = n - first, both = left < 2 * run ? left : 2 * run;
      n_inverted += merge(v + first, left < run ? left : run, both, scratch + first);
    }
    memcpy(v, scratch, n * sizeof *v);
  }
  return n_inverted;
}

static err_t measure(const struct hit *a, size_t n_a, const struct hit *b, size_t n_b, struct region *region,
                     struct shadow_measures *out)
{
  struct place *by_key_a, *by_key_b;
  size_t *by_rank, *ranks;

  TRY(sort_by_key(a, n_a, region, &by_key_a));
  TRY(sort_by_key(b, n_b, region, &by_key_b));
  TRY(region_array(region, n_a, sizeof *by_rank, &by_rank));
  TRY(region_array(region, n_a, sizeof *ranks, &ranks));
  size_t n = match(by_key_a, n_a, by_key_b, n_b, by_rank, ranks);
  *out = (struct shadow_measures){ .n_common = n, .overlap = (double)n / (double)(n_a > n_b ? n_a : n_b) };
  if (n < 2)
    return ERR_OK;
  out->is_ranked = true;
  out->correlation = 1 - 4 * (double)count_inversions(ranks, by_rank, n) / ((double)n * (double)(n - 1));
  return ERR_OK;
}

err_t shadow_measures_take(const struct hit *a, size_t n_a, const struct hit *b, size_t n_b, struct region *region,
                           struct shadow_measures *out)
{
  struct region_mark mark = region_mark(region);

  assert(n_a + n_b > 0);
  err_code_t err = measure(a, n_a, b, n_b, region, out);
  region_rewind(region, mark);
  return err;
}
