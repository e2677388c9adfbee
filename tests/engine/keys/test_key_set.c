/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of keys: a set has the keys that it was made of and no other ones, even if their hashes are equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/keys/key_set.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { NUMBERS = 300000, KEY_BYTES = 4, COLLIDING = 10 };

static uint64_t seed;

struct world {
  struct dice dice;
  struct region region;
  struct key_hash hash;
  uint32_t numbers[NUMBERS]; /* number i is i: a key's bytes */
  struct span keys[NUMBERS];
  bool is_in[NUMBERS];
};

static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed;
  assert_ok(key_hash_init(&w->hash));
  for (uint32_t i = 0; i < NUMBERS; i++)
    w->numbers[i] = i;
  return w;
}

static void close_world(struct world *w)
{
  region_fini(&w->region);
  free(w);
}

static struct span key_of(const struct world *w, uint32_t number)
{
  return span_of(&w->numbers[number], KEY_BYTES);
}

static void a_set_has_just_its_keys(void **state)
{
  static const size_t sizes[] = { 0, 1, 63, 64, 65, 257, 10000, 100000 };
  struct world *w = open_world();
  struct key_set set;

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    size_t n_distinct = 0;
    memset(w->is_in, 0, sizeof w->is_in);
    for (size_t k = 0; k < sizes[i]; k++) {
      uint32_t number = (uint32_t)dice_below(&w->dice, k % 2 ? NUMBERS : 100); /* many come twice */
      w->keys[k] = key_of(w, number);
      n_distinct += !w->is_in[number];
      w->is_in[number] = true;
    }
    region_fini(&w->region);
    assert_ok(region_reserve(&w->region, key_set_bytes(sizes[i])));
    assert_ok(key_set_init(&w->hash, w->keys, sizes[i], &w->region, &set));
    assert_int_equal(region_bytes(&w->region), key_set_bytes(sizes[i]));
    assert_int_equal(set.n_distinct, n_distinct);
    for (uint32_t number = 0; number < NUMBERS; number++)
      assert_int_equal(key_set_has(&set, key_of(w, number)), w->is_in[number]);
  }
  close_world(w);
}

static void a_set_grows_by_keys_that_it_does_not_have(void **state)
{
  static const size_t sizes[] = { 0, 1, 23, 32, 64, 1000, 4096 };
  struct world *w = open_world();
  struct key_set set;

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    size_t max = sizes[i] + sizes[i] / 8 + 16;
    uint32_t first = (uint32_t)dice_below(&w->dice, NUMBERS - 2 * max);
    for (size_t k = 0; k < sizes[i]; k++)
      w->keys[k] = key_of(w, first + (uint32_t)k);
    region_fini(&w->region);
    assert_ok(key_set_init(&w->hash, w->keys, sizes[i], &w->region, &set));
    for (size_t k = sizes[i]; k < max; k++) {
      w->keys[k] = key_of(w, first + (uint32_t)k);
      assert_false(key_set_has(&set, w->keys[k]));
      key_set_grow(&set);
      assert_int_equal(set.n, k + 1);
      assert_int_equal(set.n_distinct, k + 1);
    }
    for (uint32_t number = 0; number < NUMBERS; number++)
      assert_int_equal(key_set_has(&set, key_of(w, number)), number >= first && number < first + max);
  }
  close_world(w);
}

struct hashed {
  uint32_t hash, number;
};

static int by_hash(const void *a, const void *b)
{
  const struct hashed *x = a, *y = b;

  return (x->hash > y->hash) - (x->hash < y->hash);
}

/* Find pairs of keys with equal hashes. Returns how many; there are some ten. */
static size_t find_colliding(const struct world *w, struct hashed pairs[COLLIDING][2])
{
  struct hashed *all = malloc(NUMBERS * sizeof *all);
  size_t n = 0;

  for (uint32_t i = 0; i < NUMBERS; i++)
    all[i] = (struct hashed){ key_hash_of(&w->hash, key_of(w, i)), i };
  qsort(all, NUMBERS, sizeof *all, by_hash);
  for (size_t i = 1; i < NUMBERS && n < COLLIDING; i++) {
    if (all[i].hash == all[i - 1].hash)
      memcpy(pairs[n++], &all[i - 1], 2 * sizeof *all);
  }
  free(all);
  return n;
}

static void keys_with_equal_hashes_are_told_by_their_bytes(void **state)
{
  struct hashed pairs[COLLIDING][2];
  struct world *w = open_world();
  size_t n = find_colliding(w, pairs);
  struct key_set set;

  (void)state;
  while (n == 0) { /* once in 30,000 runs */
    assert_ok(key_hash_init(&w->hash));
    n = find_colliding(w, pairs);
  }
  for (size_t i = 0; i < n; i++)
    w->keys[i] = key_of(w, pairs[i][0].number);
  assert_ok(key_set_init(&w->hash, w->keys, n, &w->region, &set));
  for (size_t i = 0; i < n; i++) {
    assert_true(key_set_has(&set, key_of(w, pairs[i][0].number)));
    assert_true(key_set_may_have(&set, pairs[i][1].hash));
    assert_false(key_set_has(&set, key_of(w, pairs[i][1].number)));
  }
  close_world(w);
}

static void a_list_that_repeats_one_key_takes_one_place(void **state)
{
  struct world *w = open_world();
  struct key_set set;
  size_t n_taken = 0;

  (void)state;
  for (size_t i = 0; i < 100000; i++)
    w->keys[i] = key_of(w, 7);
  assert_ok(key_set_init(&w->hash, w->keys, 100000, &w->region, &set));
  for (size_t i = 0; i <= set.mask; i++)
    n_taken += set.table[i].index_plus_1 > 0;
  assert_int_equal(n_taken, 1);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_set_has_just_its_keys),
    cmocka_unit_test(a_set_grows_by_keys_that_it_does_not_have),
    cmocka_unit_test(keys_with_equal_hashes_are_told_by_their_bytes),
    cmocka_unit_test(a_list_that_repeats_one_key_takes_one_place),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
