/* Inverted lists against sets of slots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/postings.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_SLOTS = 2000, MAX_SPLITS = 5 };

struct world {
  struct dice dice;
  struct postings postings;
  size_t capacity, n_splits, n_subitems;
  bool is_in[MAX_SLOTS];
  uint8_t codes[MAX_SLOTS][MAX_SPLITS];
  uint8_t seen[MAX_SLOTS];
};

static uint64_t seed;

static struct world *open_world(size_t capacity, size_t n_splits, size_t n_subitems)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed + capacity + n_subitems;
  w->capacity = capacity;
  w->n_splits = n_splits;
  w->n_subitems = n_subitems;
  assert_ok(postings_init(n_splits, n_subitems, capacity, &w->postings));
  return w;
}

static void close_world(struct world *w)
{
  postings_fini(&w->postings);
  free(w);
}

static void insert(struct world *w, uint32_t slot, size_t spread)
{
  for (size_t m = 0; m < w->n_splits; m++)
    w->codes[slot][m] = (uint8_t)dice_below(&w->dice, spread < w->n_subitems ? spread : w->n_subitems);
  postings_insert(&w->postings, slot, w->codes[slot]);
  w->is_in[slot] = true;
}

static void remove_slot(struct world *w, uint32_t slot)
{
  postings_remove(&w->postings, slot, w->codes[slot]);
  w->is_in[slot] = false;
}

/* Each list holds just the slots that have its sub-item, once, in chunks of which only the first may not be full. */
static void check_list(struct world *w, size_t split, size_t subitem)
{
  const struct postings *p = &w->postings;
  size_t list = postings_list(p, split, subitem), n = 0, n_want = 0;

  memset(w->seen, 0, sizeof w->seen);
  for (uint32_t chunk = p->heads[list]; chunk != POSTINGS_NONE; chunk = p->chunks[chunk].next) {
    assert_true(chunk < p->n_used && p->n_used <= p->n_chunks);
    assert_in_range(p->chunks[chunk].n, 1, POSTINGS_CHUNK_SLOTS);
    if (chunk != p->heads[list])
      assert_int_equal(p->chunks[chunk].n, POSTINGS_CHUNK_SLOTS);
    for (uint32_t i = 0; i < p->chunks[chunk].n; i++, n++) {
      uint32_t slot = p->chunks[chunk].slots[i];
      assert_true(slot < w->capacity && w->is_in[slot] && w->codes[slot][split] == subitem && !w->seen[slot]);
      assert_int_equal(p->places[slot * w->n_splits + split], chunk * POSTINGS_CHUNK_SLOTS + i);
      w->seen[slot] = 1;
    }
  }
  for (size_t slot = 0; slot < w->capacity; slot++)
    n_want += w->is_in[slot] && w->codes[slot][split] == subitem;
  assert_int_equal(n, n_want);
  assert_int_equal(p->lengths[list], n_want);
}

static void check_all(struct world *w)
{
  for (size_t split = 0; split < w->n_splits; split++)
    for (size_t subitem = 0; subitem < w->n_subitems; subitem++)
      check_list(w, split, subitem);
}

static void rename_slot(struct world *w, uint32_t from, uint32_t to)
{
  postings_rename(&w->postings, from, to);
  memcpy(w->codes[to], w->codes[from], sizeof w->codes[to]);
  w->is_in[to] = true;
  w->is_in[from] = false;
}

static void lists_are_the_sets_of_their_slots_under_churn(void **state)
{
  static const size_t shapes[][3] = { { 500, 1, 1 }, { 700, 3, 7 }, { 2000, 5, 256 }, { 31, 2, 2 }, { 1, 1, 256 } };

  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    struct world *w = open_world(shapes[s][0], shapes[s][1], shapes[s][2]);
    for (int step = 1; step <= 8000; step++) {
      uint32_t slot = (uint32_t)dice_below(&w->dice, w->capacity), other = (uint32_t)dice_below(&w->dice, w->capacity);
      if (!w->is_in[slot])
        insert(w, slot, 1 + dice_below(&w->dice, 256));
      else if (dice_below(&w->dice, 3) == 0 && !w->is_in[other])
        rename_slot(w, slot, other);
      else
        remove_slot(w, slot);
      if (step % 2000 == 0)
        check_all(w);
    }
    close_world(w);
  }
}

/* Every slot in, one list after the other full and empty again: the chunks go around and the pool is never exceeded. */
static void the_pool_is_large_enough_for_every_distribution(void **state)
{
  struct world *w = open_world(1000, 2, 64);

  (void)state;
  for (uint32_t slot = 0; slot < w->capacity; slot++)
    insert(w, slot, 256);
  for (int round = 0; round < 40; round++) {
    size_t spread = round % 2 ? 1 : (size_t)1 << dice_below(&w->dice, 7);
    for (uint32_t i = 0; i < w->capacity; i++) {
      uint32_t slot = (uint32_t)dice_below(&w->dice, w->capacity);
      remove_slot(w, slot);
      insert(w, slot, spread);
    }
    check_all(w);
  }
  for (uint32_t slot = 0; slot < w->capacity; slot++)
    remove_slot(w, slot);
  check_all(w);
  size_t n_free = 0;
  for (uint32_t chunk = w->postings.free; chunk != POSTINGS_NONE; chunk = w->postings.chunks[chunk].next)
    n_free++;
  assert_int_equal(n_free, w->postings.n_used); /* none was lost */
  close_world(w);
}

static void more_slots_than_places_can_name_are_refused(void **state)
{
  struct postings p;

  (void)state;
  assert_fails(postings_init(64, 256, 100000000, &p), ERR_CONFIG, "catalogue.max_items is 100000000");
  postings_fini(&p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lists_are_the_sets_of_their_slots_under_churn),
    cmocka_unit_test(the_pool_is_large_enough_for_every_distribution),
    cmocka_unit_test(more_slots_than_places_can_name_are_refused),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
