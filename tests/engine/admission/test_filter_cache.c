/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of evaluated filters: what is found is what was written for that filter, space and version, entries in use
 * are never replaced, and memory is bounded. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/admission/filter_cache.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { WORDS = 16, SOME = 4, THREADS = 4, TREES = 12, SPACES = 2, STEPS = 20000, HELD_MAX = 3 };

static uint64_t seed;

static size_t bytes_of(size_t n_entries)
{
  return n_entries * (WORDS + 8) * sizeof(uint64_t); /* a cache line between entries */
}

static struct filter_cache *open_cache(size_t n_entries)
{
  struct filter_cache *c;

  assert_ok(filter_cache_open(WORDS, bytes_of(n_entries), &c));
  return c;
}

static struct filter_key key_of(const char *tree, size_t space, uint64_t version)
{
  return (struct filter_key){ span_of_str(tree), space, version };
}

/* The words of a key in these tests. */
static uint64_t word_of(const struct filter_key *key, size_t i)
{
  return (key->tree.p[0] * UINT64_C(1000003) + key->tree.p[key->tree.n - 1]) ^ (key->version << 20) ^
         (key->space << 50) ^ i << 56;
}

/* How many words a key has in these tests: not all that there is room for. */
static size_t n_words_of(const struct filter_key *key)
{
  return WORDS - key->version % 4;
}

static void write_words(struct filter_entry *entry, const struct filter_key *key)
{
  for (size_t i = 0; i < n_words_of(key); i++)
    filter_entry_words(entry).words[i] = word_of(key, i);
}

static void commit(struct filter_cache *c, struct filter_entry *entry, const struct filter_key *key)
{
  struct filter_words words = filter_entry_words(entry);

  words.n_words = n_words_of(key);
  words.n = key->version;
  filter_cache_commit(c, entry, &words);
}

static bool has_words(const struct filter_entry *entry, const struct filter_key *key)
{
  struct filter_words words = filter_entry_words(entry);
  bool is_same = words.n == key->version && words.n_words == n_words_of(key);

  for (size_t i = 0; is_same && i < words.n_words; i++)
    is_same = words.words[i] == word_of(key, i);
  return is_same;
}

/* Begin an entry that there must be room for. */
static struct filter_entry *begin(struct filter_cache *c, struct filter_key key)
{
  struct filter_entry *entry;

  assert_ok(filter_cache_begin(c, &key, 0, &entry));
  assert_non_null(entry);
  write_words(entry, &key);
  return entry;
}

static void put(struct filter_cache *c, struct filter_key key)
{
  struct filter_entry *entry = begin(c, key);

  commit(c, entry, &key);
  filter_cache_release(c, entry);
}

static bool finds(struct filter_cache *c, struct filter_key key)
{
  struct filter_entry *entry = filter_cache_acquire(c, &key);

  if (!entry)
    return false;
  assert_true(has_words(entry, &key));
  filter_cache_release(c, entry);
  return true;
}

static bool has_room(struct filter_cache *c, struct filter_key key)
{
  struct filter_entry *entry;

  assert_ok(filter_cache_begin(c, &key, 0, &entry));
  if (entry)
    filter_cache_release(c, entry);
  return entry != NULL;
}

static void a_filter_is_found_for_its_space_and_version_only(void **state)
{
  struct filter_cache *c = open_cache(SOME);
  struct filter_cache_stats stats;

  (void)state;
  put(c, key_of("a", 1, 7));
  assert_true(finds(c, key_of("a", 1, 7)));
  assert_true(finds(c, key_of("a", 1, 7)));
  assert_false(finds(c, key_of("b", 1, 7)));
  assert_false(finds(c, key_of("aa", 1, 7)));
  assert_false(finds(c, key_of("a", 0, 7)));
  assert_false(finds(c, key_of("a", 1, 8)));
  filter_cache_get_stats(c, &stats);
  assert_int_equal(stats.n_hits, 2);
  filter_cache_close(&c);
}

static void the_least_recently_used_entry_is_replaced(void **state)
{
  struct filter_cache *c = open_cache(2);

  (void)state;
  put(c, key_of("a", 0, 1));
  put(c, key_of("b", 0, 1));
  assert_true(finds(c, key_of("a", 0, 1)));
  put(c, key_of("c", 0, 1));
  assert_true(finds(c, key_of("a", 0, 1)));
  assert_false(finds(c, key_of("b", 0, 1)));
  assert_true(finds(c, key_of("c", 0, 1)));
  filter_cache_close(&c);
}

