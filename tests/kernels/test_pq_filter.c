/* SPDX-License-Identifier: Apache-2.0 */
/* The pq_ kernels at every level of this machine against their formula. The VBMI variant is tested twice: as
 * it is on machines with VBMI, and on every machine with AVX-512BW with its one instruction in plain C
 * (support/vbmi_model.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "tests/support/blocks.h"

typedef size_t (*pq_filter)(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                            size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);

typedef size_t (*pq_scan)(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n,
                          uint8_t limit, const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices);

typedef size_t (*pq_cells)(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables,
                           const struct pq_piece *pieces, size_t n, const struct pq_piece *next, size_t n_next,
                           uint8_t limit, uint32_t *indices);

size_t pq_cells_vbmi_model(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables,
                           const struct pq_piece *pieces, size_t n, const struct pq_piece *next, size_t n_next,
                           uint8_t limit, uint32_t *indices);
size_t pq_scan_vbmi_model(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n,
                          uint8_t limit, const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices);
size_t pq_filter_vbmi_model(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                            size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);

enum { MAX_TABLES = 64 };

static struct dice dice;

struct filter_case {
  size_t n_tables, stride, n;
  uint8_t base, limit;
  uint8_t *tables[MAX_TABLES];
  uint8_t rows[MAX_TABLES];
  uint8_t *codes;
  const uint64_t *admitted; /* bits of the items that can pass; NULL: all */
};

/* Draw an entry of a table: 255 now and then, else at most `most`. */
static uint8_t draw_level(size_t most)
{
  return dice_below(&dice, 16) == 0 ? 255 : (uint8_t)dice_below(&dice, most + 1);
}

static struct filter_case case_new(size_t n_tables, size_t n, size_t stride)
{
  struct filter_case c = { .n_tables = n_tables, .n = n, .stride = stride };
  size_t most = n_tables ? 1 + dice_below(&dice, 2 * 254 / n_tables + 1) : 0, n_codes = n_tables * c.stride;

  most = most > 255 ? 255 : most;
  c.base = (uint8_t)(dice_below(&dice, 3) ? dice_below(&dice, 60) : dice_below(&dice, 256));
  c.limit = (uint8_t)(dice_below(&dice, 4) ? dice_below(&dice, 255) : 254);
  for (size_t t = 0; t < n_tables; t++) {
    c.rows[t] = (uint8_t)dice_below(&dice, n_tables);
    c.tables[t] = block_new_aligned(PQ_SUBITEMS, 1);
    for (size_t i = 0; i < PQ_SUBITEMS; i++)
      c.tables[t][i] = draw_level(most);
  }
  c.codes = block_new(n_codes + PQ_FILTER_PAD, 1);
  for (size_t i = 0; i < n_codes; i++)
    c.codes[i] = (uint8_t)dice_u64(&dice);
  return c;
}

static void case_free(struct filter_case *c)
{
  for (size_t t = 0; t < c->n_tables; t++)
    free(c->tables[t]);
  free(c->codes);
}

static void check_found(const struct filter_case *c, const uint32_t *found, size_t n_found)
{
  size_t n_wanted = 0;

  for (size_t i = 0; i < c->n; i++) {
    unsigned sum = c->base;
    for (size_t t = 0; t < c->n_tables; t++)
      sum += c->tables[t][c->codes[c->rows[t] * c->stride + i]];
    if (sum <= c->limit && (!c->admitted || (c->admitted[i / 64] >> i % 64 & 1))) {
      assert_true(n_wanted < n_found);
      assert_int_equal(found[n_wanted++], i);
    }
  }
  assert_int_equal(n_found, n_wanted);
}

static void check_case(const struct filter_case *c, pq_filter filter)
{
  const uint8_t *tables[MAX_TABLES];
  uint32_t *found = block_new(c->n, sizeof *found);

  memcpy(tables, c->tables, sizeof tables);
  check_found(c, found, filter(tables, c->rows, c->n_tables, c->codes, c->stride, c->n, c->base, c->limit, found));
  free(found);
}

static void check_filter(pq_filter filter)
{
  for (size_t n = 0; n < 600; n += n < 200 ? 1 : 1 + dice_below(&dice, 30)) {
    static const size_t tables[] = { 0, 1, 2, 6, 7, 8, 64 };
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
      struct filter_case c = case_new(tables[t], n, n + dice_below(&dice, 40));
      check_case(&c, filter);
      case_free(&c);
    }
  }
  struct filter_case large = case_new(8, 50000, 50000);
  check_case(&large, filter);
  case_free(&large);
}

/* Draw the bits of 64 items: none, half of them, or one of sixteen. */
static uint64_t draw_admitted(void)
{
  uint64_t few = dice_u64(&dice) & dice_u64(&dice) & dice_u64(&dice);

  return dice_u64(&dice) & (uint64_t[]){ 0, UINT64_MAX, few }[dice_below(&dice, 3)];
}

