/* SPDX-License-Identifier: Apache-2.0 */
/* The integer scans that append hits to lists, and partition_ge(): every level of this machine against the scalar
 * reference, and the reference against plain sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "tests/support/blocks.h"

static struct dice dice;

static const struct kernels *table(enum isa isa)
{
  const struct kernels *k = NULL;

  assert_int_equal(kernels_get(isa, &k), ERR_OK);
  return k;
}

static void *bytes_random(size_t n, bool is_extreme)
{
  uint8_t *p = block_new_aligned(n, 1);

  for (size_t i = 0; i < n; i++)
    p[i] = is_extreme ? (uint8_t)(dice_below(&dice, 2) ? 255 : 128 * dice_below(&dice, 2)) : (uint8_t)dice_u64(&dice);
  return p;
}

/* Sizes and inputs of one call. All levels get the same. */
struct lists_case {
  size_t n_rows, n_components, n_all_components, n_groups, n_blocks;
  int8_t *row_bytes;
  uint8_t *blocks;
  int32_t *starts; /* [n_rows * n_components] */
};

static struct lists_case case_new(size_t n_rows, size_t n_components, size_t n_groups, size_t n_blocks, int spread)
{
  struct lists_case c = { n_rows, n_components, n_components + dice_below(&dice, 3), n_groups, n_blocks, NULL,
                          NULL,   NULL };
  bool is_extreme = dice_below(&dice, 4) == 0;

  c.row_bytes = bytes_random(n_groups * n_rows * 4, is_extreme);
  c.blocks = bytes_random(n_blocks * c.n_all_components * n_groups * SKETCH_BLOCK_ITEMS * 4, is_extreme);
  c.starts = block_new(n_rows * n_components, sizeof *c.starts);
  for (size_t p = 0; p < n_rows * n_components; p++)
    c.starts[p] = (int32_t)dice_float(&dice, (float)(spread * (int)(n_groups + 1)));
  return c;
}

static void case_free(struct lists_case *c)
{
  free(c->row_bytes);
  free(c->blocks);
  free(c->starts);
}

static struct scan_list *lists_new(size_t n, const int32_t *starts, size_t capacity)
{
  struct scan_list *lists = block_new(n, sizeof *lists);

  for (size_t p = 0; p < n; p++)
    lists[p] = (struct scan_list){ starts[p], -starts[p], 0, block_new(capacity, sizeof(struct scan_entry)) };
  return lists;
}

static void lists_free(struct scan_list *lists, size_t n)
{
  for (size_t p = 0; p < n; p++)
    free(lists[p].entries);
  free(lists);
}

static void assert_same_lists(const struct scan_list *found, const struct scan_list *wanted, size_t n)
{
  for (size_t p = 0; p < n; p++) {
    assert_int_equal(found[p].n, wanted[p].n);
    if (wanted[p].n)
      assert_memory_equal(found[p].entries, wanted[p].entries, wanted[p].n * sizeof *wanted[p].entries);
  }
}

/* Return the dot product of row r with component m of item i of block b. */
static int32_t plain_sum(const struct lists_case *c, size_t b, size_t m, size_t i, size_t r)
{
  const uint8_t *items = c->blocks + (b * c->n_all_components + m) * c->n_groups * SKETCH_BLOCK_ITEMS * 4;
  int32_t sum = 0;

  for (size_t k = 0; k < 4 * c->n_groups; k++)
    sum += items[(k / 4 * SKETCH_BLOCK_ITEMS + i) * 4 + k % 4] * c->row_bytes[(k / 4 * c->n_rows + r) * 4 + k % 4];
  return sum;
}

static struct scan_list *run_lists(enum isa isa, const struct lists_case *c, uint32_t first)
{
  struct sketch_rows rows = { c->n_rows, c->n_groups, c->row_bytes };
  struct scan_list *lists = lists_new(c->n_rows * c->n_components, c->starts, c->n_blocks * SKETCH_BLOCK_ITEMS);

  size_t n =
      table(isa)->mol_lists(&rows, c->n_components, c->blocks,
                            c->n_all_components * c->n_groups * SKETCH_BLOCK_ITEMS * 4, c->n_blocks, first, lists);
  for (size_t p = 0; p < c->n_rows * c->n_components; p++)
    n -= lists[p].n;
  assert_int_equal(n, 0);
  return lists;
}

