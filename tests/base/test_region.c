/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: allocations do not overlap, and steady use takes no more memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/region.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"
#include "tests/support/heap.h"

enum { MAX_BLOCKS = 400 };

static uint64_t seed;

static size_t draw_size(struct dice *d)
{
  switch (dice_below(d, 12)) {
  case 0:
    return 0;
  case 1:
    return dice_below(d, 300000);
  case 2:
    return 4096 - dice_below(d, 40);
  default:
    return dice_below(d, 200);
  }
}

static bool is_all(const uint8_t *p, size_t n, uint8_t value)
{
  for (size_t i = 0; i < n; i++) {
    if (p[i] != value)
      return false;
  }
  return true;
}

/* Fill each array with its own number. All still have it after the last allocation. */
static void arrays_are_zeroed_aligned_and_apart(void **state)
{
  struct dice dice = { seed };
  struct region r = { 0 };
  uint8_t *arrays[MAX_BLOCKS];
  size_t sizes[MAX_BLOCKS];

  (void)state;
  for (int round = 0; round < 20; round++) {
    size_t n = dice_below(&dice, round % 3 ? 40 : MAX_BLOCKS);
    for (size_t i = 0; i < n; i++) {
      sizes[i] = draw_size(&dice);
      bool has_lines = dice_below(&dice, 4) == 0;
      assert_ok((has_lines ? region_aligned : region_array)(&r, sizes[i], 1, &arrays[i]));
      assert_int_equal((uintptr_t)arrays[i] % (has_lines ? REGION_LINE : 16), 0);
      assert_true(is_all(arrays[i], sizes[i], 0));
      if (sizes[i])
        memset(arrays[i], (int)(i % 255 + 1), sizes[i]);
    }
    for (size_t i = 0; i < n; i++)
      assert_true(is_all(arrays[i], sizes[i], (uint8_t)(i % 255 + 1)));
    region_reset(&r);
  }
  region_fini(&r);
}

static void the_same_use_again_allocates_nothing(void **state)
{
  struct dice dice = { seed };
  struct region r = { 0 };
  void *p;

  (void)state;
  for (int round = 0; round < 20; round++) {
    struct dice same = dice;
    size_t before = 0;
    for (int pass = 0; pass < 4; pass++) {
      struct dice d = same;
      region_reset(&r);
      for (int i = 0; i < 50; i++)
        assert_ok(region_array(&r, draw_size(&d), 1, &p));
      if (pass == 1)
        before = heap_used();
      if (pass > 1)
        assert_int_equal(heap_used(), before);
    }
    dice_u64(&dice);
  }
  region_fini(&r);
}

/* A catalogue that grows by an item in each batch needs a little more memory each time. */
static void outgrown_blocks_are_freed(void **state)
{
  enum { ROUNDS = 100, STEP = 4096, FROM = 1 << 20 };
  struct region r = { 0 };
  size_t before = heap_used();
  void *p;

  (void)state;
  for (size_t round = 0; round < ROUNDS; round++) {
    region_reset(&r);
    assert_ok(region_array(&r, 100, 1, &p));
    assert_ok(region_array(&r, FROM + round * STEP, 1, &p));
    assert_ok(region_array(&r, FROM + round * STEP, 1, &p));
  }
  size_t last = 2 * (FROM + ROUNDS * STEP);
  assert_true(heap_used() - before < 2 * last);
  region_fini(&r);
  assert_true(heap_used() <= before + 1024);
}

/* Allocate random sizes in many rounds. The region stays within a small multiple of the largest round. */
static void memory_is_bounded_by_the_largest_round(void **state)
{
  struct dice dice = { seed };
  struct region r = { 0 };
  size_t before = heap_used(), largest = 0;
  void *p;

  (void)state;
  for (int round = 0; round < 400; round++) {
    size_t total = 0;
    region_reset(&r);
    for (size_t i = 0, n = 1 + dice_below(&dice, 5); i < n; i++) {
      size_t size = (size_t)1 << (10 + dice_below(&dice, 11));
      size += dice_below(&dice, size);
      assert_ok(region_array(&r, size, 1, &p));
      total += size;
    }
    largest = total > largest ? total : largest;
  }
  assert_true(heap_used() - before < 4 * largest);
  region_fini(&r);
}

static void sizes_that_overflow_are_errors(void **state)
{
  struct region r = { 0 };
  int mark;
  void *p = &mark;

  (void)state;
  assert_fails(region_array(&r, SIZE_MAX, 2, &p), ERR_MEMORY, "elements");
  assert_fails(region_array(&r, SIZE_MAX, 1, &p), ERR_MEMORY, "elements");
  assert_fails(region_array(&r, SIZE_MAX / 2, 1, &p), ERR_MEMORY, "bytes");
  assert_ptr_equal(p, &mark);
  assert_ok(region_array(&r, 10, 1, &p)); /* the region is still usable */
  region_fini(&r);
}

static void a_copy_is_followed_by_a_zero(void **state)
{
  struct region r = { 0 };
  struct span a, b;

  (void)state;
  assert_ok(region_copy(&r, span_of("key", 3), &a));
  assert_ok(region_copy(&r, (struct span){ 0 }, &b));
  assert_int_equal(a.n, 3);
  assert_memory_equal(a.p, "key", 4);
  assert_int_equal(b.n, 0);
  assert_int_equal(b.p[0], 0);
  region_fini(&r);
}

