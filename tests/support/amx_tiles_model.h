/* SPDX-License-Identifier: Apache-2.0 */
/* AMX tiles in plain C, under the names of kernels/x86/amx_tiles.h: the code that uses tiles runs on machines without
 * them. They follow the manual (Intel's architecture manual, volume 2, TDPBSUD, TDPBSSD and TDPBF16PS): products are
 * exact, and sums of bytes wrap. Each file that includes this has its own tiles.
 */
#ifndef TESTS_SUPPORT_AMX_TILES_MODEL_H
#define TESTS_SUPPORT_AMX_TILES_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MODEL_TILES = 8, MODEL_ROWS = 16, MODEL_ROW_BYTES = 64 };

/* Faults that the model can have, to test amx_tile_check.h. */
enum tile_fault {
  FAULT_NONE,
  FAULT_SIGNED,         /* unsigned bytes as signed ones */
  FAULT_UNSIGNED,       /* signed bytes as unsigned ones, in the factor that may be either */
  FAULT_ROUNDED,        /* sums of bytes lose their last bit */
  FAULT_SATURATED,      /* sums of bytes do not wrap */
  FAULT_SWAPPED,        /* the bytes of one factor are in another order */
  FAULT_LOST_BYTE,      /* the last byte of a row has no product */
  FAULT_FORGETFUL,      /* what was in the tile is lost where bytes are multiplied */
  FAULT_COARSE,         /* sums of f32 lose their last bits */
  FAULT_LOST_PAIR,      /* the last two numbers of bf16 of a row have no product */
  FAULT_SWAPPED_PAIR,   /* the numbers of bf16 of one factor are in another order */
  FAULT_FORGETFUL_BF16, /* what was in the tile is lost where bf16 is multiplied */
  N_FAULTS
};

static enum tile_fault tile_fault;
static bool are_tiles_begun;
static uint8_t model_tiles[MODEL_TILES][MODEL_ROWS][MODEL_ROW_BYTES];

static inline void tiles_begin(void)
{
  memset(model_tiles, 0, sizeof model_tiles);
  are_tiles_begun = true;
}

static inline void tiles_end(void)
{
  are_tiles_begun = false;
}

/* Trap a tile instruction outside tiles_begin() and tiles_end(), where it is illegal. */
static inline void demand_tiles(void)
{
  if (!are_tiles_begun)
    __builtin_trap();
}

static inline void tile_zero(int t)
{
  demand_tiles();
  memset(model_tiles[t], 0, sizeof model_tiles[t]);
}

static inline void tile_load(int t, const void *from, size_t step)
{
  demand_tiles();
  for (size_t r = 0; r < MODEL_ROWS; r++)
    memcpy(model_tiles[t][r], (const uint8_t *)from + r * step, MODEL_ROW_BYTES);
}

static inline void tile_load_once(int t, const void *from, size_t step)
{
  tile_load(t, from, step);
}

static inline void tile_store(int t, void *to, size_t step)
{
  demand_tiles();
  for (size_t r = 0; r < MODEL_ROWS; r++)
    memcpy((uint8_t *)to + r * step, model_tiles[t][r], MODEL_ROW_BYTES);
}

/* Add a product to a sum, as the faults of single sums demand. */
static inline uint32_t model_sum(uint32_t sum, int32_t product)
{
  int32_t whole;

  if (tile_fault == FAULT_SATURATED && __builtin_add_overflow((int32_t)sum, product, &whole))
    return product < 0 ? (uint32_t)INT32_MIN : INT32_MAX;
  sum += (uint32_t)product;
  return tile_fault == FAULT_ROUNDED ? sum & ~1u : sum;
}

/* The product of two bytes, the second of which may be signed. */
static inline int32_t model_product(uint8_t a, uint8_t b, bool is_signed)
{
  is_signed = (is_signed || tile_fault == FAULT_SIGNED) && tile_fault != FAULT_UNSIGNED;
  return (int8_t)a * (is_signed ? (int8_t)b : b);
}

/* sums[m][n] += a[m][4 k + i] b[k][n][i] over all k and i. */
static inline void model_add_bytes(int sums, int a, int b, bool is_signed)
{
  size_t n_bytes = MODEL_ROW_BYTES - (tile_fault == FAULT_LOST_BYTE), swapped = tile_fault == FAULT_SWAPPED;

  demand_tiles();
  for (size_t m = 0; m < MODEL_ROWS; m++) {
    for (size_t n = 0; n < MODEL_ROW_BYTES / 4; n++) {
      uint32_t sum;
      memcpy(&sum, model_tiles[sums][m] + 4 * n, sizeof sum);
      if (tile_fault == FAULT_FORGETFUL)
        sum = 0;
      for (size_t k = 0; k < n_bytes; k++) {
        uint8_t byte = model_tiles[b][k / 4][4 * n + (k % 4 ^ swapped)];
        sum = model_sum(sum, model_product(model_tiles[a][m][k], byte, is_signed));
      }
      memcpy(model_tiles[sums][m] + 4 * n, &sum, sizeof sum);
    }
  }
}

static inline void tile_add_unsigned(int sums, int a, int b)
{
  model_add_bytes(sums, a, b, false);
}

static inline void tile_add_signed(int sums, int a, int b)
{
  model_add_bytes(sums, a, b, true);
}

/* Number i of a row in bf16, as f32. Subnormal numbers count as zero. */
static inline float model_bf16(const uint8_t *row, size_t i)
{
  uint16_t half;
  float x;

  memcpy(&half, row + 2 * i, sizeof half);
  uint32_t bits = half & 0x7f80 ? (uint32_t)half << 16 : 0;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* A sum of f32, as the faults of such sums demand. */
static inline float model_coarse(float x)
{
  uint32_t bits;

  memcpy(&bits, &x, sizeof bits);
  bits &= tile_fault == FAULT_COARSE ? 0xfffff000 : UINT32_MAX;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* sums[m][n] += a[m][2 k + i] b[k][n][i] over all k and i, in f32: even and odd i apart, then both. */
static inline void tile_add_bf16(int sums, int a, int b)
{
  size_t n_pairs = MODEL_ROWS - (tile_fault == FAULT_LOST_PAIR), swapped = tile_fault == FAULT_SWAPPED_PAIR;

  demand_tiles();
  for (size_t m = 0; m < MODEL_ROWS; m++) {
    for (size_t n = 0; n < MODEL_ROW_BYTES / 4; n++) {
      float sum, parts[2] = { 0, 0 };
      memcpy(&sum, model_tiles[sums][m] + 4 * n, sizeof sum);
      for (size_t k = 0; k < n_pairs; k++) {
        for (size_t i = 0; i < 2; i++)
          parts[i] = model_coarse(fmaf(model_bf16(model_tiles[a][m], 2 * k + i),
                                       model_bf16(model_tiles[b][k], 2 * n + (i ^ swapped)), parts[i]));
      }
      sum = (tile_fault == FAULT_FORGETFUL_BF16 ? 0 : sum) + (parts[0] + parts[1]);
      memcpy(model_tiles[sums][m] + 4 * n, &sum, sizeof sum);
    }
  }
}

#endif
