/* SPDX-License-Identifier: Apache-2.0 */
/* The log of changes, compared with a list of all changes ever made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/change_log.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { WORDS = 300, EPOCHS = 2000, ALL = -1 };

static uint64_t seed;

struct world {
  struct change_log log;
  struct dice dice;
  uint64_t touched[WORDS]; /* the last epoch that changed the word */
  uint64_t n_touched[EPOCHS + 1];
  uint64_t all; /* the last epoch that changed any words */
  uint64_t last;
};

static struct world *open_world(uint64_t salt)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed + salt;
  assert_ok(change_log_init(&w->log));
  return w;
}

static void close_world(struct world *w)
{
  change_log_fini(&w->log);
  free(w);
}

/* Change n bits, or ALL, in an epoch. */
static void change(struct world *w, uint64_t epoch, int n)
{
  w->n_touched[epoch] = n == ALL ? 0 : (uint64_t)n;
  if (n == ALL) {
    change_log_touch_all(&w->log);
    w->all = epoch;
  }
  for (int i = 0; i < n; i++) {
    size_t bit = dice_below(&w->dice, 64 * (uint64_t)WORDS);
    change_log_touch(&w->log, bit);
    w->touched[bit / 64] = epoch;
  }
  w->last = n != 0 ? epoch : w->last;
  change_log_date(&w->log, epoch);
  assert_int_equal(w->log.epoch, w->last);
}

/* The changes listed after an epoch are those that were made after it. */
static void assert_since(struct world *w, uint64_t since)
{
  bool is_listed[WORDS] = { false };

  for (size_t n = change_log_count(&w->log, since), i = 0; i < n; i++)
    is_listed[change_log_word(&w->log, i)] = true;
  for (size_t word = 0; word < WORDS; word++)
    assert_int_equal(is_listed[word], w->touched[word] > since);
}

/* Nothing is forgotten that there is room for. */
static void assert_known(struct world *w, uint64_t now)
{
  uint64_t n = 0, since = now;

  while (since > w->all && n + w->n_touched[since] <= CHANGE_LOG_WORDS)
    n += w->n_touched[since--];
  assert_true(w->log.known_since <= since);
  assert_true(w->log.known_since >= w->all);
}

static void changes_are_listed_by_epoch_until_there_is_no_room(void **state)
{
  struct world *w = open_world(1);

  (void)state;
  for (uint64_t epoch = 1; epoch <= EPOCHS; epoch++) {
    int most = dice_below(&w->dice, 100) == 0 ? 2 * CHANGE_LOG_WORDS : 50;
    change(w, epoch, dice_below(&w->dice, 200) == 0 ? ALL : (int)dice_below(&w->dice, (uint64_t)most));
    assert_known(w, epoch);
    assert_since(w, w->log.known_since);
    assert_since(w, w->log.known_since + dice_below(&w->dice, epoch - w->log.known_since + 1));
  }
  close_world(w);
}

static void the_first_changes_are_known_since_the_beginning(void **state)
{
  struct world *w = open_world(2);

  (void)state;
  change(w, 1, 0);
  assert_int_equal(w->log.epoch, 0);
  change(w, 2, CHANGE_LOG_WORDS / 2);
  change(w, 3, CHANGE_LOG_WORDS / 3);
  assert_int_equal(w->log.known_since, 0);
  assert_since(w, 0);
  assert_since(w, 2);
  assert_int_equal(change_log_count(&w->log, 3), 0);
  close_world(w);
}

static void changes_of_one_word_in_a_row_take_one_place(void **state)
{
  struct change_log log;

  (void)state;
  assert_ok(change_log_init(&log));
  for (size_t i = 0; i < 64; i++)
    change_log_touch(&log, 128 + i);
  change_log_date(&log, 1);
  assert_int_equal(change_log_count(&log, 0), 1);
  change_log_touch(&log, 128); /* another epoch */
  change_log_date(&log, 2);
  assert_int_equal(change_log_count(&log, 0), 2);
  assert_int_equal(change_log_count(&log, 1), 1);
  assert_int_equal(change_log_word(&log, 0), 2);
  change_log_fini(&log);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(changes_are_listed_by_epoch_until_there_is_no_room),
    cmocka_unit_test(the_first_changes_are_known_since_the_beginning),
    cmocka_unit_test(changes_of_one_word_in_a_row_take_one_place),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
