/* SPDX-License-Identifier: Apache-2.0 */
/* Cells compared with plain sets of slots, and their pool compared with a map of its units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "engine/recjpq/cells.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MAX_SLOTS = 3000, MAX_SPLITS = 9, STEPS_MAX = 10000 };

struct world {
  struct dice dice;
  struct cells cells;
  struct cells other; /* gets the same changes; without splits: there are none */
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
  assert_ok(cells_init(n_splits, n_subitems, capacity, true, &w->cells));
  return w;
}

static void close_world(struct world *w)
{
  cells_fini(&w->cells);
  cells_fini(&w->other);
  free(w);
}

static void insert(struct world *w, uint32_t slot, size_t spread)
{
  for (size_t m = 0; m < w->n_splits; m++)
    w->codes[slot][m] = (uint8_t)dice_below(&w->dice, spread < w->n_subitems ? spread : w->n_subitems);
  assert_ok(cells_insert(&w->cells, slot, w->codes[slot]));
  if (w->other.n_splits > 0)
    assert_ok(cells_insert(&w->other, slot, w->codes[slot]));
  w->is_in[slot] = true;
}

static void remove_slot(struct world *w, uint32_t slot)
{
  cells_remove(&w->cells, slot, w->codes[slot]);
  if (w->other.n_splits > 0)
    cells_remove(&w->other, slot, w->codes[slot]);
  w->is_in[slot] = false;
}

static void rename_slot(struct world *w, uint32_t from, uint32_t to)
{
  cells_rename(&w->cells, from, to, w->codes[from]);
  if (w->other.n_splits > 0)
    cells_rename(&w->other, from, to, w->codes[from]);
  memcpy(w->codes[to], w->codes[from], sizeof w->codes[to]);
  w->is_in[to] = true;
  w->is_in[from] = false;
}

/* Check a cell: it holds live slots with its codes, each slot knows its place, and the pool block is not too large.
 * Returns the number of items. */
static size_t check_cell(struct world *w, size_t pair, size_t index)
{
  const struct cell_pair *p = &w->cells.pairs[pair];
  struct cell cell = p->cells[index];
  uint8_t codes[MAX_SPLITS];

  assert_true(cell.n <= cell_entries(cell));
  assert_true(cell.n == 0 || cell.class == 0 || cell.n > cell_entries(cell) / 4);
  for (size_t i = 0; i < cell.n; i++) {
    uint32_t slot = cell_slots(p, cell)[i];
    assert_true(slot < w->capacity && w->is_in[slot] && !w->seen[slot]);
    w->seen[slot] = 1;
    cell_read(&w->cells, p, index, i, codes);
    assert_memory_equal(codes, w->codes[slot], w->n_splits);
    assert_int_equal(cell_of(&w->cells, p, codes), index);
    assert_int_equal(w->cells.places[slot * w->cells.n_pairs + pair], i);
  }
  return cell.n;
}

static void check_list(struct world *w, size_t split, size_t subitem)
{
  struct cell_list list = cells_list(&w->cells, split, subitem);
  size_t n = 0, n_wanted = 0;

  for (size_t i = 0; i < list.n; i++) {
    struct cell cell = list.pair->cells[list.first + i * list.step];
    for (size_t j = 0; j < cell.n; j++, n++)
      assert_int_equal(w->codes[cell_slots(list.pair, cell)[j]][split], subitem);
  }
  for (size_t slot = 0; slot < w->capacity; slot++)
    n_wanted += w->is_in[slot] && w->codes[slot][split] == subitem;
  assert_int_equal(n, n_wanted);
  assert_int_equal(w->cells.lengths[split * w->n_subitems + subitem], n_wanted);
}

static void check_all(struct world *w)
{
  size_t n_live = 0;

  for (size_t slot = 0; slot < w->capacity; slot++)
    n_live += w->is_in[slot];
  for (size_t pair = 0; pair < w->cells.n_pairs; pair++) {
    size_t n_cells = w->n_subitems * (w->cells.pairs[pair].n_splits == 2 ? w->n_subitems : 1), n = 0;
    memset(w->seen, 0, sizeof w->seen);
    for (size_t i = 0; i < n_cells; i++)
      n += check_cell(w, pair, i);
    assert_int_equal(n, n_live);
  }
  for (size_t split = 0; split < w->n_splits; split++) {
    for (size_t subitem = 0; subitem < w->n_subitems; subitem++)
      check_list(w, split, subitem);
  }
}

