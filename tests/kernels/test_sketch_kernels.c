/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of sketches: every level of this machine against the scalar reference, to the last bit, and against the
 * formulas. The level amx's also run with tiles in plain C (tests/support/dot_i8_model.h), on machines with AVX-512. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "tests/support/blocks.h"
#include "tests/support/dot_i8_model.h"

static struct dice dice;

enum { SIZES_SMALL = 68, ROW_BYTES = SKETCH_BLOCK_ITEMS * SKETCH_GROUP };

static const struct kernels *table(enum isa isa)
{
  const struct kernels *k = NULL;

  assert_int_equal(kernels_get(isa, &k), ERR_OK);
  return k;
}

/* dot_i8 -------------------- */

/* Magnitudes of a query's numbers. */
enum size { SIZE_SMALL, SIZE_LARGEST, SIZE_ALL_LARGEST, SIZE_ALL_LEAST, SIZE_ZERO, N_SIZES };

static int16_t *query_new(size_t n, enum size size)
{
  int16_t *query = block_new(n, sizeof *query);
  size_t limit = n * DOT_I8_NUMBER_MAX > DOT_I8_SUM_MAX ? DOT_I8_SUM_MAX / n : DOT_I8_NUMBER_MAX;

  for (size_t k = 0; k < n; k++) {
    size_t bound = size == SIZE_SMALL ? 100 : size == SIZE_ZERO ? 0 : limit;
    bound = bound < limit ? bound : limit;
    long number = (long)dice_below(&dice, 2 * bound + 1) - (long)bound;
    if (size == SIZE_ALL_LARGEST)
      number = (long)limit;
    if (size == SIZE_ALL_LEAST)
      number = -(long)limit;
    query[k] = (int16_t)number;
  }
  return query;
}

/* Random bytes, or only 0, or only 255. */
static uint8_t *blocks_new(size_t n)
{
  uint8_t *blocks = block_new_aligned(n, 1);
  size_t kind = dice_below(&dice, 4);

  for (size_t i = 0; i < n; i++)
    blocks[i] = kind == 0 ? 0 : kind == 1 ? 255 : (uint8_t)dice_u64(&dice);
  return blocks;
}

static int64_t sum_of(const int16_t *query, size_t n_groups, const uint8_t *block, size_t item)
{
  int64_t sum = 0;

  for (size_t k = 0; k < n_groups * SKETCH_GROUP; k++)
    sum += (int64_t)query[k] * ((int64_t)block[k / 4 * ROW_BYTES + item * 4 + k % 4] - 128);
  return sum;
}

static void check_dot_i8(size_t n_groups, size_t n_blocks, enum size size)
{
  int16_t *query = query_new(n_groups * SKETCH_GROUP, size);
  uint8_t *blocks = blocks_new(n_blocks * n_groups * ROW_BYTES + SKETCH_BLOCKS_PAD);
  int32_t *sums = block_new(n_blocks * SKETCH_BLOCK_ITEMS, sizeof *sums);

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    table(isa)->dot_i8((const int16_t *const[]){ query }, 1, n_groups, blocks, n_blocks, (int32_t *const[]){ sums });
    for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++) {
      int64_t wanted =
          sum_of(query, n_groups, blocks + i / SKETCH_BLOCK_ITEMS * n_groups * ROW_BYTES, i % SKETCH_BLOCK_ITEMS);
      if (sums[i] != wanted)
        fail_msg("dot_i8 %s: %d, not %lld, with %zu groups", isa_name(isa), sums[i], (long long)wanted, n_groups);
    }
  }
  free(sums);
  free(blocks);
  free(query);
}

static void dot_i8_is_exact_at_every_level(void **state)
{
  (void)state;
  for (size_t n_groups = 0; n_groups < SIZES_SMALL; n_groups++)
    for (enum size size = SIZE_SMALL; size < N_SIZES; size++)
      check_dot_i8(n_groups, dice_below(&dice, 20), size);
  for (size_t n_blocks = 0; n_blocks < 34; n_blocks++)
    check_dot_i8(dice_below(&dice, 40), n_blocks, SIZE_LARGEST);
}

