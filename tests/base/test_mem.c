/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: arrays, growing, overflow, reserved address space, and giving memory back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"
#include "tests/support/heap.h"

static uint64_t seed;

static bool is_zero(const uint8_t *p, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (p[i])
      return false;
  }
  return true;
}

static void an_array_is_zeros_on_a_cache_line(void **state)
{
  (void)state;
  for (size_t n = 0; n < 300; n++) {
    uint8_t *dirty, *p;
    assert_ok(mem_array(n, 3, &dirty)); /* reused memory is zeroed, too */
    memset(dirty, 0xff, 3 * n);
    mem_free(&dirty);
    assert_null(dirty);
    assert_ok(mem_array(n, 3, &p));
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % MEM_ALIGN, 0);
    assert_true(is_zero(p, 3 * n));
    memset(p, 1, 3 * n);
    mem_free(&p);
  }
}

static void sizes_that_overflow_or_do_not_fit_are_errors_and_touch_nothing(void **state)
{
  static const size_t sizes[][2] = {
    { SIZE_MAX, 2 }, { SIZE_MAX / 2, 3 }, { (size_t)1 << 33, (size_t)1 << 33 }, { SIZE_MAX / 4, 2 },
    { 1, SIZE_MAX / 2 },
  };
  int mark;
  void *p = &mark;

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    assert_fails(mem_array(sizes[i][0], sizes[i][1], &p), ERR_MEMORY, "bytes");
    assert_ptr_equal(p, &mark);
    assert_fails(mem_reserve(sizes[i][0], sizes[i][1], &p), ERR_MEMORY, "bytes");
    assert_ptr_equal(p, &mark);
  }
}

static void growing_keeps_what_was_there_and_adds_zeros(void **state)
{
  struct dice dice = { seed };

  (void)state;
  for (int round = 0; round < 200; round++) {
    uint32_t *array = NULL;
    size_t capacity = 0, n = 0;
    for (int step = 0; step < 20; step++) {
      size_t count = n + dice_below(&dice, 100), before = capacity;
      assert_ok(mem_grow(count, sizeof *array, &capacity, &array));
      assert_true(capacity >= count && capacity >= before);
      assert_true(count <= before ? capacity == before : capacity >= 2 * before);
      for (size_t i = 0; i < n; i++)
        assert_int_equal(array[i], i + 1);
      for (size_t i = n; i < capacity; i++)
        assert_int_equal(array[i], 0);
      for (; n < count; n++)
        array[n] = (uint32_t)n + 1;
    }
    mem_free(&array);
  }
}

static void growing_too_far_is_an_error_that_touches_nothing(void **state)
{
  static const size_t counts[] = { SIZE_MAX, SIZE_MAX / 2 + 2, SIZE_MAX / 8, (size_t)1 << 63 };
  uint64_t *array = NULL;
  size_t capacity = 0;

  (void)state;
  alarm(20);
  assert_ok(mem_grow(3, sizeof *array, &capacity, &array));
  array[2] = 5;
  uint64_t *was = array;
  size_t capacity_was = capacity;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    assert_fails(mem_grow(counts[i], sizeof *array, &capacity, &array), ERR_MEMORY, "bytes");
    assert_ptr_equal(array, was);
    assert_int_equal(capacity, capacity_was);
    assert_int_equal(array[2], 5);
  }
  mem_free(&array);
  alarm(0);
}

static void reserved_pages_cost_memory_once_they_are_touched(void **state)
{
  enum { PAGES = 1 << 18 }; /* 1 GiB */
  uint8_t *p, *empty;
  long before, after;
  FILE *file;

  (void)state;
  assert_ok(mem_reserve(PAGES, 4096, &p));
  file = fopen("/proc/self/statm", "r");
  assert_int_equal(fscanf(file, "%*d %ld", &before), 1);
  fclose(file);
  for (size_t i = 0; i < PAGES; i += PAGES / 64) {
    assert_int_equal(p[i * 4096], 0);
    p[i * 4096] = 1;
  }
  file = fopen("/proc/self/statm", "r");
  assert_int_equal(fscanf(file, "%*d %ld", &after), 1);
  fclose(file);
  assert_true(after - before < PAGES / 4);
  mem_release(&p, PAGES, 4096);
  assert_null(p);
  mem_release(&p, PAGES, 4096); /* a second release is harmless */
  assert_ok(mem_reserve(0, 8, &empty));
  mem_release(&empty, 0, 8);
  assert_null(empty);
}

static size_t resident_pages(void)
{
  FILE *file = fopen("/proc/self/statm", "r");
  size_t pages = 0;

  assert_non_null(file);
  assert_int_equal(fscanf(file, "%*d %zu", &pages), 1);
  fclose(file);
  return pages;
}

/* For arrays with and without huge pages: elements below the range keep their values. Elements in the range have their
 * old values or zeros, and can be used again. */
static void memory_given_back_costs_nothing_and_the_rest_stays(void **state)
{
  static const size_t counts[] = { 100, 40000, 3000000 };
  enum { SIZE = 24 };

  (void)state;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    size_t n = counts[i], from = n / 3, touched = n - n / 10;
    uint8_t *p;
    assert_ok(mem_reserve(n, SIZE, &p));
    for (int round = 0; round < 2; round++) {
      memset(p, 7, touched * SIZE);
      size_t before = resident_pages();
      mem_give_back(p, from, touched, SIZE);
      if (n > 1000000 && !__sanitizer_get_current_allocated_bytes)
        assert_true(before - resident_pages() > (touched - from) * SIZE / 4096 * 3 / 4);
      for (size_t b = 0; b < from * SIZE; b++)
        assert_int_equal(p[b], 7);
      for (size_t b = from * SIZE; b < touched * SIZE; b++)
        assert_true(p[b] == 7 || p[b] == 0);
    }
    mem_give_back(p, touched, touched, SIZE);
    mem_give_back(NULL, 0, n, SIZE);
    mem_release(&p, n, SIZE);
  }
}

static void a_copy_has_a_zero_behind_it(void **state)
{
  uint8_t *copy;
  char *text;

  (void)state;
  assert_ok(mem_copy(span_of("ab\0c", 4), &copy));
  assert_memory_equal(copy, "ab\0c", 5);
  mem_free(&copy);
  assert_ok(mem_copy((struct span){ 0 }, &copy));
  assert_int_equal(copy[0], 0);
  mem_free(&copy);
  assert_ok(mem_copy_str("hello", &text));
  assert_string_equal(text, "hello");
  mem_free(&text);
  mem_free(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_array_is_zeros_on_a_cache_line),
    cmocka_unit_test(sizes_that_overflow_or_do_not_fit_are_errors_and_touch_nothing),
    cmocka_unit_test(growing_keeps_what_was_there_and_adds_zeros),
    cmocka_unit_test(growing_too_far_is_an_error_that_touches_nothing),
    cmocka_unit_test(reserved_pages_cost_memory_once_they_are_touched),
    cmocka_unit_test(memory_given_back_costs_nothing_and_the_rest_stays),
    cmocka_unit_test(a_copy_has_a_zero_behind_it),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
