/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-items are left out if no admitted item has them, and only then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "engine/recjpq/recjpq_narrow.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { SLOTS = 20000, SPLITS = 3, SUBITEMS = 100, SPLIT = 1 };

struct world {
  struct recjpq_model model;
  struct columns *columns;
  float scores[SPLITS * PQ_SUBITEMS];
  uint64_t words[SLOTS / 64 + 1], words_id;
  struct region region;
};

static uint64_t seed;

/* A sub-item's score is its number. */
static struct world *open_world(struct dice *dice)
{
  struct world *w = calloc(1, sizeof *w);

  w->model = (struct recjpq_model){
    .base = { SIMILARITY_RECJPQ }, .n_splits = SPLITS, .n_subitems = SUBITEMS, .split_dim = 1, .has_cells = true
  };
  assert_ok(recjpq_columns_cpu.open(&w->model.base, SLOTS, &w->columns));
  for (uint32_t slot = 0; slot < SLOTS; slot++) {
    uint8_t codes[SPLITS];
    for (size_t m = 0; m < SPLITS; m++)
      codes[m] = (uint8_t)dice_below(dice, SUBITEMS);
    assert_ok(recjpq_columns_cpu.put(w->columns, slot, true, codes));
  }
  for (size_t i = 0; i < SPLITS * PQ_SUBITEMS; i++)
    w->scores[i] = (float)(i % PQ_SUBITEMS);
  return w;
}

static void close_world(struct world *w)
{
  recjpq_columns_cpu.close(&w->columns);
  region_fini(&w->region);
  free(w);
}

static uint8_t code_of(const struct world *w, uint32_t slot, size_t split)
{
  uint8_t codes[SPLITS] = { 0 };

  recjpq_codes_read(recjpq_columns_of(w->columns), slot, codes);
  return codes[split];
}

/* Admit the slots whose codes in both splits are below a limit. */
static void admit_below(struct world *w, size_t limit, size_t limit_in_last)
{
  memset(w->words, 0, sizeof w->words);
  for (uint32_t slot = 0; slot < SLOTS; slot++) {
    if (code_of(w, slot, SPLIT) < limit && code_of(w, slot, SPLITS - 1) < limit_in_last)
      bits_set(w->words, slot);
  }
}

static struct recjpq_subitems narrow(struct world *w)
{
  const struct recjpq_columns *c = recjpq_columns_of(w->columns);
  struct search_batch batch = { .n_slots = SLOTS, .n_items = SLOTS, .scratch = &w->region };
  struct admit admit = { .words = w->words, .words_id = w->words_id };
  struct recjpq_subitems s = { w->scores, c->cells.lengths, SLOTS };

  assert_ok(kernels_get(isa_detect(), &batch.kernels));
  assert_ok(recjpq_narrow(c, &batch, &admit, &s));
  return s;
}

/* Assert that the sub-items from `limit` on, but for `other`, are left out of a split, and no other ones. */
static void assert_left_out_but(const struct world *w, const struct recjpq_subitems *s, size_t split, size_t limit,
                                size_t other)
{
  const uint32_t *lengths = recjpq_columns_of(w->columns)->cells.lengths;

  for (size_t b = 0; b < SUBITEMS; b++) {
    bool is_kept = b < limit || b == other;
    assert_true(s->scores[split * PQ_SUBITEMS + b] == (is_kept ? (float)b : -INFINITY));
    assert_int_equal(s->lengths[split * SUBITEMS + b], is_kept ? lengths[split * SUBITEMS + b] : 0);
  }
}

static void assert_left_out(const struct world *w, const struct recjpq_subitems *s, size_t split, size_t limit)
{
  assert_left_out_but(w, s, split, limit, 0);
}

static uint64_t count_below(const struct world *w, size_t split, size_t limit)
{
  uint64_t n = 0;

  for (uint32_t slot = 0; slot < SLOTS; slot++)
    n += code_of(w, slot, split) < limit;
  return n;
}

static void subitems_that_no_admitted_item_has_are_left_out(void **state)
{
  struct dice dice = { seed };
  struct world *w = open_world(&dice);

  (void)state;
  admit_below(w, 60, 40);
  struct recjpq_subitems s = narrow(w);
  assert_left_out(w, &s, 0, SUBITEMS);
  assert_left_out(w, &s, SPLIT, 60);
  assert_left_out(w, &s, SPLITS - 1, 40);
  assert_int_equal(s.n_items, count_below(w, SPLITS - 1, 40));
  close_world(w);
}

