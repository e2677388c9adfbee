/* SPDX-License-Identifier: Apache-2.0 */
/* A test of this machine's AMX tiles, run at start. The proof in mol_reduced_gate.h requires sums of exact products,
 * rounded to nearest once a step, in any order; products of bytes must be exact. A machine that fails the test does not
 * get the level amx, so no search depends on an untested instruction. Sapphire Rapids and Emerald Rapids passed; no
 * other processor has been tried.
 *
 * Include it after amx_tiles.h or tests/support/amx_tiles_model.h. Private.
 */
#ifndef KERNELS_X86_AMX_TILE_CHECK_H
#define KERNELS_X86_AMX_TILE_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { CHECK_ROWS = 16, CHECK_PAIRS = 16, CHECK_COLUMNS = 16, CHECK_ROUNDS = 8 };

/* Factors in f32 with 8 significant bits, and the same in a tile's layout. */
struct tile_case {
  float a[CHECK_ROWS][2 * CHECK_PAIRS], b[2 * CHECK_PAIRS][CHECK_COLUMNS];
  uint16_t a_tile[CHECK_ROWS][2 * CHECK_PAIRS], b_tile[CHECK_PAIRS][CHECK_COLUMNS][2];
  float before[CHECK_ROWS][CHECK_COLUMNS], after[CHECK_ROWS][CHECK_COLUMNS];
  uint64_t state;
};

enum tile_case_kind {
  CASE_INTEGERS,    /* every sum is exact */
  CASE_TWO_ROUNDED, /* a row of `a` has two numbers that are not zero, `before` is zero: one rounding */
  CASE_ONE_ADDED,   /* a row of `a` has one number that is not zero, `before` is not zero: one rounding */
  CASE_RANDOM,
  N_TILE_CASES
};

static inline uint32_t tile_case_dice(struct tile_case *c)
{
  c->state = c->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(c->state >> 33);
}

/* Draw a number of 8 significant bits, |number| from 2^-6 to 2^7; for CASE_INTEGERS a small integer. */
static inline float tile_case_number(struct tile_case *c, enum tile_case_kind kind)
{
  int32_t bits = (int32_t)(128 + tile_case_dice(c) % 128), sign = tile_case_dice(c) % 2 ? 1 : -1;

  if (kind == CASE_INTEGERS)
    return (float)(sign * (bits % 9));
  return ldexpf((float)(sign * bits), (int)(tile_case_dice(c) % 13) - 13);
}

static inline uint16_t tile_case_bf16(float x)
{
  uint32_t bits;

  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static inline void tile_case_fill(struct tile_case *c, enum tile_case_kind kind)
{
  for (size_t m = 0; m < CHECK_ROWS; m++) {
    size_t first = tile_case_dice(c) % (2 * CHECK_PAIRS), second = tile_case_dice(c) % (2 * CHECK_PAIRS);
    for (size_t k = 0; k < 2 * CHECK_PAIRS; k++) {
      bool is_kept =
          k == first || (k == second && kind != CASE_ONE_ADDED) || kind == CASE_INTEGERS || kind == CASE_RANDOM;
      c->a[m][k] = is_kept ? tile_case_number(c, kind) : 0.0f;
      c->a_tile[m][k] = tile_case_bf16(c->a[m][k]);
    }
    for (size_t n = 0; n < CHECK_COLUMNS; n++)
      c->before[m][n] = kind == CASE_TWO_ROUNDED ? 0.0f : tile_case_number(c, kind) * 129.0f;
  }
  for (size_t k = 0; k < 2 * CHECK_PAIRS; k++) {
    for (size_t n = 0; n < CHECK_COLUMNS; n++) {
      c->b[k][n] = tile_case_number(c, kind);
      c->b_tile[k / 2][n][k % 2] = tile_case_bf16(c->b[k][n]);
    }
  }
}

static inline void tile_case_run(struct tile_case *c)
{
  tiles_begin();
  tile_load(0, c->before, sizeof c->before[0]);
  tile_load(2, c->a_tile, sizeof c->a_tile[0]);
  tile_load(4, c->b_tile, sizeof c->b_tile[0]);
  tile_add_products(0, 2, 4);
  tile_store(0, c->after, sizeof c->after[0]);
  tiles_end();
}

/* Is every sum right? In double, products and sums of so few bits are exact. */
static inline bool tile_case_is_right(const struct tile_case *c, enum tile_case_kind kind)
{
  bool is_right = true;

  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t n = 0; n < CHECK_COLUMNS; n++) {
      double sum = (double)c->before[m][n], sizes = fabs(sum), after = (double)c->after[m][n];
      for (size_t k = 0; k < 2 * CHECK_PAIRS; k++) {
        sum += (double)c->a[m][k] * (double)c->b[k][n];
        sizes += fabs((double)c->a[m][k] * (double)c->b[k][n]);
      }
      if (kind == CASE_RANDOM)
        is_right = is_right && fabs(after - sum) <= 2 * CHECK_PAIRS * 0x1p-24 * sizes;
      else
        is_right = is_right && c->after[m][n] == (float)sum;
    }
  }
  return is_right;
}

/* Factors and sums of bytes. */
struct byte_case {
  int8_t a[CHECK_ROWS][4 * CHECK_PAIRS];
  uint8_t b[CHECK_PAIRS][CHECK_COLUMNS][4];
  uint32_t before[CHECK_ROWS][CHECK_COLUMNS], after[2][CHECK_ROWS][CHECK_COLUMNS];
};

static inline void byte_case_run(struct byte_case *c)
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

/* Is every sum right, of signed bytes of b and of unsigned ones? */
static inline bool byte_case_is_right(const struct byte_case *c)
{
  bool is_right = true;

  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t n = 0; n < CHECK_COLUMNS; n++) {
      uint32_t sums[2] = { c->before[m][n], c->before[m][n] };
      for (size_t k = 0; k < 4 * CHECK_PAIRS; k++) {
        uint8_t byte = c->b[k / 4][n][k % 4];
        sums[0] += (uint32_t)(c->a[m][k] * (int8_t)byte);
        sums[1] += (uint32_t)(c->a[m][k] * byte);
      }
      is_right = is_right && sums[0] == c->after[0][m][n] && sums[1] == c->after[1][m][n];
    }
  }
  return is_right;
}

/* Test products of random bytes, which have the largest and smallest among them. Sums wrap. */
static inline bool byte_tiles_work(struct tile_case *dice)
{
  static struct byte_case c;

  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t i = 0; i < 4 * CHECK_PAIRS; i++)
      c.a[m][i] = (int8_t)tile_case_dice(dice);
    for (size_t i = 0; i < 4 * CHECK_COLUMNS; i++)
      c.b[m][i / 4][i % 4] = (uint8_t)tile_case_dice(dice);
    for (size_t n = 0; n < CHECK_COLUMNS; n++)
      c.before[m][n] = tile_case_dice(dice) << 1;
  }
  memset(c.after, 0xff, sizeof c.after);
  byte_case_run(&c);
  return byte_case_is_right(&c);
}

static inline bool tiles_work(void)
{
  static struct tile_case c;
  bool is_right = true;

  c.state = 1;
  for (int round = 0; round < CHECK_ROUNDS; round++) {
    for (int kind = 0; kind < N_TILE_CASES; kind++) {
      tile_case_fill(&c, (enum tile_case_kind)kind);
      memset(c.after, 0xff, sizeof c.after);
      tile_case_run(&c);
      is_right = is_right && tile_case_is_right(&c, (enum tile_case_kind)kind);
    }
    is_right = is_right && byte_tiles_work(&c);
  }
  return is_right;
}

#endif
