/* SPDX-License-Identifier: Apache-2.0 */
/* The list of hits beside a heap that gets every item: the same K best, whatever the ties and the order of arrival. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/recjpq/recjpq_hits.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { K_MAX = 700, ITEMS_MAX = 5000 };

struct world {
  struct dice dice;
  struct region region;
  float scores[ITEMS_MAX];
  struct topk_entry listed[K_MAX], pushed[K_MAX];
};

/* Keys in the reverse order of the slots. */
static int order_backwards(const void *context, uint32_t a, uint32_t b)
{
  (void)context;
  return (a < b) - (a > b);
}

/* Add the items that reach the threshold, as a search does. */
static void gather(struct world *w, size_t n, size_t k, struct topk *out)
{
  struct recjpq_hits hits;

  assert_ok(recjpq_hits_init(k, &w->region, &hits));
  for (uint32_t i = 0; i < n; i++) {
    if (w->scores[i] >= fmaxf(hits.threshold, topk_threshold(out)))
      recjpq_hits_add(&hits, w->scores[i], i, out);
    assert_true(i + 1 < k || fmaxf(hits.threshold, topk_threshold(out)) > -INFINITY);
  }
  recjpq_hits_give(&hits, out);
  assert_int_equal(hits.n, 0);
}

static void check(struct world *w, size_t n, size_t k)
{
  struct topk listed, pushed;

  region_reset(&w->region);
  topk_init(&listed, w->listed, k, order_backwards, NULL);
  topk_init(&pushed, w->pushed, k, order_backwards, NULL);
  gather(w, n, k, &listed);
  for (uint32_t i = 0; i < n; i++)
    topk_push(&pushed, w->scores[i], i);
  size_t n_pushed = topk_finish(&pushed);
  assert_int_equal(topk_finish(&listed), n_pushed);
  for (size_t i = 0; i < n_pushed; i++) {
    assert_int_equal(w->listed[i].slot, w->pushed[i].slot);
    assert_true(w->listed[i].score == w->pushed[i].score);
  }
}

static void the_list_keeps_what_a_heap_keeps(void **state)
{
  static const size_t n_values[] = { 1, 3, 100, 1000000 };
  struct world *w = calloc(1, sizeof *w);

  (void)state;
  w->dice.state = dice_seed();
  for (size_t round = 0; round < 400; round++) {
    size_t n = dice_below(&w->dice, ITEMS_MAX), k = 1 + dice_below(&w->dice, K_MAX);
    for (size_t i = 0; i < n; i++) {
      w->scores[i] = (float)dice_below(&w->dice, n_values[round % 4]);
      w->scores[i] +=
          round % 8 < 4 ? 0 : (float)i; /* later items tend to be better: the threshold rises all the time */
    }
    check(w, n, k);
  }
  region_fini(&w->region);
  free(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_list_keeps_what_a_heap_keeps),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