static void a_new_version_replaces_the_older_one_of_its_filter(void **state)
{
  struct filter_cache *c = open_cache(3);

  (void)state;
  put(c, key_of("a", 0, 1));
  put(c, key_of("b", 0, 1));
  put(c, key_of("c", 0, 1));
  assert_true(finds(c, key_of("b", 0, 1))); /* used last, and yet useless after the next line */
  put(c, key_of("b", 0, 2));
  assert_false(finds(c, key_of("b", 0, 1)));
  assert_true(finds(c, key_of("a", 0, 1)));
  assert_true(finds(c, key_of("b", 0, 2)));
  assert_true(finds(c, key_of("c", 0, 1)));
  put(c, key_of("b", 1, 3)); /* another space: the least recently used one, which is "a" */
  assert_false(finds(c, key_of("a", 0, 1)));
  assert_true(finds(c, key_of("b", 0, 2)));
  filter_cache_close(&c);
}

/* Begin an entry. Returns the former version whose words it has, or 0. */
static uint64_t begin_after(struct filter_cache *c, struct filter_key key, uint64_t since, struct filter_entry **entry)
{
  assert_ok(filter_cache_begin(c, &key, since, entry));
  assert_non_null(*entry);
  if (filter_entry_former(*entry) > 0) {
    struct filter_key former = key_of((const char *)key.tree.p, key.space, filter_entry_former(*entry));
    assert_true(has_words(*entry, &former));
  }
  return filter_entry_former(*entry);
}

static uint64_t former_of(struct filter_cache *c, struct filter_key key, uint64_t since)
{
  struct filter_entry *entry;
  uint64_t former = begin_after(c, key, since, &entry);

  filter_cache_release(c, entry);
  return former;
}

static void a_new_version_begins_with_the_words_of_the_former_one(void **state)
{
  struct filter_cache *c = open_cache(SOME);
  struct filter_entry *entry;

  (void)state;
  assert_int_equal(former_of(c, key_of("a", 0, 5), 0), 0);
  put(c, key_of("a", 0, 5));
  put(c, key_of("b", 0, 6));
  assert_int_equal(former_of(c, key_of("c", 0, 7), 0), 0);
  assert_int_equal(former_of(c, key_of("a", 1, 7), 0), 0);
  assert_int_equal(begin_after(c, key_of("a", 0, 7), 5, &entry), 5);
  assert_int_equal(former_of(c, key_of("a", 0, 7), 5), 0); /* its words are being written */
  filter_cache_release(c, entry);
  assert_int_equal(former_of(c, key_of("b", 0, 7), 7), 0); /* too old */
  filter_cache_close(&c);
}

static void the_words_of_a_former_version_in_use_are_copied(void **state)
{
  struct filter_cache *c = open_cache(SOME);
  struct filter_key old = key_of("a", 0, 5), new = key_of("a", 0, 6), newest_key = key_of("a", 0, 9);
  struct filter_entry *held, *entry, *last;

  (void)state;
  put(c, old);
  held = filter_cache_acquire(c, &old);
  assert_int_equal(begin_after(c, new, 3, &entry), 5);
  assert_ptr_not_equal(entry, held);
  write_words(entry, &new);
  commit(c, entry, &new);
  assert_true(has_words(held, &old));
  filter_cache_release(c, held);
  assert_int_equal(begin_after(c, newest_key, 3, &last), 6);
  assert_true(has_words(entry, &new));
  filter_cache_release(c, last);
  filter_cache_release(c, entry);
  filter_cache_close(&c);
}

static void a_filter_is_known_that_was_asked_for_in_its_version(void **state)
{
  struct filter_cache *c = open_cache(SOME);
  const struct filter_key all[] = { key_of("a", 0, 5), key_of("b", 0, 5), key_of("a", 1, 5), key_of("a", 0, 6) };
  uint64_t newest;

  (void)state;
  for (size_t i = 0; i < 4; i++)
    assert_false(filter_cache_ask(c, &all[i], &newest));
  for (size_t i = 0; i < 4; i++)
    assert_true(filter_cache_ask(c, &all[i], &newest));
  filter_cache_close(&c);
}

static void what_cannot_be_kept_was_never_asked_for(void **state)
{
  static char text[FILTER_CACHE_TREE_BYTES + 1];
  struct filter_cache *some = open_cache(SOME), *none = open_cache(0);
  const struct filter_key key = key_of("a", 0, 5), long_key = { span_of(text, sizeof text), 0, 5 };
  uint64_t newest = 1;

  (void)state;
  for (int i = 0; i < 2; i++) {
    assert_false(filter_cache_ask(some, &long_key, &newest));
    assert_false(filter_cache_ask(none, &key, &newest));
  }
  assert_int_equal(newest, 0);
  filter_cache_close(&some);
  filter_cache_close(&none);
}

