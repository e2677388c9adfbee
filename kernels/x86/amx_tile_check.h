/* SPDX-License-Identifier: Apache-2.0 */
/* A test of this machine's AMX tiles, run at start. Products of bytes must be exact, and sums must wrap. A machine that
 * fails the test does not get the level amx, so no search depends on an untested instruction. Sapphire Rapids and
 * Emerald Rapids passed; no other processor has been tried.
 *
 * Include it after amx_tiles.h or tests/support/amx_tiles_model.h. Private.
 */
#ifndef KERNELS_X86_AMX_TILE_CHECK_H
#define KERNELS_X86_AMX_TILE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CHECK_ROWS = 16, CHECK_GROUPS = 16, CHECK_COLUMNS = 16, CHECK_ROUNDS = 8 };

/* Factors, and sums: of signed bytes of b and of unsigned ones. */
struct tile_case {
  int8_t a[CHECK_ROWS][4 * CHECK_GROUPS];
  uint8_t b[CHECK_GROUPS][CHECK_COLUMNS][4];
  uint32_t before[CHECK_ROWS][CHECK_COLUMNS], after[2][CHECK_ROWS][CHECK_COLUMNS];
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

static inline void tile_case_run(struct tile_case *c)
{
  tiles_begin();
  tile_load(0, c->before, sizeof c->before[0]);
  tile_load(1, c->before, sizeof c->before[0]);
  tile_load(2, c->a, sizeof c->a[0]);
  tile_load(4, c->b, sizeof c->b[0]);
  tile_add_signed(0, 2, 4);
  tile_add_unsigned(1, 2, 4);
  tile_store(0, c->after[0], sizeof c->after[0][0]);
  tile_store(1, c->after[1], sizeof c->after[1][0]);
  tiles_end();
}

static inline bool tile_case_is_right(const struct tile_case *c)
{
  bool is_right = true;

  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t n = 0; n < CHECK_COLUMNS; n++) {
      uint32_t sums[2] = { c->before[m][n], c->before[m][n] };
      for (size_t k = 0; k < 4 * CHECK_GROUPS; k++) {
        uint8_t byte = c->b[k / 4][n][k % 4];
        sums[0] += (uint32_t)(c->a[m][k] * (int8_t)byte);
        sums[1] += (uint32_t)(c->a[m][k] * byte);
      }
      is_right = is_right && sums[0] == c->after[0][m][n] && sums[1] == c->after[1][m][n];
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