/* A sample does not prove anything. */
static void one_admitted_item_keeps_its_subitem(void **state)
{
  struct dice dice = { seed + 1 };
  struct world *w = open_world(&dice);

  (void)state;
  for (int round = 0; round < 100; round++) {
    uint32_t slot = (uint32_t)dice_below(&dice, SLOTS);
    size_t code = code_of(w, slot, SPLIT);
    admit_below(w, 50, SUBITEMS);
    bits_set(w->words, slot);
    struct recjpq_subitems s = narrow(w);
    if (code <= SUBITEMS * 3 / 4) /* above that, the sample may have the item, and too little is left out */
      assert_left_out_but(w, &s, SPLIT, 50, code);
    else
      assert_true(s.scores[SPLIT * PQ_SUBITEMS + code] == (float)code);
    region_reset(&w->region);
  }
  close_world(w);
}

/* What one block has raised does not hide what later blocks have. */
static void better_subitems_of_later_blocks_are_kept(void **state)
{
  struct dice dice = { seed + 3 };
  struct world *w = open_world(&dice);
  size_t found[] = { 55, 60, 65 };

  (void)state;
  admit_below(w, 50, SUBITEMS);
  for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
    uint32_t slot = (uint32_t)((i + 1) * RECJPQ_BLOCK_ITEMS + dice_below(&dice, RECJPQ_BLOCK_ITEMS));
    while (code_of(w, slot, SPLIT) != found[i])
      slot = (uint32_t)((i + 1) * RECJPQ_BLOCK_ITEMS + (slot + 1) % RECJPQ_BLOCK_ITEMS);
    bits_set(w->words, slot);
    struct recjpq_subitems s = narrow(w);
    for (size_t b = 50; b < SUBITEMS; b++) {
      bool is_found = false;
      for (size_t f = 0; f <= i; f++)
        is_found |= b == found[f];
      assert_true(s.scores[SPLIT * PQ_SUBITEMS + b] == (is_found ? (float)b : -INFINITY));
    }
    region_reset(&w->region);
  }
  close_world(w);
}

/* The words of an id do not change. Here they do, to see what was kept. */
static void what_a_filter_s_items_have_is_kept_until_a_code_changes(void **state)
{
  struct dice dice = { seed + 4 };
  struct world *w = open_world(&dice);
  const uint8_t codes[SPLITS] = { 99, 99, 99 };

  (void)state;
  for (w->words_id = 1; w->words_id <= RECJPQ_PRESENT_FILTERS + 1; w->words_id++) {
    admit_below(w, 40 + w->words_id % 7, SUBITEMS);
    narrow(w);
    region_reset(&w->region);
  }
  memset(w->words, 0, sizeof w->words);
  for (w->words_id = 2; w->words_id <= RECJPQ_PRESENT_FILTERS + 1; w->words_id++) {
    struct recjpq_subitems s = narrow(w);
    assert_left_out(w, &s, SPLIT, 40 + w->words_id % 7);
    region_reset(&w->region);
  }
  w->words_id = 1; /* the stalest one is gone */
  assert_ptr_equal(narrow(w).scores, w->scores);
  w->words_id = 2;
  assert_ok(recjpq_columns_cpu.put(w->columns, SLOTS / 2, false, codes));
  assert_ptr_equal(narrow(w).scores, w->scores);
  admit_below(w, 40, SUBITEMS);
  assert_ptr_not_equal(narrow(w).scores, w->scores);
  memset(w->words, 0, sizeof w->words);
  assert_ptr_not_equal(narrow(w).scores, w->scores);
  recjpq_columns_cpu.drop(w->columns, 0);
  recjpq_columns_cpu.move(w->columns, SLOTS - 1, 0);
  assert_ptr_equal(narrow(w).scores, w->scores);
  close_world(w);
}

static void a_filter_that_is_not_disliked_changes_nothing(void **state)
{
  struct dice dice = { seed + 2 };
  struct world *w = open_world(&dice);

  (void)state;
  for (size_t i = 0; i < sizeof w->words / sizeof *w->words; i++) /* no item at all, then a random half */
    w->words[i] = 0;
  for (int round = 0; round < 2; round++) {
    struct recjpq_subitems s = narrow(w);
    assert_ptr_equal(s.scores, w->scores);
    assert_int_equal(s.n_items, SLOTS);
    for (size_t i = 0; i < SLOTS / 64; i++)
      w->words[i] = dice_u64(&dice);
  }
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(subitems_that_no_admitted_item_has_are_left_out),
    cmocka_unit_test(one_admitted_item_keeps_its_subitem),
    cmocka_unit_test(better_subitems_of_later_blocks_are_kept),
    cmocka_unit_test(what_a_filter_s_items_have_is_kept_until_a_code_changes),
    cmocka_unit_test(a_filter_that_is_not_disliked_changes_nothing),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
