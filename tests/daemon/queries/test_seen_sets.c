/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of what users have seen: a user who asks again is not read again, until an item has expired, or others have taken
 * the memory; what the user has seen meanwhile is read and added. The store is a made-up one. */
#include <pthread.h>
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
  _Atomic size_t n_items;
  uint64_t log; /* rises when the log of user 0 is compacted */
  _Atomic size_t n_reads;
  _Atomic size_t n_keys_read;
  _Atomic uint64_t stamp;
  int64_t now_unix_ms;
  int64_t oldest_unix_ms;
  bool is_damaged;
};

enum { TTL_MS = 1000, TIME_MS = 5000, ITEMS_MAX = 100000 };

/* What is kept in most tests: some users with one item each, which take 1.4 KB, and one with some thousand. */
enum { MAX_BYTES = 1 << 20, USERS = 64 };

/* As in the store: chunks of a log, and numbers of the chunks of all logs. */
enum { CHUNK = 64, LOG_CHUNKS = 1 << 20 };

static uint32_t numbers[ITEMS_MAX];

err_t seen_read(struct seen *s, struct span user, uint64_t first_chunk, struct region *region, struct seen_keys *out)
{
  uint64_t log = user.p[0] == 0 ? s->log : 0, number = 1 + log * LOG_CHUNKS;
  size_t n = user.p[0] == 0 ? s->n_items : 1;

  s->n_reads++;
  if (s->is_damaged)
    FAIL(ERR_STORE_CORRUPT, "damaged");
  *out = (struct seen_keys){ .oldest_unix_ms = s->oldest_unix_ms, .newest_chunk = number + (n - 1) / CHUNK };
  out->is_whole = first_chunk < number;
  size_t first = out->is_whole ? 0 : (first_chunk - number) * CHUNK;
  TRY(region_array(region, n - first, sizeof *out->keys, &out->keys));
  for (; first < n; first++)
    out->keys[out->n++] = span_of(&numbers[first], sizeof numbers[first]);
  s->n_keys_read += out->n;
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

static void open_world_of(size_t max_bytes, struct world *w)
{
  *w = (struct world){ .seen = { .n_items = 10, .now_unix_ms = TIME_MS, .oldest_unix_ms = TIME_MS } };
  assert_ok(key_hash_init(&w->hash));
  assert_ok(seen_sets_open(&w->seen, &w->hash, max_bytes, &w->sets));
}

static void open_world(struct world *w)
{
  open_world_of(MAX_BYTES, w);
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

/* Returns how many items the user has seen. */
static size_t ask_for(struct world *w, uint8_t user)
{
  const struct key_set *set;
  struct seen_set *held = acquire(w, user, &set);
  size_t n = set->n;

  if (held)
    seen_sets_release(w->sets, held);
  return n;
}

static size_t ask(struct world *w)
{
  return ask_for(w, 0);
}

/* Was the user read just now, and is not when it asks again? */
static bool is_read_once(struct world *w, uint8_t user)
{
  size_t n_reads = w->seen.n_reads;

  ask_for(w, user);
  bool is_read = w->seen.n_reads == n_reads + 1;
  ask_for(w, user);
  return is_read && w->seen.n_reads == n_reads + 1;
}

/* Is the set kept? If not, it is read. */
static bool is_kept(struct world *w, uint8_t user)
{
  size_t n_reads = w->seen.n_reads;

  ask_for(w, user);
  return w->seen.n_reads == n_reads;
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

/* Verify that the set of user 0 has all that the user has seen. */
static void assert_whole(struct world *w, const struct key_set *set)
{
  assert_int_equal(set->n, w->seen.n_items);
  assert_int_equal(set->n_distinct, set->n);
  for (size_t i = 0; i < set->n; i++)
    assert_true(span_equal(set->keys[i], span_of(&numbers[i], sizeof numbers[i])));
  for (size_t i = 0; i < ITEMS_MAX; i++)
    assert_int_equal(key_set_has(set, span_of(&numbers[i], sizeof numbers[i])), i < set->n);
}

static void assert_has_all(struct world *w)
{
  const struct key_set *set;
  struct seen_set *held = acquire(w, 0, &set);

  assert_whole(w, set);
  seen_sets_release(w->sets, held);
}

static void a_page_after_each_query_is_added(void **state)
{
  enum { PAGES = 60, PAGE = 10, READ_ANEW = 1000 + 1150 + 1310 + 1490 }; /* room for an eighth and 16 more */
  struct world w;

  (void)state;
  open_world(&w);
  w.seen.n_items = 1000;
  assert_has_all(&w);
  for (size_t i = 0; i < PAGES; i++) {
    w.seen.n_items += PAGE;
    w.seen.stamp++;
    assert_has_all(&w);
    assert_true(is_kept(&w, 0));
  }
  assert_in_range(w.seen.n_keys_read, READ_ANEW, READ_ANEW + PAGES * (CHUNK + 2 * PAGE));
  close_world(&w);
}

static void a_compacted_log_is_read_anew(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  w.seen.n_items = 1000;
  assert_has_all(&w);
  w.seen.n_items = 800;
  w.seen.log++;
  w.seen.stamp++;
  assert_has_all(&w);
  assert_int_equal(w.seen.n_reads, 2);
  assert_int_equal(w.seen.n_keys_read, 1800);
  close_world(&w);
}

/* What is added may be older than what the set had. */
static void a_set_ends_when_an_added_item_expires(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  ask(&w);
  w.seen.n_items++;
  w.seen.oldest_unix_ms = TIME_MS - 10;
  w.seen.stamp++;
  ask(&w);
  w.seen.now_unix_ms = TIME_MS - 10 + TTL_MS;
  assert_true(is_kept(&w, 0));
  w.seen.now_unix_ms++;
  assert_false(is_kept(&w, 0));
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

static void a_set_has_what_the_user_has_seen(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  w.seen.n_items = 1000;
  assert_has_all(&w);
  close_world(&w);
}

static void many_users_are_kept(void **state)
{
  struct world w;

  (void)state;
  open_world(&w);
  for (uint8_t user = 0; user < USERS; user++)
    assert_true(is_read_once(&w, user));
  for (uint8_t user = 0; user < USERS; user++)
    assert_true(is_kept(&w, user));
  close_world(&w);
}

static void those_who_asked_least_recently_are_read_again(void **state)
{
  struct world w;
  size_t n_kept = 0;

  (void)state;
  open_world_of(16 << 10, &w);
  for (uint8_t user = 1; user < USERS; user++) {
    ask_for(&w, 1);
    ask_for(&w, user);
  }
  assert_true(is_kept(&w, 1));
  for (uint8_t user = USERS - 1; user > 1 && is_kept(&w, user); user--)
    n_kept++;
  assert_in_range(n_kept, 6, 20); /* of some 1.4 KB each */
  assert_false(is_kept(&w, 2));
  close_world(&w);
}

static void a_user_takes_the_room_of_one_set(void **state)
{
  struct world w;

  (void)state;
  open_world_of(16 << 10, &w);
  ask_for(&w, 1);
  for (; w.seen.stamp < 100; w.seen.stamp++)
    ask(&w);
  assert_true(is_kept(&w, 1));
  close_world(&w);
}

static void a_set_that_is_held_stays(void **state)
{
  const struct key_set *first, *set;
  struct seen_set *held[USERS];
  struct world w;

  (void)state;
  open_world_of(16 << 10, &w);
  held[0] = acquire(&w, 0, &first);
  w.seen.stamp++;
  for (uint8_t user = 1; user < USERS; user++) {
    held[user] = acquire(&w, user, &set);
    assert_non_null(held[user]);
    assert_ptr_not_equal(set, first);
  }
  assert_false(is_kept(&w, 1)); /* no more, but it is held */
  assert_int_equal(first->n, 10);
  assert_memory_equal(first->keys[9].p, &numbers[9], sizeof numbers[9]);
  for (size_t i = 0; i < USERS; i++)
    seen_sets_release(w.sets, held[i]);
  close_world(&w);
}

/* As two workers do: both hold the set, and it changes in between. */
static void a_set_is_replaced_while_it_is_held(void **state)
{
  const struct key_set *before, *again, *after;
  struct world w;

  (void)state;
  open_world(&w);
  struct seen_set *one = acquire(&w, 0, &before), *two = acquire(&w, 0, &again);
  assert_ptr_equal(before, again);
  w.seen.n_items = 11;
  w.seen.stamp++;
  struct seen_set *three = acquire(&w, 0, &after);
  assert_int_equal(after->n, 11);
  seen_sets_release(w.sets, one);
  assert_int_equal(again->n, 10);
  seen_sets_release(w.sets, two);
  seen_sets_release(w.sets, three);
  assert_true(is_kept(&w, 0));
  close_world(&w);
}

static void a_large_set_is_not_kept(void **state)
{
  const struct key_set *set;
  struct world w;

  (void)state;
  open_world(&w);
  ask_for(&w, 1);
  w.seen.n_items = ITEMS_MAX;
  assert_null(acquire(&w, 0, &set));
  assert_int_equal(set->n, ITEMS_MAX);
  assert_int_equal(ask(&w), ITEMS_MAX);
  assert_int_equal(w.seen.n_reads, 3);
  assert_true(is_kept(&w, 1)); /* it pushes nobody out */
  close_world(&w);
}

struct sharer {
  struct world *world;
  struct region region;
  pthread_t thread;
};

/* Ask for some users again and again: some are kept, some pushed out, and user 0 sees something all the time. */
static void *share(void *context)
{
  struct sharer *sharer = context;
  struct world *w = sharer->world;

  for (uint8_t i = 0; i < UINT8_MAX; i++) {
    const struct key_set *set;
    struct seen_set *held;
    uint8_t user = i % 2 ? i % USERS : 0;
    size_t n_before = 10 + w->seen.stamp; /* the items rise before the stamp does */
    assert_ok(seen_sets_acquire(w->sets, span_of(&user, 1), &sharer->region, &set, &held));
    assert_in_range(set->n, user == 0 ? n_before : 1, user == 0 ? w->seen.n_items : 1);
    for (size_t k = 0; k < set->n; k++)
      assert_true(key_set_has(set, span_of(&numbers[k], sizeof numbers[k])));
    if (held)
      seen_sets_release(w->sets, held);
    if (i % 16 == 0) { /* seldom, so that the set stays small enough to be kept */
      w->seen.n_items++;
      w->seen.stamp++;
    }
  }
  return NULL;
}

static void workers_share_the_sets(void **state)
{
  struct sharer sharers[3] = { 0 };
  struct world w;

  (void)state;
  open_world_of(40 << 10, &w);
  for (size_t i = 0; i < 3; i++) {
    sharers[i].world = &w;
    assert_int_equal(pthread_create(&sharers[i].thread, NULL, share, &sharers[i]), 0);
  }
  for (size_t i = 0; i < 3; i++) {
    pthread_join(sharers[i].thread, NULL);
    region_fini(&sharers[i].region);
  }
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
  for (size_t i = 0; i < 3; i++)
    assert_fails(seen_sets_acquire(w.sets, span_of(&user, 1), &w.region, &set, &held), ERR_STORE_CORRUPT, "damaged");
  w.seen.is_damaged = false;
  assert_int_equal(ask(&w), 10);
  close_world(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_user_who_asks_again_is_not_read_again),
    cmocka_unit_test(a_change_is_there_at_once),
    cmocka_unit_test(a_page_after_each_query_is_added),
    cmocka_unit_test(a_compacted_log_is_read_anew),
    cmocka_unit_test(a_set_ends_when_an_added_item_expires),
    cmocka_unit_test(a_set_ends_when_an_item_expires),
    cmocka_unit_test(a_set_has_what_the_user_has_seen),
    cmocka_unit_test(many_users_are_kept),
    cmocka_unit_test(those_who_asked_least_recently_are_read_again),
    cmocka_unit_test(a_user_takes_the_room_of_one_set),
    cmocka_unit_test(a_set_that_is_held_stays),
    cmocka_unit_test(a_set_is_replaced_while_it_is_held),
    cmocka_unit_test(a_large_set_is_not_kept),
    cmocka_unit_test(workers_share_the_sets),
    cmocka_unit_test(nothing_is_held_or_kept_after_an_error),
  };

  for (uint32_t i = 0; i < ITEMS_MAX; i++)
    numbers[i] = i;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
