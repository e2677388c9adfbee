/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an arena compared with a plain array, under churn and with colliding hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/parallel.h"
#include "engine/keys/keys.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_KEYS = 3000, KEY_BYTES = 256 };

struct key {
  uint8_t bytes[KEY_BYTES];
  size_t n;
  uint32_t slot; /* KEYS_NONE: not in the table */
};

/* The keys that may be put, and the key in each slot. */
struct world {
  struct dice dice;
  struct key_hash hash;
  struct keys keys;
  struct key all[MAX_KEYS];
  size_t n_all;
  size_t in_slot[MAX_KEYS];
  size_t n_slots;
};

static uint64_t seed;

static struct span span_of_key(const struct key *key)
{
  return span_of(key->bytes, key->n);
}

static struct world *open_world(size_t n_all)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed;
  w->n_all = n_all;
  assert_ok(key_hash_init(&w->hash));
  assert_ok(keys_init(n_all, &w->hash, &w->keys));
  for (size_t i = 0; i < n_all; i++)
    w->all[i].slot = KEYS_NONE;
  return w;
}

static void close_world(struct world *w)
{
  keys_fini(&w->keys, w->n_slots);
  free(w);
}

/* Draw keys: short and long, binary and text, many of them prefixes of others. */
static void draw_keys(struct world *w)
{
  for (size_t i = 0; i < w->n_all; i++) {
    struct key *key = &w->all[i];
    key->n = i % 7 == 0 ? 256 : i % 5 == 0 ? 4 + dice_below(&w->dice, 252) : 4;
    memset(key->bytes, i % 2 ? 'x' : 0, sizeof key->bytes);
    memcpy(key->bytes + (i % 3 ? 0 : key->n - 4), &(uint32_t){ (uint32_t)i }, 4);
  }
}

static void put(struct world *w, size_t i)
{
  struct key_text *text = NULL;

  w->all[i].slot = (uint32_t)w->n_slots;
  assert_ok(key_text_make(span_of_key(&w->all[i]), &text));
  keys_put(&w->keys, (uint32_t)w->n_slots, text);
  w->in_slot[w->n_slots++] = i;
}

/* Remove a key as the arena does: the last key moves into the hole. */
static void take(struct world *w, size_t i)
{
  uint32_t slot = w->all[i].slot, last = (uint32_t)w->n_slots - 1;

  keys_remove(&w->keys, slot);
  w->all[i].slot = KEYS_NONE;
  if (slot != last) {
    keys_move(&w->keys, last, slot);
    w->in_slot[slot] = w->in_slot[last];
    w->all[w->in_slot[slot]].slot = slot;
  }
  w->n_slots--;
}

static void check_all(const struct world *w)
{
  static struct span keys[MAX_KEYS];
  static uint32_t slots[MAX_KEYS];

  for (size_t i = 0; i < w->n_all; i++) {
    keys[i] = span_of_key(&w->all[i]);
    assert_int_equal(keys_find(&w->keys, keys[i]), w->all[i].slot);
  }
  keys_find_all(&w->keys, keys, w->n_all, slots);
  for (size_t i = 0; i < w->n_all; i++)
    assert_int_equal(slots[i], w->all[i].slot);
  for (uint32_t slot = 0; slot < w->n_slots; slot++)
    assert_true(span_equal(keys_get(&w->keys, slot), span_of_key(&w->all[w->in_slot[slot]])));
}

static void churn(struct world *w, size_t n_steps, size_t check_every)
{
  for (size_t step = 1; step <= n_steps; step++) {
    size_t i = dice_below(&w->dice, w->n_all);
    if (w->all[i].slot == KEYS_NONE)
      put(w, i);
    else
      take(w, i);
    if (step % check_every == 0)
      check_all(w);
  }
}

static void keys_are_found_in_their_slot_under_churn(void **state)
{
  struct world *w = open_world(MAX_KEYS);

  (void)state;
  draw_keys(w);
  churn(w, 60000, 5000);
  for (size_t i = 0; i < w->n_all; i++) { /* used to the last slot */
    if (w->all[i].slot == KEYS_NONE)
      put(w, i);
  }
  check_all(w);
  while (w->n_slots)
    take(w, w->in_slot[dice_below(&w->dice, w->n_slots)]);
  check_all(w);
  close_world(w);
}

struct loader {
  struct world *world;
  _Atomic size_t next;
};

static err_code_t load_some(void *context)
{
  struct loader *l = context;
  struct world *w = l->world;
  size_t i;

  while ((i = atomic_fetch_add(&l->next, 1)) < w->n_all) {
    struct key_text *text = NULL;
    TRY(key_text_make(span_of_key(&w->all[i]), &text));
    keys_load(&w->keys, (uint32_t)i, text);
    w->all[i].slot = (uint32_t)i;
    w->in_slot[i] = i;
  }
  return ERR_OK;
}