static void a_rewind_forgets_allocations_after_the_mark_only(void **state)
{
  struct dice dice = { seed + 3 };
  struct region r = { 0 };

  (void)state;
  for (size_t round = 0; round < 50; round++) {
    size_t n = draw_size(&dice), n_later = draw_size(&dice);
    uint8_t *kept = NULL, *first = NULL;
    struct region_mark start = region_mark(&r);
    assert_ok(region_array(&r, n, 1, &kept));
    memset(kept, 7, n);
    struct region_mark mark = region_mark(&r);
    for (size_t again = 0; again < 3; again++) {
      uint8_t *later = NULL;
      assert_ok(region_array(&r, n_later, 1, &later));
      assert_true(is_all(later, n_later, 0));
      memset(later, 9, n_later);
      first = again == 0 ? later : first;
      assert_ptr_equal(later, first);
      region_rewind(&r, mark);
      assert_true(is_all(kept, n, 7));
    }
    if (dice_below(&dice, 2))
      region_rewind(&r, start);
  }
  region_fini(&r);
}

static void what_is_reserved_is_one_block(void **state)
{
  enum { BYTES = 100000 };
  struct region r = { 0 };
  uint8_t *p;

  (void)state;
  assert_ok(region_reserve(&r, 16));
  assert_int_equal(region_bytes(&r), 16);
  assert_ok(region_reserve(&r, BYTES));
  assert_int_equal(region_bytes(&r), 16 + BYTES);
  for (size_t i = 0; i < BYTES / 160; i++)
    assert_ok(region_array(&r, 160, 1, &p));
  assert_ok(region_reserve(&r, 0));
  assert_int_equal(region_bytes(&r), 16 + BYTES);
  region_fini(&r);
}

/* Trim after one large use among small ones. The memory is freed, and the kept blocks are used again. */
static void a_trim_frees_blocks_above_a_size(void **state)
{
  enum { KEEP = 256 << 10, LARGE = 30 << 20 };
  struct region r = { 0 };
  size_t before = heap_used();
  void *p;

  (void)state;
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < 40; i++)
      assert_ok(region_array(&r, 2000, 1, &p));
    assert_ok(region_array(&r, LARGE, 1, &p));
    assert_true(region_bytes(&r) >= LARGE);
    region_trim(&r, KEEP);
    assert_true(region_bytes(&r) <= KEEP);
    assert_true(region_bytes(&r) >= 40 * 2000); /* the small blocks are kept */
    assert_true(heap_used() - before <= KEEP + 4096);
  }
  size_t kept = region_bytes(&r);
  for (int i = 0; i < 40; i++)
    assert_ok(region_array(&r, 2000, 1, &p));
  region_trim(&r, KEEP);
  assert_int_equal(region_bytes(&r), kept); /* small uses allocate nothing */
  region_trim(&r, 0);
  assert_int_equal(region_bytes(&r), 0);
  assert_true(heap_used() <= before + 1024);
  region_fini(&r);
}

/* The limit counts allocated bytes, not blocks. Rewinding gives them back, and the region is usable after a failure. */
static void beyond_the_limit_is_an_error_that_rejects(void **state)
{
  struct region r = { .limit_bytes = 10000 };
  void *p;

  (void)state;
  assert_fails(region_array(&r, 10001, 1, &p), ERR_TOO_LARGE, "limit of 10000");
  assert_int_equal(err_class(ERR_TOO_LARGE), ERR_CLASS_REJECT);
  assert_ok(region_array(&r, 6000, 1, &p));
  struct region_mark mark = region_mark(&r);
  assert_ok(region_array(&r, 4000, 1, &p));
  assert_fails(region_array(&r, 1, 1, &p), ERR_TOO_LARGE, "limit of 10000");
  region_rewind(&r, mark);
  assert_ok(region_array(&r, 4000, 1, &p));
  r.limit_bytes = 9000; /* below what is already allocated */
  assert_fails(region_array(&r, 1, 1, &p), ERR_TOO_LARGE, "limit of 9000");
  region_reset(&r);
  assert_ok(region_array(&r, 8992, 1, &p));
  r.limit_bytes = 0;
  assert_ok(region_array(&r, 1 << 20, 1, &p));
  region_fini(&r);
}

static void an_unused_region_can_be_reset_and_ended(void **state)
{
  struct region r = { 0 };

  (void)state;
  region_reset(&r);
  region_fini(&r);
  region_fini(&r);
  assert_null(r.first);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(arrays_are_zeroed_aligned_and_apart),
    cmocka_unit_test(the_same_use_again_allocates_nothing),
    cmocka_unit_test(outgrown_blocks_are_freed),
    cmocka_unit_test(memory_is_bounded_by_the_largest_round),
    cmocka_unit_test(sizes_that_overflow_are_errors),
    cmocka_unit_test(a_copy_is_followed_by_a_zero),
    cmocka_unit_test(a_rewind_forgets_allocations_after_the_mark_only),
    cmocka_unit_test(what_is_reserved_is_one_block),
    cmocka_unit_test(a_trim_frees_blocks_above_a_size),
    cmocka_unit_test(beyond_the_limit_is_an_error_that_rejects),
    cmocka_unit_test(an_unused_region_can_be_reset_and_ended),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