static void dot_i8_is_exact_where_the_sums_are_as_large_as_they_may_be(void **state)
{
  static const size_t groups[] = { 128, 129, 130, 255, 256, 257, 511, 513, 1024, 4096 };

  (void)state;
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
    for (int repeat = 0; repeat < 4; repeat++) {
      check_dot_i8(groups[i], 3, SIZE_ALL_LARGEST);
      check_dot_i8(groups[i], 2, SIZE_ALL_LEAST);
      check_dot_i8(groups[i], 9, SIZE_LARGEST);
    }
  }
}

/* dot_i8 of many queries -------------------- */

enum { QUERIES_MAX = 40 };

struct many_inputs {
  int16_t *queries[QUERIES_MAX];
  int32_t *sums[QUERIES_MAX], *wanted[QUERIES_MAX]; /* each [n_blocks * SKETCH_BLOCK_ITEMS] */
  uint8_t *blocks;
  size_t n_queries, n_groups, n_blocks;
};

static struct many_inputs many_inputs_new(size_t n_queries, size_t n_groups, size_t n_blocks, enum size size)
{
  struct many_inputs in = { .n_queries = n_queries, .n_groups = n_groups, .n_blocks = n_blocks };
  size_t n = n_blocks * SKETCH_BLOCK_ITEMS;

  in.blocks = blocks_new(n_blocks * n_groups * ROW_BYTES + SKETCH_BLOCKS_PAD);
  for (size_t q = 0; q < n_queries; q++) {
    in.queries[q] = query_new(n_groups * SKETCH_GROUP, size);
    in.sums[q] = block_new(n, sizeof *in.sums[q]);
    in.wanted[q] = block_new(n, sizeof *in.wanted[q]);
    table(ISA_REF)->dot_i8((const int16_t *const[]){ in.queries[q] }, 1, n_groups, in.blocks, n_blocks, &in.wanted[q]);
  }
  return in;
}

static void many_inputs_free(struct many_inputs *in)
{
  for (size_t q = 0; q < in->n_queries; q++) {
    free(in->queries[q]);
    free(in->sums[q]);
    free(in->wanted[q]);
  }
  free(in->blocks);
}

/* Each query has the sums that it has alone. */
static void check_many_of(const struct many_inputs *in, const char *name,
                          void (*dot_i8)(const int16_t *const *, size_t, size_t, const uint8_t *, size_t,
                                              int32_t *const *))
{
  size_t bytes = in->n_blocks * SKETCH_BLOCK_ITEMS * sizeof(int32_t);

  for (size_t q = 0; q < in->n_queries; q++)
    memset(in->sums[q], 0xa5, bytes);
  dot_i8((const int16_t *const *)in->queries, in->n_queries, in->n_groups, in->blocks, in->n_blocks, in->sums);
  for (size_t q = 0; q < in->n_queries; q++)
    if (memcmp(in->sums[q], in->wanted[q], bytes) != 0)
      fail_msg("dot_i8 %s: query %zu of %zu, %zu groups, %zu blocks", name, q, in->n_queries, in->n_groups,
               in->n_blocks);
}

static void check_many(size_t n_queries, size_t n_groups, size_t n_blocks, enum size size)
{
  struct many_inputs in = many_inputs_new(n_queries, n_groups, n_blocks, size);

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++)
    check_many_of(&in, isa_name(isa), table(isa)->dot_i8);
  if (isa_detect() >= ISA_AVX512)
    check_many_of(&in, "model of tiles", dot_i8_model);
  many_inputs_free(&in);
}