static void cells_are_the_sets_of_their_slots_under_churn(void **state)
{
  static const size_t shapes[][3] = { { 500, 1, 1 }, { 700, 3, 7 },    { 2000, 5, 31 }, { 31, 2, 2 },
                                      { 1, 1, 256 }, { 3000, 2, 256 }, { 900, 8, 5 },   { 3000, 9, 3 } };

  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    struct world *w = open_world(shapes[s][0], shapes[s][1], shapes[s][2]);
    for (int step = 1; step <= 12000; step++) {
      uint32_t slot = (uint32_t)dice_below(&w->dice, w->capacity), other = (uint32_t)dice_below(&w->dice, w->capacity);
      if (!w->is_in[slot])
        insert(w, slot, 1 + dice_below(&w->dice, 256));
      else if (dice_below(&w->dice, 3) == 0 && !w->is_in[other])
        rename_slot(w, slot, other);
      else
        remove_slot(w, slot);
      if (step % 4000 == 0)
        check_all(w);
    }
    close_world(w);
  }
}

/* Cells that were built at once are what insertions make, and can be changed like them. */
static void cells_can_be_built_at_once(void **state)
{
  static const size_t shapes[][3] = { { 500, 1, 1 }, { 700, 3, 7 },    { 2000, 5, 31 }, { 31, 2, 2 },
                                      { 1, 1, 256 }, { 3000, 2, 256 }, { 900, 8, 5 },   { 3000, 9, 3 } };
  static uint8_t codes[MAX_SLOTS * MAX_SPLITS];
  static uint64_t slots[(MAX_SLOTS + 63) / 64];

  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    struct world *w = open_world(shapes[s][0], shapes[s][1], shapes[s][2]);
    memset(slots, 0, sizeof slots);
    cells_defer(&w->cells);
    for (uint32_t i = 0; i < w->capacity; i++) {
      uint32_t slot = (i + 17) % (uint32_t)w->capacity;
      size_t spread = 1 + dice_below(&w->dice, w->n_subitems);
      for (size_t m = 0; m < w->n_splits; m++)
        w->codes[slot][m] = codes[slot * w->n_splits + m] = (uint8_t)dice_below(&w->dice, spread);
      w->is_in[slot] = w->capacity < 3 || dice_below(&w->dice, 3) > 0;
      if (w->is_in[slot]) {
        cells_count(&w->cells, w->codes[slot]);
        bits_set(slots, slot);
      }
    }
    assert_ok(cells_build(&w->cells, codes, slots, w->capacity));
    assert_true(cells_are_complete(&w->cells));
    check_all(w);
    for (uint32_t slot = 0; slot < w->capacity; slot++) {
      if (!w->is_in[slot])
        insert(w, slot, w->n_subitems);
      else if (dice_below(&w->dice, 2))
        remove_slot(w, slot);
    }
    check_all(w);
    close_world(w);
  }
}

/* Insert, remove or rename any slot; its codes and its bit follow. */
static void change(struct world *w, uint8_t *codes, uint64_t *slots)
{
  uint32_t slot = (uint32_t)dice_below(&w->dice, w->capacity), other = (uint32_t)dice_below(&w->dice, w->capacity);

  if (!w->is_in[slot]) {
    insert(w, slot, 1 + dice_below(&w->dice, 256));
    other = slot;
  } else if (dice_below(&w->dice, 3) == 0 && !w->is_in[other]) {
    rename_slot(w, slot, other);
    bits_clear(slots, slot);
  } else {
    remove_slot(w, slot);
    bits_clear(slots, slot);
    return;
  }
  memcpy(codes + other * w->n_splits, w->codes[other], w->n_splits);
  bits_set(slots, other);
}

/* A few cells of a pair, or all of them at a time, while slots come, go and move. */
static void cells_can_be_built_in_steps_under_churn(void **state)
{
  static const size_t shapes[][3] = { { 500, 1, 1 }, { 700, 3, 7 }, { 2000, 5, 31 }, { 900, 8, 5 }, { 3000, 9, 3 } };
  static uint8_t codes[MAX_SLOTS * MAX_SPLITS];
  static uint64_t slots[(MAX_SLOTS + 63) / 64];

  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    struct world *w = open_world(shapes[s][0], shapes[s][1], shapes[s][2]);
    size_t n_steps = 0, n_items = s % 2 ? SIZE_MAX : 1 + shapes[s][0] / 4;
    memset(slots, 0, sizeof slots);
    cells_defer(&w->cells);
    while (!cells_are_complete(&w->cells)) {
      for (int i = 0; i < 4000; i++)
        change(w, codes, slots);
      assert_ok(cells_build_some(&w->cells, codes, slots, w->capacity, n_items));
      n_steps++;
    }
    assert_true(n_items == SIZE_MAX ? n_steps == w->cells.n_pairs : n_steps >= w->cells.n_pairs);
    assert_true(s < 2 || n_items == SIZE_MAX || n_steps > w->cells.n_pairs);
    check_all(w);
    for (int i = 0; i < 4000; i++)
      change(w, codes, slots);
    assert_ok(cells_build_some(&w->cells, codes, slots, w->capacity, n_items)); /* there is nothing to do */
    check_all(w);
    close_world(w);
  }
}

