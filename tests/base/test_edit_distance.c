/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distances: known distances, symmetry, and texts longer than the compared length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/edit_distance.h"

static void each_insertion_deletion_and_replacement_counts_once(void **state)
{
  static const struct {
    const char *a, *b;
    size_t distance;
  } rows[] = {
    { "", "", 0 },
    { "", "abc", 3 },
    { "abc", "abc", 0 },
    { "abc", "abd", 1 },
    { "abc", "ac", 1 },
    { "ab", "ba", 2 },
    { "kitten", "sitting", 3 },
    { "intention", "execution", 5 },
    { "mol.Pq", "mol.pq", 1 },
    { "mol.eps", "mol.esp", 2 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(edit_distance(rows[i].a, rows[i].b), rows[i].distance);
    assert_int_equal(edit_distance(rows[i].b, rows[i].a), rows[i].distance);
  }
}

static void letters_count_more_than_their_case(void **state)
{
  (void)state;
  assert_int_equal(edit_distance_by_letter("mol.dq", "mol.dq"), 0);
  assert_true(edit_distance_by_letter("mol.dq", "mol.Dq") < edit_distance_by_letter("mol.dq", "mol.dP"));
  assert_true(edit_distance_by_letter("COUNTRY", "country") < edit_distance_by_letter("COUNTRY", "OUNTRY"));
}

static void texts_are_compared_up_to_a_length(void **state)
{
  char a[4 * EDIT_TEXT_MAX], b[4 * EDIT_TEXT_MAX];

  (void)state;
  memset(a, 'a', sizeof a);
  memset(b, 'a', sizeof b);
  a[sizeof a - 1] = b[sizeof b - 1] = '\0';
  b[EDIT_TEXT_MAX] = 'b';
  assert_int_equal(edit_distance(a, b), 0);
  b[EDIT_TEXT_MAX - 1] = 'b';
  assert_int_equal(edit_distance(a, b), 1);
  assert_int_equal(edit_distance(a, ""), EDIT_TEXT_MAX);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_insertion_deletion_and_replacement_counts_once),
    cmocka_unit_test(letters_count_more_than_their_case),
    cmocka_unit_test(texts_are_compared_up_to_a_length),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
