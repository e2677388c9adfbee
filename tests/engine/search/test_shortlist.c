/* SPDX-License-Identifier: Apache-2.0 */
/* Shortlists compared with a sort by exact scores and keys. The approximate scores are as bad as the slack allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "engine/search/shortlist.h"
#include "engine/search/spread.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_SLOTS = 6000, LISTS = 3 };

static struct dice dice;

/* The input of the lists: exact scores, and integers within the slack of them. */
static struct {
  size_t n_slots;
  float exact[LISTS][MAX_SLOTS];
  uint64_t has_part[MAX_SLOTS / 64 + 1];
  uint32_t excluded[MAX_SLOTS];
  struct admit admit;
  size_t n_resolved;
} world;

/* The key of a slot. Keys are not in slot order. */
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

/* kind 0: all different; 1: few values; 2: one value and a few others; 3: rising with the slot; 4: zeros of both signs;
 * 5: the best items are neighbours; 6: falling with the slot. */
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
  case 5:
    return dice_float(&dice, 1.0f) + (slot % 1024 > 960 ? 4.0f : 0.0f);
  case 6:
    return -(float)slot * 1e-4f;
  default:
    return dice_float(&dice, 1.0f);
  }
}

static const struct kernels *best_kernels(void)
{
  const struct kernels *kernels;

  assert_ok(kernels_get(isa_detect(), &kernels));
  return kernels;
}

static void draw_world(size_t n_slots, int kind)
{
  world.n_slots = n_slots;
  world.n_resolved = 0;
  for (size_t l = 0; l < LISTS; l++)
    for (size_t i = 0; i < n_slots; i++)
      world.exact[l][i] = draw_score(kind, i);
  world.admit =
      (struct admit){ .words = world.has_part, .excluded = world.excluded, .admits_all = dice_below(&dice, 3) == 0 };
  memset(world.has_part, 0, sizeof world.has_part);
  for (uint32_t i = 0; i < n_slots; i++) {
    if (world.admit.admits_all || dice_below(&dice, 10) != 0)
      bits_set(world.has_part, i);
    if (!world.admit.admits_all && bits_get(world.has_part, i) && dice_below(&dice, 50) == 0)
      world.excluded[world.admit.n_excluded++] = i;
  }
}

