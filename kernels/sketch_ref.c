/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar reference of dot_i8(), sketch_bounds(), dot_f64() and dots_f64(), for sketches and vectors. */
#include <math.h>
#include <string.h>

#include "kernels/variants.h"

static void dot_i8_of_one(const int16_t *query, size_t n_groups, const uint8_t *blocks, size_t n_blocks, int32_t *sums)
{
  for (size_t b = 0; b < n_blocks; b++) {
    const uint8_t *block = blocks + b * n_groups * SKETCH_BLOCK_ITEMS * SKETCH_GROUP;
    for (size_t i = 0; i < SKETCH_BLOCK_ITEMS; i++) {
      int32_t sum = 0;
      for (size_t k = 0; k < n_groups * SKETCH_GROUP; k++) {
        size_t group = k / SKETCH_GROUP * SKETCH_BLOCK_ITEMS + i;
        sum += query[k] * ((int32_t)block[group * SKETCH_GROUP + k % SKETCH_GROUP] - 128);
      }
      sums[b * SKETCH_BLOCK_ITEMS + i] = sum;
    }
  }
}

static void dot_i8_ref(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                       size_t n_blocks, int32_t *const *sums)
{
  for (size_t q = 0; q < n_queries; q++)
    dot_i8_of_one(queries[q], n_groups, blocks, n_blocks, sums[q]);
}

static const uint8_t *row_at(const uint8_t *rows, size_t n_groups, const uint32_t *slots, size_t i)
{
  return rows + (slots ? slots[i] : i) * n_groups * SKETCH_GROUP;
}

static void dot_i8_rows_ref(const int16_t *query, size_t n_groups, const uint8_t *rows, const uint32_t *slots, size_t n,
                            int32_t *sums)
{
  for (size_t i = 0; i < n; i++) {
    const uint8_t *row = row_at(rows, n_groups, slots, i);
    sums[i] = 0;
    for (size_t k = 0; k < n_groups * SKETCH_GROUP; k++)
      sums[i] += query[k] * ((int32_t)row[k] - 128);
  }
}

static void block_rows_ref(const uint8_t *rows, size_t n_groups, const uint32_t *slots, size_t n, uint8_t *blocks)
{
  size_t n_blocks = (n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS;

  for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++) {
    const uint8_t *row = row_at(rows, n_groups, slots, i < n ? i : n - 1);
    uint8_t *block = blocks + i / SKETCH_BLOCK_ITEMS * n_groups * SKETCH_BLOCK_ITEMS * SKETCH_GROUP;
    for (size_t g = 0; g < n_groups; g++)
      memcpy(block + (g * SKETCH_BLOCK_ITEMS + i % SKETCH_BLOCK_ITEMS) * SKETCH_GROUP, row + g * SKETCH_GROUP,
             SKETCH_GROUP);
  }
}

static float score_of(int32_t sum, float scale, float unit)
{
  return (float)sum * scale * unit;
}

static float slack_of(const struct sketch_items *items, const struct sketch_weights *w, size_t i)
{
  float slack = fmaf(items->errors[i], w->error, fmaf(items->scales[i], w->scale, w->floor));

  return items->tails ? fmaf(items->tails[i], w->tail, slack) : slack;
}

static void sketch_bounds_ref(const int32_t *sums, const struct sketch_items *items,
                              const struct sketch_weights *weights, size_t n_blocks, float *bounds)
{
  for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++)
    bounds[i] = score_of(sums[i], items->scales[i], weights->unit) + slack_of(items, weights, i);
}

enum { PARTIAL_SUMS = 32 };

static double dot_f64_ref(const double *query, const float *row, size_t n)
{
  double sums[PARTIAL_SUMS] = { 0 };
  size_t n_whole = (n + PARTIAL_SUMS - 1) / PARTIAL_SUMS * PARTIAL_SUMS;

  for (size_t k = 0; k < n_whole; k++)
    sums[k % PARTIAL_SUMS] = fma(k < n ? query[k] : 0.0, k < n ? (double)row[k] : 0.0, sums[k % PARTIAL_SUMS]);
  for (size_t half = PARTIAL_SUMS / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; j++)
      sums[j] += sums[j + half];
  }
  return sums[0];
}

static void dots_f64_ref(const double *rows, size_t n_rows, const float *const *vectors, size_t n_vectors, size_t dim,
                         double *out)
{
  for (size_t v = 0; v < n_vectors; v++)
    for (size_t r = 0; r < n_rows; r++)
      out[v * n_rows + r] = dot_f64_ref(rows + r * dim, vectors[v], dim);
}

void variant_sketch_ref(struct kernels *table)
{
  table->dot_i8 = dot_i8_ref;
  table->dot_i8_rows = dot_i8_rows_ref;
  table->block_rows = block_rows_ref;
  table->sketch_bounds = sketch_bounds_ref;
  table->dot_f64 = dot_f64_ref;
  table->dots_f64 = dots_f64_ref;
}