static uint64_t newest_of(struct filter_cache *c, const struct filter_key *key)
{
  uint64_t newest;

  filter_cache_ask(c, key, &newest);
  return newest;
}

static void the_newest_version_is_known(void **state)
{
  struct filter_cache *c = open_cache(SOME);
  const struct filter_key key = key_of("a", 0, 9);

  (void)state;
  assert_int_equal(newest_of(c, &key), 0);
  put(c, key_of("a", 0, 5));
  put(c, key_of("a", 1, 7));
  put(c, key_of("b", 0, 8));
  assert_int_equal(newest_of(c, &key), 5);
  put(c, key_of("a", 0, 6));
  assert_int_equal(newest_of(c, &key), 6);
  filter_cache_close(&c);
}

static void what_was_made_is_counted(void **state)
{
  struct filter_cache *c = open_cache(SOME);
  struct filter_cache_stats stats;

  (void)state;
  filter_cache_note(c, true);
  filter_cache_note(c, true);
  filter_cache_note(c, false);
  filter_cache_get_stats(c, &stats);
  assert_int_equal(stats.n_patched, 2);
  assert_int_equal(stats.n_evaluated, 1);
  filter_cache_close(&c);
}

static void an_older_version_takes_no_room(void **state)
{
  struct filter_cache *c = open_cache(SOME);

  (void)state;
  put(c, key_of("a", 0, 2));
  assert_false(has_room(c, key_of("a", 0, 1)));
  assert_true(has_room(c, key_of("b", 0, 1)));
  filter_cache_close(&c);
}

static void an_entry_in_use_is_not_replaced(void **state)
{
  struct filter_cache *c = open_cache(SOME);
  struct filter_entry *held[SOME];
  static const char *const trees[SOME] = { "a", "b", "c", "d" };

  (void)state;
  for (size_t i = 0; i < SOME; i++) {
    struct filter_key key = key_of(trees[i], 0, 1);
    held[i] = begin(c, key);
    commit(c, held[i], &key);
  }
  assert_false(has_room(c, key_of("e", 0, 1)));
  assert_false(has_room(c, key_of("e", 0, 2))); /* a new version does not take them either */
  for (size_t i = 0; i < SOME; i++) {
    struct filter_key key = key_of(trees[i], 0, 1);
    assert_true(has_words(held[i], &key));
    filter_cache_release(c, held[i]);
  }
  assert_true(has_room(c, key_of("e", 0, 2)));
  filter_cache_close(&c);
}

static void an_entry_that_is_not_committed_is_dropped(void **state)
{
  struct filter_cache *c = open_cache(1);

  (void)state;
  filter_cache_release(c, begin(c, key_of("a", 0, 1)));
  assert_false(finds(c, key_of("a", 0, 1)));
  put(c, key_of("b", 0, 1));
  assert_true(finds(c, key_of("b", 0, 1)));
  filter_cache_close(&c);
}

static void two_searches_may_evaluate_the_same_filter(void **state)
{
  struct filter_cache *c = open_cache(2);
  struct filter_key key = key_of("a", 0, 1);
  struct filter_entry *first = begin(c, key), *second = begin(c, key);

  (void)state;
  commit(c, first, &key);
  commit(c, second, &key);
  assert_true(has_words(first, &key) && has_words(second, &key));
  filter_cache_release(c, first);
  filter_cache_release(c, second);
  put(c, key_of("b", 0, 1)); /* the second entry is free again, so the first one stays */
  assert_ptr_equal(filter_cache_acquire(c, &key), first);
  filter_cache_release(c, first);
  filter_cache_close(&c);
}

static void memory_is_bounded(void **state)
{
  struct filter_cache *c = open_cache(0);
  static uint8_t bytes[FILTER_CACHE_TREE_BYTES + 1] = "x";
  struct filter_key longest = { { bytes, FILTER_CACHE_TREE_BYTES }, 0, 1 };

  (void)state;
  assert_false(finds(c, key_of("a", 0, 1)));
  assert_false(has_room(c, key_of("a", 0, 1)));
  filter_cache_close(&c);
  c = open_cache(1000);
  assert_true(has_room(c, longest));
  longest.tree.n++;
  assert_false(has_room(c, longest));
  struct filter_entry *held[FILTER_CACHE_ENTRIES];
  for (size_t i = 0; i < FILTER_CACHE_ENTRIES; i++)
    held[i] = begin(c, key_of("a", i, 1));
  assert_false(has_room(c, key_of("a", FILTER_CACHE_ENTRIES, 1)));
  for (size_t i = 0; i < FILTER_CACHE_ENTRIES; i++)
    filter_cache_release(c, held[i]);
  filter_cache_close(&c);
}

