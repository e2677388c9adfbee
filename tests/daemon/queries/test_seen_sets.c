/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of what users have seen: a user who asks again is not read again, until something has changed. The store is a
 * made-up one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/queries/seen_sets.h"
#include "tests/support/assert_ok.h"

/* User 0 has seen `n_items` items, the others one. */
struct seen {
  size_t n_items, n_reads;
  uint64_t stamp;
  int64_t now_unix_ms;
  bool is_damaged;
};

enum { TTL_MS = 1000, TIME_MS = 5000, ITEMS_MAX = 100000 };

static uint32_t numbers[ITEMS_MAX];

err_t seen_read(struct seen *s, struct span user, struct region *region, struct span **keys, size_t *n,
                int64_t *oldest_unix_ms)
{
  s->n_reads++;
  if (s->is_damaged)
    FAIL(ERR_STORE_CORRUPT, "damaged");
  *n = user.p[0] == 0 ? s->n_items : 1;
  *oldest_unix_ms = TIME_MS;
  TRY(region_array(region, *n, sizeof **keys, keys));
  for (size_t i = 0; i < *n; i++) {
    numbers[i] = (uint32_t)i;
    (*keys)[i] = span_of(&numbers[i], sizeof numbers[i]);
  }
  return ERR_OK;
}

uint64_t seen_stamp(const struct seen *s, struct span user)
{
  return user.p[0] == 0 ? s->stamp : 0;
}

bool seen_is_expired(const struct seen *s, int64_t time_unix_ms)
{
  return time_unix_ms < s->now_unix_ms - TTL_MS;
}

struct world {
  struct seen seen;
  struct key_hash hash;
  struct seen_sets *sets;
  struct region region;
};

static void open_world(struct world *w)
{
  *w = (struct world){ .seen = { .n_items = 10, .now_unix_ms = TIME_MS } };
  assert_ok(key_hash_init(&w->hash));
  assert_ok(seen_sets_open(&w->seen, &w->hash, &w->sets));
}

static void close_world(struct world *w)
{
  seen_sets_close(&w->sets);
  region_fini(&w->region);
}

static struct seen_set *acquire(struct world *w, uint8_t user, const struct key_set **set)
{
  struct seen_set *held;

  assert_ok(seen_sets_acquire(w->sets, span_of(&user, 1), &w->region, set, &held));
  return held;
}

/* Ask for user 0. Returns how many items it has seen. */
static size_t ask(struct world *w)
{
  const struct key_set *set;
  struct seen_set *held = acquire(w, 0, &set);
  size_t n = set->n;

  if (held)
    seen_sets_release(w->sets, held);
  return n;
}

static void a_user_who_asks_again_is_not_read_again(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  for (int i = 0; i < 3; i++)
    assert_int_equal(ask(&w), 10);
  assert_int_equal(w.seen.n_reads, 1);
  close_world(&w);
}

static void a_change_is_there_at_once(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  ask(&w);
  w.seen.n_items = 11;
  w.seen.stamp++;
  assert_int_equal(ask(&w), 11);
  assert_int_equal(ask(&w), 11);
  assert_int_equal(w.seen.n_reads, 2);
  close_world(&w);
}

static void a_set_ends_when_an_item_expires(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  ask(&w);
  w.seen.now_unix_ms = TIME_MS + TTL_MS;
  ask(&w);
  assert_int_equal(w.seen.n_reads, 1);
  w.seen.n_items = 9;
  w.seen.now_unix_ms++;
  assert_int_equal(ask(&w), 9);
  assert_int_equal(w.seen.n_reads, 2);
  close_world(&w);
}

static void a_set_that_is_held_stays(void **state)
{
  const struct key_set *first, *set;
  struct seen_set *held[SEEN_SETS_KEPT];
  struct world w;

  (void)state;
  open_world(&w);
  held[0] = acquire(&w, 0, &first);
  w.seen.stamp++;
  for (uint8_t user = 1; user < SEEN_SETS_KEPT; user++) {
    held[user] = acquire(&w, user, &set);
    assert_non_null(held[user]);
    assert_ptr_not_equal(set, first);
  }
  assert_null(acquire(&w, 0, &set)); /* there is no room, and the set has changed */
  assert_int_equal(set->n, 10);
  assert_int_equal(first->n, 10);
  assert_memory_equal(first->keys[9].p, &numbers[9], sizeof numbers[9]);
  for (size_t i = 0; i < SEEN_SETS_KEPT; i++)
    seen_sets_release(w.sets, held[i]);
  held[0] = acquire(&w, 0, &set);
  assert_non_null(held[0]);
  seen_sets_release(w.sets, held[0]);
  close_world(&w);
}

static void a_large_set_is_not_kept(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  w.seen.n_items = ITEMS_MAX;
  ask(&w);
  assert_int_equal(ask(&w), ITEMS_MAX);
  assert_int_equal(w.seen.n_reads, 2);
  close_world(&w);
}

static void nothing_is_held_or_kept_after_an_error(void **state)
{
  const struct key_set *set;
  struct seen_set *held;
  struct world w;
  uint8_t user = 0;

  (void)state;
  open_world(&w);
  w.seen.is_damaged = true;
  for (size_t i = 0; i < 2 * SEEN_SETS_KEPT; i++)
    assert_fails(seen_sets_acquire(w.sets, span_of(&user, 1), &w.region, &set, &held), ERR_STORE_CORRUPT, "damaged");
  w.seen.is_damaged = false;
  assert_non_null(acquire(&w, 0, &set));
  close_world(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_user_who_asks_again_is_not_read_again),
    cmocka_unit_test(a_change_is_there_at_once),
    cmocka_unit_test(a_set_ends_when_an_item_expires),
    cmocka_unit_test(a_set_that_is_held_stays),
    cmocka_unit_test(a_large_set_is_not_kept),
    cmocka_unit_test(nothing_is_held_or_kept_after_an_error),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
