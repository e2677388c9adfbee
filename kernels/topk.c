/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap with the worst kept item at its root. Entries become a heap when there are K of them. Many entries are
 * sorted by score first; then only ties are left to a heap. */
#include "kernels/topk.h"

#include <assert.h>
#include <math.h>

#include "kernels/score_sort.h"

enum { SORT_MIN = 64 }; /* from so many entries on, a sort by score is faster than popping the heap */

void topk_init(struct topk *t, struct topk_entry *heap, size_t k, topk_key_order order, const void *context)
{
  assert(k >= 1);
  *t = (struct topk){ .heap = heap, .k = k, .order = order, .context = context };
}

float topk_threshold(const struct topk *t)
{
  return t->n < t->k ? -INFINITY : t->heap[0].score;
}

static bool is_worse(const struct topk *t, struct topk_entry a, struct topk_entry b)
{
  if (a.score != b.score)
    return a.score < b.score;
  return t->order(t->context, a.slot, b.slot) > 0;
}

static void swap(struct topk_entry *a, struct topk_entry *b)
{
  struct topk_entry old = *a;

  *a = *b;
  *b = old;
}

static void sift_down(struct topk *t, size_t i, size_t n)
{
  for (;;) {
    size_t worst = i;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
      if (is_worse(t, t->heap[child], t->heap[worst]))
        worst = child;
    }
    if (worst == i)
      return;
    swap(&t->heap[i], &t->heap[worst]);
    i = worst;
  }
}

static void make_heap(struct topk *t)
{
  for (size_t i = t->n / 2; i-- > 0;)
    sift_down(t, i, t->n);
}

void topk_push(struct topk *t, float score, uint32_t slot)
{
  struct topk_entry entry = { score, slot };

  if (t->n < t->k) {
    t->heap[t->n++] = entry;
    if (t->n == t->k)
      make_heap(t);
  } else if (is_worse(t, t->heap[0], entry)) {
    t->heap[0] = entry;
    sift_down(t, 0, t->n);
  }
}

/* Sort entries that are a heap. */
static void sort_heap(struct topk *t)
{
  for (size_t last = t->n; last-- > 1;) {
    swap(&t->heap[0], &t->heap[last]);
    sift_down(t, 0, last);
  }
}

/* Sort by score, then each run of equal scores by key. */
static void sort_many(struct topk *t)
{
  score_sort(t->heap, t->n);
  for (size_t begin = 0, end; begin < t->n; begin = end) {
    for (end = begin + 1; end < t->n && t->heap[end].score == t->heap[begin].score;)
      end++;
    struct topk run = { t->heap + begin, end - begin, end - begin, t->order, t->context };
    make_heap(&run);
    sort_heap(&run);
  }
}

size_t topk_finish(struct topk *t)
{
  if (t->n >= SORT_MIN) {
    sort_many(t);
    return t->n;
  }
  if (t->n < t->k)
    make_heap(t);
  sort_heap(t);
  return t->n;
}
