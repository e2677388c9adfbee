/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of slots compared with plain bits, as they grow from a few slots to lists and words, and shrink again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/attributes/text_slots.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { SLOTS = 300000, WORDS = (SLOTS + 63) / 64 };

static struct dice dice;

struct world {
  struct text_slots set;
  uint64_t bits[WORDS];
  uint32_t n;
};

static void check(const struct world *w)
{
  static uint64_t words[WORDS];
  size_t first = dice_below(&dice, WORDS), n = dice_below(&dice, WORDS - first + 1);

  assert_int_equal(w->set.n, w->n);
  memset(words, 0, n * sizeof *words);
  text_slots_or(&w->set, first, n, words);
  assert_memory_equal(words, w->bits + first, n * sizeof *words);
  const uint64_t *one = text_slots_words(&w->set, first, 1);
  assert_true(!one || *one == w->bits[first]);
}

/* Add or remove a slot, which may be there or not. */
static void change(struct world *w, uint32_t slot, bool adds)
{
  uint64_t bit = UINT64_C(1) << (slot % 64);
  bool has = w->bits[slot / 64] & bit;

  if (adds)
    assert_ok(text_slots_add(&w->set, slot));
  else
    text_slots_remove(&w->set, slot);
  w->bits[slot / 64] = adds ? w->bits[slot / 64] | bit : w->bits[slot / 64] & ~bit;
  w->n += adds && !has;
  w->n -= !adds && has;
}

/* Change slots below `limit`; of 100 changes, about `share` add one. */
static void churn(struct world *w, size_t n, size_t limit, size_t share)
{
  for (size_t i = 0; i < n; i++) {
    change(w, (uint32_t)dice_below(&dice, limit), dice_below(&dice, 100) < share);
    if (dice_below(&dice, n < 1000 ? 10 : 1000) == 0)
      check(w);
  }
  check(w);
}

static void a_set_is_like_plain_bits(void **state)
{
  struct world *w = calloc(1, sizeof *w);

  (void)state;
  check(w);
  churn(w, 300, 5, 50); /* few slots, again and again */
  churn(w, 2000, SLOTS, 60);
  churn(w, 200000, SLOTS, 95);
  churn(w, 3000000, SLOTS, 5);
  churn(w, 20000, 3000, 80);
  churn(w, 20000, 3000, 20);
  for (uint32_t slot = 0; slot < SLOTS; slot++)
    change(w, slot, false);
  check(w);
  assert_int_equal(w->set.n_chunks, 0);
  churn(w, 100, SLOTS, 90);
  text_slots_fini(&w->set);
  free(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(a_set_is_like_plain_bits) };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