/* Rows have PQ_BLOCK_ITEMS codes, of which a case uses n. */
static void check_scan(pq_scan scan)
{
  static const size_t sizes[] = { 0, 1, 31, 63, 64, 65, 256, 1000, PQ_BLOCK_ITEMS - 1, PQ_BLOCK_ITEMS };

  for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
    struct filter_case c = case_new(1 + i % 9, sizes[i / 4], PQ_BLOCK_ITEMS);
    const uint8_t *tables[MAX_TABLES], *rows[MAX_TABLES];
    uint32_t *found = block_new(c.n, sizeof *found);
    uint64_t *admitted = block_new((c.n + 63) / 64, sizeof *admitted);
    for (size_t w = 0; w < (c.n + 63) / 64; w++)
      admitted[w] = draw_admitted();
    c.base = 0;
    c.admitted = dice_below(&dice, 3) ? admitted : NULL;
    memcpy(tables, c.tables, sizeof tables);
    for (size_t t = 0; t < c.n_tables; t++)
      rows[t] = c.codes + c.rows[t] * c.stride;
    check_found(&c, found, scan(tables, rows, c.n_tables, c.n, c.limit, c.admitted, i % 2 ? rows : NULL, found));
    free(admitted);
    free(found);
    case_free(&c);
  }
}

/* Gather n of some items. */
static void check_gather(const struct kernels *k, size_t n_splits, size_t n)
{
  enum { ITEMS = 500 };
  uint8_t *codes = block_new(ITEMS * n_splits, 1), *block = block_new(n_splits * PQ_BLOCK_ITEMS, 1);
  uint32_t *slots = block_new(n, sizeof *slots);

  for (size_t i = 0; i < ITEMS * n_splits; i++)
    codes[i] = (uint8_t)dice_u64(&dice);
  for (size_t i = 0; i < n; i++)
    slots[i] = (uint32_t)dice_below(&dice, ITEMS);
  memset(block, 7, n_splits * PQ_BLOCK_ITEMS);
  k->pq_gather(codes, n_splits, slots, n, block);
  for (size_t m = 0; m < n_splits; m++) {
    for (size_t i = 0; i < n; i++)
      assert_int_equal(block[m * PQ_BLOCK_ITEMS + i], codes[slots[i] * n_splits + m]);
    assert_true(n == PQ_BLOCK_ITEMS || block[m * PQ_BLOCK_ITEMS + n] == 7);
  }
  free(slots);
  free(block);
  free(codes);
}

static void codes_are_gathered_by_split_at_every_level(void **state)
{
  static const size_t splits[] = { 1, 3, 8, 12, 16, 64 };

  (void)state;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    const struct kernels *k;
    assert_int_equal(kernels_get(isa, &k), ERR_OK);
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
      for (size_t n = 0; n < 80; n += 1 + dice_below(&dice, 3))
        check_gather(k, splits[i], n);
      check_gather(k, splits[i], PQ_BLOCK_ITEMS);
    }
  }
}

/* Make a piece of fresh codes in a block of its own, of the smallest size that is allowed. */
static struct pq_piece piece_new(size_t n_tables)
{
  static const uint32_t strides[] = { 8, 16, 32, 64, 256 };
  uint32_t stride = strides[dice_below(&dice, 5)];
  size_t n = 1 + dice_below(&dice, stride < PQ_PIECE_ITEMS ? stride : PQ_PIECE_ITEMS), bytes = n_tables * stride;
  uint8_t *codes = block_new(bytes + PQ_FILTER_PAD, 1);

  for (size_t i = 0; i < bytes; i++)
    codes[i] = (uint8_t)dice_u64(&dice);
  return (struct pq_piece){ codes, stride, (uint8_t)n, (uint8_t)dice_below(&dice, dice_below(&dice, 3) ? 60 : 256) };
}

/* Check pieces 0..n-1, while those from n on are the next ones. */
static void check_pieces(const struct filter_case *c, const struct pq_piece *pieces, size_t n, size_t n_next,
                         pq_cells cells)
{
  const uint8_t *tables[MAX_TABLES];
  uint32_t *found = block_new(n * PQ_PIECE_ITEMS, sizeof *found);
  size_t n_wanted = 0;

  memcpy(tables, c->tables, sizeof tables);
  size_t n_found = cells(tables, c->rows, c->n_tables, pieces, n, pieces + n, n_next, c->limit, found);
  for (size_t p = 0; p < n; p++) {
    for (size_t i = 0; i < pieces[p].n; i++) {
      unsigned sum = pieces[p].base;
      for (size_t t = 0; t < c->n_tables; t++)
        sum += c->tables[t][pieces[p].codes[c->rows[t] * pieces[p].stride + i]];
      if (sum > c->limit)
        continue;
      assert_true(n_wanted < n_found);
      assert_int_equal(found[n_wanted++], p * PQ_PIECE_ITEMS + i);
    }
  }
  assert_int_equal(n_found, n_wanted);
  free(found);
}