static void check_lists(size_t n_rows, size_t n_components, size_t n_groups, size_t n_blocks, int spread)
{
  struct lists_case c = case_new(n_rows, n_components, n_groups, n_blocks, spread);
  size_t n_lists = n_rows * n_components;
  struct scan_list *wanted = run_lists(ISA_REF, &c, 1000);

  for (size_t p = 0; p < n_lists; p++) {
    uint32_t n = 0;
    for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++) {
      int32_t sum = plain_sum(&c, i / SKETCH_BLOCK_ITEMS, p % n_components, i % SKETCH_BLOCK_ITEMS, p / n_components);
      if (sum + c.starts[p] < 0)
        continue;
      assert_true(n < wanted[p].n);
      assert_int_equal(wanted[p].entries[n].slot, 1000 + i);
      assert_int_equal(wanted[p].entries[n++].score, sum);
    }
    assert_int_equal(n, wanted[p].n);
  }
  for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) {
    struct scan_list *found = run_lists(isa, &c, 1000);
    assert_same_lists(found, wanted, n_lists);
    lists_free(found, n_lists);
  }
  lists_free(wanted, n_lists);
  case_free(&c);
}

static void mol_lists_keeps_the_same_hits_at_every_level(void **state)
{
  (void)state;
  for (int i = 0; i < 150; i++)
    check_lists(1 + dice_below(&dice, 18), 1 + dice_below(&dice, 9), dice_below(&dice, 18), dice_below(&dice, 5),
                i % 3 == 0 ? 3000 : 300000);
  check_lists(8, 8, 8, 20, 100000);
}

static void check_any(size_t n_rows, size_t n_components, size_t n_groups, size_t n_blocks, int spread)
{
  struct lists_case c = case_new(n_rows, n_components, n_groups, n_blocks, spread);
  struct sketch_rows rows = { n_rows, n_groups, c.row_bytes };

  c.n_all_components = n_components;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    uint16_t *masks = block_new(n_blocks, sizeof *masks);
    table(isa)->mol_any(&rows, n_components, c.blocks, n_blocks, c.starts, masks);
    for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++) {
      bool is_hit = false;
      for (size_t p = 0; p < n_rows * n_components; p++)
        is_hit |= plain_sum(&c, i / SKETCH_BLOCK_ITEMS, p % n_components, i % SKETCH_BLOCK_ITEMS, p / n_components) +
                      c.starts[p / n_components] >=
                  0;
      assert_int_equal(masks[i / SKETCH_BLOCK_ITEMS] >> i % SKETCH_BLOCK_ITEMS & 1, is_hit);
    }
    free(masks);
  }
  case_free(&c);
}

static void mol_any_tells_which_items_have_a_hit_at_every_level(void **state)
{
  (void)state;
  for (int i = 0; i < 150; i++)
    check_any(1 + dice_below(&dice, 18), 1 + dice_below(&dice, 9), dice_below(&dice, 18), dice_below(&dice, 5),
              i % 3 == 0 ? 3000 : 300000);
}

/* Return the dot product of row r with component m of item i of a tile. */
static int32_t plain_tile_sum(const struct lists_case *c, size_t m, size_t i, size_t r)
{
  const uint8_t *items = c->blocks + m * c->n_groups * MOL_LANES * 4;
  int32_t sum = 0;

  for (size_t k = 0; k < 4 * c->n_groups; k++)
    sum += items[(k / 4 * MOL_LANES + i) * 4 + k % 4] * c->row_bytes[(k / 4 * c->n_rows + r) * 4 + k % 4];
  return sum;
}

static void check_any_tile(size_t n_rows, size_t n_components, size_t n_groups, int spread)
{
  struct lists_case c = case_new(n_rows, n_components, n_groups, MOL_LANES / SKETCH_BLOCK_ITEMS, spread);
  struct sketch_rows rows = { n_rows, n_groups, c.row_bytes };

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    uint32_t lanes = table(isa)->mol_any_tile(&rows, n_components, c.blocks, c.starts);
    for (size_t i = 0; i < MOL_LANES; i++) {
      bool is_hit = false;
      for (size_t p = 0; p < n_rows * n_components; p++)
        is_hit |= plain_tile_sum(&c, p % n_components, i, p / n_components) + c.starts[p / n_components] >= 0;
      assert_int_equal(lanes >> i & 1, is_hit);
    }
  }
  case_free(&c);
}

static void mol_any_tile_tells_which_lanes_have_a_hit_at_every_level(void **state)
{
  (void)state;
  for (int i = 0; i < 150; i++)
    check_any_tile(1 + dice_below(&dice, 18), 1 + dice_below(&dice, 9), dice_below(&dice, 18),
                   i % 3 == 0 ? 3000 : 300000);
}