/* Threads -------------------- */

struct worker {
  pthread_t thread;
  struct filter_cache *cache;
  struct dice dice;
  const char *fault;
};

static _Atomic uint64_t newest = 1;

static bool begins_with_former(const struct filter_entry *entry, const struct filter_key *key)
{
  struct filter_key former = *key;

  former.version = filter_entry_former(entry);
  return former.version >= key->version / 2 && former.version <= key->version && has_words(entry, &former);
}

/* Find or write an entry, as a search does. NULL: there is no room. */
static struct filter_entry *use(struct worker *w, const struct filter_key *key)
{
  struct filter_entry *entry = filter_cache_acquire(w->cache, key);

  if (entry)
    return entry;
  if (filter_cache_begin(w->cache, key, key->version / 2, &entry) != ERR_OK)
    w->fault = "begin failed";
  if (!entry)
    return NULL;
  if (filter_entry_former(entry) > 0 && !begins_with_former(entry, key))
    w->fault = "a new entry does not begin with the words of a former version";
  write_words(entry, key);
  if (dice_below(&w->dice, 8) == 0) { /* an evaluation that fails */
    filter_cache_release(w->cache, entry);
    return NULL;
  }
  commit(w->cache, entry, key);
  return entry;
}

static void search_once(struct worker *w)
{
  static const char *const trees[TREES] = { "a", "b", "c", "d", "aa", "ab", "ac", "ad", "ba", "bb", "bc", "bd" };
  uint64_t now = atomic_load(&newest);
  size_t n = 1 + dice_below(&w->dice, HELD_MAX);
  struct filter_entry *held[HELD_MAX];
  struct filter_key keys[HELD_MAX];

  for (size_t i = 0; i < n; i++) {
    keys[i] = key_of(trees[dice_below(&w->dice, TREES)], dice_below(&w->dice, SPACES), now);
    held[i] = use(w, &keys[i]);
  }
  if (dice_below(&w->dice, 50) == 0)
    atomic_fetch_add(&newest, 1);
  for (size_t i = 0; i < n; i++) {
    if (!held[i])
      continue;
    if (!has_words(held[i], &keys[i]))
      w->fault = "an entry has the words of another filter";
    filter_cache_release(w->cache, held[i]);
  }
}

static void *search_on(void *context)
{
  struct worker *w = context;

  for (size_t i = 0; i < STEPS && !w->fault; i++)
    search_once(w);
  return NULL;
}

static void run_threads(size_t n_entries)
{
  struct worker workers[THREADS];
  struct filter_cache *c = open_cache(n_entries);

  for (size_t i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){ .cache = c, .dice = { seed + 100 * n_entries + i } };
    assert_int_equal(pthread_create(&workers[i].thread, NULL, search_on, &workers[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    if (workers[i].fault)
      fail_msg("%s", workers[i].fault);
  }
  filter_cache_close(&c);
}

static void threads_share_entries_while_versions_change(void **state)
{
  (void)state;
  run_threads(2);
  run_threads(TREES * SPACES);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_filter_is_found_for_its_space_and_version_only),
    cmocka_unit_test(the_least_recently_used_entry_is_replaced),
    cmocka_unit_test(a_new_version_replaces_the_older_one_of_its_filter),
    cmocka_unit_test(a_new_version_begins_with_the_words_of_the_former_one),
    cmocka_unit_test(the_words_of_a_former_version_in_use_are_copied),
    cmocka_unit_test(a_filter_is_known_that_was_asked_for_in_its_version),
    cmocka_unit_test(what_cannot_be_kept_was_never_asked_for),
    cmocka_unit_test(the_newest_version_is_known),
    cmocka_unit_test(what_was_made_is_counted),
    cmocka_unit_test(an_older_version_takes_no_room),
    cmocka_unit_test(an_entry_in_use_is_not_replaced),
    cmocka_unit_test(an_entry_that_is_not_committed_is_dropped),
    cmocka_unit_test(two_searches_may_evaluate_the_same_filter),
    cmocka_unit_test(memory_is_bounded),
    cmocka_unit_test(threads_share_entries_while_versions_change),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
