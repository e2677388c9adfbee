/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas of two spaces under churn: slots stay dense, the parts of an item come and go independently, and searches
 * return the same as in an engine that was filled with the same items at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine_state.h"
#include "tests/support/two_spaces.h"

enum { MAX_BATCH = 30 };

struct world {
  struct dice dice;
  struct two_spaces two;
  struct two_item items[TWO_MAX];
  struct engine *engine;
};

static uint64_t seed;

static struct world *open_world(uint64_t salt)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed + salt;
  two_spaces_init(&w->two, &w->dice);
  assert_ok(engine_open(&w->two.config, &w->engine));
  return w;
}

static void close_world(struct world *w)
{
  engine_close(&w->engine);
  two_spaces_fini(&w->two);
  free(w);
}

/* A batch of changes and the memory that it points to. */
struct batch {
  struct item_change changes[MAX_BATCH];
  struct part parts[MAX_BATCH][2];
  struct two_item items[MAX_BATCH];
  char keys[MAX_BATCH][32];
  size_t n;
};

/* Draw one change and apply it to the expected items. */
static void draw_change(struct world *w, struct batch *b)
{
  size_t i = dice_below(&w->dice, TWO_MAX), n = b->n++;
  struct two_item *item = &w->items[i], *new = &b->items[n];
  struct item_change *change = &b->changes[n];
  bool with_pq = dice_below(&w->dice, 3), with_mol = dice_below(&w->dice, 3);

  *change = (struct item_change){ .key = two_key(i, b->keys[n]), .parts = b->parts[n] };
  if (dice_below(&w->dice, 4) == 0) {
    change->is_delete = true;
    *item = (struct two_item){ 0 };
    return;
  }
  for (size_t m = 0; m < TWO_SPLITS; m++)
    new->codes[m] = (uint8_t)dice_below(&w->dice, TWO_SUBITEMS);
  dice_fill(&w->dice, new->vector, TWO_MOL_DIM, 1.0f);
  change->is_whole = dice_below(&w->dice, 4) == 0;
  change->n_parts = two_parts(new, with_pq, with_mol, b->parts[n]);
  if (change->is_whole)
    *item = (struct two_item){ 0 };
  item->is_live = true;
  if (with_pq)
    memcpy(item->codes, new->codes, sizeof item->codes);
  if (with_mol)
    memcpy(item->vector, new->vector, sizeof item->vector);
  item->has_pq |= with_pq;
  item->has_mol |= with_mol;
}

static void churn(struct world *w, size_t n_batches)
{
  static struct batch b;

  for (size_t i = 0; i < n_batches; i++) {
    b = (struct batch){ 0 };
    for (size_t j = 0, n = dice_below(&w->dice, MAX_BATCH + 1); j < n; j++)
      draw_change(w, &b);
    fixture_apply(w->engine, b.changes, b.n);
  }
}

/* Open an engine that gets all items at once, in the order of their numbers. */
static struct engine *rebuild(const struct world *w)
{
  struct engine *e;
  struct part parts[2];
  char text[32];

  assert_ok(engine_open(&w->two.config, &e));
  for (size_t i = 0; i < TWO_MAX; i++) {
    const struct two_item *item = &w->items[i];
    if (item->is_live)
      fixture_put(e, two_key(i, text), parts, two_parts(item, item->has_pq, item->has_mol, parts));
  }
  return e;
}

/* Assert that an arena holds exactly the live items, each with its parts. */
static void check_arena(const struct world *w, const struct arena *a)
{
  size_t n_live = 0, n_parts[2] = { 0 };
  char text[32];

  for (size_t i = 0; i < TWO_MAX; i++) {
    const struct two_item *item = &w->items[i];
    uint32_t slot = keys_find(&a->keys, two_key(i, text));
    assert_int_equal(slot != KEYS_NONE, item->is_live);
    if (!item->is_live)
      continue;
    assert_true(slot < a->n_slots);
    assert_int_equal(bits_get(a->spaces[0].has_part, slot), item->has_pq);
    assert_int_equal(bits_get(a->spaces[1].has_part, slot), item->has_mol);
    n_live++;
    n_parts[0] += item->has_pq;
    n_parts[1] += item->has_mol;
  }
  assert_int_equal(a->n_slots, n_live);
  for (size_t s = 0; s < 2; s++) {
    assert_int_equal(a->spaces[s].n_items, n_parts[s]);
    for (size_t slot = n_live; slot < a->capacity; slot++)
      assert_false(bits_get(a->spaces[s].has_part, slot));
  }
}