static void keys_that_threads_have_loaded_are_found_and_can_change(void **state)
{
  (void)state;
  for (int round = 0; round < 5; round++) {
    struct world *w = open_world(MAX_KEYS - (size_t)round);
    struct loader loader = { .world = w };
    draw_keys(w);
    assert_ok(parallel_run(3, load_some, &loader));
    w->n_slots = w->n_all;
    check_all(w);
    churn(w, 6000, 2000);
    close_world(w);
  }
}

static uint32_t hash_of(const struct world *w, const void *p, size_t n)
{
  return (uint32_t)XXH3_64bits_withSecret(p, n, w->hash.secret, sizeof w->hash.secret);
}

static size_t home_of(const struct keys *k, uint32_t hash)
{
  return (size_t)((double)hash / 0x1p32 * (double)k->n_table);
}

/* All keys have their home in the last few entries of the table. They form one long run that wraps around its end. */
static void keys_that_share_a_home_are_kept_apart_and_gaps_close(void **state)
{
  enum { N = 60 };
  struct world *w = open_world(N);
  uint32_t candidate = 0;

  (void)state;
  for (size_t i = 0; i < N; candidate++) {
    if (home_of(&w->keys, hash_of(w, &candidate, 4)) < w->keys.n_table - 3)
      continue;
    w->all[i].n = 4;
    memcpy(w->all[i++].bytes, &candidate, 4);
  }
  churn(w, 6000, 1);
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

static void keys_with_equal_hashes_are_told_by_their_bytes(void **state)
{
  enum { CANDIDATES = 600000 };
  struct hashed *hashed = malloc(CANDIDATES * sizeof *hashed);
  struct world *w = open_world(40);
  size_t n = 0;

  (void)state;
  for (uint32_t i = 0; i < CANDIDATES; i++)
    hashed[i] = (struct hashed){ hash_of(w, &i, 4), i };
  qsort(hashed, CANDIDATES, sizeof *hashed, by_hash);
  for (size_t i = 1; i < CANDIDATES && n < 40; i++) {
    if (hashed[i].hash != hashed[i - 1].hash)
      continue;
    for (size_t j = i - 1; j <= i; j++) {
      w->all[n].n = 4;
      memcpy(w->all[n++].bytes, &hashed[j].number, 4);
    }
  }
  assert_true(n >= 20);
  w->n_all = n;
  churn(w, 3000, 1);
  close_world(w);
  free(hashed);
}

/* Keys chosen by an outsider: a hash without a secret would give all of them the same home. */
static void keys_chosen_to_share_a_home_do_not(void **state)
{
  enum { N = 400 };
  struct world *w = open_world(2 * N), *other = open_world(2 * N);
  const struct keys *k = &w->keys;
  size_t n_farther = 0;
  uint32_t candidate = 0;

  (void)state;
  for (size_t i = 0; i < N; candidate++) {
    if (home_of(k, (uint32_t)XXH3_64bits(&candidate, 4)) != 7)
      continue;
    w->all[i].n = 4;
    memcpy(w->all[i++].bytes, &candidate, 4);
  }
  for (size_t i = 0; i < N; i++)
    put(w, i);
  for (size_t i = 0; i < k->n_table; i++) {
    if (k->table[i].slot_plus_1 && (i + k->n_table - home_of(k, k->table[i].hash)) % k->n_table > 64)
      n_farther++;
  }
  assert_int_equal(n_farther, 0);
  assert_memory_not_equal(w->hash.secret, other->hash.secret, sizeof w->hash.secret);
  check_all(w);
  close_world(w);
  close_world(other);
}

static void keys_are_ordered_bytewise(void **state)
{
  static const char *const rising[] = { "a", "a\1", "aa", "ab", "b", "\x7f", "\x80", "\xff", "\xff\xff" };
  struct world *w = open_world(16);

  (void)state;
  for (size_t i = 0; i < sizeof rising / sizeof rising[0]; i++) {
    w->all[i].n = strlen(rising[i]);
    memcpy(w->all[i].bytes, rising[i], w->all[i].n);
    put(w, i);
  }
  for (uint32_t a = 0; a < w->n_slots; a++)
    for (uint32_t b = 0; b < w->n_slots; b++)
      assert_int_equal((keys_order(&w->keys, a, b) > 0) - (keys_order(&w->keys, a, b) < 0), (a > b) - (a < b));
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_are_found_in_their_slot_under_churn),
    cmocka_unit_test(keys_that_threads_have_loaded_are_found_and_can_change),
    cmocka_unit_test(keys_that_share_a_home_are_kept_apart_and_gaps_close),
    cmocka_unit_test(keys_with_equal_hashes_are_told_by_their_bytes),
    cmocka_unit_test(keys_chosen_to_share_a_home_do_not),
    cmocka_unit_test(keys_are_ordered_bytewise),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