static void swap_cells(struct world *w)
{
  struct cells cells = w->cells;

  w->cells = w->other;
  w->other = cells;
}

static void check_both(struct world *w)
{
  check_all(w);
  swap_cells(w);
  check_all(w);
}

/* Copy what the other cells are ahead; otherwise build. Returns whether it was a copy that ended where the other cells
 * end, in the middle of a pair. */
static bool build_or_copy(struct world *w, const uint8_t *codes, const uint64_t *slots, size_t n_items,
                          size_t *n_copies)
{
  if (!cells_are_ahead(&w->other, &w->cells)) {
    assert_ok(cells_build_some(&w->cells, codes, slots, w->capacity, n_items));
    return false;
  }
  assert_ok(cells_copy_some(&w->cells, &w->other, n_items));
  assert_false(cells_are_ahead(&w->cells, &w->other));
  ++*n_copies;
  return w->cells.n_built_codes > 0 && !cells_are_ahead(&w->other, &w->cells);
}

/* Two cells help each other while slots come, go and move. Either may be ahead, by a part of a pair or by all. */
static void cells_can_be_copied_in_steps_under_churn(void **state)
{
  enum { ROUNDS = 4 };
  static const size_t shapes[][3] = { { 500, 1, 1 },    { 700, 3, 7 }, { 2000, 5, 31 }, { 31, 2, 2 },   { 1, 1, 256 },
                                      { 3000, 2, 256 }, { 900, 8, 5 }, { 3000, 9, 3 },  { 2000, 4, 31 } };
  static uint8_t codes[MAX_SLOTS * MAX_SPLITS];
  static uint64_t slots[(MAX_SLOTS + 63) / 64];
  size_t n_copies = 0, n_ends = 0;

  (void)state;
  for (size_t i = 0; i < ROUNDS * sizeof shapes / sizeof shapes[0]; i++) {
    const size_t *shape = shapes[i / ROUNDS];
    struct world *w = open_world(shape[0], shape[1], shape[2]);
    w->dice.state += i;
    assert_ok(cells_init(w->n_splits, w->n_subitems, w->capacity, true, &w->other));
    memset(slots, 0, sizeof slots);
    cells_defer(&w->cells);
    cells_defer(&w->other);
    for (int n = 0; !cells_are_complete(&w->cells) || !cells_are_complete(&w->other); n++) {
      assert_true(n < STEPS_MAX);
      for (int j = 0; j < 2000; j++)
        change(w, codes, slots);
      for (size_t j = dice_below(&w->dice, 4); j > 0; j--)
        n_ends += build_or_copy(w, codes, slots, 1 + dice_below(&w->dice, w->capacity / 8 + 1), &n_copies);
      if (dice_below(&w->dice, 2))
        swap_cells(w);
    }
    check_both(w);
    for (int j = 0; j < 4000; j++)
      change(w, codes, slots);
    check_both(w);
    close_world(w);
  }
  assert_true(n_copies > 0 && n_ends > 0);
}

/* The bytes in use, slack and free pool blocks included. */
static size_t cells_bytes(const struct cells *c)
{
  size_t bytes = c->n_splits * c->n_subitems * sizeof *c->lengths;

  for (size_t i = 0; i < c->n_pairs; i++) {
    const struct cell_pair *p = &c->pairs[i];
    size_t n_cells = p->n_splits == 2 ? c->n_subitems * c->n_subitems : c->n_subitems;
    bytes += n_cells * sizeof *p->cells;
    bytes += p->pool.n_used * (CELL_UNIT * (p->n_others + sizeof *p->slots) + 1 + 2 * sizeof *p->pool.links);
  }
  return bytes;
}

/* Put all slots into one cell, then spread them, then put them into one again. Pool blocks of every size are used and
 * freed. */
static void room_is_used_again_when_the_distribution_changes(void **state)
{
  struct world *w = open_world(MAX_SLOTS, 4, 256);
  size_t bytes = 0;

  (void)state;
  for (uint32_t slot = 0; slot < w->capacity; slot++)
    insert(w, slot, 256);
  for (int round = 0; round < 24; round++) {
    for (uint32_t slot = 0; slot < w->capacity; slot++) {
      remove_slot(w, slot);
      insert(w, slot, round % 2 ? 256 : (size_t)1 << dice_below(&w->dice, 5));
    }
    check_all(w);
    if (round == 11)
      bytes = cells_bytes(&w->cells);
  }
  assert_true(cells_bytes(&w->cells) <= bytes + bytes / 4); /* memory does not grow from round to round */
  close_world(w);
}