static void check_twins(const struct world *w)
{
  const struct arena *a = &w->engine->pair->arenas[0], *b = &w->engine->pair->arenas[1];

  check_arena(w, a);
  check_arena(w, b);
  assert_int_equal(a->epoch, b->epoch);
  for (uint32_t slot = 0; slot < a->n_slots; slot++)
    assert_true(span_equal(keys_get(&a->keys, slot), keys_get(&b->keys, slot)));
}

/* Send one query to both engines. Everything that does not depend on the order of slots must be the same, to the last
 * bit. */
static void check_query(struct world *w, struct engine *other, const char *space, const char *method, size_t k)
{
  float vector[TWO_QUERY_DIM];
  struct searcher *s[2];
  struct answer answers[2];
  struct span exclude[40];
  char texts[40][32];
  bool is_pq = strcmp(space, "pq") == 0;
  struct query query = {
    .space = span_of_str(space), .method = span_of_str(method), .k = (uint32_t)k, .exclude = exclude,
  };

  dice_fill(&w->dice, vector, TWO_QUERY_DIM, 1.0f);
  query.vector = (struct floats){ vector, is_pq ? TWO_SPLITS * TWO_SPLIT_DIM : TWO_QUERY_DIM };
  query.n_exclude = dice_below(&w->dice, 2) ? dice_below(&w->dice, 40) : 0;
  for (size_t i = 0; i < query.n_exclude; i++) /* also absent keys and repeated ones */
    exclude[i] = two_key(dice_below(&w->dice, TWO_MAX), texts[i]);
  assert_ok(searcher_open(w->engine, &s[0]));
  assert_ok(searcher_open(other, &s[1]));
  fixture_search(w->engine, s[0], &query, 1, &answers[0]);
  fixture_search(other, s[1], &query, 1, &answers[1]);
  fixture_assert_same_hits(&answers[0], &answers[1]);
  assert_int_equal(answers[0].receipt.is_exact, answers[1].receipt.is_exact);
  assert_int_equal(answers[0].receipt.has_bound, answers[1].receipt.has_bound);
  assert_memory_equal(&answers[0].receipt.bound, &answers[1].receipt.bound, sizeof(float));
  assert_int_equal(answers[0].counts.items, answers[1].counts.items);
  if (strcmp(method, "pqtopk") != 0) /* the number of items that pass its filter depends on the order of slots */
    assert_memory_equal(&answers[0].counts, &answers[1].counts, sizeof answers[0].counts);
  for (size_t i = 0; i < answers[0].n_hits; i++) {
    for (size_t j = 0; j < query.n_exclude; j++)
      assert_false(span_equal(answers[0].hits[i].key, exclude[j]));
  }
  searcher_close(&s[0]);
  searcher_close(&s[1]);
}

static void churned_arenas_search_like_rebuilt_ones(void **state)
{
  (void)state;
  for (uint64_t salt = 0; salt < 2; salt++) {
    struct world *w = open_world(salt);
    for (int round = 0; round < 8; round++) {
      churn(w, 1 + dice_below(&w->dice, 40));
      check_twins(w);
      struct engine *other = rebuild(w);
      for (int i = 0; i < 4; i++) {
        size_t k = i ? 1 + dice_below(&w->dice, 30) : 2 * TWO_MAX;
        check_query(w, other, "pq", "pqtopk", k);
        check_query(w, other, "pq", "prune(2)", k);
        check_query(w, other, "mol", "brute_force", k);
        check_query(w, other, "mol", "average(25)", k);
      }
      engine_close(&other);
    }
    close_world(w);
  }
}

static size_t n_parts_of(const struct world *w, const char *key, size_t space)
{
  const struct arena *a = &w->engine->pair->arenas[0];
  uint32_t slot = keys_find(&a->keys, span_of_str(key));

  return slot == KEYS_NONE ? 99 : bits_get(a->spaces[space].has_part, slot);
}

static void a_partial_update_keeps_the_other_part_and_a_whole_one_drops_it(void **state)
{
  struct world *w = open_world(7);
  struct two_item item = { .codes = { 1, 2, 3 }, .vector = { 1.0f } };
  struct part parts[2];
  struct item_change change = { .key = span_of_str("k"), .parts = parts };

  (void)state;
  change.n_parts = two_parts(&item, true, false, parts);
  fixture_apply(w->engine, &change, 1);
  assert_int_equal(n_parts_of(w, "k", 0), 1);
  assert_int_equal(n_parts_of(w, "k", 1), 0);
  change.n_parts = two_parts(&item, false, true, parts);
  fixture_apply(w->engine, &change, 1);
  assert_int_equal(n_parts_of(w, "k", 0), 1);
  assert_int_equal(n_parts_of(w, "k", 1), 1);
  change.is_whole = true;
  fixture_apply(w->engine, &change, 1);
  assert_int_equal(n_parts_of(w, "k", 0), 0);
  assert_int_equal(n_parts_of(w, "k", 1), 1);
  change.n_parts = 0;
  fixture_apply(w->engine, &change, 1);
  assert_int_equal(n_parts_of(w, "k", 1), 0);
  assert_int_equal(w->engine->pair->arenas[0].n_slots, 1); /* an item without parts still counts as an item */
  close_world(w);
}

