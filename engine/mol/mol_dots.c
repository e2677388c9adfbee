/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of scattered rows: MOL_LANES rows at a time are transposed into a tile and multiplied. */
#include "engine/mol/mol_dots.h"

enum { LINE_FLOATS = 16 };

/* Rows are scattered in memory, so prefetch the next ones while the current ones are computed. */
static void prefetch(const struct mol_dots *d, const struct scan_entry *entries, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const float *row = d->rows + entries[i].slot * d->stride;
    for (size_t k = 0; k < d->dim; k += LINE_FLOATS)
      __builtin_prefetch(row + k);
  }
}

void mol_dots(const struct mol_dots *d, const struct scan_entry *entries, size_t n, float *scores)
{
  const float *rows[MOL_LANES];
  float lanes[MOL_LANES];

  for (size_t first = 0; first < n; first += MOL_LANES) {
    size_t n_now = n - first < MOL_LANES ? n - first : MOL_LANES, rest = n - first - n_now;
    prefetch(d, entries + first + n_now, rest < MOL_LANES ? rest : MOL_LANES);
    for (size_t i = 0; i < n_now; i++)
      rows[i] = d->rows + entries[first + i].slot * d->stride;
    d->kernels->transpose(rows, n_now, d->dim, d->tile);
    d->kernels->linear(d->vector, 1, d->dim, d->tile, NULL, MOL_LANES, lanes);
    memcpy(scores + first, lanes, n_now * sizeof *scores);
  }
}