static void check_average(size_t n_rows, size_t n_groups, size_t n_blocks)
{
  int16_t *rows = bytes_random(n_groups * n_rows * 4, false);
  int16_t *blocks = bytes_random(n_blocks * n_groups * SKETCH_BLOCK_ITEMS * 4, false);
  int32_t *starts = block_new(n_rows, sizeof *starts);

  for (size_t k = 0; k < n_groups * n_rows * 2; k++)
    rows[k] = (int16_t)(rows[k] >> 6); /* as small as those of normalised queries: no sum overflows */
  for (size_t r = 0; r < n_rows; r++)
    starts[r] = (int32_t)dice_float(&dice, 3e7f);
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    struct scan_list *lists = lists_new(n_rows, starts, n_blocks * SKETCH_BLOCK_ITEMS);
    size_t n_all = table(isa)->average_lists(rows, n_rows, n_groups, blocks, n_blocks, 7, lists);
    for (size_t r = 0; r < n_rows; r++) {
      uint32_t n = 0;
      for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++) {
        const int16_t *item = blocks + i / SKETCH_BLOCK_ITEMS * n_groups * SKETCH_BLOCK_ITEMS * 2;
        int32_t sum = 0;
        for (size_t k = 0; k < 2 * n_groups; k++)
          sum += rows[(k / 2 * n_rows + r) * 2 + k % 2] *
                 item[(k / 2 * SKETCH_BLOCK_ITEMS + i % SKETCH_BLOCK_ITEMS) * 2 + k % 2];
        if (sum + starts[r] < 0)
          continue;
        assert_true(n < lists[r].n);
        assert_int_equal(lists[r].entries[n].slot, 7 + i);
        assert_int_equal(lists[r].entries[n++].score, sum);
      }
      assert_int_equal(n, lists[r].n);
      n_all -= n;
    }
    assert_int_equal(n_all, 0);
    lists_free(lists, n_rows);
  }
  free(rows);
  free(blocks);
  free(starts);
}

static void average_lists_keeps_the_same_hits_at_every_level(void **state)
{
  (void)state;
  for (int i = 0; i < 150; i++)
    check_average(1 + dice_below(&dice, 35), dice_below(&dice, 18), dice_below(&dice, 5));
}

static void check_partition_ge(size_t n, int32_t spread, int32_t least)
{
  struct scan_entry *from = block_new(n, sizeof *from);

  for (size_t i = 0; i < n; i++)
    from[i] =
        (struct scan_entry){ (int32_t)dice_below(&dice, 2 * (size_t)spread + 1) - spread, (uint32_t)dice_u64(&dice) };
  if (n > 0)
    from[dice_below(&dice, n)].score = dice_below(&dice, 2) ? INT32_MIN : INT32_MAX;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    struct scan_entry *entries = block_new(n, sizeof *entries), *spare = block_new(n, sizeof *spare);
    size_t n_front = 0;
    if (n > 0)
      memcpy(entries, from, n * sizeof *from);
    size_t n_found = table(isa)->partition_ge(entries, n, least, spare);
    for (size_t i = 0; i < n; i++) {
      if (from[i].score >= least)
        assert_memory_equal(&entries[n_front++], &from[i], sizeof *from);
    }
    assert_int_equal(n_found, n_front);
    for (size_t i = 0, at = n_front; i < n; i++) {
      if (from[i].score < least)
        assert_memory_equal(&entries[at++], &from[i], sizeof *from);
    }
    free(entries);
    free(spare);
  }
  free(from);
}

static void partition_ge_keeps_both_orders_at_every_level(void **state)
{
  static const int32_t spreads[] = { 0, 3, 1000, INT32_MAX / 2 };

  (void)state;
  for (size_t i = 0; i < 1000; i++) {
    int32_t spread = spreads[i % 4], least = (int32_t)dice_below(&dice, 2 * (size_t)spread + 1) - spread;
    check_partition_ge(dice_below(&dice, i % 3 ? 40 : 700), spread, i % 9 ? least : i % 2 ? INT32_MIN : INT32_MAX);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(mol_lists_keeps_the_same_hits_at_every_level),
    cmocka_unit_test(mol_any_tells_which_items_have_a_hit_at_every_level),
    cmocka_unit_test(mol_any_tile_tells_which_lanes_have_a_hit_at_every_level),
    cmocka_unit_test(average_lists_keeps_the_same_hits_at_every_level),
    cmocka_unit_test(partition_ge_keeps_both_orders_at_every_level),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
