/* SPDX-License-Identifier: Apache-2.0 */
/* Open dead letters hold back the positions of their partitions, and only those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/topic/letter_window.h"
#include "tests/support/assert_ok.h"

static struct open_letter *push(struct letter_window *w, int32_t partition, int64_t next)
{
  return letter_window_push(w, &(struct store_position){ .at = { partition, next } });
}

static int64_t hold(const struct letter_window *w, int32_t partition)
{
  const struct store_position *position = letter_window_hold(w, partition);

  return position ? position->at.next : -1;
}

static void each_partition_is_held_by_its_oldest_open_letter(void **state)
{
  struct letter_window w;
  struct open_letter *letters[4];

  (void)state;
  assert_ok(letter_window_init(&w));
  assert_int_equal(hold(&w, 0), -1);
  letters[0] = push(&w, 0, 10);
  letters[1] = push(&w, 1, 5);
  letters[2] = push(&w, 0, 20);
  letters[3] = push(&w, 1, 6);
  assert_int_equal(hold(&w, 0), 10);
  assert_int_equal(hold(&w, 1), 5);
  assert_int_equal(hold(&w, 2), -1);
  atomic_store(&letters[1]->is_settled, true); /* not in the order of sending */
  assert_int_equal(hold(&w, 1), 6);
  assert_false(letter_window_settle(&w));
  atomic_store(&letters[0]->is_settled, true);
  assert_int_equal(hold(&w, 0), 20);
  assert_true(letter_window_settle(&w));
  assert_int_equal(w.n, 2);
  letter_window_pop(&w);
  assert_int_equal(hold(&w, 1), -1);
  letter_window_fini(&w);
}

static void after_reading_resumes_only_new_letters_hold_a_partition(void **state)
{
  struct letter_window w;

  (void)state;
  assert_ok(letter_window_init(&w));
  struct open_letter *old = push(&w, 0, 10);
  letter_window_forget(&w);
  assert_int_equal(hold(&w, 0), -1);
  struct open_letter *again = push(&w, 0, 10);
  assert_int_equal(hold(&w, 0), 10);
  atomic_store(&old->is_settled, true);
  assert_true(letter_window_settle(&w));
  assert_int_equal(hold(&w, 0), 10);
  atomic_store(&again->is_settled, true);
  assert_true(letter_window_settle(&w));
  assert_int_equal(w.n, 0);
  letter_window_fini(&w);
}

static void the_ring_takes_its_maximum_and_wraps(void **state)
{
  struct letter_window w;

  (void)state;
  assert_ok(letter_window_init(&w));
  for (int round = 0; round < 3; round++) {
    struct open_letter *letters[LETTER_WINDOW_MAX];
    for (size_t i = 0; i < LETTER_WINDOW_MAX; i++)
      assert_non_null(letters[i] = push(&w, 0, (int64_t)i));
    assert_null(push(&w, 0, 1));
    assert_int_equal(hold(&w, 0), 0); /* whatever became of the letter that was here before */
    letter_window_forget(&w);
    for (size_t i = 0; i < LETTER_WINDOW_MAX - (size_t)round; i++)
      atomic_store(&letters[i]->is_settled, true);
    assert_true(letter_window_settle(&w));
    for (size_t i = LETTER_WINDOW_MAX - (size_t)round; i < LETTER_WINDOW_MAX; i++)
      atomic_store(&letters[i]->is_settled, true);
    letter_window_settle(&w);
    assert_int_equal(w.n, 0);
  }
  letter_window_fini(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_partition_is_held_by_its_oldest_open_letter),
    cmocka_unit_test(after_reading_resumes_only_new_letters_hold_a_partition),
    cmocka_unit_test(the_ring_takes_its_maximum_and_wraps),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
