/* SPDX-License-Identifier: Apache-2.0 */
/* AMX tiles in plain C, under the names of kernels/x86/amx_tiles.h: the code that uses tiles runs on machines without
 * them. They follow the manual (Intel's architecture manual, volume 2, TDPBF16PS, TDPBSSD and TDPBSUD). Each file that includes this has its
 * own tiles.
 *
 * A product of two rows of pairs has two sums, one of the even and one of the odd numbers, each by fused multiply-adds.
 * Their sum is added to the tile. Denormal inputs and results are zeros. Products of bytes are exact, and sums wrap.
 */
#ifndef TESTS_SUPPORT_AMX_TILES_MODEL_H
#define TESTS_SUPPORT_AMX_TILES_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MODEL_TILES = 8, MODEL_ROWS = 16, MODEL_ROW_BYTES = 64 };

/* Faults that the model can have, to test amx_tile_check.h. */
enum tile_fault {
  FAULT_NONE,
  FAULT_CUT,
  FAULT_ROUNDED_PRODUCTS,
  FAULT_SWAPPED,
  FAULT_LOST_PAIR,
  FAULT_FORGETFUL,
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

static inline void tile_store(int t, void *to, size_t step)
{
  demand_tiles();
  for (size_t r = 0; r < MODEL_ROWS; r++)
    memcpy((uint8_t *)to + r * step, model_tiles[t][r], MODEL_ROW_BYTES);
}

static inline float model_flush(float x)
{
  return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

/* Read a row of pairs from tile t: even numbers to out[0], odd ones to out[1]. */
static inline void model_row(int t, size_t row, float out[2][MODEL_ROWS])
{
  for (size_t i = 0; i < MODEL_ROW_BYTES / 4; i++) {
    uint32_t pair, low, high;
    memcpy(&pair, model_tiles[t][row] + 4 * i, sizeof pair);
    low = pair << 16;
    high = pair & 0xffff0000u;
    memcpy(&out[0][i], &low, sizeof low);
    memcpy(&out[1][i], &high, sizeof high);
    out[0][i] = model_flush(out[0][i]);
    out[1][i] = model_flush(out[1][i]);
  }
}

static inline float model_rounded(double x)
{
  float f = (float)x;

  if (tile_fault == FAULT_CUT && fabs((double)f) > fabs(x))
    f = nextafterf(f, 0.0f);
  return model_flush(f);
}

static inline float model_step(float a, float b, float sum)
{
  if (tile_fault == FAULT_CUT)
    return model_rounded((double)a * (double)b + (double)sum);
  if (tile_fault == FAULT_ROUNDED_PRODUCTS) {
    float product = a * b; /* rounded to 12 bits */
    uint32_t bits;
    memcpy(&bits, &product, sizeof bits);
    bits = (bits + 0x800u) & ~0xfffu;
    memcpy(&product, &bits, sizeof bits);
    return model_flush(product + sum);
  }
  return model_flush(fmaf(a, b, sum));
}

/* sums[n] += a * b[n] */
static inline void model_steps(float a, const float *b, float *sums)
{
  if (tile_fault == FAULT_NONE) {
    for (size_t n = 0; n < MODEL_ROWS; n++)
      sums[n] = model_flush(fmaf(a, b[n], sums[n]));
    return;
  }
  for (size_t n = 0; n < MODEL_ROWS; n++)
    sums[n] = model_step(a, b[n], sums[n]);
}

static inline void tile_add_products(int sums, int a, int b)
{
  size_t n_pairs = MODEL_ROWS - (tile_fault == FAULT_LOST_PAIR), swapped = tile_fault == FAULT_SWAPPED;
  float columns[MODEL_ROWS][2][MODEL_ROWS];

  demand_tiles();
  for (size_t k = 0; k < MODEL_ROWS; k++)
    model_row(b, k, columns[k]);
  for (size_t m = 0; m < MODEL_ROWS; m++) {
    float row[2][MODEL_ROWS], even[MODEL_ROWS] = { 0 }, odd[MODEL_ROWS] = { 0 }, before[MODEL_ROWS];
    model_row(a, m, row);
    for (size_t k = 0; k < n_pairs; k++) {
      model_steps(row[0][k], columns[k][swapped], even);
      model_steps(row[1][k], columns[k][1 - swapped], odd);
    }
    memcpy(before, model_tiles[sums][m], sizeof before);
    for (size_t n = 0; n < MODEL_ROWS; n++) {
      float products = model_rounded((double)even[n] + (double)odd[n]);
      before[n] = model_rounded((tile_fault == FAULT_FORGETFUL ? 0.0 : (double)before[n]) + (double)products);
    }
    memcpy(model_tiles[sums][m], before, sizeof before);
  }
}

/* sums[m][n] += a[m][4 k + i] b[k][n][i] over all k and i. */
static inline void model_add_bytes(int sums, int a, int b, bool is_unsigned)
{
  size_t n_bytes = MODEL_ROW_BYTES - (tile_fault == FAULT_LOST_PAIR), swapped = tile_fault == FAULT_SWAPPED;

  demand_tiles();
  for (size_t m = 0; m < MODEL_ROWS; m++) {
    for (size_t n = 0; n < MODEL_ROW_BYTES / 4; n++) {
      uint32_t sum;
      memcpy(&sum, model_tiles[sums][m] + 4 * n, sizeof sum);
      if (tile_fault == FAULT_FORGETFUL)
        sum = 0;
      for (size_t k = 0; k < n_bytes; k++) {
        uint8_t byte = model_tiles[b][k / 4][4 * n + (k % 4 ^ swapped)];
        int32_t factor = (tile_fault == FAULT_CUT) != is_unsigned ? byte : (int8_t)byte;
        sum += (uint32_t)((int8_t)model_tiles[a][m][k] * factor);
        if (tile_fault == FAULT_ROUNDED_PRODUCTS)
          sum &= ~1u;
      }
      memcpy(model_tiles[sums][m] + 4 * n, &sum, sizeof sum);
    }
  }
}

static inline void tile_add_signed(int sums, int a, int b)
{
  model_add_bytes(sums, a, b, false);
}

static inline void tile_add_unsigned(int sums, int a, int b)
{
  model_add_bytes(sums, a, b, true);
}

#endif
