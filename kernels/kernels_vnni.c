/* AVX-512 with VNNI (Cascade Lake and later): products of bytes, summed in 32 bits. */
#include <immintrin.h>

#include "kernels/variants.h"

#define TILE static inline __attribute__((always_inline))

/* dot_i8 -------------------- */

enum {
  ROW_BYTES = SKETCH_BLOCK_ITEMS * SKETCH_GROUP, /* one vector */
  TILE_BLOCKS = 8,                               /* blocks whose sums are built at once */
  CHUNK_GROUPS = 256,                            /* groups of the query that are split at once */
};

/* The query's numbers, 256 * high + low, as signed bytes: four to a group. */
struct byte_query {
  int8_t high[CHUNK_GROUPS * SKETCH_GROUP];
  int8_t low[CHUNK_GROUPS * SKETCH_GROUP];
  size_t n_groups;
};

static void split_bytes(const int16_t *query, size_t n_groups, struct byte_query *out)
{
  out->n_groups = n_groups;
  for (size_t k = 0; k < n_groups * SKETCH_GROUP; k++) {
    out->low[k] = (int8_t)query[k];
    out->high[k] = (int8_t)((query[k] + 128) >> 8);
  }
}

TILE __m512i broadcast(const int8_t *group)
{
  int32_t bytes;

  __builtin_memcpy(&bytes, group, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

/* Add to the sums of n blocks. */
TILE void bytes_tile(const struct byte_query *query, const uint8_t *blocks, size_t block_bytes, int n, int32_t *sums)
{
  __m512i high[TILE_BLOCKS], low[TILE_BLOCKS];

  UNROLL for (int i = 0; i < n; i++)
  {
    high[i] = _mm512_setzero_si512();
    low[i] = _mm512_loadu_si512(sums + i * SKETCH_BLOCK_ITEMS);
  }
  for (size_t g = 0; g < query->n_groups; g++) {
    __m512i q_high = broadcast(query->high + g * SKETCH_GROUP), q_low = broadcast(query->low + g * SKETCH_GROUP);
    UNROLL for (int i = 0; i < n; i++)
    {
      __m512i bytes = _mm512_load_si512(blocks + (size_t)i * block_bytes + g * ROW_BYTES);
      high[i] = _mm512_dpbusd_epi32(high[i], bytes, q_high);
      low[i] = _mm512_dpbusd_epi32(low[i], bytes, q_low);
    }
  }
  UNROLL for (int i = 0; i < n; i++)
      _mm512_storeu_si512(sums + i * SKETCH_BLOCK_ITEMS, _mm512_add_epi32(_mm512_slli_epi32(high[i], 8), low[i]));
}

/* Bytes are 128 too large: where all sums start. */
static int32_t start_of_sums(const int16_t *query, size_t n)
{
  int32_t sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += query[k];
  return -128 * sum;
}

/* Between the start and the end a sum may leave 32 bits: the vectors' additions wrap, and the end is within. */
static void dot_i8_vnni(const int16_t *query, size_t n_groups, const uint8_t *blocks, size_t n_blocks, int32_t *sums)
{
  const size_t block_bytes = n_groups * ROW_BYTES;
  const int32_t start = start_of_sums(query, n_groups * SKETCH_GROUP);
  struct byte_query split;

  for (size_t i = 0; i < n_blocks * SKETCH_BLOCK_ITEMS; i++)
    sums[i] = start;
  for (size_t g = 0; g < n_groups; g += CHUNK_GROUPS) {
    const uint8_t *from = blocks + g * ROW_BYTES;
    size_t b = 0;
    split_bytes(query + g * SKETCH_GROUP, n_groups - g < CHUNK_GROUPS ? n_groups - g : CHUNK_GROUPS, &split);
    for (; b + TILE_BLOCKS <= n_blocks; b += TILE_BLOCKS)
      bytes_tile(&split, from + b * block_bytes, block_bytes, TILE_BLOCKS, sums + b * SKETCH_BLOCK_ITEMS);
    for (; b < n_blocks; b++)
      bytes_tile(&split, from + b * block_bytes, block_bytes, 1, sums + b * SKETCH_BLOCK_ITEMS);
  }
}

void variant_avx512_vnni(struct kernels *table)
{
  table->dot_i8 = dot_i8_vnni;
}