/* Scan one chunk into all lists. */
static void scan_chunk(struct shortlists *s, const struct shortlist_scale *scales, size_t first)
{
  size_t n_padded = (world.n_slots + 15) / 16 * 16, n_appended = 0;
  size_t end = first + SHORTLIST_CHUNK < n_padded ? first + SHORTLIST_CHUNK : n_padded;

  for (size_t i = first; i < end; i++) {
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
  shortlist_make_room(s, (end < world.n_slots ? end : world.n_slots) - first, n_appended);
}

enum scan_order { IN_SLOT_ORDER, SPREAD, SPREAD_IN_RUNS, N_ORDERS };

static void scan(struct shortlists *s, const struct shortlist_scale *scales, enum scan_order order)
{
  struct spread chunks = spread_over((world.n_slots + SHORTLIST_CHUNK - 1) / SHORTLIST_CHUNK);
  struct spread_runs in_runs = spread_runs_over(chunks.n);

  for (size_t i = 0; i < chunks.n; i++) {
    size_t chunk = order == SPREAD ? spread_next(&chunks) : order == SPREAD_IN_RUNS ? spread_runs_next(&in_runs) : i;
    scan_chunk(s, scales, chunk * SHORTLIST_CHUNK);
    if (order == SPREAD_IN_RUNS && i + 1 == in_runs.runs.n)
      shortlist_stop_guessing(s);
  }
}

/* Scan, and scan again without guesses if a guess was wrong. */
static void fill_lists(struct shortlists *s, const struct shortlist_scale *scales, size_t n_best)
{
  size_t n_wrong = 0;

  shortlist_reset(s, scales, LISTS, n_best, true);
  scan(s, scales, (enum scan_order)dice_below(&dice, N_ORDERS));
  for (size_t l = 0; l < LISTS; l++)
    n_wrong += !shortlist_is_complete(s, l);
  if (n_wrong == 0)
    return;
  shortlist_reset(s, scales, LISTS, n_best, false);
  scan(s, scales, SPREAD);
  for (size_t l = 0; l < LISTS; l++)
    assert_true(shortlist_is_complete(s, l));
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
  struct shortlists s = {
    .kernels = best_kernels(), .n_slots = n_slots, .order = order, .exact = exact_scores, .exact_context = &world
  };

  for (size_t l = 0; l < LISTS; l++)
    scales[l] = (struct shortlist_scale){ &world.admit, 30000.0, slack, (int32_t)l * 1000 };
  assert_ok(shortlist_init(&s, LISTS, n_best, &region));
  for (int round = 0; round < 2; round++) {
    size_t n = round ? n_best : 1 + n_best / 2;
    draw_world(n_slots, kind);
    fill_lists(&s, scales, n);
    for (size_t l = 0; l < LISTS; l++)
      assert_list(&s, l, n);
    assert_true(world.n_resolved <= LISTS * 8 * n_slots); /* ties do not cause endless work */
  }
  region_fini(&region);
}

static void the_n_best_by_exact_score_and_key_are_found(void **state)
{
  (void)state;
  for (int kind = 0; kind < 7; kind++) {
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
  struct shortlists s = {
    .kernels = best_kernels(), .n_slots = MAX_SLOTS, .order = order, .exact = exact_scores, .exact_context = &world
  };

  (void)state;
  for (size_t l = 0; l < LISTS; l++)
    scales[l] = (struct shortlist_scale){ &world.admit, 1e6, 10, 0 };
  assert_ok(shortlist_init(&s, LISTS, 100, &region));
  draw_world(MAX_SLOTS, 0);
  fill_lists(&s, scales, 100);
  for (size_t l = 0; l < LISTS; l++)
    assert_list(&s, l, 100);
  assert_true(world.n_resolved < 30 * LISTS);
  region_fini(&region);
}

/* Count the entries that reach the lists, and the lists with a wrong guess. */
static void count_entries(int kind, bool is_spread, size_t *n_entries, size_t *n_wrong)
{
  struct region region = { 0 };
  struct shortlist_scale scales[LISTS];
  struct shortlists s = {
    .kernels = best_kernels(), .n_slots = MAX_SLOTS, .order = order, .exact = exact_scores, .exact_context = &world
  };

  for (size_t l = 0; l < LISTS; l++)
    scales[l] = (struct shortlist_scale){ &world.admit, 1e6, 10, 0 };
  assert_ok(shortlist_init(&s, LISTS, 1000, &region));
  draw_world(MAX_SLOTS, kind);
  shortlist_reset(&s, scales, LISTS, 1000, true);
  scan(&s, scales, is_spread);
  *n_entries = *n_wrong = 0;
  for (size_t l = 0; l < LISTS; l++) {
    *n_wrong += !shortlist_is_complete(&s, l);
    *n_entries += s.lists[l].n;
  }
  region_fini(&region);
}

static void guesses_are_seldom_wrong_and_seldom_low(void **state)
{
  size_t n_entries, n_wrong, all_wrong = 0;

  (void)state;
  for (int i = 0; i < 50; i++) {
    count_entries(0, true, &n_entries, &n_wrong);
    assert_true(n_entries < LISTS * 1500);
    all_wrong += n_wrong;
  }
  assert_true(all_wrong <= 2);
}

static void a_wrong_guess_is_found_out(void **state)
{
  size_t n_entries, n_wrong;

  (void)state;
  count_entries(6, false, &n_entries, &n_wrong);
  assert_int_equal(n_wrong, LISTS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_n_best_by_exact_score_and_key_are_found),
    cmocka_unit_test(a_small_slack_asks_for_few_exact_scores),
    cmocka_unit_test(guesses_are_seldom_wrong_and_seldom_low),
    cmocka_unit_test(a_wrong_guess_is_found_out),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
