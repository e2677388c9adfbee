/* SPDX-License-Identifier: Apache-2.0 */
/* AMX tiles in plain C, under the names of kernels/x86/amx_tiles.h: the code that uses tiles runs on machines without
 * them. They follow the manual (Intel's architecture manual, volume 2, TDPBSUD): products are exact, and sums wrap.
 * Each file that includes this has its own tiles.
 */
#ifndef TESTS_SUPPORT_AMX_TILES_MODEL_H
#define TESTS_SUPPORT_AMX_TILES_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MODEL_TILES = 8, MODEL_ROWS = 16, MODEL_ROW_BYTES = 64 };

/* Faults that the model can have, to test amx_tile_check.h. */
enum tile_fault {
  FAULT_NONE,
  FAULT_OTHER_SIGNS, /* unsigned bytes as signed ones */
  FAULT_ROUNDED,     /* sums lose their last bit */
  FAULT_SATURATED,   /* sums do not wrap */
  FAULT_SWAPPED,     /* the bytes of one factor are in another order */
  FAULT_LOST_BYTE,   /* the last byte of a row has no product */
  FAULT_FORGETFUL,   /* what was in the tile is lost */
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

/* sums[m][n] += a[m][4 k + i] b[k][n][i] over all k and i. */
static inline void tile_add_unsigned(int sums, int a, int b)
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
        int32_t factor = tile_fault == FAULT_OTHER_SIGNS ? (int8_t)byte : byte;
        sum = model_sum(sum, (int8_t)model_tiles[a][m][k] * factor);
      }
      memcpy(model_tiles[sums][m] + 4 * n, &sum, sizeof sum);
    }
  }
}

#endif