static void check_cells(pq_cells cells)
{
  enum { PIECES = 60 };
  static const size_t tables[] = { 0, 1, 5, 6, 6, 6, 7, 62 };

  for (size_t t = 0; t < 4 * sizeof tables / sizeof tables[0]; t++) {
    struct filter_case c = case_new(tables[t / 4], 1, 1);
    struct pq_piece pieces[PIECES];
    size_t n = dice_below(&dice, PIECES + 1);
    for (size_t p = 0; p < PIECES; p++)
      pieces[p] = piece_new(c.n_tables);
    check_pieces(&c, pieces, n, PIECES - n, cells);
    for (size_t p = 0; p < PIECES; p++)
      free((void *)(uintptr_t)pieces[p].codes);
    case_free(&c);
  }
}

/* Draw a score: now and then NaN, an infinity, or one of few values. */
static float draw_score(void)
{
  static const float special[] = { NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f, 1e-40f };

  return dice_below(&dice, 8) ? dice_float(&dice, 3.0f) : special[dice_below(&dice, sizeof special / sizeof *special)];
}

static void levels_and_best_scores_are_the_references_at_every_level(void **state)
{
  (void)state;
  for (int turn = 0; turn < 400; turn++) {
    float scores[PQ_SUBITEMS], best[2][PQ_LANES], largest[2], scale = dice_below(&dice, 8) ? 200 * draw_score() : 0;
    size_t n = dice_below(&dice, 2) ? PQ_SUBITEMS : 1 + dice_below(&dice, PQ_SUBITEMS), n_used[2];
    uint32_t *lengths = block_new(n, sizeof *lengths);
    uint8_t tables[2][PQ_SUBITEMS];
    for (size_t b = 0; b < PQ_SUBITEMS; b++)
      scores[b] = draw_score();
    for (size_t b = 0; b < n; b++)
      lengths[b] = dice_below(&dice, 3) ? (uint32_t)dice_u64(&dice) : 0;
    for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
      const struct kernels *k;
      uint64_t sums[2];
      assert_int_equal(kernels_get(isa, &k), ERR_OK);
      const struct kernels *both[] = { NULL, k };
      assert_int_equal(kernels_get(ISA_REF, &both[0]), ERR_OK);
      for (int i = 0; i < 2; i++) {
        n_used[i] = both[i]->pq_best(scores, lengths, n, best[i], &largest[i]);
        sums[i] = both[i]->pq_levels(scores, 2.5f, scale, lengths, n, tables[i]);
      }
      assert_int_equal(n_used[0], n_used[1]);
      for (size_t i = 0; i < PQ_LANES; i++)
        assert_true(best[0][i] == best[1][i]);
      assert_true(largest[0] == largest[1]);
      assert_true(sums[0] == sums[1]);
      assert_memory_equal(tables[0], tables[1], PQ_SUBITEMS);
    }
    free(lengths);
  }
}

static void the_same_items_pass_at_every_level(void **state)
{
  (void)state;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    const struct kernels *k;
    assert_int_equal(kernels_get(isa, &k), ERR_OK);
    check_filter(k->pq_filter);
    check_cells(k->pq_cells);
    check_scan(k->pq_scan);
  }
}

/* Filter one item with each code. An item passes if the limit is its entry, and fails if the limit is one less. */
static void check_entries(pq_filter filter)
{
  uint8_t *table = block_new_aligned(PQ_SUBITEMS, 1), codes[PQ_SUBITEMS + PQ_FILTER_PAD] = { 0 };
  uint32_t found[PQ_SUBITEMS];
  uint8_t row = 0;

  for (size_t i = 0; i < PQ_SUBITEMS; i++) {
    codes[i] = (uint8_t)(PQ_SUBITEMS - 1 - i);
    table[i] = (uint8_t)(i * 91 + 7);
  }
  for (unsigned limit = 0; limit < 255; limit++) {
    size_t n =
        filter((const uint8_t *const[]){ table }, &row, 1, codes, PQ_SUBITEMS, PQ_SUBITEMS, 0, (uint8_t)limit, found);
    assert_int_equal(n, limit + 1); /* the table is a permutation of 0..255 */
    for (size_t i = 0; i < n; i++)
      assert_true(table[codes[found[i]]] <= limit);
  }
  free(table);
}

static void every_entry_of_a_table_is_read_at_every_level(void **state)
{
  (void)state;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    const struct kernels *k;
    assert_int_equal(kernels_get(isa, &k), ERR_OK);
    check_entries(k->pq_filter);
  }
}

static void the_vbmi_variant_over_a_model_of_its_instruction_passes_the_same_items(void **state)
{
  (void)state;
  if (isa_detect() < ISA_AVX512)
    skip();
  check_filter(pq_filter_vbmi_model);
  check_cells(pq_cells_vbmi_model);
  check_scan(pq_scan_vbmi_model);
  check_entries(pq_filter_vbmi_model);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_same_items_pass_at_every_level),
    cmocka_unit_test(levels_and_best_scores_are_the_references_at_every_level),
    cmocka_unit_test(every_entry_of_a_table_is_read_at_every_level),
    cmocka_unit_test(codes_are_gathered_by_split_at_every_level),
    cmocka_unit_test(the_vbmi_variant_over_a_model_of_its_instruction_passes_the_same_items),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