static void all_room_comes_back_when_everything_is_removed(void **state)
{
  struct world *w = open_world(MAX_SLOTS, 5, 16);

  (void)state;
  for (uint32_t slot = 0; slot < w->capacity; slot++)
    insert(w, slot, 16);
  for (uint32_t slot = 0; slot < w->capacity; slot++)
    remove_slot(w, (slot * 7 + 5) % MAX_SLOTS); /* visits each slot once: 7 and 3000 have no common divisor */
  check_all(w);
  for (size_t i = 0; i < w->cells.n_pairs; i++) {
    const struct cell_pool *pool = &w->cells.pairs[i].pool;
    uint64_t n_free = 0, n_blocks = 0;
    for (uint32_t unit = 0; unit < pool->n_used; unit++) {
      if (pool->free_size[unit]) {
        n_free += UINT64_C(1) << (pool->free_size[unit] - 1);
        n_blocks++;
      }
    }
    assert_int_equal(n_free, pool->n_used);
    assert_in_range(n_blocks, 0, 32); /* free neighbours were joined */
  }
  close_world(w);
}

static void blocks_do_not_overlap_and_lie_at_multiples_of_their_size(void **state)
{
  enum { UNITS = 1 << 14, BLOCKS = 2000 };
  static uint32_t starts[BLOCKS];
  static int classes[BLOCKS];
  static uint8_t taken[UNITS];
  struct dice dice = { seed };
  struct cell_pool pool;

  (void)state;
  assert_ok(cell_pool_init(UNITS, &pool));
  memset(classes, 0xff, sizeof classes);
  for (int step = 0; step < 60000; step++) {
    size_t i = dice_below(&dice, BLOCKS);
    unsigned class = (unsigned)(dice_below(&dice, 7) * dice_below(&dice, 2));
    if (pool.n_taken == 0 && pool.n_used > 0) { /* start from an empty pool */
      cell_pool_clear(&pool);
      assert_int_equal(pool.n_used, 0);
    }
    if (step % 20000 > 15000) { /* every now and then the pool is emptied */
      i = (size_t)step % BLOCKS;
      if (classes[i] < 0)
        continue;
    }
    if (classes[i] >= 0) {
      memset(taken + starts[i], 0, (size_t)1 << classes[i]);
      cell_pool_give(&pool, (unsigned)classes[i], starts[i]);
      classes[i] = -1;
    } else if (cell_pool_take(&pool, class, &starts[i])) {
      classes[i] = (int)class;
      assert_true(starts[i] % (1u << class) == 0 && starts[i] + (1u << class) <= UNITS);
      for (uint32_t unit = starts[i]; unit < starts[i] + (1u << class); unit++)
        assert_int_equal(taken[unit]++, 0);
    }
    size_t n_taken = 0;
    for (size_t unit = 0; step % 1000 == 0 && unit < UNITS; unit++)
      n_taken += taken[unit];
    assert_true(step % 1000 != 0 || n_taken == pool.n_taken);
  }
  assert_int_equal(pool.n_used, 0);
  cell_pool_fini(&pool);
}

static void a_full_pool_says_so(void **state)
{
  struct cell_pool pool;
  uint32_t start;

  (void)state;
  assert_ok(cell_pool_init(5, &pool));
  assert_true(cell_pool_take(&pool, 2, &start));
  assert_false(cell_pool_take(&pool, 1, &start));
  assert_true(cell_pool_take(&pool, 0, &start));
  assert_int_equal(start, 4);
  assert_false(cell_pool_take(&pool, 0, &start));
  cell_pool_give(&pool, 2, 0);
  assert_true(cell_pool_take(&pool, 1, &start));
  cell_pool_fini(&pool);
}

static void more_slots_than_a_cell_can_count_are_refused(void **state)
{
  struct cells cells;

  (void)state;
  assert_fails(cells_init(8, 256, (size_t)1 << 27, true, &cells), ERR_CONFIG, "catalogue.max_items is 134217728");
  cells_fini(&cells);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(cells_are_the_sets_of_their_slots_under_churn),
    cmocka_unit_test(cells_can_be_built_at_once),
    cmocka_unit_test(cells_can_be_built_in_steps_under_churn),
    cmocka_unit_test(cells_can_be_copied_in_steps_under_churn),
    cmocka_unit_test(room_is_used_again_when_the_distribution_changes),
    cmocka_unit_test(all_room_comes_back_when_everything_is_removed),
    cmocka_unit_test(blocks_do_not_overlap_and_lie_at_multiples_of_their_size),
    cmocka_unit_test(a_full_pool_says_so),
    cmocka_unit_test(more_slots_than_a_cell_can_count_are_refused),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