static void a_delete_moves_the_last_item_into_the_hole(void **state)
{
  struct world *w = open_world(8);
  struct two_item item = { .codes = { 1, 2, 3 } };
  struct part parts[2];
  const struct arena *a = &w->engine->pair->arenas[0];

  (void)state;
  for (const char *key = "abcde"; *key; key++)
    fixture_put(w->engine, span_of(key, 1), parts, two_parts(&item, true, false, parts));
  fixture_delete(w->engine, span_of_str("b"));
  assert_int_equal(keys_find(&a->keys, span_of_str("b")), KEYS_NONE);
  assert_int_equal(keys_find(&a->keys, span_of_str("e")), 1);
  assert_int_equal(a->n_slots, 4);
  fixture_delete(w->engine, span_of_str("d")); /* the item in the last slot */
  assert_int_equal(a->n_slots, 3);
  assert_int_equal(keys_find(&a->keys, span_of_str("e")), 1);
  fixture_delete(w->engine, span_of_str("d")); /* the key is absent now */
  assert_int_equal(a->n_slots, 3);
  assert_int_equal(a->spaces[0].n_items, 3);
  close_world(w);
}

static void within_a_batch_the_later_change_of_a_key_wins(void **state)
{
  struct world *w = open_world(9);
  struct two_item item = { .codes = { 1, 2, 3 } };
  struct part parts[2];
  struct item_change put = { .key = span_of_str("k"), .parts = parts };
  struct item_change del = { .key = span_of_str("k"), .is_delete = true };

  (void)state;
  put.n_parts = two_parts(&item, true, false, parts);
  fixture_apply(w->engine, (struct item_change[]){ put, del, put }, 3);
  assert_int_equal(w->engine->pair->arenas[0].n_slots, 1);
  fixture_apply(w->engine, (struct item_change[]){ del, put, del }, 3);
  assert_int_equal(w->engine->pair->arenas[0].n_slots, 0);
  assert_int_equal(w->engine->pair->arenas[1].n_slots, 0);
  close_world(w);
}

static void positions_are_kept_in_order_and_seen_when_published(void **state)
{
  struct world *w = open_world(10);
  struct position next[3] = { { 5, 50 }, { 0, 7 }, { 3, 30 } }, seen[2];
  struct engine_epoch epoch;

  (void)state;
  assert_true(engine_has_seen(w->engine, (struct position[]){ { 9, 0 } }, 1));
  assert_false(engine_has_seen(w->engine, (struct position[]){ { 9, 1 } }, 1));
  assert_ok(engine_apply(w->engine, NULL, 0, next, 3));
  assert_ok(engine_apply(w->engine, NULL, 0, &(struct position){ 3, 31 }, 1));
  for (size_t i = 0; i < 2; i++) {
    const struct arena *a = &w->engine->pair->arenas[i];
    assert_int_equal(a->n_watermark, 3);
    for (size_t j = 1; j < 3; j++)
      assert_true(a->watermark[j - 1].partition < a->watermark[j].partition);
    assert_int_equal(arena_next(a, 5), 50);
    assert_int_equal(arena_next(a, 0), 7);
    assert_int_equal(arena_next(a, 3), 31);
    assert_int_equal(arena_next(a, 4), 0);
  }
  assert_true(engine_has_seen(w->engine, (struct position[]){ { 5, 50 }, { 3, 31 }, { 8, 0 } }, 3));
  assert_false(engine_has_seen(w->engine, (struct position[]){ { 5, 50 }, { 3, 32 } }, 2));
  engine_epoch_get(w->engine, &epoch, seen, 2);
  assert_int_equal(epoch.number, 2);
  assert_int_equal(epoch.n_positions, 3);
  assert_int_equal(seen[1].partition, 3);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(churned_arenas_search_like_rebuilt_ones),
    cmocka_unit_test(a_partial_update_keeps_the_other_part_and_a_whole_one_drops_it),
    cmocka_unit_test(a_delete_moves_the_last_item_into_the_hole),
    cmocka_unit_test(within_a_batch_the_later_change_of_a_key_wins),
    cmocka_unit_test(positions_are_kept_in_order_and_seen_when_published),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
