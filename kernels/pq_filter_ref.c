/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar reference of pq_filter(), pq_cells(), pq_scan(), pq_gather(), pq_best() and pq_levels(). */
#include "kernels/pq_filter.h"

#include <math.h>

size_t pq_filter_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                     size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices)
{
  size_t found = 0;

  for (size_t i = 0; i < n; i++) {
    unsigned sum = base;
    for (size_t t = 0; t < n_tables && sum <= limit; t++)
      sum += tables[t][codes[rows[t] * stride + i]];
    if (sum <= limit)
      indices[found++] = (uint32_t)i;
  }
  return found;
}

size_t pq_scan_ref(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n, uint8_t limit,
                   const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices)
{
  size_t found = 0;

  (void)next;
  for (size_t i = 0; i < n; i++) {
    unsigned sum = 0;
    for (size_t t = 0; t < n_tables && sum <= limit; t++)
      sum += tables[t][rows[t][i]];
    indices[found] = (uint32_t)i;
    found += sum <= limit && (!admitted || admitted[i / 64] >> i % 64 & 1);
  }
  return found;
}

void pq_gather_ref(const uint8_t *codes, size_t n_splits, const uint32_t *slots, size_t n, uint8_t *block)
{
  for (size_t i = 0; i < n; i++) {
    for (size_t m = 0; m < n_splits; m++)
      block[m * PQ_BLOCK_ITEMS + i] = codes[slots[i] * n_splits + m];
  }
}

size_t pq_cells_ref(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const struct pq_piece *pieces,
                    size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *indices)
{
  return pq_cells_by(pq_filter_ref, tables, rows, n_tables, pieces, n, next, n_next, limit, indices);
}

size_t pq_best_ref(const float *scores, const uint32_t *lengths, size_t n, float lane_best[PQ_LANES], float *largest)
{
  size_t n_used = 0;

  for (size_t i = 0; i < PQ_LANES; i++)
    lane_best[i] = -INFINITY;
  *largest = 0;
  for (size_t b = 0; b < n; b++) {
    if (lengths[b] == 0)
      continue;
    float *best = &lane_best[b % PQ_LANES], size = fabsf(scores[b]);
    *best = scores[b] > *best ? scores[b] : *best;
    *largest = size > *largest ? size : *largest;
    n_used++;
  }
  return n_used;
}

uint64_t pq_levels_ref(const float *scores, float best, float scale, const uint32_t *lengths, size_t n_lengths,
                       uint8_t *table)
{
  uint64_t sum = 0;

  for (size_t b = 0; b < PQ_SUBITEMS; b++) {
    float level = (best - scores[b]) * scale;
    level = level > 0.0f ? level : 0.0f; /* also for NaN */
    table[b] = (uint8_t)(int)(level < 255.0f ? level : 255.0f);
  }
  for (size_t b = 0; b < n_lengths; b++)
    sum += (uint64_t)lengths[b] * table[b];
  return sum;
}
