/* SPDX-License-Identifier: Apache-2.0 */
/* Excluded keys: short and long lists take the same slots out, as one look-up after the other would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/admission/exclusion.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { SLOTS = 300000, WORDS = SLOTS / 64 + 1, KEY_BYTES = 16, EXCLUDED_MAX = 5000, SHORT_MAX = WORDS / 64 };

struct world {
  struct dice dice;
  struct region region;
  struct key_hash hash;
  struct keys keys;
  uint64_t words[WORDS];
  uint64_t expected[WORDS];
  char texts[EXCLUDED_MAX][KEY_BYTES];
  struct span excluded[EXCLUDED_MAX];
};

static uint64_t seed;

static struct span key_of(size_t i, char text[KEY_BYTES])
{
  return span_of(text, (size_t)snprintf(text, KEY_BYTES, "%zu", i));
}

static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);
  char text[KEY_BYTES];

  w->dice.state = seed;
  assert_ok(key_hash_init(&w->hash));
  assert_ok(keys_init(SLOTS, &w->hash, &w->keys));
  for (uint32_t slot = 0; slot < SLOTS; slot++) {
    struct key_text *key = NULL;
    assert_ok(key_text_make(key_of(slot, text), &key));
    keys_put(&w->keys, slot, key);
  }
  return w;
}

static void close_world(struct world *w)
{
  keys_fini(&w->keys, SLOTS);
  region_fini(&w->region);
  free(w);
}

/* Draw keys, of which some are not in the table and some come twice. */
static void draw_excluded(struct world *w, size_t n)
{
  size_t range = dice_below(&w->dice, 2) ? 2 * SLOTS : n + 1;

  for (size_t i = 0; i < n; i++)
    w->excluded[i] = key_of(dice_below(&w->dice, range), w->texts[i]);
}

/* Admit about one slot of `one_in`. */
static void draw_admitted(struct world *w, size_t one_in)
{
  memset(w->words, 0, sizeof w->words);
  for (size_t slot = 0; slot < SLOTS; slot++) {
    if (dice_below(&w->dice, one_in) == 0)
      bits_set(w->words, slot);
  }
  memcpy(w->expected, w->words, sizeof w->words);
}

static void expect_excluded(struct world *w, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    uint32_t slot = keys_find(&w->keys, w->excluded[i]);
    if (slot != KEYS_NONE)
      bits_clear(w->expected, slot);
  }
}

static void check(struct world *w, const struct admit *admit)
{
  assert_int_equal(admit->n_admitted, bits_count(w->expected, WORDS));
  for (size_t i = 0; i < admit->n_excluded; i++) {
    assert_true(bits_get(admit->words, admit->excluded[i]));
    assert_true(i == 0 || admit->excluded[i] > admit->excluded[i - 1]);
  }
  for (uint32_t slot = 0; slot < SLOTS; slot++)
    assert_int_equal(admit_slot(admit, slot), bits_get(w->expected, slot));
}

static void exclude(struct world *w, size_t n, struct admit *out)
{
  const struct exclusion e = { &w->keys, WORDS };

  region_reset(&w->region);
  *out = (struct admit){ .words = w->words, .words_id = 7, .n_admitted = bits_count(w->words, WORDS) };
  assert_ok(exclusion_apply(&e, w->excluded, n, &w->region, out));
  check(w, out);
}

static void all_lists_take_out_the_same_slots(void **state)
{
  static const size_t lengths[] = { 1, 2, 31, SHORT_MAX, SHORT_MAX + 1, 1000, EXCLUDED_MAX };
  static const size_t one_in[] = { 1, 2, 1000 };
  struct world *w = open_world();
  struct admit admit;

  (void)state;
  for (size_t i = 0; i < sizeof one_in / sizeof one_in[0]; i++) {
    for (size_t j = 0; j < sizeof lengths / sizeof lengths[0]; j++) {
      draw_admitted(w, one_in[i]);
      draw_excluded(w, lengths[j]);
      expect_excluded(w, lengths[j]);
      exclude(w, lengths[j], &admit);
    }
  }
  close_world(w);
}