static void dot_i8_of_many_queries_is_that_of_each_at_every_level(void **state)
{
  static const size_t groups[] = { 0, 1, 2, 15, 16, 17, 31, 32, 33, 96, 192, 193, 255, 256, 257, 511, 513, 1025 };

  (void)state;
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    for (enum size size = SIZE_SMALL; size < N_SIZES; size++)
      check_many(1 + dice_below(&dice, QUERIES_MAX), groups[i], 1 + dice_below(&dice, 6), size);
  for (size_t n_queries = 0; n_queries <= QUERIES_MAX; n_queries++)
    check_many(n_queries, 1 + dice_below(&dice, 50), dice_below(&dice, 20), SIZE_LARGEST);
  for (size_t n_blocks = 0; n_blocks < 20; n_blocks++)
    check_many(1 + dice_below(&dice, QUERIES_MAX), 1 + dice_below(&dice, 50), n_blocks, SIZE_LARGEST);
}

/* dot_i8_rows, block_rows -------------------- */

static uint8_t *rows_new(size_t n_rows, size_t n_groups)
{
  size_t n = n_rows * n_groups * SKETCH_GROUP + SKETCH_ROW_PAD;
  uint8_t *rows = block_new(n, 1);

  for (size_t i = 0; i < n; i++)
    rows[i] = (uint8_t)dice_u64(&dice);
  return rows;
}

/* n rows out of n_rows, some of them twice; or NULL: the first n. */
static uint32_t *slots_new(size_t n_rows, size_t n)
{
  uint32_t *slots = dice_below(&dice, 3) ? block_new(n, sizeof *slots) : NULL;

  for (size_t i = 0; slots && i < n; i++)
    slots[i] = (uint32_t)dice_below(&dice, n_rows);
  return slots;
}

static int64_t sum_of_row(const int16_t *query, size_t n_groups, const uint8_t *row)
{
  int64_t sum = 0;

  for (size_t k = 0; k < n_groups * SKETCH_GROUP; k++)
    sum += (int64_t)query[k] * ((int64_t)row[k] - 128);
  return sum;
}

static void check_rows(size_t n_groups, size_t n, enum size size)
{
  size_t n_rows = n + dice_below(&dice, 50) + 1;
  int16_t *query = query_new(n_groups * SKETCH_GROUP, size);
  uint8_t *rows = rows_new(n_rows, n_groups);
  uint32_t *slots = slots_new(n_rows, n);
  int32_t *sums = block_new(n + 1, sizeof *sums);

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    sums[n] = 77;
    table(isa)->dot_i8_rows(query, n_groups, rows, slots, n, sums);
    assert_int_equal(sums[n], 77);
    for (size_t i = 0; i < n; i++) {
      int64_t wanted = sum_of_row(query, n_groups, rows + (slots ? slots[i] : i) * n_groups * SKETCH_GROUP);
      if (sums[i] != wanted)
        fail_msg("dot_i8_rows %s: %d, not %lld, with %zu groups", isa_name(isa), sums[i], (long long)wanted, n_groups);
    }
  }
  free(sums);
  free(slots);
  free(rows);
  free(query);
}

static void dot_i8_rows_is_exact_at_every_level(void **state)
{
  static const size_t groups[] = { 128, 192, 255, 256, 257, 511, 513, 1024, 4096 };

  (void)state;
  for (size_t n_groups = 0; n_groups < SIZES_SMALL; n_groups++)
    for (enum size size = SIZE_SMALL; size < N_SIZES; size++)
      check_rows(n_groups, dice_below(&dice, 40), size);
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    for (enum size size = SIZE_SMALL; size < N_SIZES; size++)
      check_rows(groups[i], dice_below(&dice, 20), size);
}

static void check_block_rows(size_t n_groups, size_t n)
{
  size_t n_rows = n + dice_below(&dice, 50) + 1, n_blocks = (n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS;
  size_t n_bytes = n_blocks * n_groups * ROW_BYTES;
  uint8_t *rows = rows_new(n_rows, n_groups), *blocks = block_new_aligned(n_bytes, 1);
  uint8_t *wanted = block_new_aligned(n_bytes, 1);
  uint32_t *slots = slots_new(n_rows, n);

  for (size_t i = 0; i < n_bytes; i++) {
    size_t item = i / (n_groups * ROW_BYTES) * SKETCH_BLOCK_ITEMS + i % ROW_BYTES / SKETCH_GROUP;
    size_t group = i / ROW_BYTES % n_groups;
    item = item < n ? item : n - 1;
    wanted[i] = rows[((slots ? slots[item] : item) * n_groups + group) * SKETCH_GROUP + i % SKETCH_GROUP];
  }
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    memset(blocks, 0, n_bytes);
    table(isa)->block_rows(rows, n_groups, slots, n, blocks);
    assert_memory_equal(blocks, wanted, n_bytes);
  }
  free(slots);
  free(wanted);
  free(blocks);
  free(rows);
}

