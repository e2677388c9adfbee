/* Shortlists against a sort by exact scores and keys, for approximations as bad as their slack allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "engine/shortlist.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_SLOTS = 6000, LISTS = 3 };

static struct dice dice;

/* What the lists are made of: exact scores, and integers within the slack of them. */
static struct {
  size_t n_slots;
  float exact[LISTS][MAX_SLOTS];
  uint8_t has_part[MAX_SLOTS];
  uint32_t excluded[MAX_SLOTS];
  struct admit admit;
  size_t n_resolved;
} world;

/* Keys are in no order of slots. */
static uint32_t key_of(uint32_t slot)
{
  return slot * 2654435761u;
}

static int order(const void *context, uint32_t a, uint32_t b)
{
  (void)context;
  return key_of(a) < key_of(b) ? -1 : 1;
}

static void exact_scores(const void *context, size_t list, const struct scan_entry *entries, size_t n, float *scores)
{
  assert_ptr_equal(context, &world);
  for (size_t i = 0; i < n; i++)
    scores[i] = world.exact[list][entries[i].slot];
  world.n_resolved += n;
}

static const float (*sorted_by)[MAX_SLOTS];

static int best_first(const void *a, const void *b)
{
  const uint32_t *x = a, *y = b;
  float fx = (*sorted_by)[*x], fy = (*sorted_by)[*y];

  return fx != fy ? (fx < fy ? 1 : -1) : *x == *y ? 0 : order(NULL, *x, *y);
}

static int rising(const void *a, const void *b)
{
  const uint32_t *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

/* kind 0: all different; 1: few values; 2: one value and a few more; 3: rising with the slot; 4: zeros of both signs.
 */
static float draw_score(int kind, size_t slot)
{
  switch (kind) {
  case 1:
    return (float)dice_below(&dice, 5) * 0.25f - 0.5f;
  case 2:
    return dice_below(&dice, 100) ? 0.125f : dice_float(&dice, 1.0f);
  case 3:
    return (float)slot * 1e-4f;
  case 4:
    return dice_below(&dice, 2) ? 0.0f : -0.0f;
  default:
    return dice_float(&dice, 1.0f);
  }
}

static void draw_world(size_t n_slots, int kind)
{
  world.n_slots = n_slots;
  world.n_resolved = 0;
  for (size_t l = 0; l < LISTS; l++)
    for (size_t i = 0; i < n_slots; i++)
      world.exact[l][i] = draw_score(kind, i);
  world.admit = (struct admit){ world.has_part, world.excluded, 0 };
  for (uint32_t i = 0; i < n_slots; i++) {
    world.has_part[i] = dice_below(&dice, 10) != 0;
    if (world.has_part[i] && dice_below(&dice, 50) == 0)
      world.excluded[world.admit.n_excluded++] = i;
  }
}

static void scan(struct shortlists *s, const struct shortlist_scale *scales)
{
  size_t n_padded = (world.n_slots + 15) / 16 * 16;

  for (size_t first = 0; first < n_padded; first += SHORTLIST_CHUNK) {
    size_t n_appended = 0;
    for (size_t i = first; i < first + SHORTLIST_CHUNK && i < n_padded; i++) {
      for (size_t l = 0; l < LISTS; l++) {
        struct scan_list *list = &s->lists[l];
        int32_t off = (int32_t)dice_below(&dice, 2 * (size_t)scales[l].slack + 1) - scales[l].slack;
        double exact = i < world.n_slots ? (double)world.exact[l][i] * scales[l].units : 0x1p29;
        int32_t score =
            (int32_t)(exact < 0 ? ceil(exact) : floor(exact)) + (abs(off) == scales[l].slack ? off * 9 / 10 : off);
        assert_int_equal(list->start, -scales[l].offset - list->threshold);
        if (score >= list->threshold)
          list->entries[list->n++] = (struct scan_entry){ score, (uint32_t)i };
        n_appended += score >= list->threshold;
      }
    }
    shortlist_make_room(s, n_appended);
  }
}

static void assert_list(struct shortlists *s, size_t l, size_t n_best)
{
  static uint32_t want[MAX_SLOTS], have[MAX_SLOTS];
  size_t n_admitted = 0, n_want;
  float nth = shortlist_finish(s, l);

  for (uint32_t i = 0; i < world.n_slots; i++) {
    if (admit_slot(&world.admit, i))
      want[n_admitted++] = i;
  }
  sorted_by = &world.exact[l];
  qsort(want, n_admitted, sizeof want[0], best_first);
  n_want = n_best < n_admitted ? n_best : n_admitted;
  assert_int_equal(s->lists[l].n, n_want);
  if (n_admitted < n_best)
    assert_true(nth == -INFINITY);
  else
    assert_true(nth == world.exact[l][want[n_best - 1]]);
  for (size_t i = 0; i < n_want; i++)
    have[i] = s->lists[l].entries[i].slot;
  qsort(want, n_want, sizeof want[0], rising);
  qsort(have, n_want, sizeof have[0], rising);
  if (n_want)
    assert_memory_equal(have, want, n_want * sizeof want[0]);
}

static void check(size_t n_slots, size_t n_best, int kind, int32_t slack)
{
  struct region region = { 0 };
  struct shortlist_scale scales[LISTS];
  struct shortlists s = { .n_slots = n_slots, .order = order, .exact = exact_scores, .exact_context = &world };

  for (size_t l = 0; l < LISTS; l++)
    scales[l] = (struct shortlist_scale){ &world.admit, 30000.0, slack, (int32_t)l * 1000 };
  assert_ok(shortlist_init(&s, LISTS, n_best, &region));
  for (int round = 0; round < 2; round++) {
    size_t n = round ? n_best : 1 + n_best / 2;
    draw_world(n_slots, kind);
    shortlist_reset(&s, scales, LISTS, n);
    scan(&s, scales);
    for (size_t l = 0; l < LISTS; l++)
      assert_list(&s, l, n);
    assert_true(world.n_resolved <= LISTS * 4 * n_slots); /* ties do not make it go round in circles */
  }
  region_fini(&region);
}

static void the_n_best_by_exact_score_and_key_are_found(void **state)
{
  (void)state;
  for (int kind = 0; kind < 5; kind++) {
    for (int i = 0; i < 40; i++) {
      size_t n_slots = i % 4 == 0 ? dice_below(&dice, 40) : 1 + dice_below(&dice, MAX_SLOTS);
      size_t n_best = 1 + dice_below(&dice, i % 3 == 0 ? MAX_SLOTS : 120);
      check(n_slots, n_best, kind, (int32_t[]){ 1, 30, 900, 40000 }[i % 4]);
    }
  }
}

static void a_small_slack_asks_for_few_exact_scores(void **state)
{
  struct region region = { 0 };
  struct shortlist_scale scales[LISTS];
  struct shortlists s = { .n_slots = MAX_SLOTS, .order = order, .exact = exact_scores, .exact_context = &world };

  (void)state;
  for (size_t l = 0; l < LISTS; l++)
    scales[l] = (struct shortlist_scale){ &world.admit, 1e6, 10, 0 };
  assert_ok(shortlist_init(&s, LISTS, 100, &region));
  draw_world(MAX_SLOTS, 0);
  shortlist_reset(&s, scales, LISTS, 100);
  scan(&s, scales);
  for (size_t l = 0; l < LISTS; l++)
    assert_list(&s, l, 100);
  assert_true(world.n_resolved < 30 * LISTS);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_n_best_by_exact_score_and_key_are_found),
    cmocka_unit_test(a_small_slack_asks_for_few_exact_scores),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