static void a_long_list_becomes_bits(void **state)
{
  struct world *w = open_world();
  struct admit admit;

  (void)state;
  draw_admitted(w, 1);
  for (size_t i = 0; i < EXCLUDED_MAX; i++)
    w->excluded[i] = key_of(SLOTS - 1 - i, w->texts[i]);
  expect_excluded(w, EXCLUDED_MAX);
  exclude(w, EXCLUDED_MAX, &admit);
  assert_int_equal(admit.n_excluded, 0);
  assert_int_equal(admit.words_id, 0); /* they are another query's no more */
  draw_admitted(w, 1);
  expect_excluded(w, SHORT_MAX);
  exclude(w, SHORT_MAX, &admit);
  assert_int_equal(admit.n_excluded, SHORT_MAX);
  assert_ptr_equal(admit.words, w->words);
  assert_int_equal(admit.words_id, 7);
  close_world(w);
}

static void keys_that_are_not_admitted_cost_nothing(void **state)
{
  struct world *w = open_world();
  struct admit admit;

  (void)state;
  draw_excluded(w, EXCLUDED_MAX);
  exclude(w, EXCLUDED_MAX, &admit);
  assert_ptr_equal(admit.words, w->words);
  assert_int_equal(admit.n_excluded, 0);
  close_world(w);
}

/* Open columns of one attribute, a bool that is true for about half of the slots. */
static struct attribute_columns *open_columns(struct world *w)
{
  const struct attribute attribute = { span_of_str("a"), ATTRIBUTE_BOOL };
  const struct attributes attributes = { &attribute, 1 };
  const struct kernels *kernels;
  struct attribute_columns *c;

  assert_ok(kernels_get(isa_detect(), &kernels));
  assert_ok(attribute_columns_open(&attributes, kernels, SLOTS, &c));
  for (uint32_t slot = 0; slot < SLOTS; slot++) {
    const struct value value = { VALUE_BOOL, .is_true = dice_below(&w->dice, 2) };
    assert_ok(attribute_columns_put(c, slot, 0, &value));
  }
  return c;
}

/* The list is that of words which the filter has made. */
static void check_list(struct world *w, const struct attribute_selection *filter, const uint64_t *among, size_t n)
{
  const struct exclusion e = { &w->keys, WORDS };
  struct admit wanted, found = { .n_admitted = SLOTS };

  assert_true(exclusion_is_short(&e, n));
  exclude(w, n, &wanted);
  assert_ok(exclusion_list(&e, w->excluded, n, among, filter, &w->region, &found));
  assert_int_equal(found.n_excluded, wanted.n_excluded);
  assert_int_equal(found.n_admitted, SLOTS - wanted.n_excluded);
  for (size_t i = 0; i < found.n_excluded; i++)
    assert_int_equal(found.excluded[i], wanted.excluded[i]);
}

static void a_short_list_needs_no_words(void **state)
{
  static const size_t lengths[] = { 0, 1, 8, 31, SHORT_MAX };
  static uint64_t among[WORDS], passing[WORDS];
  const struct filter_node is_true = { .kind = FILTER_IS, .is_true = true };
  struct world *w = open_world();
  struct attribute_columns *columns = open_columns(w);
  const struct attribute_selection *filter;
  struct region region = { 0 };

  (void)state;
  assert_false(exclusion_is_short(&(struct exclusion){ &w->keys, WORDS }, SHORT_MAX + 1));
  assert_ok(attribute_selection_bind(columns, &is_true, &region, &filter));
  attribute_selection_words(filter, 0, bits_words(SLOTS), passing);
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    draw_admitted(w, 2);
    memcpy(among, w->words, sizeof among);
    for (size_t k = 0; k < WORDS; k++)
      w->words[k] &= passing[k];
    memcpy(w->expected, w->words, sizeof w->words);
    draw_excluded(w, lengths[i]);
    expect_excluded(w, lengths[i]);
    check_list(w, filter, among, lengths[i]);
  }
  attribute_columns_close(&columns);
  region_fini(&region);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_lists_take_out_the_same_slots),
    cmocka_unit_test(a_long_list_becomes_bits),
    cmocka_unit_test(keys_that_are_not_admitted_cost_nothing),
    cmocka_unit_test(a_short_list_needs_no_words),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
