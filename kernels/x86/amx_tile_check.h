/* SPDX-License-Identifier: Apache-2.0 */
/* A test of this machine's AMX tiles, run at start: of every instruction of amx_tiles.h, with every tile. Products of
 * bytes must be exact, and sums must wrap. Sums of products of bf16 must be as near as sums in f32 are, and exact where
 * all numbers are small integers. A machine that fails the test does not get the level amx, so no search depends on an
 * untested instruction.
 *
 * Include it after amx_tiles.h or tests/support/amx_tiles_model.h. Private.
 */
#ifndef KERNELS_X86_AMX_TILE_CHECK_H
#define KERNELS_X86_AMX_TILE_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CHECK_ROWS = 16, CHECK_GROUPS = 16, CHECK_COLUMNS = 16, CHECK_SUMS = 4, CHECK_ROUNDS = 8 };

/* Factors, and sums of the same products: the first two begin with `before`, the others with zeros. Four bytes, or two
 * numbers of bf16, make a group. */
struct tile_case {
  union {
    int8_t bytes[CHECK_ROWS][4 * CHECK_GROUPS];
    uint16_t bf16[CHECK_ROWS][2 * CHECK_GROUPS];
  } a;
  union {
    uint8_t bytes[CHECK_GROUPS][CHECK_COLUMNS][4];
    uint16_t bf16[CHECK_GROUPS][CHECK_COLUMNS][2];
  } b;
  uint32_t before[CHECK_ROWS][CHECK_COLUMNS], after[CHECK_SUMS][CHECK_ROWS][CHECK_COLUMNS];
  uint64_t state;
};

static inline uint32_t tile_case_dice(struct tile_case *c)
{
  c->state = c->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(c->state >> 33);
}

static inline float tile_float(uint32_t bits)
{
  float x;

  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint32_t tile_bits(float x)
{
  uint32_t bits;

  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Draw random bytes, the largest and smallest among them. Half of the sums begin where they may soon wrap. */
static inline void tile_case_fill_bytes(struct tile_case *c)
{
  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t i = 0; i < 4 * CHECK_GROUPS; i++)
      c->a.bytes[m][i] = (int8_t)tile_case_dice(c);
    for (size_t n = 0; n < CHECK_COLUMNS; n++)
      c->before[m][n] = n % 2 ? tile_case_dice(c) << 1 : 0x7fffff00u + tile_case_dice(c) % 512;
  }
  for (size_t k = 0; k < CHECK_GROUPS; k++) {
    for (size_t i = 0; i < 4 * CHECK_COLUMNS; i++)
      c->b.bytes[k][i / 4][i % 4] = (uint8_t)tile_case_dice(c);
  }
}

/* Draw an integer of at most 8 bits and a sign, or a number of any size from 2^-32 to 2^31. */
static inline uint16_t tile_case_bf16(struct tile_case *c, bool is_integer)
{
  uint32_t dice = tile_case_dice(c);
  float integer = (float)(dice % 256), sign = dice & 256 ? -1.0f : 1.0f;

  return (uint16_t)(tile_bits(sign * (is_integer ? integer : ldexpf(integer + 1, (int)(dice >> 9) % 56 - 32))) >> 16);
}

static inline void tile_case_fill_bf16(struct tile_case *c, bool is_integer)
{
  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t i = 0; i < 2 * CHECK_GROUPS; i++)
      c->a.bf16[m][i] = tile_case_bf16(c, is_integer);
    for (size_t n = 0; n < CHECK_COLUMNS; n++)
      c->before[m][n] = (uint32_t)tile_case_bf16(c, is_integer) << 16;
  }
  for (size_t k = 0; k < CHECK_GROUPS; k++) {
    for (size_t i = 0; i < 2 * CHECK_COLUMNS; i++)
      c->b.bf16[k][i / 2][i % 2] = tile_case_bf16(c, is_integer);
  }
}

