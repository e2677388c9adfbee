/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes blocks of sketches to rows, and rows to tiles. */
#include "engine/mol/mol_rows.h"

#include "base/size.h"
#include "engine/mol/mol_tile.h"

enum { WORD_BYTES = 4 };

/* Rows are stored in strips of MOL_LANES words. */
static size_t n_strips(const struct mol_rows *r)
{
  return (r->n_words + MOL_LANES - 1) / MOL_LANES;
}

err_t mol_rows_init(const struct mol_columns *c, const struct kernels *kernels, struct region *region,
                    struct mol_rows *out)
{
  *out = (struct mol_rows){ .kernels = kernels, .n_words = mol_item_layout(c->model).sketch / WORD_BYTES };
  TRY(region_aligned(region, n_strips(out) * MOL_ROWS_SLOTS * MOL_LANES, sizeof *out->rows, &out->rows));
  return region_aligned(region, n_strips(out) * MOL_LANES * MOL_LANES, sizeof *out->tile, &out->tile);
}

/* The words of a strip of a row: up to MOL_LANES. */
static size_t n_words_of(const struct mol_rows *r, size_t strip)
{
  return size_min(r->n_words - strip * MOL_LANES, MOL_LANES);
}

static float *row_at(const struct mol_rows *r, size_t strip, size_t slot)
{
  return r->rows + (strip * MOL_ROWS_SLOTS + slot) * MOL_LANES;
}

static void load_block(struct mol_rows *r, const uint8_t *block, size_t slot)
{
  const float *words[MOL_LANES];

  for (size_t strip = 0; strip < n_strips(r); strip++) {
    size_t n = n_words_of(r, strip);
    for (size_t i = 0; i < n; i++, block += SKETCH_BLOCK_ITEMS * WORD_BYTES)
      words[i] = (const float *)(const void *)block;
    r->kernels->transpose(words, n, SKETCH_BLOCK_ITEMS, row_at(r, strip, slot));
  }
}

void mol_rows_load(struct mol_rows *r, const struct mol_columns *c, size_t first, size_t n)
{
  const uint8_t *blocks = mol_sketch_block_at(c, first);

  for (size_t slot = 0; slot < n; slot += SKETCH_BLOCK_ITEMS, blocks += mol_sketch_block_bytes(c))
    load_block(r, blocks, slot);
}

const uint8_t *mol_rows_tile(struct mol_rows *r, const uint16_t *at, size_t n)
{
  const float *rows[MOL_LANES] = { 0 };

  for (size_t strip = 0; strip < n_strips(r); strip++) {
    for (size_t i = 0; i < n; i++)
      rows[i] = row_at(r, strip, at[i]);
    r->kernels->transpose(rows, n, n_words_of(r, strip), r->tile + strip * MOL_LANES * MOL_LANES);
  }
  return (const uint8_t *)r->tile;
}
