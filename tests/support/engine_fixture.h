/* SPDX-License-Identifier: Apache-2.0 */
/* What engine tests share: putting items, searching, and checking receipts. Include it after cmocka.h. */
#ifndef TESTS_SUPPORT_ENGINE_FIXTURE_H
#define TESTS_SUPPORT_ENGINE_FIXTURE_H

#include <math.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "tests/support/assert_ok.h"

/* Check changes, then publish them. */
static inline void fixture_apply(struct engine *e, const struct item_change *changes, size_t n)
{
  for (size_t i = 0; i < n; i++)
    assert_ok(engine_check_item(e, &changes[i]));
  assert_ok(engine_apply(e, changes, n, NULL, 0));
}

static inline void fixture_put(struct engine *e, struct span key, struct part *parts, size_t n)
{
  struct item_change change = { .key = key, .parts = parts, .n_parts = n };

  fixture_apply(e, &change, 1);
}

static inline void fixture_put_vector(struct engine *e, struct span key, const char *space, const float *v, size_t n)
{
  struct part part = { .space = span_of_str(space), .vector = { v, n } };

  fixture_put(e, key, &part, 1);
}

static inline void fixture_delete(struct engine *e, struct span key)
{
  struct item_change change = { .key = key, .is_delete = true };

  fixture_apply(e, &change, 1);
}

/* Search a batch of queries of one method. */
static inline void fixture_search(struct engine *e, struct searcher *s, const struct query *queries, size_t n,
                                  struct answer *answers)
{
  const struct query **pointers = calloc(n, sizeof *pointers);
  struct method method;
  size_t space;

  for (size_t i = 0; i < n; i++) {
    assert_ok(engine_check_query(e, &queries[i], &space, &method));
    pointers[i] = &queries[i];
  }
  assert_ok(searcher_search(s, space, &method, pointers, n, answers));
  free(pointers);
}

static inline void fixture_assert_same_hits(const struct answer *a, const struct answer *b)
{
  assert_int_equal(a->n_hits, b->n_hits);
  for (size_t i = 0; i < a->n_hits; i++) {
    assert_true(span_equal(a->hits[i].key, b->hits[i].key));
    assert_memory_equal(&a->hits[i].score, &b->hits[i].score, sizeof(float));
  }
}

/* Check a receipt against the true scores of all items. No item that was not returned may score above the bound. If the
 * receipt says exact, the hits must be the k best. */
static inline void fixture_assert_receipt(const struct answer *answer, size_t k, const double *scores, size_t n_items,
                                          size_t (*index_of)(struct span key), double tolerance)
{
  uint8_t *is_returned = calloc(n_items, 1);
  double worst = INFINITY;

  for (size_t i = 0; i < answer->n_hits; i++) {
    size_t index = index_of(answer->hits[i].key);
    assert_false(is_returned[index]);
    is_returned[index] = 1;
    worst = fmin(worst, scores[index]);
  }
  for (size_t i = 0; i < n_items; i++) {
    if (is_returned[i])
      continue;
    assert_true(answer->receipt.has_bound);
    assert_true(scores[i] <= (double)answer->receipt.bound + tolerance);
    if (answer->receipt.is_exact)
      assert_true(scores[i] <= worst + tolerance);
  }
  if (answer->receipt.is_exact)
    assert_int_equal(answer->n_hits, k < n_items ? k : n_items);
  free(is_returned);
}

#endif