static void block_rows_arranges_the_same_bytes_at_every_level(void **state)
{
  (void)state;
  for (size_t n_groups = 1; n_groups < SIZES_SMALL; n_groups++)
    check_block_rows(n_groups, dice_below(&dice, 70));
  for (size_t n = 0; n < 35; n++)
    check_block_rows(192, n);
}

/* sketch_bounds -------------------- */

static float *sizes_filled(size_t n)
{
  float *p = floats_filled(&dice, (enum fill)dice_below(&dice, N_FILLS), n);

  for (size_t i = 0; i < n; i++)
    p[i] = fabsf(p[i]);
  return p;
}

static float a_size(void)
{
  static const float sizes[] = { 0.0f, 1.0f, 1e-40f, 1e-20f, 3.0f, 1e12f };

  return sizes[dice_below(&dice, 6)] * (1.0f + dice_float(&dice, 0.5f));
}

static void check_bounds(size_t n_blocks, bool has_tails)
{
  size_t n = n_blocks * SKETCH_BLOCK_ITEMS;
  int32_t *sums = block_new(n, sizeof *sums);
  float *scales = sizes_filled(n), *errors = sizes_filled(n), *tails = has_tails ? sizes_filled(n) : NULL;
  float *bounds = block_new(n, sizeof *bounds);
  struct sketch_items items = { scales, errors, tails };
  struct sketch_weights w = { a_size(), a_size(), a_size(), a_size(), a_size() };

  for (size_t i = 0; i < n; i++)
    sums[i] = dice_below(&dice, 5) ? (int32_t)dice_u64(&dice) : (int32_t)dice_below(&dice, 100) - 50;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    table(isa)->sketch_bounds(sums, &items, &w, n_blocks, bounds);
    for (size_t i = 0; i < n; i++) {
      float score = (float)sums[i] * scales[i] * w.unit;
      float slack = fmaf(errors[i], w.error, fmaf(scales[i], w.scale, w.floor));
      slack = has_tails ? fmaf(tails[i], w.tail, slack) : slack;
      float bound = score + slack;
      assert_memory_equal(&bounds[i], &bound, sizeof bound);
    }
  }
  free(sums);
  free(scales);
  free(errors);
  free(tails);
  free(bounds);
}

static void bounds_take_the_steps_of_their_formula_at_every_level(void **state)
{
  (void)state;
  for (size_t n_blocks = 0; n_blocks < SIZES_SMALL; n_blocks++) {
    check_bounds(n_blocks, false);
    check_bounds(n_blocks, true);
  }
}

/* dot_f64 -------------------- */

static void check_dot_f64(size_t n, enum fill fill)
{
  float *row = floats_filled(&dice, fill, n), *numbers = floats_filled(&dice, fill, n);
  double *query = block_new(n, sizeof *query), sum = 0, size = 0;
  double wanted, found;

  for (size_t k = 0; k < n; k++) {
    query[k] = (double)numbers[k] * (1 + (double)dice_float(&dice, 0x1p-26f));
    sum += query[k] * (double)row[k];
    size += fabs(query[k] * (double)row[k]);
  }
  wanted = table(ISA_REF)->dot_f64(query, row, n);
  if (!(fabs(wanted - sum) <= (double)(n + 1) * 0x1p-52 * size))
    fail_msg("dot_f64: %.17g, not %.17g", wanted, sum);
  for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) {
    found = table(isa)->dot_f64(query, row, n);
    assert_memory_equal(&found, &wanted, sizeof found);
  }
  free(row);
  free(numbers);
  free(query);
}

