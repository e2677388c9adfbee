/* SPDX-License-Identifier: Apache-2.0 */
/* A test of this machine's AMX tiles, run at start: of every instruction of amx_tiles.h, with every tile. Products of
 * bytes must be exact, and sums must wrap. A machine that fails the test does not get the level amx, so no search
 * depends on an untested instruction. Emerald Rapids passed; no other processor has been tried with bytes.
 *
 * Include it after amx_tiles.h or tests/support/amx_tiles_model.h. Private.
 */
#ifndef KERNELS_X86_AMX_TILE_CHECK_H
#define KERNELS_X86_AMX_TILE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CHECK_ROWS = 16, CHECK_GROUPS = 16, CHECK_COLUMNS = 16, CHECK_SUMS = 4, CHECK_ROUNDS = 8 };

/* Factors, and sums of the same products: the first two begin with `before`, the others with zeros. */
struct tile_case {
  int8_t a[CHECK_ROWS][4 * CHECK_GROUPS];
  uint8_t b[CHECK_GROUPS][CHECK_COLUMNS][4];
  uint32_t before[CHECK_ROWS][CHECK_COLUMNS], after[CHECK_SUMS][CHECK_ROWS][CHECK_COLUMNS];
  uint64_t state;
};

static inline uint32_t tile_case_dice(struct tile_case *c)
{
  c->state = c->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(c->state >> 33);
}

/* Draw random bytes, the largest and smallest among them. Half of the sums begin where they may soon wrap. */
static inline void tile_case_fill(struct tile_case *c)
{
  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t i = 0; i < 4 * CHECK_GROUPS; i++)
      c->a[m][i] = (int8_t)tile_case_dice(c);
    for (size_t n = 0; n < CHECK_COLUMNS; n++)
      c->before[m][n] = n % 2 ? tile_case_dice(c) << 1 : 0x7fffff00u + tile_case_dice(c) % 512;
  }
  for (size_t k = 0; k < CHECK_GROUPS; k++) {
    for (size_t i = 0; i < 4 * CHECK_COLUMNS; i++)
      c->b[k][i / 4][i % 4] = (uint8_t)tile_case_dice(c);
  }
  memset(c->after, 0xff, sizeof c->after);
}

/* Tiles 0 to 3 hold sums, 4 and 5 the first factor, 6 and 7 the second. */
static inline void tile_case_run(struct tile_case *c)
{
  tiles_begin();
  tile_load(0, c->before, sizeof c->before[0]);
  tile_load(1, c->before, sizeof c->before[0]);
  tile_zero(2);
  tile_zero(3);
  tile_load(4, c->a, sizeof c->a[0]);
  tile_load_once(5, c->a, sizeof c->a[0]);
  tile_load(6, c->b, sizeof c->b[0]);
  tile_load_once(7, c->b, sizeof c->b[0]);
  tile_add_unsigned(0, 4, 6);
  tile_add_unsigned(1, 5, 7);
  tile_add_unsigned(2, 4, 7);
  tile_add_unsigned(3, 5, 6);
  tile_store(0, c->after[0], sizeof c->after[0][0]);
  tile_store(1, c->after[1], sizeof c->after[1][0]);
  tile_store(2, c->after[2], sizeof c->after[2][0]);
  tile_store(3, c->after[3], sizeof c->after[3][0]);
  tiles_end();
}

static inline bool tile_case_is_right(const struct tile_case *c)
{
  bool is_right = true;

  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t n = 0; n < CHECK_COLUMNS; n++) {
      uint32_t sum = 0;
      for (size_t k = 0; k < 4 * CHECK_GROUPS; k++)
        sum += (uint32_t)(c->a[m][k] * c->b[k / 4][n][k % 4]);
      for (int i = 0; i < CHECK_SUMS; i++)
        is_right = is_right && c->after[i][m][n] == sum + (i < CHECK_SUMS / 2 ? c->before[m][n] : 0);
    }
  }
  return is_right;
}

static inline bool tiles_work(void)
{
  static struct tile_case c;
  bool is_right = true;

  c.state = 1;
  for (int round = 0; round < CHECK_ROUNDS; round++) {
    tile_case_fill(&c);
    tile_case_run(&c);
    is_right = is_right && tile_case_is_right(&c);
  }
  return is_right;
}

#endif
