/* SPDX-License-Identifier: Apache-2.0 */
/* The counting sort of recjpq_levels.h. */
#include "engine/recjpq/recjpq_levels.h"

void recjpq_levels_sort(const uint8_t *table, const uint32_t *lengths, size_t n_subitems, struct recjpq_levels *out)
{
  uint8_t found[PQ_SUBITEMS];
  uint16_t counts[PQ_SUBITEMS] = { 0 }, next[PQ_SUBITEMS], n_below = 0;
  size_t n = 0;

  /* Most sub-items have level 255: too far below the best to matter. Without jumps, that costs little. */
  for (size_t b = 0; b < n_subitems; b++) {
    found[n] = (uint8_t)b;
    n += lengths[b] > 0 && table[b] <= RECJPQ_LEVELS;
  }
  for (size_t i = 0; i < n; i++)
    counts[table[found[i]]]++;
  for (size_t level = 0; level < PQ_SUBITEMS; level++) {
    out->n_below[level] = 0;
    out->n_below[PQ_SUBITEMS + level] = next[level] = n_below;
    n_below = (uint16_t)(n_below + counts[level]);
  }
  out->n = n;
  for (size_t i = 0; i < n; i++)
    out->subitems[next[table[found[i]]]++] = found[i];
}