static void dot_f64_is_the_same_at_every_level(void **state)
{
  (void)state;
  for (size_t n = 0; n < 3 * SIZES_SMALL; n++)
    for (enum fill fill = FILL_RANDOM; fill < N_FILLS; fill++)
      check_dot_f64(n, fill);
  check_dot_f64(768, FILL_RANDOM);
  check_dot_f64(4099, FILL_MIXED);
}

/* dots_f64 -------------------- */

struct dots_inputs {
  double *rows;
  float **vectors;
  size_t n_rows;
  size_t n_vectors;
  size_t dim;
};

/* Each vector is a heap block of its own, the same number of floats. */
static struct dots_inputs dots_inputs_new(size_t n_rows, size_t n_vectors, size_t dim, enum fill fill)
{
  struct dots_inputs in = { NULL, block_new(n_vectors, sizeof *in.vectors), n_rows, n_vectors, dim };
  float *numbers = floats_filled(&dice, fill, n_rows * dim);

  in.rows = block_new(n_rows * dim, sizeof *in.rows);
  for (size_t i = 0; i < n_rows * dim; i++)
    in.rows[i] = (double)numbers[i] * (1 + (double)dice_float(&dice, 0x1p-26f));
  for (size_t v = 0; v < n_vectors; v++)
    in.vectors[v] = floats_filled(&dice, fill, dim);
  free(numbers);
  return in;
}

static void dots_inputs_free(struct dots_inputs *in)
{
  for (size_t v = 0; v < in->n_vectors; v++)
    free(in->vectors[v]);
  free(in->vectors);
  free(in->rows);
}

/* Every level gives the bits of the reference's dot_f64(), and writes nothing after them. */
static void check_dots_f64(size_t n_rows, size_t n_vectors, size_t dim, enum fill fill)
{
  struct dots_inputs in = dots_inputs_new(n_rows, n_vectors, dim, fill);
  size_t n = n_vectors * n_rows;
  double *wanted = block_new(n + 1, sizeof *wanted), *found = block_new(n + 1, sizeof *found);

  for (size_t i = 0; i < n; i++)
    wanted[i] = table(ISA_REF)->dot_f64(in.rows + i % n_rows * dim, in.vectors[i / n_rows], dim);
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    memset(found, 0xa5, (n + 1) * sizeof *found);
    table(isa)->dots_f64(in.rows, n_rows, (const float *const *)in.vectors, n_vectors, dim, found);
    if (memcmp(found, wanted, (n + 1) * sizeof *found) != 0)
      fail_msg("dots_f64 %s: %zu rows, %zu vectors, dim %zu", isa_name(isa), n_rows, n_vectors, dim);
  }
  free(found);
  free(wanted);
  dots_inputs_free(&in);
}

static void dots_f64_are_those_of_dot_f64_at_every_level(void **state)
{
  static const size_t dims[] = { 96, 127, 768, 1001, 4099 };

  (void)state;
  for (size_t dim = 0; dim <= 70; dim++)
    for (size_t n_rows = 0; n_rows < 10; n_rows++)
      for (size_t n_vectors = 0; n_vectors < 10; n_vectors++)
        check_dots_f64(n_rows, n_vectors, dim, (enum fill)dice_below(&dice, N_FILLS));
  for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
    check_dots_f64(9, 32, dims[i], FILL_RANDOM);
    check_dots_f64(7, 33, dims[i], FILL_MIXED);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(dot_i8_is_exact_at_every_level),
    cmocka_unit_test(dot_i8_is_exact_where_the_sums_are_as_large_as_they_may_be),
    cmocka_unit_test(dot_i8_of_many_queries_is_that_of_each_at_every_level),
    cmocka_unit_test(dot_i8_rows_is_exact_at_every_level),
    cmocka_unit_test(block_rows_arranges_the_same_bytes_at_every_level),
    cmocka_unit_test(bounds_take_the_steps_of_their_formula_at_every_level),
    cmocka_unit_test(dot_f64_is_the_same_at_every_level),
    cmocka_unit_test(dots_f64_are_those_of_dot_f64_at_every_level),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
