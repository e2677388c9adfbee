/* SPDX-License-Identifier: Apache-2.0 */
/* The counting sort of recjpq_levels.h. */
#include "engine/recjpq/recjpq_levels.h"

void recjpq_levels_sort(const uint8_t *table, const uint32_t *lengths, size_t n_subitems, struct recjpq_levels *out)
{
  uint16_t next[PQ_SUBITEMS + 1] = { 0 };

  for (size_t b = 0; b < n_subitems; b++) {
    if (lengths[b] > 0)
      next[table[b] + 1]++;
  }
  for (size_t level = 0; level < PQ_SUBITEMS; level++) {
    next[level + 1] = (uint16_t)(next[level + 1] + next[level]);
    out->n_below[level] = 0;
    out->n_below[PQ_SUBITEMS + level] = next[level];
  }
  out->n = next[PQ_SUBITEMS - 1]; /* level 255 means too far below the best to matter */
  for (size_t b = 0; b < n_subitems; b++) {
    if (lengths[b] > 0 && table[b] <= RECJPQ_LEVELS)
      out->subitems[next[table[b]]++] = (uint8_t)b;
  }
}