/* Tiles 0 to 3 hold sums, 4 and 5 the first factor, 6 and 7 the second. A macro, because the instruction is one. */
#define TILE_CASE_RUN(c, tile_add)                           \
  do {                                                       \
    memset((c)->after, 0xff, sizeof(c)->after);              \
    tiles_begin();                                           \
    tile_load(0, (c)->before, sizeof(c)->before[0]);         \
    tile_load(1, (c)->before, sizeof(c)->before[0]);         \
    tile_zero(2);                                            \
    tile_zero(3);                                            \
    tile_load(4, &(c)->a, sizeof(c)->a / CHECK_ROWS);        \
    tile_load_once(5, &(c)->a, sizeof(c)->a / CHECK_ROWS);   \
    tile_load(6, &(c)->b, sizeof(c)->b / CHECK_GROUPS);      \
    tile_load_once(7, &(c)->b, sizeof(c)->b / CHECK_GROUPS); \
    tile_add(0, 4, 6);                                       \
    tile_add(1, 5, 7);                                       \
    tile_add(2, 4, 7);                                       \
    tile_add(3, 5, 6);                                       \
    tile_store(0, (c)->after[0], sizeof(c)->after[0][0]);    \
    tile_store(1, (c)->after[1], sizeof(c)->after[1][0]);    \
    tile_store(2, (c)->after[2], sizeof(c)->after[2][0]);    \
    tile_store(3, (c)->after[3], sizeof(c)->after[3][0]);    \
    tiles_end();                                             \
  } while (0)

static inline bool tile_case_bytes_are_right(const struct tile_case *c, bool is_signed)
{
  bool is_right = true;

  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t n = 0; n < CHECK_COLUMNS; n++) {
      uint32_t sum = 0;
      for (size_t k = 0; k < 4 * CHECK_GROUPS; k++) {
        uint8_t byte = c->b.bytes[k / 4][n][k % 4];
        sum += (uint32_t)(c->a.bytes[m][k] * (is_signed ? (int8_t)byte : byte));
      }
      for (int i = 0; i < CHECK_SUMS; i++)
        is_right = is_right && c->after[i][m][n] == sum + (i < CHECK_SUMS / 2 ? c->before[m][n] : 0);
    }
  }
  return is_right;
}

/* Sums of n terms in f32 are off by at most (n + 3) 2^-24 times the sum of the terms' sizes, in any order. */
static inline bool tile_case_bf16_are_right(const struct tile_case *c, bool is_integer)
{
  const double rounding = is_integer ? 0 : (2 * CHECK_GROUPS + 4) * 0x1p-24;
  bool is_right = true;

  for (size_t m = 0; m < CHECK_ROWS; m++) {
    for (size_t n = 0; n < CHECK_COLUMNS; n++) {
      double sum = 0, sizes = 0, before = (double)tile_float(c->before[m][n]);
      for (size_t k = 0; k < 2 * CHECK_GROUPS; k++) {
        double term = (double)tile_float((uint32_t)c->a.bf16[m][k] << 16) *
                      (double)tile_float((uint32_t)c->b.bf16[k / 2][n][k % 2] << 16);
        sum += term;
        sizes += fabs(term);
      }
      for (int i = 0; i < CHECK_SUMS; i++) {
        double start = i < CHECK_SUMS / 2 ? before : 0;
        double error = fabs((double)tile_float(c->after[i][m][n]) - (sum + start));
        is_right = is_right && error <= rounding * (sizes + fabs(start)); /* false for NaN */
      }
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
    bool is_integer = round % 2;
    tile_case_fill_bytes(&c);
    TILE_CASE_RUN(&c, tile_add_unsigned);
    is_right = is_right && tile_case_bytes_are_right(&c, false);
    TILE_CASE_RUN(&c, tile_add_signed);
    is_right = is_right && tile_case_bytes_are_right(&c, true);
    tile_case_fill_bf16(&c, is_integer);
    TILE_CASE_RUN(&c, tile_add_bf16);
    is_right = is_right && tile_case_bf16_are_right(&c, is_integer);
  }
  return is_right;
}

#endif
